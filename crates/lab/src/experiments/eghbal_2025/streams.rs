//! The cost of a stream for each message, where the paper has a stream for each update (section 4.1).

use sutura_sim::{Scenario, UpdatePlan, UpdatesOutcome};

use super::{BASELINE, BYTES, MESSAGES, Mode, SCHEMES, Screen, ScreenPath, UPDATES, seed};
use crate::report::{Cell, Table};
use crate::{Error, Options, parallel};

/// The rates of the paths. No path loses packets, since a loss costs either kind of stream the same.
const MBITS: [u64; 3] = [10, 100, 1000];
/// How many streams the receiver permits: the default for streams other than groups, and for groups.
const PERMITTED: [u64; 2] = [100, 4096];
/// Messages of an update, and its name.
const GRAINS: [(usize, &str); 2] = [(MESSAGES, "message"), (1, "update")];

/// Streaming updates, cut into streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grain {
    pub(super) mbit: u64,
    /// How many streams an update has, and what each stream carries.
    pub(super) grain: (usize, &'static str),
    pub(super) permitted: u64,
}

impl Grain {
    /// Sends the updates and receives them in partial order.
    pub(super) fn run(&self, updates: usize, seed: u64) -> Result<UpdatesOutcome, Error> {
        let path = ScreenPath { loss: 0.0, mbit: self.mbit, ..BASELINE };
        let [_, partial, ..] = SCHEMES;
        let setup = Screen { workload: Mode::Streaming, path, scheme: partial };
        let transport = setup
            .transport()?
            .with_max_concurrent_uni_streams(self.permitted)
            .with_max_concurrent_group_streams(self.permitted)
            .with_stream_receive_window(1 << 20);
        let (streams, _) = self.grain;
        let plan = UpdatePlan::equal(updates, streams, MESSAGES * BYTES / streams);
        let link = path.link()?;
        Ok(Scenario::new(seed).link(&link, &link).transport(&transport).updates(&plan)?)
    }
}

/// The table.
pub(super) fn table(options: &Options) -> Result<Table, Error> {
    let updates = usize::try_from(options.reduced(UPDATES)).unwrap_or(usize::MAX);
    let cuts = MBITS.into_iter().flat_map(|mbit| {
        let of_grain = move |grain| PERMITTED.map(|permitted| Grain { mbit, grain, permitted });
        GRAINS.into_iter().flat_map(of_grain)
    });
    let cuts: Vec<Grain> = cuts.collect();
    let outcomes = parallel::map(options, &cuts, |cut| cut.run(updates, seed(options.seed, 0)))?;
    let rows: Vec<_> = cuts.iter().zip(&outcomes).collect();
    let bytes = (updates * MESSAGES * BYTES) as f64;
    let seconds = |outcome: &UpdatesOutcome| {
        let last = outcome.delivered.iter().map(|message| message.delivered).max();
        let began = outcome.asked_at.first().copied().unwrap_or_default();
        last.unwrap_or_default().saturating_sub(began).as_secs_f64()
    };
    Ok(Table::of(
        "A stream for each message or for each update, without losses",
        &rows,
        &[
            ("Mbit/s", &|(cut, _)| cut.mbit.to_string().into()),
            ("a stream for each", &|(cut, _)| cut.grain.1.into()),
            ("permitted", &|(cut, _)| cut.permitted.to_string().into()),
            ("complete", &|(_, outcome)| Cell::Number(seconds(outcome))),
            ("wire/byte", &|(_, o)| Cell::Number(o.ends.down.sent_bytes as f64 / bytes)),
            ("back/byte", &|(_, o)| Cell::Number(o.ends.up.sent_bytes as f64 / bytes)),
        ],
    ))
}
