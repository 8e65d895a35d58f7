//! The estimator against a path whose losses are known.

use super::*;
use sutura_random::Rng;

const RTT: Duration = Duration::from_millis(50);
/// Packets that the path carries in a round trip without a queue.
const CAPACITY: u32 = 100;

/// A path with a queue, which loses packets at random and drops packets that do not fit in the queue.
struct Path {
    now: Instant,
    pn: u64,
    random: Rng,
    estimator: LossFloorEstimator,
    /// Packets that the queue holds at most; 0 for a policer.
    room: u32,
}

impl Path {
    fn new(room: u32, seed: u64) -> Self {
        let (random, estimator) = (Rng::new(seed), LossFloorEstimator::default());
        Self { now: Instant::now(), pn: 0, random, estimator, room }
    }

    /// Sends a round trip's worth of packets and reports their outcomes.
    fn round(&mut self, packets: u32, loss: f64) {
        let spacing = RTT / CAPACITY;
        let mut outcomes = Vec::new();
        for i in 0..packets {
            let sent = self.now + RTT * i / packets;
            self.estimator.on_sent(sent, 1_200, RTT, false);
            // Packets above the capacity wait behind each other.
            let queue = (i * packets.saturating_sub(CAPACITY) / packets.max(1)).min(self.room);
            let over = i * packets.saturating_sub(CAPACITY) / packets.max(1) > self.room;
            let dropped = over && (i * (packets - CAPACITY)) % packets < packets - CAPACITY;
            let lost = dropped || self.random.unit() < loss;
            outcomes.push((self.pn, sent, spacing * queue, lost));
            self.pn += 1;
        }
        self.now += RTT;
        for &(pn, sent, wait, _) in outcomes.iter().filter(|outcome| !outcome.3) {
            let arrives = sent + RTT + wait;
            let empty = self.estimator.on_rtt(arrives, sent, RTT + wait, false);
            self.estimator.on_acked(arrives, pn, sent, 1_200, empty);
        }
        for &(pn, sent, ..) in outcomes.iter().filter(|outcome| outcome.3) {
            self.estimator.on_lost(pn, sent);
        }
        self.estimator.update(self.now + RTT);
    }

    fn floor(&self) -> LossFloor {
        self.estimator.get()
    }
}

#[test]
fn random_loss_is_the_floor() {
    for (seed, loss) in [(1, 0.0), (2, 0.005), (3, 0.02), (4, 0.1)] {
        let mut path = Path::new(100, seed);
        (0..60).for_each(|i| path.round([80, 95, 70, 99][i % 4], loss));
        let floor = path.floor();
        assert!((floor.rate - loss).abs() <= 0.2 * loss + 0.001, "{loss}: {floor:?}");
        assert!(floor.low <= loss && loss <= floor.high, "{loss}: {floor:?}");
        assert!(floor.high - floor.low < 0.03, "{loss}: {floor:?}");
    }
}

#[test]
fn what_a_full_queue_drops_is_not() {
    // Queues that hold 5 % and 20 % of the path's own packets, and a long one.
    for room in [5, 20, 200] {
        let mut path = Path::new(room, 7);
        (0..100).for_each(|i| path.round(if i % 4 == 0 { 140 } else { 98 }, 0.0));
        assert!(path.floor().rate < 0.002, "{room}: {:?}", path.floor());
    }
}

#[test]
fn both_are_told_apart() {
    let mut path = Path::new(20, 8);
    (0..200).for_each(|i| path.round(if i % 4 == 0 { 140 } else { 98 }, 0.03));
    let floor = path.floor();
    assert!((floor.rate - 0.03).abs() < 0.01, "{floor:?}");
    assert!(floor.excess > 0.05, "{floor:?}");
}

#[test]
fn a_policer_is_no_floor() {
    let mut path = Path::new(0, 9);
    for i in 0..200 {
        path.round(if i % 8 == 0 { 60 } else { 110 + 5 * (i % 8) }, 0.0);
    }
    assert!(path.floor().rate < 0.005, "{:?}", path.floor());
}

#[test]
fn the_first_hundred_packets_already_say_something() {
    let mut path = Path::new(100, 10);
    assert_eq!(path.floor(), LossFloor::default());
    (0..8).for_each(|i| path.round(10 + 5 * i, 0.05));
    let floor = path.floor();
    assert!(floor.low <= 0.05 && 0.05 <= floor.high && floor.high < 0.15, "{floor:?}");
}

#[test]
fn it_follows_a_path_that_changes() {
    let mut path = Path::new(100, 11);
    let play = |path: &mut Path, rounds: usize, loss| {
        (0..rounds).for_each(|i| path.round([90, 99, 80][i % 3], loss));
        path.floor().rate
    };
    assert_eq!(play(&mut path, 60, 0.0), 0.0);
    let lossy = play(&mut path, 12, 0.05);
    assert!((lossy - 0.05).abs() < 0.02, "{lossy}");
    let clean = play(&mut path, 12, 0.0);
    assert!(clean < 0.01, "{clean}");
}

#[test]
fn refuted_losses_are_no_losses() {
    let mut path = Path::new(100, 12);
    (0..30).for_each(|i| path.round([90, 99, 80][i % 3], 0.02));
    let before = path.floor().rate;
    (0..30).for_each(|_| path.estimator.on_refuted(path.now, path.now - 100 * RTT));
    path.round(90, 0.0);
    (0..3).for_each(|_| path.round(80, 0.0));
    assert!(path.floor().rate < before / 2.0, "{:?}", path.floor());
}

