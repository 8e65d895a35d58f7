//! The built-in policies, driven by hand.

use super::incremental::SOURCES_PER_REPAIR;
use super::*;

const MS: Duration = Duration::from_millis(1);

fn view(next: u64, unacked: u32) -> View {
    let path = PathView { rtt: 100 * MS, ..PathView::default() };
    View { next, unacked, path, ..View::default() }
}

fn busy(next: u64, unacked: u32) -> View {
    View { has_source: true, idle: false, ..view(next, unacked) }
}

fn repairs(policy: &dyn Redundancy, now: Instant, v: &View) -> bool {
    let decision = policy.decide(now, v);
    assert_eq!(decision, policy.decide(now, v), "a question changes nothing");
    match decision {
        Decision::Source => false,
        Decision::Repair(plan) => {
            assert_eq!(plan, RepairPlan::over(v.span()));
            true
        }
    }
}

/// A piece of one symbol is sent.
fn piece(policy: &mut dyn Redundancy, now: Instant, id: u64, unacked: u32) {
    policy.on_source_sent(now, id, &view(id + 1, unacked));
    policy.on_flushed(now, false, &view(id + 1, unacked));
}

/// Number of repair symbols that the policy sends in a row at `now`.
fn burst(policy: &mut dyn Redundancy, now: Instant, v: &View) -> u32 {
    let mut n = 0;
    while repairs(policy, now, v) {
        policy.on_repair_sent(now, v);
        n += 1;
        assert!(n <= MAX_BURST);
    }
    n
}

/// A policy, and a time.
fn built(policy: &dyn RedundancyFactory) -> (Box<dyn Redundancy>, Instant) {
    (policy.build(), Instant::now())
}

#[test]
fn tail_repairs_once_at_the_end() {
    let (mut tail, now) = built(&Tail::new(3, Duration::ZERO));
    let v = view(5, 5);
    tail.on_source_sent(now, 4, &v);
    assert_eq!(burst(&mut *tail, now, &v), 0);
    tail.on_flushed(now, true, &v);
    assert_eq!(burst(&mut *tail, now, &v), 3);
    tail.on_flushed(now, true, &v);
    assert_eq!(burst(&mut *tail, now, &v), 0, "the same end is not protected twice");
}

#[test]
fn tail_waits_for_a_slow_writer_and_yields_to_new_data() {
    let (mut tail, now) = built(&Tail::new(2, Duration::ZERO));
    tail.on_flushed(now, false, &view(5, 5));
    assert_eq!(burst(&mut *tail, now, &view(5, 5)), 0);
    assert_eq!(tail.timeout(), Some(now + MS));
    tail.on_source_sent(now, 5, &view(6, 6));
    assert_eq!(tail.timeout(), None);
    tail.on_flushed(now, false, &view(6, 6));
    assert!(!repairs(&*tail, now + MS, &busy(6, 6)));
    assert_eq!(burst(&mut *tail, now + MS, &view(6, 6)), 2);
}

#[test]
fn tail_sends_nothing_for_acknowledged_data() {
    let (mut tail, now) = built(&Tail::new(3, 10 * MS));
    tail.on_flushed(now, true, &view(5, 5));
    tail.on_arrived(now + 5 * MS, 4, Arrival::Acked, &view(5, 0));
    assert_eq!(tail.timeout(), None);
    assert_eq!(burst(&mut *tail, now + 10 * MS, &view(5, 0)), 0);
}

#[test]
fn incremental_repairs_after_each_piece() {
    let (mut inc, now) = built(&Incremental::new(3, Duration::ZERO));
    for piece in 1..=4 {
        let now = now + 16 * MS * piece;
        let v = view(u64::from(piece) * 5, 5 * piece);
        for id in 0..5 {
            assert!(!repairs(&*inc, now, &busy(v.next, v.unacked)));
            inc.on_source_sent(now, u64::from(piece - 1) * 5 + id, &v);
        }
        assert_eq!(burst(&mut *inc, now, &v), 3);
    }
}

#[test]
fn incremental_waits_for_its_delay() {
    let (mut inc, now) = built(&Incremental::new(2, 25 * MS));
    inc.on_source_sent(now, 0, &view(1, 1));
    inc.on_source_sent(now + 10 * MS, 1, &view(2, 2));
    assert_eq!(inc.timeout(), Some(now + 25 * MS));
    assert_eq!(burst(&mut *inc, now + 24 * MS, &view(2, 2)), 0);
    assert_eq!(burst(&mut *inc, now + 25 * MS, &view(2, 2)), 2);
    inc.on_source_sent(now + 30 * MS, 2, &view(3, 3));
    inc.on_arrived(now + 40 * MS, 2, Arrival::Acked, &view(3, 0));
    assert_eq!(inc.timeout(), None);
}

