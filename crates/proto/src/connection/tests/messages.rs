//! Messages: streams of their own, deadlines, cancellation, and the outcome of each.

use super::*;
use crate::egress::{MAX_OPEN_MESSAGES, MAX_OUTCOMES, MAX_WAITING_BYTES};
use crate::fec::redundancy::PathView;
use crate::fec::redundancy::stand_in::Mender;
use crate::{MessageId, SendMessageError};

const CODE: u64 = 77;

/// A pair whose server sends messages with the policy for them, the earliest deadline first.
fn pair() -> Pair {
    pair_with(TransportConfig::default())
}

fn pair_with(client: TransportConfig) -> Pair {
    let server = TransportConfig {
        redundancy: Some(Arc::new(Mender)),
        scheduler: Arc::new(Scheme::DEADLINE),
        ..TransportConfig::default()
    };
    Pair::with(client, server).ready()
}

/// Lets the estimate of the round-trip time settle.
fn settle(pair: &mut Pair) {
    for _ in 0..30 {
        pair.server.conn().datagrams().send(Bytes::new()).unwrap();
        pair.run_for(150 * MS);
    }
    outcomes(pair);
}

fn options(pair: &Pair, ms: u32) -> MessageOptions {
    MessageOptions::by(pair.now + MS * ms)
}

fn send(pair: &mut Pair, len: usize, options: MessageOptions) -> MessageId {
    pair.server.conn().send_message(Bytes::from(pattern(len)), options).unwrap()
}

/// Sends a message that is to arrive within so many milliseconds.
fn send_by(pair: &mut Pair, len: usize, ms: u32) -> MessageId {
    let by = options(pair, ms);
    send(pair, len, by)
}

fn outcomes(pair: &mut Pair) -> Vec<(MessageId, MessageOutcome)> {
    std::iter::from_fn(|| pair.server.conn().poll_message_outcome()).collect()
}

/// Reads the available data of a stream of the server.
fn read(pair: &mut Pair, index: u64) -> (Vec<u8>, Result<(), ReadError>) {
    let id = StreamId::new(Side::Server, Dir::Uni, index);
    let mut all = Vec::new();
    loop {
        match pair.client.conn().recv_stream(id).read_chunk(usize::MAX, true) {
            Ok(Some(chunk)) => all.extend_from_slice(&chunk.bytes),
            Ok(None) => return (all, Ok(())),
            Err(error) => return (all, Err(error)),
        }
    }
}

fn accept_all(pair: &mut Pair) -> usize {
    std::iter::from_fn(|| pair.client.conn().accept(Dir::Uni)).count()
}

#[test]
fn a_message_arrives_on_a_stream_of_its_own_and_its_sender_is_told() {
    let mut pair = pair();
    let by = options(&pair, 500);
    let ids = [0, 10, 5_000].map(|len| send(&mut pair, len, by.clone()));
    pair.run_for(SECOND);
    assert_eq!(accept_all(&mut pair), 3);
    for (index, len) in [(0, 0), (1, 10), (2, 5_000)] {
        assert_eq!(read(&mut pair, index), (pattern(len), Ok(())));
    }
    assert_eq!(outcomes(&mut pair), ids.map(|id| (id, MessageOutcome::Arrived)));
    assert!(pair.server.events.contains(&Event::MessageOutcomes));
    assert!(!pair.server.events.iter().any(|e| matches!(e, Event::Stream(_))), "no stream events");
    assert_eq!(pair.server.stats().messages.arrived, 3);
}

#[test]
fn a_loss_is_repaired_before_the_deadline_and_recovery_is_told() {
    let mut pair = pair();
    // A retransmission would take 50 ms more than the deadline allows.
    pair.lose(Side::Server, |n| n == 2);
    let id = send_by(&mut pair, 3_000, 110);
    pair.run_for(109 * MS);
    accept_all(&mut pair);
    assert_eq!(read(&mut pair, 0), (pattern(3_000), Ok(())));
    pair.run_for(SECOND);
    assert_eq!(outcomes(&mut pair), [(id, MessageOutcome::Recovered)]);
    assert_eq!(pair.server.stats().stream_bytes_retransmitted, 0);
}

#[test]
fn repair_waits_for_the_next_message_if_that_is_in_time() {
    for (next, expected) in [(Some(30), 1), (None, 2)] {
        let mut pair = pair();
        settle(&mut pair);
        for _ in 0..2 {
            let next = next.map(|ms| pair.now + MS * ms);
            send_by(&mut pair, 500, 100);
            pair.server.conn().next_message_at(next);
            pair.run_for(10 * MS);
        }
        pair.run_for(SECOND);
        let sent = pair.server.stats().fec.repair_symbols_sent;
        assert_eq!(sent, expected, "next message in {next:?} ms");
    }
}

