//! The policy, driven by hand.

mod deadlines;
mod paths;

use super::help::PAUSE;
use super::policy::{FLUSH_LINGER, INSURES};
use super::*;
use crate::conformance;
use crate::fec::redundancy::{Arrival, Decision, Message, Stage};
use crate::loss_floor::Regime;
use std::time::Instant;

const MS: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(100);
/// The longest time in which a retransmission cannot be relied on: 13/8 of a round trip, and a reserve of an
/// eighth on a path whose round trips are not known to be steady.
const NEEDED: Duration = Duration::from_millis(175);

/// A path with a round trip of 100 ms that loses 2 % in bursts of two packets and 4 ms.
fn path() -> PathView {
    let floor = LossFloor::default().with_rate(0.02).with_low(0.01).with_high(0.03);
    let floor = floor.with_burst(2.0).with_burst_time(4 * MS).with_known(1_000);
    let pto = RTT + 25 * MS;
    let path = PathView { rtt: RTT, min_rtt: RTT, pto, ..PathView::default() };
    PathView { loss: 0.02, window: 100_000, floor, ..path }
}

/// A policy, its view, and the calls that a session makes.
struct Driver {
    policy: Box<dyn Redundancy>,
    now: Instant,
    view: View,
    sent: u32,
}

impl Driver {
    fn new(auto: Auto, path: PathView) -> Self {
        let view = View { path, ..View::default() };
        Self { policy: auto.build(), now: Instant::now(), view, sent: 0 }
    }

    /// Sends `count` source symbols at once, the last of which leaves `left` bytes that flow control
    /// holds back.
    fn piece(&mut self, count: u64, left: u64) {
        for index in 1..=count {
            let id = self.view.next;
            self.view.next += 1;
            self.view.unacked += 1;
            self.view.has_source = index < count;
            self.view.left = if index < count { 1000 } else { left };
            self.policy.on_source_sent(self.now, id, &self.view);
        }
        if left == 0 {
            self.policy.on_flushed(self.now, false, &self.view);
        }
    }

    /// Sends a message of five source symbols that is to arrive within `tolerance`.
    fn message(&mut self, tolerance: Duration) {
        let deadline = Some(self.now + tolerance);
        self.view.message = Some(Message { deadline, size: 5000, ..Message::default() });
        self.view.deadline = self.view.deadline.filter(|_| self.view.unacked > 0).or(deadline);
        self.piece(5, 0);
    }

    /// Sends the repair symbols that are due until `end`. Returns the time at which each was sent, counted
    /// from the call.
    fn run(&mut self, time: Duration) -> Vec<Duration> {
        let (begin, end) = (self.now, self.now + time);
        let mut times = Vec::new();
        loop {
            let decision = self.policy.decide(self.now, &self.view);
            assert_eq!(decision, self.policy.decide(self.now, &self.view), "a look");
            if decision != Decision::Source {
                times.push(self.now - begin);
                self.sent += 1;
                self.view.added += 1;
                self.policy.on_repair_sent(self.now, &self.view);
                continue;
            }
            let next = self.policy.timeout().filter(|at| *at > self.now && *at <= end);
            let Some(next) = next else { break };
            self.now = next;
        }
        self.now = end;
        times
    }

    /// All sent symbols arrive.
    fn arrives(&mut self) {
        while self.view.unacked > 0 {
            self.view.unacked -= 1;
            let id = self.view.next - 1 - u64::from(self.view.unacked);
            self.view.first = id + 1;
            self.view.deadline = self.view.deadline.filter(|_| self.view.unacked > 0);
            self.policy.on_arrived(self.now, id, Arrival::Acked, &self.view);
        }
        self.view.added = 0;
    }

    fn reason(&self) -> Reason {
        self.policy.reason().unwrap()
    }
}

/// Sends pieces of five source symbols until the budget allows the repair symbols that a piece is worth.
fn warm(auto: Auto, path: PathView) -> Driver {
    let mut driver = Driver::new(auto, path);
    for _ in 0..20 {
        driver.piece(5, 0);
        driver.arrives();
    }
    driver
}

#[test]
fn nothing_is_protected_before_losses_are_known_or_if_a_retransmission_is_in_time() {
    let sleeps = |path: &PathView, terms| Auto::default().sleeps(path, terms);
    let floor = LossFloor::default().with_known(1_000);
    let unknown = PathView { floor, ..PathView::default() };
    assert_eq!(sleeps(&unknown, Terms::STREAM), Some(Reason::Unknown));
    assert_eq!(sleeps(&path(), Terms::STREAM), None);
    let near = PathView { rtt: MS, pto: 5 * MS, ..path() };
    assert_eq!(sleeps(&near, Terms::STREAM), Some(Reason::RetransmissionIsEnough));
    assert_eq!(sleeps(&near, Terms::DATAGRAM), None);
    let sleeps = |within, path: &PathView, terms| {
        Auto::default().within(within, 0.9).unwrap().sleeps(path, terms)
    };
    let enough = Some(Reason::RetransmissionIsEnough);
    assert_eq!(sleeps(NEEDED, &path(), Terms::STREAM), None);
    assert_eq!(sleeps(NEEDED + MS, &path(), Terms::STREAM), enough);
    assert_eq!(sleeps(NEEDED + MS, &path(), Terms::DATAGRAM), None, "nobody sends it again");
    assert_eq!(sleeps(NEEDED, &unknown, Terms::STREAM), Some(Reason::Unknown));
}

