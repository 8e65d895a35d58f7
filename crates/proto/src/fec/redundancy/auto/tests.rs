//! The policy, driven by hand.

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
    PathView { rtt: RTT, min_rtt: RTT, loss: 0.02, window: 100_000, floor, ..PathView::default() }
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
fn targets_keep_the_contract_however_long_they_are() {
    for within in [Duration::ZERO, 80 * MS, MAX_DELAY, Duration::MAX] {
        for share in [0.0, 0.99, 1.0] {
            conformance::redundancy(&Auto::default().within(within, share).unwrap());
        }
    }
    assert!(Auto::default().within(MAX_DELAY, 1.1).is_none() && Auto::new(-0.1).is_none());
}

#[test]
fn nothing_is_protected_before_losses_are_known_or_if_a_retransmission_is_in_time() {
    let sleeps = |path: &PathView, terms| Auto::default().sleeps(path, terms);
    let floor = LossFloor::default().with_known(1_000);
    let unknown = PathView { floor, ..PathView::default() };
    assert_eq!(sleeps(&unknown, Terms::STREAM), Some(Reason::Unknown));
    assert_eq!(sleeps(&path(), Terms::STREAM), None);
    let near = PathView { rtt: MS, ..path() };
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
fn a_deadline_counts_before_anything_is_sent() {
    let enough = Some(Reason::RetransmissionIsEnough);
    let within = |tolerance| Terms::STREAM.within(Some(tolerance));
    let patient = Auto::default().within(4 * RTT, 0.999).unwrap();
    for auto in [Auto::default(), patient] {
        assert_eq!(auto.sleeps(&path(), within(NEEDED)), None);
        assert_eq!(auto.sleeps(&path(), within(NEEDED + MS)), enough);
    }
    let hurried = Auto::default().within(RTT, 0.999).unwrap();
    assert_eq!(hurried.sleeps(&path(), within(4 * RTT)), None, "the target is nearer");
    // 10 ms are soon enough, except for applications with a closer deadline.
    let near = PathView { rtt: 5 * MS, min_rtt: 5 * MS, ..path() };
    assert_eq!(Auto::default().sleeps(&near, Terms::STREAM), enough);
    assert_eq!(Auto::default().sleeps(&near, within(8 * MS)), None);
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
fn losses_that_are_expected_count_until_they_can_be_ruled_out() {
    let auto = Auto::new(1.0).unwrap().expecting(0.02).unwrap();
    let floor = |high, rate, excess| {
        LossFloor::default().with_known(1_000).with_high(high).with_rate(rate).with_excess(excess)
    };
    let sleeps = |floor| auto.sleeps(&PathView { floor, ..path() }, Terms::STREAM);
    assert_eq!(sleeps(floor(1.0, 0.0, 0.0)), None);
    // The first losses may have come while a queue was growing.
    assert_eq!(sleeps(floor(0.1, 0.0, 0.05)), None);
    assert_eq!(sleeps(floor(0.015, 0.0, 0.05)), Some(Reason::Congestion));
    assert_eq!(sleeps(floor(0.005, 0.0, 0.0)), Some(Reason::Lossless));
    let unknown = PathView { floor: floor(1.0, 0.0, 0.0), ..path() };
    let mut driver = Driver::new(auto, unknown);
    driver.piece(1, 0);
    assert_eq!(driver.run(RTT).len(), 1);
    assert_eq!(auto.parameters(), "budget=1, expect=0.02");
    assert!(auto.expecting(0.6).is_none());
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
fn a_target_is_met_as_late_as_it_allows() {
    let target = |within| Auto::new(1.0).unwrap().within(within, 0.999).unwrap();
    let mut driver = warm(target(80 * MS), path());
    driver.piece(5, 0);
    let times = driver.run(RTT);
    let last = *times.last().unwrap();
    // Half a round trip and the margin are left.
    assert!(last <= 30 * MS && last >= 25 * MS, "{times:?}");
    let mut driver = warm(target(80 * MS).within(80 * MS, 0.5).unwrap(), path());
    driver.piece(5, 0);
    assert!(driver.run(RTT).is_empty(), "met without");
}

#[test]
fn messages_are_protected_before_their_deadline() {
    let mut driver = warm(Auto::new(1.0).unwrap(), path());
    driver.message(130 * MS);
    let times = driver.run(2 * RTT);
    let last = *times.last().unwrap();
    assert!(last <= 80 * MS && last >= 70 * MS, "{times:?}");
}

#[test]
fn a_message_whose_first_part_has_arrived_waits_for_its_own_deadline() {
    let mut driver = warm(Auto::new(1.0).unwrap(), path());
    driver.message(130 * MS);
    let first = driver.policy.timeout().unwrap();
    driver.now += 20 * MS;
    driver.message(130 * MS);
    let both = driver.policy.timeout().unwrap();
    assert!(both <= first, "the first is in more of a hurry");
    // The first message arrives, and the deadline of the second is left.
    driver.view.first += 5;
    driver.view.unacked -= 5;
    driver.view.deadline = Some(driver.now + 130 * MS);
    driver.policy.on_arrived(driver.now, driver.view.first - 1, Arrival::Acked, &driver.view);
    assert_eq!(driver.policy.timeout(), Some(both + 20 * MS));
}

#[test]
fn a_deadline_that_leaves_time_for_a_retransmission_needs_no_repair_symbols() {
    let mut driver = warm(Auto::new(1.0).unwrap(), path());
    for (left, protects) in [(NEEDED, true), (NEEDED + MS, false)] {
        driver.message(left);
        assert_eq!(driver.reason() != Reason::RetransmissionIsEnough, protects, "{left:?}");
        driver.run(2 * RTT);
        driver.arrives();
    }
    // Data that is never sent again is mended as soon as it is known to be lost.
    driver.view.resends = false;
    driver.message(2 * RTT);
    assert!(driver.run(RTT).is_empty());
    driver.policy.on_unmended(driver.now, driver.view.next - 1, &driver.view);
    assert_eq!(driver.run(RTT), [Duration::ZERO]);
}

#[test]
fn a_message_that_is_in_no_hurry_stays_so_when_the_next_comes() {
    let mut driver = warm(Auto::new(1.0).unwrap(), path());
    for _ in 0..10 {
        // The deadline of the first message, which is not known to have arrived, comes nearer.
        driver.message(2 * RTT);
        assert!(driver.run(20 * MS).is_empty());
        assert_eq!(driver.reason(), Reason::RetransmissionIsEnough);
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
    let near = PathView { rtt: 5 * MS, min_rtt: 5 * MS, ..path() };
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
fn while_other_data_waits_repair_symbols_must_be_worth_more() {
    let rare = PathView { floor: path().floor.with_rate(0.008), ..path() };
    let count = |idle| {
        let mut driver = warm(Auto::new(1.0).unwrap(), rare);
        driver.view.idle = idle;
        driver.view.path.window = 12_000;
        driver.piece(5, 0);
        driver.run(RTT).len()
    };
    assert!(count(true) > 0);
    assert_eq!(count(false), 0);
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
fn a_new_path_is_protected_where_much_is_sent_until_it_has_lost_nothing() {
    let new = |known| PathView { floor: LossFloor::default().with_known(known), ..path() };
    let repairs = |known, symbols| {
        let mut driver = Driver::new(Auto::default(), new(known));
        driver.piece(symbols, 0);
        driver.run(RTT).len()
    };
    assert_eq!(repairs(0, 84), 4);
    assert!((1..4).contains(&repairs(50, 84)));
    assert_eq!(repairs(200, 84), 0);
    assert_eq!(repairs(0, 2), 0, "little is lost of little data");
    let sleeps = |path: &PathView, terms| Auto::default().sleeps(path, terms);
    let long = Terms::STREAM.of_stream(100_000);
    assert_eq!(sleeps(&new(0), long), None);
    assert_eq!(sleeps(&new(200), long), Some(Reason::Unknown));
    assert_eq!(sleeps(&new(0), Terms::STREAM), Some(Reason::Unknown), "it joins no session");
    assert_eq!(sleeps(&new(0), Terms::DATAGRAM), Some(Reason::Unknown));
    let policy = Auto::default().build();
    let view = View { path: new(0), left: 100_000, ..View::default() };
    assert!(policy.protects(&view));
    assert!(!policy.protects(&View { left: 5_000, ..view }), "small data shares packets");
}

#[test]
fn losses_that_come_and_go_are_reckoned_with_while_there_are_none() {
    let clear = LossFloor::default().with_known(1_000).with_high(0.001);
    let repairs = |floor: LossFloor| {
        let mut driver = warm(Auto::default(), PathView { floor, ..path() });
        driver.piece(5, 0);
        driver.run(RTT).len()
    };
    assert_eq!(repairs(clear), 0);
    let other = |secs| {
        let length = Duration::from_secs(secs);
        clear.with_other(Some(Regime::new(0.1, 1.0, length)))
    };
    assert!(repairs(other(1)) >= 1);
    assert_eq!(repairs(other(100)), 0, "it is unlikely to change within a round trip");
    assert_eq!(repairs(other(1).with_crowded(true)), 0);
}

#[test]
fn no_more_is_sent_than_the_path_has_room_for() {
    let repairs = |floor: LossFloor| {
        let mut driver = warm(Auto::default(), PathView { floor, ..path() });
        let pieces = (0..20).map(|_| {
            driver.piece(20, 0);
            let sent = driver.run(RTT).len();
            driver.arrives();
            sent
        });
        pieces.sum::<usize>()
    };
    let lossy = path().floor;
    let [all, some, few] = [f64::INFINITY, 0.1, 0.01].map(|room| repairs(lossy.with_room(room)));
    // Of 400 packets, besides what was saved before.
    assert!(all > 40 && (20..=41).contains(&some) && few <= 6, "{all} {some} {few}");
    let withheld = lossy.with_withheld(true);
    assert_eq!(repairs(withheld), 0);
    let view = PathView { floor: withheld, ..path() };
    assert_eq!(Auto::default().sleeps(&view, Terms::STREAM), Some(Reason::Experiment));
}

#[test]
fn a_target_counts_from_the_first_data_that_is_not_covered() {
    let target = Auto::new(1.0).unwrap().within(150 * MS, 0.999).unwrap();
    let mut driver = warm(target, path());
    // Messages every 16 ms; the first must be covered 100 ms after it was sent, at the latest.
    let mut first = None;
    for index in 0..10 {
        driver.piece(1, 0);
        if !driver.run(16 * MS).is_empty() {
            first = first.or(Some(index));
        }
    }
    assert!(first.is_some_and(|index| (3..=6).contains(&index)), "{first:?}");
}

#[test]
fn nothing_is_sent_while_acknowledgements_are_overdue_unless_little_is_in_flight() {
    // A quarter of the window of 100,000 bytes, and a byte more.
    let (little, much) = (25_000, 25_001);
    let path = |silent, in_flight| PathView { silent, in_flight, ..path() };
    let sleeps = |auto: Auto, path: PathView| auto.sleeps(&path, Terms::STREAM);
    assert_eq!(sleeps(Auto::default(), path(false, much)), None);
    assert_eq!(sleeps(Auto::default(), path(true, little)), None);
    assert_eq!(sleeps(Auto::default(), path(true, much)), Some(Reason::Silent));
    let deaf = Auto { without: Some(Aspect::Silence), ..Auto::default() };
    assert_eq!(sleeps(deaf, path(true, much)), None);
    let repairs = |in_flight| {
        let mut driver = warm(Auto::default(), path(false, in_flight));
        driver.view.path = path(true, in_flight);
        driver.piece(5, 0);
        (driver.run(RTT).len(), driver.reason())
    };
    assert_eq!(repairs(much), (0, Reason::Silent));
    assert!(repairs(little).0 > 0, "{:?}", repairs(little));
}

#[test]
fn packets_that_are_late_count_as_lost_where_they_are_too_late() {
    let floor = LossFloor::default()
        .with_known(1_000)
        .with_high(0.001)
        .with_late(0.05)
        .with_late_by(20 * MS);
    let path = PathView { floor, ..path() };
    let repairs = |auto| {
        let mut driver = warm(auto, path);
        driver.piece(5, 0);
        driver.run(RTT).len()
    };
    assert!(repairs(Auto::default()) >= 1);
    assert_eq!(repairs(Auto { without: Some(Aspect::Lateness), ..Auto::default() }), 0);
    // Half a round trip and 20 ms are 70 ms.
    let within = |ms: u32| Auto::default().within(ms * MS, 0.999).unwrap();
    assert!(repairs(within(69)) >= 1);
    assert_eq!(repairs(within(70)), 0);
}

#[test]
fn where_pieces_overlap_and_fill_the_window_repair_symbols_must_be_worth_more() {
    let repairs = |auto, window, other, rate| {
        let floor = path().floor.with_rate(rate).with_low(rate).with_high(rate);
        let path = PathView { window, in_flight: 20_000, floor, ..path() };
        let mut driver = warm(auto, path);
        driver.view.unacked = other;
        driver.piece(5, 0);
        (driver.run(RTT).len(), driver.reason())
    };
    let usual = Auto::default();
    // Room for a quarter more is room for what the budget allows.
    assert!(repairs(usual, 25_000, 5, 0.02).0 > 0);
    // A packet takes a twentieth of a round trip, and a retransmission half of one later.
    assert_eq!(repairs(usual, 24_000, 5, 0.02), (0, Reason::Window));
    assert!(repairs(usual, 24_000, 5, 0.15).0 > 0, "more is lost than would wait");
    assert!(repairs(usual, 24_000, 0, 0.02).0 > 0, "a single piece");
    assert!(repairs(Auto { without: Some(Aspect::Window), ..usual }, 24_000, 5, 0.02).0 > 0);
}

#[test]
fn where_packets_wait_for_others_repair_symbols_must_be_worth_more() {
    let repairs = |auto, held, queued, rate| {
        let floor = path().floor.with_rate(rate).with_low(rate).with_high(rate);
        let floor = floor.with_queued(queued);
        let path = PathView { window: 24_000, held, floor, ..path() };
        let mut driver = warm(auto, path);
        driver.piece(5, 0);
        (driver.run(RTT).len(), driver.reason())
    };
    let usual = Auto::default();
    assert!(repairs(usual, 0.0, 0.0, 0.02).0 > 0);
    assert!(repairs(usual, 0.25, 0.0, 0.02).0 > 0, "they wait in a quarter of the cases");
    for (held, queued) in [(1.0, 0.0), (0.0, 1.0)] {
        assert_eq!(repairs(usual, held, queued, 0.02), (0, Reason::Waiting));
        assert!(repairs(usual, held, queued, 0.15).0 > 0, "more is lost than would wait");
        let without = Auto { without: Some(Aspect::Waiting), ..usual };
        assert!(repairs(without, held, queued, 0.02).0 > 0);
    }
}

#[test]
fn repair_symbols_are_spread_where_the_budget_does_not_suffice_for_the_target() {
    let times = |budget, loss| {
        let path = PathView { floor: LossFloor::default().with_rate(loss), ..path() };
        let mut driver = warm(Auto::new(budget).unwrap().within(NEEDED - MS, 0.999).unwrap(), path);
        let mut gaps = Vec::new();
        let mut since = 0;
        for _ in 0..400 {
            driver.piece(1, 0);
            since += 1;
            for _ in driver.run(5 * MS) {
                gaps.push(since);
                since = 0;
            }
        }
        gaps
    };
    let gaps = times(0.25, 0.2);
    // Once what was saved up is spent.
    assert!(gaps.iter().rev().take(30).all(|gap| *gap == 4), "{gaps:?}");
    // Otherwise many leave together at the last moment.
    let gaps = times(1.0, 0.1);
    let together = gaps.iter().filter(|gap| **gap <= 1).count();
    assert!(together > gaps.len() * 3 / 4 && gaps.contains(&11), "{gaps:?}");
}

#[test]
fn lost_datagrams_are_mended_after_the_loss_if_that_is_soon_enough() {
    let lose = |auto, path: PathView| {
        let mut driver = Driver::new(auto, path);
        driver.view.resends = false;
        let before: usize = (0..20)
            .map(|_| {
                driver.piece(1, 0);
                let sent = driver.run(5 * MS).len();
                driver.arrives();
                sent
            })
            .sum();
        driver.piece(1, 0);
        let before = before + driver.run(RTT).len();
        // The repair symbols were lost as well.
        driver.view.added = 0;
        driver.policy.on_unmended(driver.now, driver.view.next - 1, &driver.view);
        (before, driver.run(RTT).len())
    };
    // On a short path, nothing is sent before.
    let short = PathView { rtt: 5 * MS, min_rtt: 5 * MS, ..path() };
    assert_eq!(lose(Auto::default(), short), (0, 1));
    let (before, after) = lose(Auto::default(), path());
    assert!(before > 1 && after == 1, "{before} {after}");
    let without = Auto { without: Some(Aspect::Mending), ..Auto::default() };
    assert!(lose(without, short).0 > 1);
    // What would come too late is not mended.
    assert_eq!(lose(Auto::default().within(120 * MS, 0.999).unwrap(), path()).1, 0);
}

#[test]
fn each_lost_datagram_is_mended_on_its_own() {
    let short = PathView { rtt: 5 * MS, min_rtt: 5 * MS, ..path() };
    let mut driver = Driver::new(Auto::default(), short);
    driver.view.resends = false;
    driver.piece(20, 0);
    let covered = |driver: &Driver| match driver.policy.decide(driver.now, &driver.view) {
        Decision::Repair(plan) => plan.span,
        Decision::Source => 0..0,
    };
    assert!(covered(&driver).is_empty());
    driver.policy.on_unmended(driver.now, 7, &driver.view);
    assert_eq!(covered(&driver), 7..8);
    driver.policy.on_unmended(driver.now, 12, &driver.view);
    assert_eq!(covered(&driver), 7..8, "the oldest first");
    driver.policy.on_repair_sent(driver.now, &driver.view);
    assert_eq!(covered(&driver), 12..13);
    assert_eq!(driver.run(RTT).len(), 1);
    // A repair symbol is lost as well.
    driver.policy.on_unmended(driver.now, 7, &driver.view);
    assert_eq!(covered(&driver), 7..8);
    // It comes too late now.
    driver.view.timely = 8;
    driver.policy.on_unmended(driver.now, 15, &driver.view);
    assert_eq!(covered(&driver), 15..16);
    driver.policy.on_arrived(driver.now, 15, Arrival::Late, &driver.view);
    assert!(covered(&driver).is_empty() && driver.policy.timeout().is_none());
}

#[test]
fn each_part_can_be_switched_off_by_name() {
    for part in Aspect::ALL.map(Aspect::name) {
        let auto = crate::registry::redundancy().find(&format!("auto:without={part}")).unwrap();
        assert_eq!(auto.parameters(), format!("budget=0.25, without={part}"));
    }
}
