use super::*;
use crate::fec::redundancy::Message;
use crate::fec::redundancy::stand_in::Mender;
use crate::ids::MessageId;
use crate::policy::{Block, Decision};
use crate::recovery::token::StreamToken;
use std::sync::Arc;

fn session() -> CodingSession {
    with_window(1024)
}

fn with_window(symbols: usize) -> CodingSession {
    let limits = WindowLimits { symbols, bytes: 1 << 20, symbol_size: 100 };
    CodingSession::new(0, limits, 1200, Protection::tail(1, Duration::ZERO), DataKind::Streams)
}

/// A session whose policy repairs what is held, and the time.
fn mending() -> (CodingSession, Instant) {
    let mut session = session();
    session.reuse(Protection::new(Arc::new(Mender)), DataKind::Streams);
    (session, Instant::now())
}

/// A session with the first four symbols in its window, which has room for no more.
fn full() -> (CodingSession, Instant) {
    let (mut session, now) = (with_window(4), Instant::now());
    (0..4).for_each(|_| push(&mut session, now));
    (session, now)
}

/// These symbols were lost, and wait for repair symbols.
fn lose(session: &mut CodingSession, now: Instant, ids: Range<u64>, until: Instant) {
    for id in ids {
        session.on_lost(now, id);
        session.hold(id, until);
    }
}

fn push(session: &mut CodingSession, now: Instant) {
    let frame = StreamToken { id: StreamId(0), offset: 0, len: 6, fin: false, symbol: None };
    let symbol = NewSymbol { bytes: b"symbol", frame: Some(&frame), datagrams: &[], message: None };
    session.push(now, &symbol, &mut SmallVec::new()).unwrap();
}

#[test]
fn a_repair_symbol_is_known_as_long_as_it_covers_a_symbol_of_the_window() {
    let (mut session, now) = (session(), Instant::now());
    push(&mut session, now);
    session.repair_sent(now, &(0..1), 100);
    push(&mut session, now);
    assert_eq!((session.first(), session.repairs.in_flight(0)), (0, 1));
    session.done(0);
    session.slide();
    session.release_repairs();
    assert_eq!((session.first(), session.repairs.in_flight(0)), (1, 0));
}

#[test]
fn datagrams_that_come_too_late_are_left_out_of_later_repair_symbols() {
    let (mut session, now) = (session(), Instant::now());
    session.reuse(Protection::tail(1, Duration::ZERO), DataKind::Datagrams);
    let at = |ms| now + Duration::from_millis(ms);
    for deadline in [Some(at(10)), Some(at(20)), Some(at(30)), None, Some(at(5))] {
        let message = Message { deadline, ..Message::default() };
        let (datagrams, message) = (&[MessageId(0)][..], Some(message));
        let symbol = NewSymbol { bytes: b"symbol", frame: None, datagrams, message };
        session.push(now, &symbol, &mut SmallVec::new()).unwrap();
    }
    let look = |session: &CodingSession| {
        let view = session.view(&Surroundings::default());
        session.check().unwrap();
        (view.first, view.span(), view.unacked)
    };
    let pass = |session: &mut CodingSession, ms| {
        session.expire(Horizon { least: at(ms), expected: at(ms) });
    };
    pass(&mut session, 10);
    assert_eq!(look(&session), (0, 0..5, 5));
    pass(&mut session, 21);
    assert_eq!(look(&session), (0, 2..5, 3));
    // One of them arrives all the same, and one of the others.
    session.acked(1..3, Arrival::Acked);
    assert_eq!(look(&session), (0, 3..5, 2));
    pass(&mut session, 100);
    assert_eq!(look(&session), (0, 3..5, 2), "those behind one that is in no hurry stay");
    session.acked(0..1, Arrival::Acked);
    session.slide();
    assert_eq!(look(&session), (3, 3..5, 2));
}

/// A block's symbols stay for its parity symbols, but not at the cost of new symbols.
#[test]
fn what_a_block_keeps_is_covered_until_the_window_is_full() {
    let (mut session, now) = (session(), Instant::now());
    let blocks = Block::window(8, 2).map(|block| Protection::new(Arc::new(block)));
    session.reuse(blocks.unwrap(), DataKind::Streams);
    let send = |session: &mut CodingSession| {
        push(session, now);
        let view = session.view(&Surroundings::default());
        session.policy.on_source_sent(now, view.next - 1, &view);
    };
    (0..8).for_each(|_| send(&mut session));
    for id in 0..6 {
        session.done(id);
        session.slide();
    }
    let view = session.view(&Surroundings::default());
    assert_eq!((view.kept, view.first, view.capacity), (0, 6, 1024));
    assert_eq!(session.lower_bound_to_tell(8), None, "the peer keeps them, too");
    assert!(session.encoder.repair_size(0..8).is_ok());
    // With one symbol more than the window has room for, the block's symbols go.
    (0..1016).for_each(|_| push(&mut session, now));
    assert_eq!((session.kept(), session.first()), (0, 6));
    push(&mut session, now);
    assert_eq!((session.kept(), session.first()), (6, 6), "nothing that is open had to go");
    session.evict();
    assert_eq!((session.kept(), session.first()), (7, 7), "nothing is kept for a block then");
    // A quiet session keeps no symbols.
    let mut session = self::session();
    session.reuse(Protection::new(Arc::new(Block::window(8, 2).unwrap())), DataKind::Streams);
    (0..8).for_each(|_| send(&mut session));
    (0..8).for_each(|id| drop(session.done(id)));
    session.slide();
    assert_eq!(session.encoder.window(), 8..8);
}

