//! Two endless downloads on random paths: BBR as it is and as its draft has it, beside quinn's CUBIC and among
//! its own kind, at short and long queues.

mod report;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sutura_analysis::statistics::mean;
use sutura_link::LinkConfig;
use sutura_proto::Algorithm;
use sutura_random::Rng;

use super::controllers::bed::{Bed, Flow};
use super::controllers::sender::{QuinnController, Sender};
use super::controllers_shared::{Figures, STAGGER};
use super::draw::{log_uniform, millis, rounded};
use crate::comparison::{Runs, Values, seed};
use crate::report::Report;
use crate::{Error, Options};

/// Paths, unless the options name a number.
const PATHS: u64 = 20;
/// Runs of each pair at each queue of each path.
const SEEDS: u64 = 1;
/// How long each bottleneck is watched, unless the options say.
const LENGTH: Duration = Duration::from_secs(120);
/// The slowest and the fastest path in bits per second, and the shortest and the longest round trip in
/// milliseconds.
const RATES: [f64; 2] = [2e6, 30e6];
const TRIPS: [f64; 2] = [15.0, 200.0];
/// The queues in bandwidth-delay products.
const QUEUES: [f64; 3] = [0.5, 1.0, 4.0];
/// Flow control leaves each flow room for more than the largest path and its queue hold.
const WINDOW: u32 = 8 << 20;

experiment! {
    "controllers-paths": "BBR beside quinn's CUBIC and among its own kind, on random paths" (Seeds, Paths, Seconds),
    one in 20 takes 25 s
}

/// A path, which its number and the seed of the experiment determine. All pairs at all its queues begin at the
/// same times.
#[derive(Clone, Debug, PartialEq)]
struct RandomPath {
    number: u64,
    /// Bits per second.
    rate: u64,
    rtt: Duration,
    /// When the second flow begins, as a share of the time in which flows begin.
    apart: f64,
    /// Whether the one flow of a pair begins, and not the other.
    one_begins: bool,
}

impl RandomPath {
    fn draw(base: u64, number: u64) -> Self {
        let mut rng = Rng::new(seed(base, number));
        let rate = rounded(log_uniform(&mut rng, RATES[0], RATES[1])) as u64;
        let rtt = 2 * millis(log_uniform(&mut rng, TRIPS[0], TRIPS[1]) / 2.0);
        Self { number, rate, rtt, apart: rng.unit(), one_begins: rng.chance(0.5) }
    }

    /// When the second flow begins.
    fn later(&self, length: Duration) -> Duration {
        (length / STAGGER).mul_f64(self.apart)
    }

    /// The bytes of a queue of so many bandwidth-delay products.
    fn queue(&self, products: f64) -> u64 {
        (products * self.rate as f64 / 8.0 * self.rtt.as_secs_f64()) as u64
    }

    /// The links to the server and from it.
    ///
    /// # Errors
    /// A link's text is wrong, which is a bug.
    fn links(&self, products: f64) -> Result<[LinkConfig; 2], Error> {
        let line = format!("rate={}bit delay={}us", self.rate, (self.rtt / 2).as_micros());
        let down = format!("{line} queue={}b", self.queue(products)).parse()?;
        Ok([line.parse()?, down])
    }
}

/// The senders of two flows at a bottleneck.
#[derive(Clone, Debug)]
struct Pair {
    one: Sender,
    other: Sender,
}

impl Pair {
    /// BBR and the draft's own beside quinn's CUBIC, each among its own kind, and CUBIC among its own kind to
    /// compare with.
    fn all() -> Vec<Self> {
        let cubic = Sender::Quinn(QuinnController::Cubic);
        let kinds = [Algorithm::BBR, Algorithm::BBR_WITHOUT_FLOOR]
            .map(|kind| Sender::Ours { congestion: Arc::new(kind), protection: None });
        let beside = kinds.iter().map(|one| Self { one: one.clone(), other: cubic.clone() });
        let alike = kinds.iter().chain([&cubic]);
        let alike = alike.map(|kind| Self { one: kind.clone(), other: kind.clone() });
        beside.chain(alike).collect()
    }

    fn is_alike(&self) -> bool {
        self.one.to_string() == self.other.to_string()
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_alike() {
            write!(f, "{}, last beside first", self.one)
        } else {
            write!(f, "{} beside {}", self.one, self.other)
        }
    }
}

/// A pair at a queue of a path.
#[derive(Clone, Debug)]
struct Duel {
    path: Arc<RandomPath>,
    /// The queue in bandwidth-delay products.
    queue: f64,
    pair: Pair,
}

impl Duel {
    /// Whether the one flow begins. Of two of a kind, it is the one that comes last.
    fn one_begins(&self) -> bool {
        self.path.one_begins && !self.pair.is_alike()
    }

    /// Runs both flows for the time `length`. The figures have the share of the one flow first.
    fn run(&self, length: Duration, seed: u64) -> Result<Figures, Error> {
        let [up, down] = self.path.links(self.queue)?;
        let bed = Bed { up: &up, down: &down, window: WINDOW, until: length };
        // More than the bottleneck can carry.
        let bytes = self.path.rate / 4 * length.as_secs().max(1);
        let flow = |sender, start| Flow { sender, bytes, pause: None, start };
        let Pair { one, other } = &self.pair;
        let (first, second) = if self.one_begins() { (one, other) } else { (other, one) };
        let outcomes =
            bed.run(&[flow(first, Duration::ZERO), flow(second, self.path.later(length))], seed)?;
        let mut figures = Figures::of(outcomes, self.path.rate, length);
        if !self.one_begins() {
            figures.shares.reverse();
        }
        Ok(figures)
    }
}

