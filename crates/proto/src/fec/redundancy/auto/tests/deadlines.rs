//! Targets, deadlines, and datagrams that are mended after the loss.

use super::*;

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
    let near = PathView { rtt: 2 * MS, min_rtt: 2 * MS, pto: 9 * MS, ..path() };
    assert_eq!(Auto::default().sleeps(&near, Terms::STREAM), enough);
    assert_eq!(Auto::default().sleeps(&near, within(3 * MS)), None);
    // The loss of the last packets is noticed by the probe timeout only.
    assert_eq!(Auto::default().sleeps(&near, within(9 * MS)), None);
    let late = PathView { pto: 10 * MS, ..near };
    assert_eq!(Auto::default().sleeps(&late, Terms::STREAM), None);
}

#[test]
fn data_that_is_likely_to_be_lost_twice_is_protected() {
    let lossy = |loss| PathView { floor: LossFloor::default().with_rate(loss), ..path() };
    let sleeps =
        |auto: Auto, loss, within| auto.sleeps(&lossy(loss), Terms::STREAM.within(Some(within)));
    let enough = Some(Reason::RetransmissionIsEnough);
    let auto = Auto::new(1.0).unwrap();
    // One retransmission is in time; one packet in a thousand may be late.
    assert_eq!(sleeps(auto, 0.03, 2 * RTT), enough);
    assert_eq!(sleeps(auto, 0.04, 2 * RTT), None);
    assert_eq!(sleeps(auto.within(2 * RTT, 0.99).unwrap(), 0.04, 2 * RTT), enough);
    assert_eq!(sleeps(Auto { without: Some(Aspect::Again), ..auto }, 0.04, 2 * RTT), enough);
    // Two are.
    assert_eq!(sleeps(auto, 0.04, 3 * RTT + MS), enough);
    // What is sent again needs not be mended, so that fewer repair symbols suffice.
    let repairs = |within| {
        let mut driver = warm(auto, lossy(0.1));
        driver.message(within);
        driver.run(3 * RTT).len()
    };
    let (hurried, once) = (repairs(NEEDED), repairs(2 * RTT));
    assert!(0 < once && once < hurried, "{once} {hurried}");
    assert_eq!(path().retransmissions_in_time(Duration::MAX), 8, "more do not count");
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
fn a_target_that_cannot_be_met_is_not_paid_for_in_full() {
    let repairs = |burst: f64, burst_time| {
        let floor = path().floor.with_burst(burst).with_burst_time(burst_time);
        let auto = Auto::new(1.0).unwrap().within(80 * MS, 0.999).unwrap();
        let mut driver = warm(auto, PathView { floor, ..path() });
        driver.piece(14, 0);
        driver.run(RTT).len()
    };
    // A burst that takes the data takes whatever follows soon.
    let bursty = repairs(1.2, Duration::from_secs(10));
    assert!((1..=4).contains(&bursty), "{bursty}");
    // Each of more repair symbols counts where bursts end at some time.
    let ending = repairs(4.0, 20 * MS);
    assert!(ending > 8, "{ending}");
}

#[test]
fn a_target_beyond_the_path_counts_from_when_the_data_would_arrive() {
    let auto = Auto::new(1.0).unwrap();
    for rtt in [20 * MS, 100 * MS, 600 * MS] {
        let path = PathView { rtt, min_rtt: rtt, ..path() };
        let beyond = auto.beyond(30 * MS, 0.999).unwrap();
        let within = auto.within(rtt / 2 + 30 * MS, 0.999).unwrap();
        let sent = [beyond, within].map(|auto| {
            let mut driver = warm(auto, path);
            driver.piece(5, 0);
            driver.run(rtt)
        });
        assert_eq!(sent[0], sent[1], "{rtt:?}");
        assert!(rtt == 20 * MS || !sent[0].is_empty(), "{rtt:?}");
    }
    conformance::redundancy(&auto.beyond(MAX_DELAY, 1.0).unwrap());
    assert!(auto.beyond(MAX_DELAY, 1.1).is_none());
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
fn what_is_past_its_deadline_is_not_protected() {
    let mut driver = warm(Auto::new(1.0).unwrap(), path());
    driver.message(130 * MS);
    assert!(driver.policy.timeout().is_some());
    driver.now += 81 * MS;
    driver.policy.on_flushed(driver.now, false, &driver.view);
    assert_eq!(driver.reason(), Reason::Expired);
    assert_eq!((driver.policy.timeout(), driver.run(RTT)), (None, vec![]));
    driver.arrives();
    driver.message(130 * MS);
    assert!(!driver.run(2 * RTT).is_empty(), "the next one can be in time");
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
