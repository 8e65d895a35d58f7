//! Several flows at a drop-tail bottleneck: our flows among themselves, beside quinn's flows, and quinn's
//! flows among themselves.

mod report;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::statistics::{fairness, mean, millis};
use sutura_link::LinkConfig;

use super::controllers::bed::{Bed, Flow, FlowOutcome};
use super::controllers::meter::{INTERVAL, Interval};
use super::controllers::sender::Sender;
use crate::comparison::{Runs, seed};
use crate::report::Report;
use crate::{Error, Options};

/// Bits per second of the bottleneck.
pub(super) const RATE: u64 = 10_000_000;
/// 50 ms each way, and a queue of one bandwidth-delay product.
const PATH: &str = "rate=10mbit delay=50ms queue=125kb";
/// The way of the acknowledgements.
const UP: &str = "rate=10mbit delay=50ms queue=100mb";
/// How long the bottleneck is watched.
pub(super) const LENGTH: Duration = Duration::from_secs(60);
/// The shortest time to which [`Options::reduce`] shortens it.
const SHORTEST: Duration = Duration::from_secs(1);
/// All flows have begun by this share of the time, one after the other, and their bytes count from a third of
/// the time on.
pub(super) const STAGGER: u32 = 6;
/// Flow control leaves each flow room for more than the path and its queue hold.
const WINDOW: u32 = 1 << 20;
/// Runs of each configuration: a run is long, and `--seeds` makes more of them.
const SEEDS: u64 = 1;
/// How many flows share the bottleneck.
const FLOWS: [usize; 3] = [2, 3, 10];
/// Shares of packets that are lost at random.
const LOSSES: [f64; 2] = [0.0, 0.02];

/// The flows that share the bottleneck: flows of `first` and `second` begin by turns.
#[derive(Clone, Debug)]
struct Contest {
    first: Sender,
    second: Sender,
    flows: usize,
    loss: f64,
}

impl Contest {
    fn senders(&self) -> impl Iterator<Item = &Sender> {
        (0..self.flows).map(|n| if n % 2 == 0 { &self.first } else { &self.second })
    }

    fn name(&self) -> String {
        let [first, second] = [&self.first, &self.second];
        if self.is_mixed() { format!("{second} against {first}") } else { format!("{first} alone") }
    }

    fn is_mixed(&self) -> bool {
        self.first.to_string() != self.second.to_string()
    }
}

/// All configurations. If both stacks take part, quinn's flow begins first.
fn setups() -> Vec<Contest> {
    let mut ours = Sender::ours();
    ours.extend(Sender::references());
    let quinn = Sender::quinn();
    let mut pairs: Vec<(Sender, Sender)> = Vec::new();
    for sender in ours.iter().chain(&quinn) {
        pairs.push((sender.clone(), sender.clone()));
    }
    for sender in ours.iter().chain(&quinn[1..]) {
        let against = quinn.iter().filter(|other| other.to_string() != sender.to_string());
        pairs.extend(against.map(|other| (other.clone(), sender.clone())));
    }
    let mut setups = Vec::new();
    for loss in LOSSES {
        for flows in FLOWS {
            let of_pair = |(first, second): &(Sender, Sender)| {
                let (first, second) = (first.clone(), second.clone());
                Contest { first, second, flows, loss }
            };
            setups.extend(pairs.iter().map(of_pair));
        }
    }
    setups
}

/// The outcome of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Figures {
    /// Throughput of each flow as a multiple of its fair share of the bottleneck.
    pub shares: Vec<f64>,
    /// Share of packets lost in the queue.
    pub overflow: f64,
    /// Mean queue delay in milliseconds.
    pub queue_delay: f64,
    /// The course of each flow.
    courses: Vec<Vec<Interval>>,
}