/// The runs of a pair at a queue of a path.
type DuelRuns = Runs<Duel, Figures>;

impl DuelRuns {
    /// The mean share of the one flow (0) or of the other (1), as a multiple of half of the bottleneck.
    fn share(&self, flow: usize) -> f64 {
        self.mean(|run| mean(run.shares.get(flow).copied()))
    }
}

/// The runs of a pair at queues of one length: a row for each path.
struct AtQueue<'a> {
    queue: f64,
    pair: &'a Pair,
    rows: Vec<&'a DuelRuns>,
}

impl<'a> AtQueue<'a> {
    /// All pairs at all queues, the shortest queue first.
    fn all(runs: &'a [DuelRuns], pairs: &'a [Pair]) -> Vec<Self> {
        let of = |queue: f64, pair: &'a Pair| {
            let name = pair.to_string();
            let own =
                |run: &&DuelRuns| run.setup.queue == queue && run.setup.pair.to_string() == name;
            Self { queue, pair, rows: runs.iter().filter(own).collect() }
        };
        QUEUES.iter().flat_map(|queue| pairs.iter().map(|pair| of(*queue, pair))).collect()
    }

    fn values(&self, value: impl Fn(&DuelRuns) -> f64) -> Values {
        Values::of(self.rows.iter().map(|row| value(row)))
    }

    /// On how many paths this flow gets more than the other one.
    fn ahead(&self, flow: usize) -> usize {
        self.rows.iter().filter(|row| row.share(flow) > row.share(1 - flow)).count()
    }
}

/// Every pair at every queue of every path.
fn setups(options: &Options, pairs: &[Pair]) -> Vec<Duel> {
    let count = options.paths.unwrap_or_else(|| options.reduced(PATHS));
    let mut setups = Vec::new();
    for number in 0..count {
        let path = Arc::new(RandomPath::draw(options.seed, number));
        for queue in QUEUES {
            let duel = |pair: &Pair| Duel { path: path.clone(), queue, pair: pair.clone() };
            setups.extend(pairs.iter().map(duel));
        }
    }
    setups
}

fn run(options: &Options) -> Result<Report, Error> {
    let pairs = Pair::all();
    let length = options.seconds.map_or(LENGTH, |seconds| Duration::from_secs(seconds.max(1)));
    let setups = setups(options, &pairs);
    let runs = Runs::measure(options, &setups, options.seeds(SEEDS), |duel, n| {
        // All pairs on a path have the same seeds, also when fewer paths are run.
        duel.run(length, seed(options.seed ^ duel.path.number.rotate_left(32), n))
    })?;
    Ok(report::report(&runs, &pairs, length, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_draw_equal_paths_within_the_bounds() {
        let draw =
            |base| -> Vec<RandomPath> { (0..100).map(|n| RandomPath::draw(base, n)).collect() };
        let paths = draw(1);
        assert_eq!(paths, draw(1));
        assert_ne!(paths, draw(2));
        for path in &paths {
            assert!((RATES[0]..=RATES[1]).contains(&(path.rate as f64)), "{path:?}");
            let rtt = path.rtt.as_secs_f64() * 1000.0;
            assert!((TRIPS[0] - 0.1..=TRIPS[1] + 1.0).contains(&rtt), "{path:?}");
            assert!((0.0..1.0).contains(&path.apart), "{path:?}");
            let most = path.queue(1.0) as f64 * (1.0 + QUEUES[2]);
            assert!(most < f64::from(WINDOW), "{path:?}");
        }
        let one_begins = paths.iter().filter(|path| path.one_begins).count();
        assert!((30..70).contains(&one_begins), "{one_begins}");
    }

    #[test]
    fn the_report_has_a_row_for_each_flow_at_each_queue_and_for_each_path() {
        let options = Options { paths: Some(2), seconds: Some(6), ..Options::default() };
        let report = run(&options).unwrap();
        let [flows, paths] = &report.tables[..] else { panic!("{}", report.tables.len()) };
        assert_eq!(flows.rows.len(), QUEUES.len() * Pair::all().len() * 2);
        assert_eq!(paths.rows.len(), 2 * QUEUES.len());
        let text = report.to_markdown();
        for name in ["| bbr | quinn cubic |", "| bbr:floor=off, last | bbr:floor=off, first |"] {
            assert!(text.contains(name), "{name}: {text}");
        }
        assert_eq!(text, run(&Options { threads: 1, ..options }).unwrap().to_markdown());
    }

    #[test]
    fn two_flows_fill_the_bottleneck_and_shares_are_those_of_their_names() {
        let pairs = Pair::all();
        let options = Options { paths: Some(1), ..Options::default() };
        let setups = setups(&options, &pairs);
        let mut path = RandomPath::clone(&setups[0].path);
        path.rate = 5_000_000;
        for duel in setups.iter().filter(|duel| duel.queue == 1.0) {
            let shares = |one_begins| {
                let path = Arc::new(RandomPath { one_begins, apart: 1.0, ..path.clone() });
                let figures = Duel { path, ..duel.clone() }.run(Duration::from_secs(6), 1).unwrap();
                assert!((0.7..1.0).contains(&figures.utilisation()), "{}: {figures:?}", duel.pair);
                figures.shares
            };
            let [first, last] = [true, false].map(shares);
            // Two of a kind always begin in the same order.
            assert_eq!(first == last, duel.pair.is_alike(), "{}: {first:?} {last:?}", duel.pair);
        }
    }
}
