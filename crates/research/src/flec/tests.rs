//! The five policies, driven by hand.

use super::rules::ROUNDING;
use super::{AcRlnc, Buffer, Bulk, SrArq};
use crate::testing::with;
use std::time::{Duration, Instant};
use sutura_proto::policy::{Decision, LossFloor, Redundancy, RedundancyFactory, Turn, View};

const RTT: Duration = Duration::from_millis(100);

/// A window of `unacked` symbols, of which `missing` are lost, with `added` repair symbols in
/// flight.
fn view(unacked: u32, missing: u32, added: u32, loss: f64) -> View {
    with(View::default(), |view| {
        view.next = unacked.into();
        (view.unacked, view.missing, view.added) = (unacked, missing, added);
        view.newest_missing = (missing > 0).then_some(view.next / 2);
        (view.has_source, view.idle) = (true, false);
        (view.path.rtt, view.path.loss, view.path.outcomes) = (RTT, loss, 10_000);
        view.path.floor.burst = 2.0;
    })
}

fn repairs(policy: &dyn Redundancy, now: Instant, view: &View) -> bool {
    let decision = policy.decide(now, view);
    assert_eq!(decision, policy.decide(now, view), "a look changes nothing");
    decision != Decision::Source
}

/// The same view while there is no data to send.
fn idle(view: View) -> View {
    with(view, |view| (view.has_source, view.idle) = (false, true))
}

/// Algorithm 1 as it is written, without a bound.
fn is_below(view: &View, ds: f64) -> bool {
    let ratio = f64::from(view.missing) / f64::from(view.added);
    view.missing > 0 && 1.0 - view.path.loss - ratio < ds - ROUNDING
}

#[test]
fn the_thresholds_are_those_of_table_ii() {
    let now = Instant::now();
    let ac_rlnc = AcRlnc::new(2.0).unwrap();
    let buffer = Buffer::new(3.0).unwrap();
    type Row<'a> = (&'a dyn RedundancyFactory, fn(f64) -> f64);
    let rows: [Row<'_>; 4] =
        [(&SrArq, |l| -l), (&ac_rlnc, |l| 2.0 * l), (&Bulk, |l| -l), (&buffer, |l| 3.0 * l)];
    for (factory, ds) in rows {
        for loss in [0.0, 0.01, 0.05, 0.15] {
            for (missing, added) in (0..12).flat_map(|m| (0..12).map(move |a| (m, a))) {
                let view = view(100, missing, added, loss);
                let mut policy = factory.build();
                // Repair symbols cover all data, so that no pattern asks for more.
                policy.on_source_sent(now, 99, &view);
                for _ in 0..20 {
                    policy.on_repair_sent(now, &view);
                }
                let expected = is_below(&view, ds(loss));
                let name = factory.name();
                assert_eq!(repairs(&*policy, now, &view), expected, "{name}: {view:?}");
            }
        }
    }
}

#[test]
fn however_much_is_lost_repair_symbols_come_to_an_end() {
    let policy = AcRlnc::new(100.0).unwrap().build();
    let now = Instant::now();
    assert!(repairs(&*policy, now, &view(10, 3, 11, 0.5)));
    assert!(!repairs(&*policy, now, &view(10, 3, 12, 0.5)));
}

#[test]
fn selective_repeat_adds_nothing() {
    let (now, mut policy) = (Instant::now(), SrArq.build());
    policy.on_source_sent(now, 0, &view(10, 0, 0, 0.1));
    policy.on_flushed(now, true, &view(10, 0, 0, 0.1));
    assert!(!repairs(&*policy, now + 10 * RTT, &idle(view(10, 0, 0, 0.1))));
}

#[test]
fn causal_coding_repairs_once_per_round_trip() {
    let (now, mut policy) = (Instant::now(), AcRlnc::new(1.0).unwrap().build());
    let view = view(50, 0, 0, 0.05);
    policy.on_source_sent(now, 0, &view);
    for round in 1..4 {
        assert!(!repairs(&*policy, now + RTT * round - RTT / 2, &view));
        // Of 50 symbols 2.5 are expected to be lost.
        for _ in 0..3 {
            assert!(repairs(&*policy, now + RTT * round, &view));
            policy.on_repair_sent(now + RTT * round, &view);
        }
        assert!(!repairs(&*policy, now + RTT * round, &view));
        assert_eq!(policy.timeout(), Some(now + RTT * (round + 1)));
    }
}

/// How many repair symbols a policy sends for `view` before it stops.
fn sent(policy: &mut dyn Redundancy, now: Instant, mut view: View) -> u32 {
    let before = view.added;
    while repairs(policy, now, &view) {
        view.added += 1;
        policy.on_repair_sent(now, &view);
    }
    view.added - before
}

#[test]
fn a_bulk_transfer_protects_what_it_sent_last() {
    let (now, mut policy) = (Instant::now(), Bulk.build());
    let end = idle(view(60, 0, 0, 0.05));
    policy.on_source_sent(now, 59, &end);
    assert!(!repairs(&*policy, now + RTT, &end), "more may come");
    policy.on_flushed(now, false, &end);
    assert_eq!(policy.timeout(), Some(now + RTT / 8));
    assert!(!repairs(&*policy, now, &end));
    let now = now + RTT / 8;
    // Three packets are expected to be lost, in bursts of two.
    let count = sent(&mut *policy, now, end);
    assert!((6..=12).contains(&count), "{count}");
    // Known losses come on top, and repair symbols for them may be lost as well.
    let known = with(end, |view| {
        (view.missing, view.newest_missing, view.added) = (3, Some(7), count);
    });
    assert!(sent(&mut *policy, now, known) >= 3);
    let last = with(end, |view| {
        (view.unacked, view.missing, view.newest_missing) = (1, 1, Some(59));
    });
    assert_eq!(sent(&mut *policy, now, last), 2);
}