#[test]
fn what_arrived_and_mended_nothing_is_replaced_once_nothing_else_can_come() {
    let (mut session, now) = mending();
    let wants_repair = |session: &CodingSession| {
        let view = session.view(&Surroundings::default());
        session.policy.decide(now, &view) != Decision::Source
    };
    push(&mut session, now);
    push(&mut session, now);
    session.hold(0, now + Duration::from_secs(1));
    session.repair_sent(now, &(0..1), 100);
    session.repair_settled(&(0..1), true);
    assert!(session.take_overdue(now).is_empty());
    assert!(!wants_repair(&session), "symbol 1 may bring the report");
    session.done(1);
    assert!(session.take_overdue(now).is_empty());
    assert!(wants_repair(&session), "nothing else mends symbol 0");
    session.repair_sent(now, &(0..1), 100);
    assert!(session.take_overdue(now).is_empty() && !wants_repair(&session));
}

/// Symbols 0 to 2 were lost, and wait for `repairs` repair symbols over `0..4` until 100 ms.
fn three_held(repairs: usize) -> (CodingSession, Instant) {
    let (mut session, now) = (session(), Instant::now());
    (0..4).for_each(|_| push(&mut session, now));
    (0..repairs).for_each(|_| session.repair_sent(now, &(0..4), 100));
    lose(&mut session, now, 0..3, now + Duration::from_millis(100));
    session.done(3);
    (session, now)
}

#[test]
fn only_as_many_are_sent_again_as_the_repair_symbols_that_arrived_do_not_suffice_for() {
    let (mut session, now) = three_held(3);
    let at = |ms| now + Duration::from_millis(ms);
    assert!(session.take_overdue(now).is_empty());
    session.repair_settled(&(0..4), true);
    session.repair_settled(&(0..4), true);
    assert!(session.take_overdue(now).is_empty(), "the third may bring all");
    session.repair_settled(&(0..4), false);
    assert_eq!(session.take_overdue(at(80))[..], [2]);
    session.queue(2);
    assert!(session.take_overdue(at(90)).is_empty());
    session.sent_again(at(90), 2);
    // The other symbols wait for the copy as long as they waited for the repair symbols.
    assert!(session.take_overdue(at(189)).is_empty());
    assert_eq!(session.held_until(), Some(at(190)));
    assert_eq!(session.check(), Ok(()));
    assert_eq!(session.take_overdue(at(190))[..], [0, 1]);
}

#[test]
fn what_a_copy_did_not_bring_waits_no_longer() {
    let (mut session, now) = three_held(2);
    session.repair_settled(&(0..4), true);
    session.repair_settled(&(0..4), true);
    assert_eq!(session.take_overdue(now)[..], [2]);
    session.sent_again(now, 2);
    session.done(2);
    assert_eq!(session.take_overdue(now)[..], [0, 1], "the peer used the repair symbols up");
}

#[test]
fn what_is_lost_after_the_repair_symbols_arrived_waits_for_a_copy() {
    let (mut session, now) = (session(), Instant::now());
    (0..3).for_each(|_| push(&mut session, now));
    session.repair_sent(now, &(0..3), 100);
    session.repair_settled(&(0..3), true);
    session.on_lost(now, 0);
    assert_eq!(session.outlook(0).newest_repair, None, "nothing else is known to be missing");
    session.queue(0);
    let later = now + Duration::from_millis(5);
    session.sent_again(later, 0);
    session.on_lost(later, 1);
    let RepairOutlook { newest_repair, repairs, held, .. } = session.outlook(1);
    assert_eq!((newest_repair, repairs, held), (Some(later), 1, 0));
    session.hold(1, later + Duration::from_millis(50));
    session.on_lost(later, 2);
    assert_eq!(session.outlook(2).held, 1, "one repair symbol mends one");
    assert!(session.take_overdue(later).is_empty());
    assert_eq!(session.check(), Ok(()));
}

/// The peer never knows a symbol whose data is sent again bare, so that the symbol uses up a repair symbol.
#[test]
fn what_left_the_window_uses_up_a_repair_symbol() {
    let (mut session, now) = full();
    (0..2).for_each(|_| session.repair_sent(now, &(0..4), 100));
    push(&mut session, now);
    let until = now + Duration::from_millis(50);
    lose(&mut session, now, 0..3, until);
    session.repair_settled(&(0..4), true);
    assert_eq!(session.take_overdue(now)[..], []);
    assert!(session.send_bare(0).is_some());
    session.repair_settled(&(0..4), true);
    assert_eq!(session.take_overdue(now)[..], [2], "one of two is left for the window");
    assert_eq!(session.repairs.covering(1), 1);
}