impl Figures {
    /// The figures of flows that share a bottleneck of `rate` bits per second for the time `length`. The first
    /// third of the time does not count, except for lost packets.
    pub fn of(outcomes: Vec<FlowOutcome>, rate: u64, length: Duration) -> Self {
        let from = length / 3;
        let seconds = (length - from).as_secs_f64();
        let fair = rate as f64 / 8.0 * seconds / outcomes.len() as f64;
        let passages = || outcomes.iter().map(|outcome| &outcome.passage);
        let later = || passages().flat_map(|p| part(&p.intervals, from, length));
        let waited: f64 = later().map(|interval| millis(interval.queued)).sum();
        let passed: u64 = later().map(|interval| interval.passed).sum();
        let shares = passages().map(|p| arrived(part(&p.intervals, from, length)) / fair);
        let sum = |value: fn(&FlowOutcome) -> u64| outcomes.iter().map(value).sum::<u64>() as f64;
        Self {
            shares: shares.collect(),
            overflow: sum(|o| o.passage.overflow) / sum(|o| o.passage.sent).max(1.0),
            queue_delay: waited / passed.max(1) as f64,
            courses: outcomes.into_iter().map(|outcome| outcome.passage.intervals).collect(),
        }
    }

    /// The share of the bottleneck that all flows use together.
    pub fn utilisation(&self) -> f64 {
        mean(self.shares.iter().copied())
    }

    /// Jain's index of fairness.
    pub fn jain(&self) -> f64 {
        fairness(&self.shares)
    }

    /// The same from one time until another.
    pub fn jain_within(&self, from: Duration, until: Duration) -> f64 {
        let flows = self.courses.iter();
        fairness(&flows.map(|course| arrived(part(course, from, until))).collect::<Vec<_>>())
    }
}

/// The intervals from one time until another.
fn part(intervals: &[Interval], from: Duration, until: Duration) -> &[Interval] {
    let place = |at: Duration| (at.as_nanos() / INTERVAL.as_nanos()) as usize;
    let until = place(until).min(intervals.len());
    intervals.get(place(from)..until).unwrap_or_default()
}

/// The bytes that arrived in these intervals.
fn arrived(intervals: &[Interval]) -> f64 {
    intervals.iter().map(|interval| interval.arrived).sum::<u64>() as f64
}

/// The runs of one configuration.
type Contests = Runs<Contest, Figures>;

impl Contests {
    /// The mean share of the flows of `first` (0) or `second` (1).
    fn share(&self, turn: usize) -> f64 {
        self.mean(|run| mean(run.shares.iter().skip(turn).step_by(2).copied()))
    }

    /// The mean share of a flow of `first` among its own kind; 0 if `all` has no such configuration.
    fn among_themselves(&self, all: &[Self]) -> f64 {
        let Contest { first, flows, loss, .. } = &self.setup;
        let kin = all.iter().find(|other| {
            let same = other.setup.flows == *flows && other.setup.loss == *loss;
            let own = other.setup.first.to_string() == first.to_string();
            same && own && !other.setup.is_mixed()
        });
        kin.map_or(0.0, |kin| kin.mean(Figures::utilisation))
    }
}