#[test]
fn no_repair_symbol_is_sent_where_acknowledgements_come_first() {
    let mut pair = pair();
    for _ in 0..20 {
        send_by(&mut pair, 2_000, 400);
        let next = pair.now + 30 * MS;
        pair.server.conn().next_message_at(Some(next));
        pair.run_for(30 * MS);
    }
    pair.run_for(SECOND);
    assert_eq!(pair.server.stats().fec.repair_symbols_sent, 0);
    assert_eq!(outcomes(&mut pair).len(), 20);
}

#[test]
fn messages_share_a_session() {
    let mut pair = pair();
    for _ in 0..4 {
        send_by(&mut pair, 2_000, 1_000);
    }
    pair.flush(Side::Server);
    let conn = pair.server.conn();
    let sessions = conn.egress.protections(&conn.streams, &PathView::default()).into_iter();
    let sent: Vec<_> = sessions.map(|s| (s.session, s.counts.source_symbols)).collect();
    assert_eq!(sent, [(Some(0), 8)]);
}

/// How many streams the sessions of the server visit to decide.
fn members(pair: &mut Pair) -> usize {
    pair.server.conn().streams.session_members()
}

#[test]
fn decisions_visit_no_messages_that_are_on_their_way() {
    let client = TransportConfig {
        max_concurrent_uni_streams: 1 << 14,
        receive_window: 1 << 30,
        max_receive_window: 1 << 30,
        ..TransportConfig::default()
    };
    let mut pair = pair_with(client);
    settle(&mut pair);
    for _ in 0..1_000 {
        send(&mut pair, 20, MessageOptions::default());
    }
    pair.flush(Side::Server);
    assert!(pair.server.conn().egress.awaits_messages());
    assert_eq!(members(&mut pair), 0, "none was sent in part");
    pair.run_for(SECOND);
    assert_eq!(outcomes(&mut pair).len(), 1_000);
}

#[test]
fn a_message_belongs_to_its_session_until_all_of_it_was_sent() {
    let mut pair = pair();
    let len = 100_000;
    send(&mut pair, len, MessageOptions::default());
    pair.flush(Side::Server);
    assert_eq!(members(&mut pair), 1, "the congestion window is full");
    // Lost data leaves the window, and is sent again as bare data.
    pair.mute(Side::Server);
    pair.run_for(SECOND);
    assert_eq!(members(&mut pair), 1);
    pair.mend();
    pair.run_for(10 * SECOND);
    assert_eq!(members(&mut pair), 0);
    accept_all(&mut pair);
    assert_eq!(read(&mut pair, 0), (pattern(len), Ok(())));
}

#[test]
fn what_arrives_after_its_deadline_is_late() {
    let mut pair = pair();
    let id = send_by(&mut pair, 1_000, 20);
    pair.run_for(SECOND);
    assert_eq!(outcomes(&mut pair), [(id, MessageOutcome::Late)]);
}

#[test]
fn what_cannot_be_in_time_goes_last_and_is_cancelled_if_so_wanted() {
    for cancel_late in [None, Some(CODE)] {
        let mut pair = pair();
        let len = 400_000;
        let by = |ms| MessageOptions { cancel_late, ..options(&pair, ms) };
        // The first is more than the path can carry by its deadline.
        let (first, second) = (by(150), by(600));
        let slow = send(&mut pair, len, first);
        let other = send(&mut pair, 20_000, second);
        pair.latency = 50 * MS;
        pair.mute(Side::Server);
        pair.run_for(120 * MS);
        pair.mend();
        pair.run_for(10 * SECOND);
        accept_all(&mut pair);
        let told = outcomes(&mut pair);
        let fate = |id| told.iter().find(|(of, _)| *of == id).map(|(_, outcome)| *outcome);
        match cancel_late {
            None => {
                assert_eq!(fate(slow), Some(MessageOutcome::Late));
                assert_eq!(read(&mut pair, 0), (pattern(len), Ok(())));
            }
            Some(code) => {
                assert_eq!(fate(slow), Some(MessageOutcome::GivenUp));
                let (data, end) = read(&mut pair, 0);
                assert_eq!(end, Err(ReadError::Reset(code)));
                assert!(data.len() < len);
            }
        }
        assert!(fate(other).is_some());
        assert_eq!(read(&mut pair, 1), (pattern(20_000), Ok(())));
        let order = pair.server.stats();
        assert_eq!(order.streams.send_buffered, 0);
    }
}

#[test]
fn an_expired_message_makes_way_for_one_that_can_be_in_time() {
    let mut pair = pair();
    let first = send_by(&mut pair, 200_000, 55);
    let second = send_by(&mut pair, 50_000, 2_000);
    pair.run_for(5 * SECOND);
    let order: Vec<_> = outcomes(&mut pair).into_iter().map(|(id, _)| id).collect();
    assert_eq!(order, [second, first], "the first could not be in time after the first window");
}