#[test]
fn what_is_too_large_for_the_packets_of_a_new_path_is_sent_again() {
    let (mut session, now) = mending();
    push(&mut session, now);
    session.hold(0, now + Duration::from_secs(1));
    assert!(session.outlook(0).mends && session.take_overdue(now).is_empty());
    let needed = b"symbol".len() + session.repair_overhead(0);
    session.set_packet_room(needed);
    assert!(session.outlook(0).mends && session.take_overdue(now).is_empty());
    session.set_packet_room(needed - 1);
    assert!(!session.outlook(0).mends);
    assert_eq!(session.take_overdue(now).as_slice(), [0]);
}

#[test]
fn what_the_peer_cannot_recover_together_is_sent_again() {
    let (mut session, now) = mending();
    let later = now + Duration::from_secs(1);
    let count = MAX_PENDING_REPAIRS as u64;
    for id in 0..=count {
        assert!(!session.is_beyond_mending());
        assert!(session.outlook(id).mends);
        push(&mut session, now);
        session.hold(id, later);
    }
    assert!(session.is_beyond_mending());
    assert!(!session.outlook(count).mends);
    assert_eq!(session.take_overdue(now).len() as u64, count + 1, "no repair symbol is in flight");
    session.done(0);
    assert!(!session.is_beyond_mending());
}

#[test]
fn what_leaves_the_window_is_remembered_while_a_repair_symbol_may_bring_it() {
    let (mut session, now) = full();
    session.repair_sent(now, &(1..3), 100);
    (0..4).for_each(|_| push(&mut session, now));
    assert_eq!((session.first(), session.beyond_len()), (4, 2), "it covers two of four");
    assert!(session.open_within(0..6).eq([1, 2, 4, 5]));
    assert_eq!(session.lower_bound_to_tell(2), Some(1), "the peer may still report 1");
    session.told(1);

    let later = now + Duration::from_secs(1);
    session.on_lost(now, 1);
    let RepairOutlook { newest_repair, repairs, held, mends } = session.outlook(1);
    assert_eq!((newest_repair, repairs, held, mends), (Some(now), 1, 0, false));
    session.hold(1, later);
    assert_eq!(session.held_until(), Some(later));
    assert_eq!(session.state(2), Some(SymbolState::InFlight));
    assert!(session.take_overdue(now).is_empty());
    // The repair symbol over both symbols brought symbol 2, so that it cannot bring symbol 1.
    assert!(session.done(2).is_some() && session.done(2).is_none());
    session.arrived(now, 2, Arrival::Recovered, &Surroundings::default());
    assert_eq!(session.take_overdue(now)[..], [1]);
    assert!(session.send_bare(1).is_some() && session.take_overdue(later).is_empty());
    assert_eq!(session.lower_bound_to_tell(2), Some(4));
    assert_eq!(session.check(), Ok(()));
}

/// The time of waiting can be over before the peer reports the symbols that it has recovered.
#[test]
fn what_was_sent_bare_is_credited_if_it_was_recovered_nevertheless() {
    let (mut session, now) = full();
    (0..2).for_each(|_| session.repair_sent(now, &(0..4), 77));
    (0..4).for_each(|_| push(&mut session, now));
    let until = now + Duration::from_millis(50);
    lose(&mut session, now, 0..2, until);
    assert_eq!(session.take_overdue(until)[..], [0, 1], "their time is over");
    assert!(session.send_bare(0).is_some() && session.send_bare(1).is_some());
    assert_eq!((session.state(0), session.lost.holds_any()), (Some(SymbolState::Done), false));
    assert!(session.take_overdue(until).is_empty() && session.open_within(0..2).eq([0, 1]));
    assert_eq!(session.done(0).map(|contents| contents.frames.len()), Some(1));
    let around = Surroundings::default();
    assert_eq!(session.arrived(until, 0, Arrival::Recovered, &around), Some(77));
    // A report may still come for symbol 1, until no repair symbol is in flight.
    session.repair_settled(&(0..4), true);
    assert!(session.take_overdue(until).is_empty() && session.is_beyond(1));
    session.repair_settled(&(0..4), false);
    assert!(session.take_overdue(until).is_empty() && !session.is_beyond(1));
    assert_eq!(session.check(), Ok(()));
}

#[test]
fn a_report_of_what_is_known_visits_nothing() {
    let (mut session, now) = (session(), Instant::now());
    (0..1024).for_each(|_| push(&mut session, now));
    // The first symbol is not acknowledged, so that the window cannot slide.
    for id in session.open_within(1..1024).collect::<Vec<_>>() {
        assert!(session.done(id).is_some());
        session.slide();
    }
    assert_eq!((session.first(), session.open_within(0..1024).count()), (0, 1));
    assert_eq!(session.open_within(1..1024).next(), None);
    assert_eq!(session.done.len(), 1, "what is done is one range, found at once");
}