/// Runs `flows` for the time `length`, if this share of packets is lost at random.
pub(super) fn share(
    flows: &[Flow<'_>],
    loss: f64,
    length: Duration,
    seed: u64,
) -> Result<Vec<FlowOutcome>, Error> {
    let up: LinkConfig = UP.parse()?;
    let down: LinkConfig = format!("{PATH} loss=bern:{loss}").parse()?;
    let bed = Bed { up: &up, down: &down, window: WINDOW, until: length };
    Ok(bed.run(flows, seed)?)
}

fn run_once(setup: &Contest, length: Duration, seed: u64) -> Result<Figures, Error> {
    // More than the bottleneck could carry.
    let bytes = RATE / 4 * length.as_secs().max(1);
    let apart = length / STAGGER / setup.flows as u32;
    let flow = |(sender, n)| Flow { sender, bytes, pause: None, start: apart * n };
    let flows: Vec<_> = setup.senders().zip(0..).map(flow).collect();
    let outcomes = share(&flows, setup.loss, length, seed)?;
    Ok(Figures::of(outcomes, RATE, length))
}

fn measure(
    setups: &[Contest],
    length: Duration,
    options: &Options,
) -> Result<Vec<Contests>, Error> {
    Runs::measure(options, setups, options.seeds(SEEDS), |setup, n| {
        run_once(setup, length, seed(options.seed, 1 + n))
    })
}

experiment! {
    "controllers-shared": "Several flows at a bottleneck, by congestion controller, beside quinn's" (Seeds),
    one in 10 takes 8 s
}

/// Every configuration.
fn run(options: &Options) -> Result<Report, Error> {
    let length = (LENGTH / options.reduce.max(1)).max(SHORTEST);
    let summaries = measure(&setups(), length, options)?;
    Ok(report::report(&summaries, length, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_at_the_end_knows_nothing_of_the_beginning() {
        let course = |bytes: [u64; 4]| -> Vec<Interval> {
            bytes.map(|arrived| Interval { arrived, ..Interval::default() }).to_vec()
        };
        let courses = vec![course([9, 9, 5, 5]), course([0, 0, 5, 5])];
        let figures = Figures { shares: vec![1.4, 0.5], overflow: 0.0, queue_delay: 0.0, courses };
        let [end, all] = [2, 0].map(|from| figures.jain_within(INTERVAL * from, INTERVAL * 4));
        assert_eq!((end, all), (1.0, fairness(&[28.0, 10.0])));
    }

    #[test]
    fn two_of_a_kind_fill_the_bottleneck_and_share_it() {
        let setups = setups().into_iter();
        let alone = |s: &Contest| s.flows == 2 && s.loss == 0.0 && s.name().ends_with("alone");
        let setups: Vec<Contest> = setups.filter(alone).collect();
        let ours = Sender::ours().len() + Sender::references().len();
        assert_eq!(setups.len(), ours + 2);
        let options = Options { seeds: Some(1), ..Options::default() };
        let summaries = measure(&setups, Duration::from_secs(20), &options).unwrap();
        for summary in &summaries {
            let name = summary.setup.name();
            let used = summary.mean(Figures::utilisation);
            assert!((0.7..1.0).contains(&used), "{name}: {used}");
            assert!(summary.mean(Figures::jain) > 0.6, "{name}: {}", summary.mean(Figures::jain));
            assert!((summary.share(0) + summary.share(1) - 2.0 * used).abs() < 1e-9, "{name}");
            assert!((summary.among_themselves(&summaries) - used).abs() < 1e-9, "{name}");
        }
    }

    /// A queue that many flows keep full drops packets of all: no controller may take these drops for a floor
    /// of loss.
    #[test]
    fn a_floor_costs_nobody_at_a_full_queue() {
        let (references, ours) = (Sender::references(), Sender::ours());
        let names: Vec<String> = references.iter().chain(&ours).map(ToString::to_string).collect();
        let setups = setups().into_iter();
        let alone = |s: &Contest| {
            let first = s.first.to_string();
            s.flows == 10 && s.loss == 0.0 && !s.is_mixed() && names.contains(&first)
        };
        let setups: Vec<Contest> = setups.filter(alone).collect();
        let options = Options { seeds: Some(1), ..Options::default() };
        let summaries = measure(&setups, Duration::from_secs(30), &options).unwrap();
        let of = |name: &str| summaries.iter().find(|s| s.setup.first.to_string() == name).unwrap();
        for name in ["cubic", "bbr"] {
            let (with, without) = (of(name), of(&format!("{name}:floor=off")));
            let [lost, plain] = [with, without].map(|s| s.mean(|run| run.overflow));
            assert!(lost < plain * 1.25, "{name}: {lost} lost, {plain} without floor");
            let [fair, plain] = [with, without].map(|s| s.mean(Figures::jain));
            assert!(fair > plain - 0.05, "{name}: {fair}, {plain} without floor");
        }
    }

    #[test]
    fn ours_and_theirs_begin_by_turns() {
        let all = setups();
        let mixed = all.iter().find(|s| s.flows == 3 && s.name() == "bbr against quinn cubic");
        let names: Vec<String> = mixed.unwrap().senders().map(ToString::to_string).collect();
        assert_eq!(names, ["quinn cubic", "bbr", "quinn cubic"]);
        let ours = Sender::ours().len() + Sender::references().len();
        assert_eq!(all.len(), LOSSES.len() * FLOWS.len() * (3 * ours + 3));
    }
}