#[test]
fn a_cancelled_message_sends_nothing_more() {
    let mut pair = pair();
    let id = send_by(&mut pair, 100_000, 10_000);
    pair.flush(Side::Server);
    assert!(pair.server.conn().cancel_message(id, CODE));
    assert!(!pair.server.conn().cancel_message(id, CODE), "its fate is known");
    let before = pair.bytes_sent(Side::Server);
    pair.run_for(5 * SECOND);
    accept_all(&mut pair);
    assert_eq!(read(&mut pair, 0).1, Err(ReadError::Reset(CODE)));
    assert!(pair.bytes_sent(Side::Server) < before + 10_000);
    assert_eq!(outcomes(&mut pair), [(id, MessageOutcome::GivenUp)]);
}

#[test]
fn messages_wait_for_streams_within_bounds_and_then_go_in_order() {
    let client = TransportConfig { max_concurrent_uni_streams: 2, ..TransportConfig::default() };
    let mut pair = pair_with(client);
    let len = MAX_WAITING_BYTES / 8;
    let mut ids = Vec::new();
    let refused = loop {
        let sent = pair.server.conn().send_message(pattern(len).into(), MessageOptions::default());
        match sent {
            Ok(id) => ids.push(id),
            Err(error) => break error,
        }
    };
    assert_eq!((refused, ids.len()), (SendMessageError::Blocked, 2 + 7));
    // A waiting message is cancelled and never opens a stream.
    assert!(pair.server.conn().cancel_message(ids.remove(5), CODE));
    let mut got = 0;
    while got < ids.len() as u64 {
        pair.run_for(SECOND);
        accept_all(&mut pair);
        if read(&mut pair, got) == (pattern(len), Ok(())) {
            got += 1;
        }
    }
    pair.run_for(SECOND);
    let told: Vec<_> = outcomes(&mut pair).into_iter().map(|(id, _)| id).collect();
    assert_eq!(told[1..], ids);
    assert!(pair.server.events.contains(&Event::MessagesWritable));
    assert_eq!(pair.server.conn().open(Dir::Uni).map(|id| id.0 >> 2), Some(8));
}

#[test]
fn floods_cost_bounded_memory() {
    let client = TransportConfig {
        max_concurrent_uni_streams: 1 << 20,
        receive_window: 0,
        ..TransportConfig::default()
    };
    let mut pair = pair_with(client);
    let mut accepted = 0;
    for _ in 0..2 * MAX_OPEN_MESSAGES {
        let by = options(&pair, 60_000);
        match pair.server.conn().send_message(Bytes::from_static(b"x"), by) {
            Ok(_) => accepted += 1,
            Err(error) => assert_eq!(error, SendMessageError::Blocked),
        }
    }
    assert_eq!(accepted, MAX_OPEN_MESSAGES);
    // Outcomes that nobody reads.
    for _ in 0..2 * MAX_OUTCOMES {
        let id = pair.server.conn().datagrams().send(Bytes::new()).unwrap();
        assert!(pair.server.conn().cancel_message(id, 0));
    }
    assert_eq!(outcomes(&mut pair).len(), MAX_OUTCOMES);
    assert_eq!(pair.server.stats().messages.given_up, 2 * MAX_OUTCOMES as u64);
}

#[test]
fn a_message_too_large_for_a_stream_buffer_is_refused() {
    let mut pair = pair();
    let len = TransportConfig::default().send_buffer;
    let sent = pair.server.conn().send_message(vec![0; len + 1].into(), MessageOptions::default());
    assert_eq!(sent, Err(SendMessageError::TooLarge));
    send(&mut pair, len, MessageOptions::default());
}

#[test]
fn the_peer_may_refuse_a_message() {
    let mut pair = pair();
    let id = send_by(&mut pair, 100_000, 10_000);
    pair.run_for(60 * MS);
    accept_all(&mut pair);
    let stream = StreamId::new(Side::Server, Dir::Uni, 0);
    pair.client.conn().recv_stream(stream).stop(3).unwrap();
    pair.run_for(SECOND);
    assert_eq!(outcomes(&mut pair), [(id, MessageOutcome::GivenUp)]);
}

#[test]
fn unreliable_messages_go_as_datagrams_if_they_fit() {
    let mut pair = pair();
    let by = MessageOptions { unreliable: true, ..options(&pair, 500) };
    let small = send(&mut pair, 1_000, by.clone());
    let large = send(&mut pair, 2_000, by.clone());
    pair.run_for(SECOND);
    assert_eq!(pair.client.conn().datagrams().recv().unwrap(), pattern(1_000));
    assert_eq!(accept_all(&mut pair), 1);
    assert_eq!(read(&mut pair, 0), (pattern(2_000), Ok(())));
    let arrived = |id| (id, MessageOutcome::Arrived);
    assert_eq!(outcomes(&mut pair), [arrived(small), arrived(large)]);
    // A datagram whose time is over is not sent.
    let late = MessageOptions { deadline: Some(pair.now + 10 * MS), ..by };
    let late = send(&mut pair, 1_000, late);
    pair.run_for(SECOND);
    assert_eq!(pair.client.conn().datagrams().recv(), None);
    assert_eq!(outcomes(&mut pair), [(late, MessageOutcome::GivenUp)]);
    assert_eq!(pair.server.stats().datagrams_dropped_out, 1);
}
