//! Measures single flows.

use std::collections::BTreeMap;
use std::time::Duration;

use sutura_analysis::statistics::{Distribution, mean, millis};

use super::bed::{Bed, Flow, FlowOutcome};
use super::paths::VariedPath;
use super::sender::Sender;
use crate::comparison::{Runs, seed};
use crate::{Error, Options};

/// Flow control leaves room for all of a transfer.
const WINDOW: u32 = 16 << 20;
/// A transfer that takes longer counts as one that never ends.
pub const DEADLINE: Duration = Duration::from_secs(600);
/// Seeds of a reference: it has no losses, so that little is left to chance.
const REFERENCE_SEEDS: u64 = 3;

/// A size of transfers, and how many of them there are of each configuration.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Bytes.
    pub bytes: u64,
    /// Transfers, a connection each.
    pub seeds: u64,
}

/// The sizes, the smallest first.
pub const SIZES: [Size; 3] = [
    Size { bytes: 32_000, seeds: 20 },
    Size { bytes: 1_000_000, seeds: 10 },
    Size { bytes: 10_000_000, seeds: 5 },
];

/// The sizes that are left when all repetitions are divided by [`Options::reduce`]: the sizes of which a
/// repetition remains, and always the smallest.
pub fn sizes(options: &Options) -> Vec<Size> {
    let reduce = u64::from(options.reduce.max(1));
    let left = |size: &&Size| size.seeds >= reduce || size.bytes == SIZES[0].bytes;
    let sizes =
        SIZES.iter().filter(left).map(|size| Size { seeds: options.seeds(size.seeds), ..*size });
    sizes.collect()
}

/// A configuration.
#[derive(Clone, Debug)]
pub struct Single<'a> {
    /// The path.
    pub path: &'a VariedPath,
    /// The sender.
    pub sender: Sender,
    /// The size of the transfers, and their number.
    pub size: Size,
}

/// The outcome of one configuration.
#[derive(Clone, Debug)]
pub struct SingleFigures<'a> {
    /// The configuration.
    pub setup: Single<'a>,
    /// Times to completion. Transfers that do not end count as [`DEADLINE`].
    pub times: Distribution,
    /// The median of the same transfers on the path's reference.
    pub reference: Option<Duration>,
    /// How long packets wait in the queue on average, in milliseconds.
    pub queue_delay: f64,
    /// Share of packets that the queue drops.
    pub overflow: f64,
    /// Bytes sent again for each byte of the transfers.
    pub sent_again: f64,
    /// Share of transfers that do not end.
    pub unfinished: f64,
}

impl<'a> SingleFigures<'a> {
    fn of(setup: Single<'a>, outcomes: &[FlowOutcome], reference: Option<Duration>) -> Self {
        let sum = |value: &dyn Fn(&FlowOutcome) -> f64| outcomes.iter().map(value).sum::<f64>();
        let share = |part: f64, whole: f64| part / whole.max(1.0);
        let bytes = (setup.size.bytes * outcomes.len() as u64) as f64;
        Self {
            times: times(outcomes),
            reference,
            queue_delay: share(
                sum(&|o| millis(o.passage.queued)),
                sum(&|o| o.passage.passed as f64),
            ),
            overflow: share(sum(&|o| o.passage.overflow as f64), sum(&|o| o.passage.sent as f64)),
            sent_again: share(sum(&|o| o.sent_again as f64), bytes),
            unfinished: mean(outcomes.iter().map(|o| f64::from(u8::from(o.time.is_none())))),
            setup,
        }
    }

    /// The median time as a multiple of the median on the path's reference.
    pub fn ratio(&self) -> Option<f64> {
        let median = self.times.quantile(0.5);
        let reference = self.reference.filter(|time| *time < DEADLINE && median < DEADLINE)?;
        Some(median.as_secs_f64() / reference.as_secs_f64())
    }
}

fn times(outcomes: &[FlowOutcome]) -> Distribution {
    Distribution::of(outcomes.iter().map(|outcome| outcome.time.unwrap_or(DEADLINE)))
}

/// The senders that are measured on a path: every controller, our controllers as published where they differ
/// from that, and with redundancy where that may be of use.
pub fn senders(path: &VariedPath) -> Vec<Sender> {
    let ours = Sender::ours();
    let protected: Vec<_> =
        ours.iter().filter(|_| path.lossy).filter_map(Sender::protected).collect();
    ours.into_iter().chain(Sender::references()).chain(protected).chain(Sender::quinn()).collect()
}

fn transfer(setup: &Single<'_>, reference: bool, seed: u64) -> Result<FlowOutcome, Error> {
    let path = setup.path;
    let own = (&path.up, &path.down);
    let links = path.reference.as_ref().filter(|_| reference);
    let (up, down) = links.map_or(own, |(up, down)| (up, down));
    let bed = Bed { up, down, window: WINDOW, until: DEADLINE };
    let start = Duration::ZERO;
    let flow = Flow { sender: &setup.sender, bytes: setup.size.bytes, pause: None, start };
    let mut outcomes = bed.run(&[flow], seed)?;
    Ok(outcomes.remove(0))
}

/// A key that is equal for two configurations with the same reference.
fn key(setup: &Single<'_>) -> Option<String> {
    let (up, down) = setup.path.reference.as_ref()?;
    Some(format!("{up}/{down}/{}/{}", setup.sender.plain(), setup.size.bytes))
}

/// Measures `setups`. Setups of the same size get the same seeds.
///
/// # Errors
/// A simulation fails.
pub fn measure<'a>(
    setups: &[Single<'a>],
    options: &Options,
) -> Result<Vec<SingleFigures<'a>>, Error> {
    let mut references: BTreeMap<String, Single<'_>> = BTreeMap::new();
    for setup in setups {
        if let Some(key) = key(setup) {
            let sender = setup.sender.plain();
            references.entry(key).or_insert_with(|| Single { sender, ..setup.clone() });
        }
    }
    let (keys, references): (Vec<String>, Vec<Single<'_>>) = references.into_iter().unzip();
    let few = |setup: &Single<'_>| setup.size.seeds.min(REFERENCE_SEEDS);
    let references = Runs::measure_each(options, &references, few, |setup, n| {
        transfer(setup, true, seed(options.seed, 1 + n))
    })?;
    let medians = references.iter().map(|of| times(&of.runs).quantile(0.5));
    let medians: BTreeMap<String, Duration> = keys.into_iter().zip(medians).collect();
    let all = Runs::measure_each(
        options,
        setups,
        |setup| setup.size.seeds,
        |setup, n| transfer(setup, false, seed(options.seed, 1 + n)),
    )?;
    let figures = |Runs { setup, runs }: Runs<Single<'a>, FlowOutcome>| {
        let reference = key(&setup).and_then(|key| medians.get(&key).copied());
        SingleFigures::of(setup, &runs, reference)
    };
    Ok(all.into_iter().map(figures).collect())
}