/// Messages that follow each other faster than their repair symbols: each message gets its own repair
/// symbols, none sooner than its delay.
#[test]
fn incremental_gives_every_piece_its_own_repair_symbols_and_time() {
    let (mut inc, now) = built(&Incremental::new(2, 25 * MS));
    for piece in 0..3u32 {
        let at = now + 10 * MS * piece;
        for id in [0, 1] {
            let id = u64::from(piece) * 2 + id;
            inc.on_source_sent(at, id, &view(id + 1, 6));
        }
        inc.on_flushed(at, false, &view(u64::from(piece) * 2 + 2, 6));
    }
    let v = view(6, 6);
    for due in [25, 35, 45] {
        assert_eq!(inc.timeout(), Some(now + due * MS));
        assert_eq!(burst(&mut *inc, now + (due - 1) * MS, &v), 0);
        assert_eq!(burst(&mut *inc, now + due * MS, &v), 2);
    }
    assert_eq!(inc.timeout(), None);
}

#[test]
fn incremental_gives_small_pieces_no_more_than_a_few_times_their_size() {
    let (mut inc, now) = built(&Incremental::new(100, 25 * MS));
    for id in 0..10u64 {
        let at = now + MS * id as u32;
        piece(&mut *inc, at, id, 10);
    }
    let sent = (25..35).map(|ms| burst(&mut *inc, now + ms * MS, &view(10, 10)));
    assert_eq!(sent.collect::<Vec<_>>(), [100, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
}

#[test]
fn incremental_gives_a_piece_that_comes_amid_a_burst_no_burst_of_its_own() {
    let (mut inc, now) = built(&Incremental::new(100, 25 * MS));
    piece(&mut *inc, now, 0, 1);
    inc.on_repair_sent(now + 25 * MS, &view(1, 1));
    piece(&mut *inc, now + 26 * MS, 1, 2);
    assert_eq!(burst(&mut *inc, now + 27 * MS, &view(2, 2)), 99);
    assert_eq!(burst(&mut *inc, now + 51 * MS, &view(2, 2)), 4);
}

#[test]
fn incremental_pieces_that_fall_due_together_share_their_repair_symbols() {
    let (mut inc, now) = built(&Incremental::new(2, 25 * MS));
    for id in 0..3u64 {
        let at = now + 10 * MS * id as u32;
        piece(&mut *inc, at, id, 3);
    }
    assert_eq!(burst(&mut *inc, now + 40 * MS, &view(3, 3)), 2, "the window was full until now");
    assert_eq!(burst(&mut *inc, now + 45 * MS, &view(3, 3)), 2);
}

#[test]
fn the_timer_goes_with_the_symbol_that_armed_it() {
    let (mut inc, now) = built(&Incremental::new(1, 25 * MS));
    inc.on_source_sent(now, 0, &view(1, 1));
    inc.on_source_sent(now + 10 * MS, 1, &view(2, 2));
    inc.on_arrived(now + 20 * MS, 0, Arrival::Acked, &view(2, 1));
    assert_eq!(inc.timeout(), Some(now + 35 * MS), "the next symbol's turn");
    assert_eq!(burst(&mut *inc, now + 30 * MS, &view(2, 1)), 0);
    assert_eq!(burst(&mut *inc, now + 35 * MS, &view(2, 1)), 1);
    assert_eq!(inc.timeout(), None);
}

#[test]
fn a_tolerance_above_what_a_retransmission_takes_turns_into_plain_retransmission() {
    let now = Instant::now();
    // 13/8 of 100 ms.
    for (delay, expected) in [(162 * MS, 2), (163 * MS, 0)] {
        let mut inc = Incremental::new(2, delay).build();
        inc.on_source_sent(now, 0, &view(1, 1));
        assert_eq!(burst(&mut *inc, now + delay, &view(1, 1)), expected, "{delay:?}");
        let mut literal = Incremental::literal(2, delay).build();
        literal.on_source_sent(now, 0, &view(1, 1));
        assert_eq!(burst(&mut *literal, now + delay, &view(1, 1)), expected, "{delay:?}");
        let mut tail = Tail::new(2, delay).build();
        tail.on_source_sent(now, 0, &view(1, 1));
        tail.on_flushed(now, true, &view(1, 1));
        assert_eq!(burst(&mut *tail, now + delay, &view(1, 1)), expected, "{delay:?}");
    }
}

#[test]
fn incremental_repairs_even_a_sender_that_never_idles_but_not_too_much() {
    let mut now = Instant::now();
    let mut inc = Incremental::new(3, Duration::ZERO).build();
    let (mut sources, mut sent) = (0, 0);
    // Two packets in a quarter of a round trip.
    for id in 1..=1000 {
        let v = busy(id, 8);
        if repairs(&*inc, now, &v) {
            inc.on_repair_sent(now, &v);
            sent += 1;
        } else {
            inc.on_source_sent(now, id - 1, &v);
            sources += 1;
        }
        assert!(sent <= 3 + sources / SOURCES_PER_REPAIR, "{sources} {sent}");
        now += 13 * MS;
    }
    assert!(sent > sources / SOURCES_PER_REPAIR / 2, "{sources} {sent}");
    // The end is protected, no matter what was sent before.
    inc.on_source_sent(now, 1000, &view(1001, 8));
    assert_eq!(burst(&mut *inc, now, &view(1001, 8)), 3);
}

#[test]
fn incremental_repairs_no_later_than_a_quarter_round_trip_if_there_is_enough() {
    let (mut inc, now) = built(&Incremental::new(1, Duration::ZERO));
    (0..8).for_each(|id| inc.on_source_sent(now, id, &busy(id + 1, 8)));
    assert!(!repairs(&*inc, now, &busy(8, 8)));
    assert!(!repairs(&*inc, now + 24 * MS, &busy(8, 8)));
    assert!(repairs(&*inc, now + 25 * MS, &busy(8, 8)));
}

#[test]
fn literally_each_symbol_has_its_own_timer_and_burst_even_before_new_data() {
    let (mut inc, now) = built(&Incremental::literal(3, 25 * MS));
    for id in 0..4u64 {
        inc.on_source_sent(now + 10 * MS * (id / 2) as u32, id, &busy(id + 1, 4));
    }
    let v = busy(4, 4);
    assert_eq!(inc.timeout(), Some(now + 25 * MS));
    assert_eq!(burst(&mut *inc, now + 24 * MS, &v), 0);
    assert_eq!(burst(&mut *inc, now + 25 * MS, &v), 6, "two timers have expired");
    assert_eq!(inc.timeout(), Some(now + 35 * MS));
    assert_eq!(burst(&mut *inc, now + 35 * MS, &v), 6);
    assert_eq!(inc.timeout(), None);
}

#[test]
fn literally_an_acknowledged_symbol_needs_no_more_repair_symbols() {
    let (mut inc, now) = built(&Incremental::literal(3, 25 * MS));
    (0..3).for_each(|id| inc.on_source_sent(now, id, &view(id + 1, 3)));
    inc.on_arrived(now + 20 * MS, 1, Arrival::Acked, &view(3, 2));
    let at = now + 25 * MS;
    assert!(repairs(&*inc, at, &view(3, 2)));
    inc.on_repair_sent(at, &view(3, 2));
    // Repair symbols sent for the first symbol do not count for the last.
    inc.on_arrived(at, 0, Arrival::Recovered, &view(3, 1));
    assert_eq!(burst(&mut *inc, at, &view(3, 1)), 3);
    assert_eq!(inc.timeout(), None);
}

#[test]
fn the_literal_schedule_keeps_the_contract() {
    for (burst, delay) in [(0, Duration::ZERO), (1, 25 * MS), (4, Duration::ZERO), (4, MAX_DELAY)] {
        crate::conformance::redundancy(&Incremental::literal(burst, delay));
    }
}

#[test]
fn what_a_policy_remembers_is_bounded_by_the_window() {
    let now = Instant::now();
    for make in [Incremental::new, Incremental::literal] {
        let mut inc = make(1, Duration::from_secs(1)).build();
        for id in 0..100_000u64 {
            let v = View { first: id.saturating_sub(99), ..busy(id + 1, 100) };
            inc.on_source_sent(now + MS * id as u32, id, &v);
        }
        // The symbol that last left the window does not arm the timer.
        assert_eq!(inc.timeout(), Some(now + MS * 99_900 + Duration::from_secs(1)));
    }
}

#[test]
fn protections_are_equal_if_name_and_parameters_are() {
    let tail = Protection::tail(3, 25 * MS);
    assert_eq!(tail, Protection::new(std::sync::Arc::new(Tail::new(3, 25 * MS))));
    assert_ne!(tail, Protection::tail(3, 26 * MS));
    let incremental = Protection::incremental(3, 25 * MS);
    assert_ne!(tail, incremental);
    let literal = Protection::new(std::sync::Arc::new(Incremental::literal(3, 25 * MS)));
    assert_ne!(literal, incremental);
    assert_eq!(literal.to_string(), "incremental: literal, burst=3, delay=25ms");
    assert_eq!(tail.to_string(), "tail: burst=3, delay=25ms");
    let most = Protection::tail(MAX_BURST + 1, Duration::ZERO);
    assert_eq!(most, Protection::tail(255, Duration::ZERO));
    assert_eq!(Protection::tail(1, Duration::MAX), Protection::tail(1, MAX_DELAY));
    assert_eq!(Protection::incremental(1, Duration::MAX), Protection::incremental(1, MAX_DELAY));
}