#[test]
fn the_end_of_a_transfer_is_protected_by_what_is_known() {
    let count = |loss, outcomes, floor| {
        let (now, mut policy) = (Instant::now(), Bulk.build());
        let end = with(idle(view(20, 0, 0, loss)), |view| {
            (view.path.outcomes, view.path.floor) = (outcomes, floor);
        });
        policy.on_flushed(now, true, &end);
        sent(&mut *policy, now, end)
    };
    let unknown = LossFloor::default();
    let remembered = with(unknown, |floor| {
        (floor.rate, floor.low, floor.high) = (0.08, 0.06, 0.1);
    });
    assert!((1..=3).contains(&count(0.0, 0, unknown)), "by experience");
    assert!(count(0.0, 0, remembered) > count(0.0, 0, unknown));
    assert_eq!(count(0.0, 2_000, unknown), 0, "the path loses nothing");
}

#[test]
fn only_the_last_flight_of_a_bulk_transfer_becomes_symbols() {
    let policy = Bulk.build();
    let left =
        |left| with(view(60, 0, 0, 0.05), |view| (view.left, view.path.window) = (left, 50_000));
    assert!(policy.protects(&left(100_000)) && !policy.protects(&left(100_001)));
    assert!(SrArq.build().protects(&left(u64::MAX)));
}

#[test]
fn what_was_lost_is_mended_apart_from_what_may_be_lost() {
    let (now, policy) = (Instant::now(), SrArq.build());
    let Decision::Repair(plan) = policy.decide(now, &view(100, 2, 0, 0.05)) else { panic!() };
    assert_eq!((plan.span, plan.turn), (0..51, Turn::First));
}

/// A sender with more to send, of which `unacked` symbols are in flight, to a receiver that
/// buffers `trips` of them.
fn limited(unacked: u32, trips: f64, added: u32) -> View {
    with(view(unacked, 0, added, 0.05), |view| {
        view.path.in_flight = u64::from(unacked) * 1000;
        view.buffer = (view.path.in_flight as f64 * trips) as u64;
        view.left = 1 << 30;
    })
}

#[test]
fn a_small_buffer_is_protected_every_so_many_symbols() {
    let (now, mut policy) = (Instant::now(), Buffer::new(1.0).unwrap().build());
    // Bursts of two, so one after about every 40.
    let at = |next: u64, added| with(limited(100, 1.5, added), |view| view.next = next);
    policy.on_source_sent(now, 0, &at(1, 0));
    assert!(!repairs(&*policy, now, &at(35, 0)) && repairs(&*policy, now, &at(45, 0)));
    policy.on_repair_sent(now, &at(45, 1));
    assert!(repairs(&*policy, now, &at(45, 1)), "two for a burst of two");
    policy.on_repair_sent(now, &at(45, 2));
    assert!(repairs(&*policy, now, &at(45, 2)), "and one more");
    policy.on_repair_sent(now, &at(45, 3));
    assert!(!repairs(&*policy, now, &at(45, 3)) && !repairs(&*policy, now, &at(75, 3)));
    assert!(repairs(&*policy, now, &at(45 + 45, 3)));
    assert!(!repairs(&*policy, now, &at(45 + 45, 10)), "twice the expected losses in flight");
}

#[test]
fn a_buffer_that_outlasts_a_retransmission_is_not_protected() {
    let (now, policy) = (Instant::now(), Buffer::new(1.0).unwrap().build());
    assert!(repairs(&*policy, now, &limited(100, 2.2, 0)));
    assert!(!repairs(&*policy, now, &limited(100, 2.3, 0)));
    assert!(policy.protects(&limited(100, 2.2, 0)) && !policy.protects(&limited(100, 2.3, 0)));
}

#[test]
fn a_blocked_sender_protects_all_it_sent() {
    let (now, mut policy) = (Instant::now(), Buffer::new(1.0).unwrap().build());
    let blocked = idle(limited(40, 1.0, 0));
    let count = sent(&mut *policy, now, blocked);
    assert!((4..=10).contains(&count), "{count}");
    let flushed = with(blocked, |view| view.left = 0);
    assert!(!repairs(&*policy, now, &flushed), "it is not blocked, it has nothing to send");
    let lossless = with(blocked, |view| view.path.loss = 0.0);
    assert!(!repairs(&*policy, now, &lossless), "nothing is lost");
}

#[test]
fn factors_are_told_and_wrong_ones_refused() {
    let made = [AcRlnc::new(2.0).map(|p| p.parameters()), Buffer::new(2.0).map(|p| p.parameters())];
    assert_eq!(made, [Some("c=2".to_owned()), Some("c=2".to_owned())]);
    assert!(AcRlnc::new(-1.0).is_none() && Buffer::new(f64::NAN).is_none());
}

/// Policies without a pattern before the end of the data are not asked until a symbol is missing.
#[test]
fn what_only_mends_rests_until_a_symbol_is_missing() {
    let now = Instant::now();
    let some = view(10, 0, 0, 0.01);
    for factory in [&SrArq as &dyn RedundancyFactory, &Bulk] {
        let mut policy = factory.build();
        policy.on_source_sent(now, 9, &some);
        assert!(policy.rests(now, false) && !policy.rests(now, true), "{}", factory.name());
        assert!(!repairs(&*policy, now, &some));
        assert!(repairs(&*policy, now, &view(10, 1, 0, 0.01)));
    }
    let mut bulk = Bulk.build();
    bulk.on_flushed(now, true, &idle(some));
    assert!(!bulk.rests(now, false), "the end is protected");
}
