//! The cost of a stream for each message, where the paper has a stream for each update (section 4.1).

use serde::{Deserialize, Serialize};
use sutura_sim::{Scenario, UpdatePlan, UpdatesOutcome};

use super::{BASELINE, BYTES, MESSAGES, Mode, SCHEMES, Screen, ScreenPath, seed, updates};
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

/// The cost of a grain.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct GrainCost {
    /// Seconds until everything was delivered.
    complete: f64,
    /// Bytes of UDP payload from the server and from the client, for each byte of the messages.
    wire: f64,
    back: f64,
}

impl GrainCost {
    fn of(outcome: &UpdatesOutcome, updates: usize) -> Self {
        let last = outcome.delivered.iter().map(|message| message.delivered).max();
        let began = outcome.asked_at.first().copied().unwrap_or_default();
        let bytes = (updates * MESSAGES * BYTES) as f64;
        Self {
            complete: last.unwrap_or_default().saturating_sub(began).as_secs_f64(),
            wire: outcome.ends.down.sent_bytes as f64 / bytes,
            back: outcome.ends.up.sent_bytes as f64 / bytes,
        }
    }
}

/// The table.
pub(super) fn table(options: &Options) -> Result<Table, Error> {
    let updates = updates(options);
    let cuts = MBITS.into_iter().flat_map(|mbit| {
        let of_grain = move |grain| PERMITTED.map(|permitted| Grain { mbit, grain, permitted });
        GRAINS.into_iter().flat_map(of_grain)
    });
    let cuts: Vec<Grain> = cuts.collect();
    let costs = parallel::map(options, &cuts, |cut| {
        let outcome = cut.run(updates, seed(options.seed, 0))?;
        Ok::<_, Error>(GrainCost::of(&outcome, updates))
    })?;
    let rows: Vec<_> = cuts.iter().zip(&costs).collect();
    Ok(Table::of(
        "A stream for each message or for each update, without losses",
        &rows,
        &[
            ("Mbit/s", &|(cut, _)| cut.mbit.to_string().into()),
            ("a stream for each", &|(cut, _)| cut.grain.1.into()),
            ("permitted", &|(cut, _)| cut.permitted.to_string().into()),
            ("complete", &|(_, cost)| Cell::Number(cost.complete)),
            ("wire/byte", &|(_, cost)| Cell::Number(cost.wire)),
            ("back/byte", &|(_, cost)| Cell::Number(cost.back)),
        ],
    ))
}