#[test]
fn data_joins_a_session_if_and_only_if_the_policy_would_protect_it_there() {
    let times = [50, 162, 163, 170, 174, 175, 176, 400].map(|ms| ms * MS);
    let times = || std::iter::once(None).chain(times.map(Some));
    for (target, tolerance) in times().flat_map(|target| times().map(move |time| (target, time))) {
        let auto = Auto::new(1.0).unwrap();
        let auto = target.map_or(auto, |within| auto.within(within, 0.999).unwrap());
        let joins = auto.sleeps(&path(), Terms::STREAM.within(tolerance)).is_none();
        let mut driver = warm(auto, path());
        match tolerance {
            Some(tolerance) => driver.message(tolerance),
            None => driver.piece(5, 0),
        }
        let protects = matches!(driver.reason(), Reason::Protects { .. });
        assert_eq!(joins, protects, "{target:?}, {tolerance:?}: {:?}", driver.reason());
    }
}

#[test]
fn the_middle_of_a_transfer_is_not_marked() {
    let policy = Auto::default().build();
    let view = View { path: path(), ..View::default() };
    let at = |left, buffer| policy.protects(&View { left, buffer, ..view });
    assert!(at(200_000, u64::MAX) && !at(200_001, u64::MAX));
    assert!(at(u64::MAX, 200_000) && !at(u64::MAX, 200_001), "the receiver stops the sender");
}

#[test]
fn a_piece_is_followed_by_repair_symbols_after_a_burst() {
    let mut driver = warm(Auto::default(), path());
    driver.piece(5, 0);
    assert!(matches!(driver.reason(), Reason::Protects { repairs: 1.., .. }));
    let times = driver.run(RTT);
    assert!(!times.is_empty(), "{:?}", driver.reason());
    assert_eq!(times[0], 4 * MS, "as long as a burst usually takes");
    assert!(driver.run(RTT).is_empty(), "once");
}

#[test]
fn a_writer_has_a_moment_to_write_more() {
    let path = PathView { floor: path().floor.with_burst_time(Duration::ZERO), ..path() };
    let mut driver = warm(Auto::default(), path);
    driver.piece(5, 0);
    assert_eq!(driver.policy.decide(driver.now, &driver.view), Decision::Source);
    assert_eq!(driver.run(RTT)[0], FLUSH_LINGER);
    // If the receiver has no room, there is no such wait: no data can follow.
    driver.arrives();
    driver.piece(5, 5000);
    assert_eq!(driver.run(RTT)[0], Duration::ZERO);
}

#[test]
fn more_data_is_protected_together_with_what_precedes_it() {
    let mut driver = warm(Auto::default(), path());
    driver.piece(3, 0);
    let due = driver.policy.timeout().unwrap();
    driver.now += MS;
    driver.piece(3, 0);
    assert_eq!(driver.policy.timeout(), Some(due), "the first of it does not wait longer");
    assert!(driver.run(RTT).len() <= 3, "one piece");
}

#[test]
fn the_budget_is_kept() {
    for budget in [0.0, 0.05, 0.1, 0.3] {
        let target = Auto::new(budget).unwrap().within(60 * MS, 1.0).unwrap();
        let mut driver = Driver::new(target, path());
        let mut last = 0;
        for piece in 0..200 {
            driver.piece(5, 0);
            driver.run(17 * MS);
            driver.arrives();
            if piece == 99 {
                last = driver.sent;
            }
        }
        let spent = f64::from(driver.sent - last) / 500.0;
        assert!(spent <= budget + 0.01 && spent >= 0.9 * budget, "{budget}: {spent}");
    }
}

#[test]
fn reasons_say_why_there_are_none() {
    let reason = |auto: Auto, path: PathView| {
        let mut driver = warm(auto, path);
        driver.piece(5, 0);
        assert!(driver.run(RTT).is_empty());
        driver.reason()
    };
    let floor = |floor| PathView { floor, ..path() };
    let unknown = LossFloor::default().with_known(1_000);
    assert_eq!(reason(Auto::default(), floor(unknown)), Reason::Unknown);
    let congested = unknown.with_excess(0.05);
    assert_eq!(reason(Auto::default(), floor(congested)), Reason::Congestion);
    let clear = unknown.with_high(0.001);
    assert_eq!(reason(Auto::default(), floor(clear)), Reason::Lossless);
    assert_eq!(reason(Auto::new(0.0).unwrap(), path()), Reason::Budget);
    let patient = Auto::default().within(RTT * 2, 0.999).unwrap();
    assert_eq!(reason(patient, path()), Reason::RetransmissionIsEnough);
    let near = PathView { rtt: 5 * MS, min_rtt: 5 * MS, pto: 7 * MS, ..path() };
    assert_eq!(reason(Auto::default(), near), Reason::RetransmissionIsEnough);
}