#[test]
fn a_new_connection_remembers_and_soon_knows_better() {
    let mut path = Path::new(100, 13);
    (0..60).for_each(|i| path.round([90, 99, 80][i % 3], 0.05));
    let memory = path.estimator.memory();
    let learned = path.floor();
    let mut again = Path::new(100, 14);
    again.estimator = LossFloorEstimator::new(memory, 0);
    let floor = again.floor();
    assert!((floor.rate - learned.rate).abs() < 1e-9);
    assert!(floor.high > learned.high, "it is less certain");
    (0..10).for_each(|i| again.round([90, 99, 80][i % 3], 0.0));
    assert!(again.floor().rate < 0.01, "{:?}", again.floor());
}

#[test]
fn a_share_and_a_burst_are_a_gilbert_channel() {
    let gilbert = |rate, burst| LossFloor { rate, burst, ..LossFloor::default() }.gilbert();
    assert_eq!(LossFloor::default().gilbert(), (0.0, 1.0));
    let (p, r) = gilbert(0.2, 4.0);
    assert!((r - 0.25).abs() < 1e-12 && (p / (p + r) - 0.2).abs() < 1e-12, "{p} {r}");
    assert_eq!(gilbert(1.0, 1.0), (1.0, 1.0));
}

/// After how many packets that are lost with probability `loss` the estimate is within `range`, and
/// stays there for a thousand packets.
fn packets_until(path: &mut Path, loss: f64, range: &std::ops::RangeInclusive<f64>) -> u64 {
    let (start, mut since) = (path.pn, path.pn);
    for i in 0..200 {
        path.round([90, 99, 80][i % 3], loss);
        if !range.contains(&path.floor().rate) {
            since = path.pn;
        } else if path.pn - since > 1_000 {
            return since - start;
        }
    }
    u64::MAX
}

#[test]
fn the_estimate_follows_within_hundreds_of_packets() {
    // A share of 0.2 % is one loss in 500 packets: the estimate cannot be near it soon, but low.
    let steps = [(0.02, 0.01..=0.04, 600), (0.002, 0.0..=0.006, 1_000), (0.0, 0.0..=0.001, 2_500)];
    let mut all: [Vec<u64>; 3] = Default::default();
    for seed in 100..131 {
        let mut path = Path::new(100, seed);
        (0..60).for_each(|i| path.round([90, 99, 80][i % 3], 0.0));
        for (took, (loss, range, _)) in all.iter_mut().zip(&steps) {
            took.push(packets_until(&mut path, *loss, range));
            (0..30).for_each(|i| path.round([90, 99, 80][i % 3], *loss));
        }
    }
    for (took, (loss, _, limit)) in all.iter_mut().zip(steps) {
        took.sort_unstable();
        let (median, most) = (took[took.len() / 2], took[took.len() * 9 / 10]);
        println!("to a loss of {loss}: half within {median} packets, nine of ten within {most}");
        assert!(median <= limit, "{loss}: {median}");
    }
}

#[test]
fn bursts_are_remembered_too() {
    let mut path = Path::new(100, 15);
    let (mut bad, mut now) = (false, path.now);
    let mut missing = Vec::new();
    for pn in 0..20_000u64 {
        now += RTT / 200;
        let chance = if bad { 0.75 } else { 0.005 };
        bad = path.random.unit() < chance;
        path.estimator.on_sent(now, 1_200, RTT, false);
        if bad {
            missing.push((pn, now - RTT));
        } else {
            let empty = path.estimator.on_rtt(now, now - RTT, RTT, false);
            path.estimator.on_acked(now, pn, now - RTT, 1_200, empty);
            for (pn, sent) in missing.drain(..) {
                path.estimator.on_lost(pn, sent);
            }
        }
        path.estimator.update(now);
    }
    let learned = path.floor();
    assert!((2.0..6.0).contains(&learned.burst) && !learned.burst_time.is_zero(), "{learned:?}");
    let again = LossFloorEstimator::new(path.estimator.memory(), 0).get();
    let ratio = again.burst_time.as_secs_f64() / learned.burst_time.as_secs_f64();
    assert!((0.5..2.0).contains(&ratio), "{learned:?} {again:?}");
    assert!((again.burst - learned.burst).abs() < 1e-9, "{learned:?} {again:?}");
}

#[test]
fn a_silent_path_keeps_only_what_it_has_shown() {
    let mut short = Path::new(0, 1);
    short.round(NEGLIGIBLE, 0.0);
    let known = short.floor();
    assert!(short.estimator.evidence.is_some() && known.known == NEGLIGIBLE);
    short.estimator.rest();
    assert!(short.estimator.evidence.is_none());
    assert_eq!((short.floor(), short.estimator.memory().known), (known, NEGLIGIBLE));

    let mut lossy = Path::new(0, 1);
    lossy.round(NEGLIGIBLE, 1.0);
    let mut long = Path::new(0, 1);
    long.round(NEGLIGIBLE + 1, 0.0);
    for path in [&mut lossy, &mut long] {
        let memory = path.estimator.memory();
        path.estimator.rest();
        assert!(path.estimator.evidence.is_some());
        assert_eq!(path.estimator.memory(), memory);
    }
}

#[test]
fn losses_are_found_on_a_path_that_was_silent() {
    for (seed, loss) in [(1, 0.02), (2, 0.1)] {
        let mut path = Path::new(0, seed);
        path.round(10, 0.0);
        path.estimator.rest();
        (0..40).for_each(|_| path.round(50, loss));
        let rate = path.floor().rate;
        assert!((loss * 0.7..loss * 1.4).contains(&rate), "seed {seed}: {rate}");
    }
}