#[test]
fn repair_symbols_that_mend_nothing_pause() {
    let lossy = PathView { floor: path().floor.with_rate(0.2), ..path() };
    let mut driver = warm(Auto::new(1.0).unwrap(), lossy);
    let mut pieces = 0;
    while driver.reason() != Reason::NoUse {
        driver.piece(5, 0);
        driver.run(17 * MS);
        driver.arrives();
        pieces += 1;
        assert!(pieces < 100, "{:?}", driver.reason());
    }
    driver.run(RTT);
    let sent = driver.sent;
    let mut pause = 0;
    while driver.sent == sent {
        driver.arrives();
        driver.piece(5, 0);
        driver.run(17 * MS);
        pause += 5;
    }
    assert!((PAUSE - 10..PAUSE + 10).contains(&pause), "then they are tried again: {pause}");
}

#[test]
fn new_data_precedes_repair_symbols() {
    let mut driver = warm(Auto::default(), path());
    driver.piece(5, 0);
    driver.now += RTT / 2;
    driver.view.has_source = true;
    assert_eq!(driver.policy.decide(driver.now, &driver.view), Decision::Source);
    driver.view.has_source = false;
    assert_ne!(driver.policy.decide(driver.now, &driver.view), Decision::Source);
}

/// Sends updates of `symbols` source symbols each, without a pause. Returns how many repair symbols follow
/// each update.
fn updates(driver: &mut Driver, count: u64, symbols: u64) -> Vec<usize> {
    let sent = (0..count * symbols).map(|n| {
        let stage = if n > 0 && n % symbols == 0 { Stage::First } else { Stage::Within };
        driver.view.message = Some(Message { stage, ..Message::default() });
        let id = driver.view.next;
        (driver.view.next, driver.view.unacked) = (id + 1, driver.view.unacked + 1);
        (driver.view.has_source, driver.view.left) = (true, 1_000_000);
        assert!(driver.policy.protects(&driver.view), "in the middle of a transfer");
        driver.policy.on_source_sent(driver.now, id, &driver.view);
        let sent = driver.run(5 * MS).len();
        if n % symbols == symbols / 2 {
            driver.arrives();
            driver.view.has_source = true;
        }
        sent
    });
    let sent: Vec<usize> = sent.collect();
    sent.chunks(symbols as usize).map(|update| update.iter().sum()).collect()
}

#[test]
fn a_piece_ends_at_a_fence_although_more_data_waits() {
    let floor = path().floor.with_burst(1.0).with_burst_time(Duration::ZERO);
    let mut driver = Driver::new(Auto::default(), PathView { floor, ..path() });
    let sent = updates(&mut driver, 10, 20);
    assert_eq!(sent[0], 0, "there is no fence before the first update");
    assert!(sent[1..].iter().all(|repairs| (1..=3).contains(repairs)), "{sent:?}");
}

#[test]
fn before_fences_less_likely_losses_are_worth_a_repair_symbol() {
    // One piece in five loses a symbol, one in 40 loses two, one in 500 loses three.
    let floor = path().floor.with_rate(0.005).with_low(0.005).with_high(0.005);
    let floor = floor.with_burst(1.0).with_burst_time(Duration::ZERO);
    let path = PathView { floor, window: 2_000_000, ..path() };
    let mut driver = Driver::new(Auto::default(), path);
    // Half of each update has arrived before the next fence.
    assert_eq!(updates(&mut driver, 5, 100)[1..], [3; 4]);
    let mut driver = warm(Auto::default(), path);
    driver.piece(50, 0);
    assert_eq!(driver.run(RTT).len(), 2);
}

#[test]
fn a_fence_is_insured_against_the_first_loss() {
    let unknown = PathView { rtt: RTT, min_rtt: RTT, window: 100_000, ..PathView::default() };
    assert_eq!(unknown.floor.rate, 0.0);
    assert_eq!(Auto::default().sleeps(&unknown, Terms::GROUP), None);
    let mut driver = Driver::new(Auto::default(), unknown);
    let sent: usize = updates(&mut driver, 60, 20).iter().sum();
    assert_eq!(sent, 1200 / INSURES as usize);
    // Once a loss would be a surprise, no more insurance is taken out.
    let floor = unknown.floor.with_high(INSURED / 2.0);
    let clear = PathView { floor, ..unknown };
    assert_eq!(Auto::default().sleeps(&clear, Terms::GROUP), Some(Reason::Lossless));
    driver.view.path = clear;
    driver.view.message = Some(Message { stage: Stage::First, ..Message::default() });
    driver.policy.on_source_sent(driver.now, driver.view.next, &driver.view);
    assert!(driver.run(RTT).is_empty() && driver.reason() == Reason::Lossless);
}

#[test]
fn each_part_can_be_switched_off_by_name() {
    for part in Aspect::ALL.map(Aspect::name) {
        let auto = crate::registry::redundancy().find(&format!("auto:without={part}")).unwrap();
        assert_eq!(auto.parameters(), format!("budget=0.25, without={part}"));
    }
}
