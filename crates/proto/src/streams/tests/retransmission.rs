//! When lost data is sent, relative to new data.

use super::*;
use crate::ids::SymbolRef;
use crate::streams::resend_order::{ByScheduler, Precedence, ResendOrder};
use proptest::prelude::*;
use std::collections::HashMap;
use sutura_random::Rng;

/// A scheduler that ignores priorities: streams take turns, or go one after the other.
fn uniform(in_turn: bool) -> Box<Accountant> {
    Box::new(Accountant { uniform: Priority::new(3, in_turn), ..Accountant::default() })
}

const RR: bool = true;
const SEQUENTIAL: bool = false;

fn by(precedence: Precedence, scheme: bool) -> Box<dyn ResendOrder> {
    Box::new(ByScheduler::new(precedence, uniform(scheme)))
}

/// The order in which two packets each of A to D are sent, after the packets of A and B were lost in the
/// order given by `lost`.
fn sequence(scheme: bool, order: Box<dyn ResendOrder>, lost: &str) -> String {
    let mut streams = Sender::from(Streams::new(Side::Client, small(), uniform(scheme), order));
    streams.set_peer_limits(advertised(&small()));
    let ids: Vec<_> = (0..4).map(|_| streams.open(Dir::Uni).unwrap()).collect();
    let mut tokens: HashMap<StreamId, Vec<StreamToken>> = HashMap::new();
    // Exactly the bytes that fit in two frames, so that resending them takes two frames again.
    for &id in &ids[..2] {
        for _ in 0..2 {
            streams.write(id, &[7; 1_190]).unwrap();
            tokens.entry(id).or_default().push(send_frame(&mut streams).unwrap());
        }
    }
    for name in lost.bytes() {
        let id = ids[usize::from(name - b'A')];
        let token = tokens.get_mut(&id).unwrap().remove(0);
        streams.lost(&Token::Stream(token));
    }
    for &id in &ids[2..] {
        streams.write(id, &[7; 2_380]).unwrap();
    }
    let sent = send_frames(&mut streams).into_iter();
    sent.map(|t| char::from(b'A' + ids.iter().position(|id| *id == t.id).unwrap() as u8)).collect()
}

#[test]
fn the_approaches_give_the_sequences_of_the_paper() {
    use Precedence::{First, InTurn};
    for lost in ["ABAB", "AABB"] {
        assert_eq!(sequence(RR, by(InTurn, RR), lost), "ABCDABCD");
        assert_eq!(sequence(RR, by(First, RR), lost), "ABABCDCD");
        assert_eq!(sequence(RR, by(First, SEQUENTIAL), lost), "AABBCDCD");
        assert_eq!(sequence(SEQUENTIAL, by(First, RR), lost), "ABABCCDD");
        assert_eq!(sequence(SEQUENTIAL, by(InTurn, SEQUENTIAL), lost), "AABBCCDD");
    }
    for (lost, expected) in [("ABAB", "ABABCDCD"), ("AABB", "AABBCDCD"), ("BAAB", "BAABCDCD")] {
        let by_loss = ByLoss.build(&|| Scheme::EPS.build());
        assert_eq!(sequence(RR, by_loss, lost), expected);
    }
}

fn with(approach: &dyn ResendOrderFactory) -> Sender {
    endpoint_with(Side::Client, &small(), approach)
}

/// A sender for each resend order.
fn senders() -> [(Sender, Arc<dyn ResendOrderFactory>); 4] {
    approaches().map(|approach| (with(&*approach), approach))
}

fn open(streams: &mut Sender, urgency: u8, incremental: bool) -> StreamId {
    let id = streams.open(Dir::Uni).unwrap();
    streams.set_priority(id, Priority::new(urgency, incremental).unwrap()).unwrap();
    id
}

/// Writes `len` bytes and sends them in one frame.
fn sent(streams: &mut Sender, id: StreamId, len: usize) -> StreamToken {
    streams.write(id, &vec![1; len]).unwrap();
    let token = send_frame(streams).unwrap();
    assert_eq!((token.id, token.len as usize), (id, len));
    token
}

/// Finishes a stream and sends its end.
fn finish(streams: &mut Sender, id: StreamId) -> StreamToken {
    streams.finish(id).unwrap();
    send_frame(streams).unwrap()
}

#[test]
fn only_in_turn_does_lost_data_wait_for_more_urgent_new_data() {
    for (mut streams, approach) in senders() {
        let (late, urgent) = (open(&mut streams, 6, false), open(&mut streams, 0, false));
        let lost = sent(&mut streams, late, 100);
        streams.write(late, &[2; 50]).unwrap();
        streams.write(urgent, &[3; 50]).unwrap();
        streams.lost(&Token::Stream(lost));
        let order = send_frames(&mut streams);
        let order: Vec<_> = order.iter().map(|t| (t.id, t.offset)).collect();
        let expected = match approach.name() {
            "in-turn" => [(urgent, 0), (late, 0), (late, 100)],
            _ => [(late, 0), (urgent, 0), (late, 100)],
        };
        assert_eq!(order, expected, "{approach:?}");
        assert!(!streams.has_data());
    }
}

#[test]
fn among_lossy_streams_the_scheme_decides_by_urgency_except_in_the_order_of_loss() {
    for (mut streams, approach) in senders() {
        let (late, urgent) = (open(&mut streams, 6, false), open(&mut streams, 0, false));
        let tokens = [sent(&mut streams, late, 100), sent(&mut streams, urgent, 100)];
        streams.lose(&tokens);
        let order = send_frames(&mut streams);
        let mut expected = tokens;
        if approach.name() != "by-loss" {
            expected.reverse();
        }
        assert_eq!(order, expected, "{approach:?}");
    }
}

#[test]
fn a_change_of_priority_reaches_lost_data_too() {
    for (mut streams, approach) in senders().into_iter().skip(1) {
        let (a, b) = (open(&mut streams, 3, false), open(&mut streams, 3, false));
        let tokens = [a, b].map(|id| sent(&mut streams, id, 100));
        streams.lose(&tokens);
        streams.set_priority(b, Priority::new(1, false).unwrap()).unwrap();
        assert_eq!(send_frame(&mut streams).unwrap().id, b, "{approach:?}");
        assert_eq!(send_frame(&mut streams).unwrap().id, a, "{approach:?}");
    }
}

#[test]
fn lost_data_needs_no_credit() {
    for approach in approaches() {
        let limits = StreamLimits { connection_window: 300, ..small() };
        let mut streams = endpoint_with(Side::Client, &limits, &*approach);
        let ids = [0, 1, 2].map(|urgency| open(&mut streams, urgency, true));
        let tokens: Vec<_> = ids[1..].iter().map(|id| sent(&mut streams, *id, 150)).collect();
        // The most urgent stream has only new data, for which there is no credit.
        ids.iter().for_each(|id| assert_eq!(streams.write(*id, &[4; 10]), Ok(10)));
        assert!(streams.is_connection_blocked() && !streams.has_data());
        streams.lose(&tokens);
        assert!(streams.has_data(), "{approach:?}");
        for token in &tokens {
            assert_eq!(send_frame(&mut streams), Some(*token), "{approach:?}");
        }
        assert!(!streams.has_data() && streams.look(ROOM).is_none());
        assert!(streams.is_connection_blocked());
        streams.received_max_data(330);
        let new: Vec<_> = send_frames(&mut streams).into_iter().map(|t| t.id).collect();
        assert_eq!(new, ids, "{approach:?}");
    }
}

#[test]
fn a_retransmission_is_a_turn() {
    for (mut streams, approach) in senders() {
        let [a, b] = [0; 2].map(|_| open(&mut streams, 3, true));
        let lost = sent(&mut streams, a, 100);
        streams.write(a, &[1; 2_380]).unwrap();
        streams.write(b, &[1; 2_380]).unwrap();
        streams.lost(&Token::Stream(lost));
        let order: Vec<_> = send_frames(&mut streams).into_iter().map(|t| t.id).collect();
        assert_eq!(order[..4], [a, b, a, b], "{approach:?}");
    }
}

#[test]
fn a_lost_end_is_sent_again_alone_or_with_the_bytes_before_it() {
    for approach in approaches() {
        for lost_bytes in [false, true] {
            let mut streams = with(&*approach);
            let id = open(&mut streams, 3, true);
            let bytes = sent(&mut streams, id, 100);
            let end = finish(&mut streams, id);
            let fate = if lost_bytes { Sender::lost } else { Sender::acked };
            fate(&mut streams, &Token::Stream(bytes));
            streams.lost(&Token::Stream(end));
            let again = send_frame(&mut streams).unwrap();
            assert!(again.fin);
            assert_eq!(again.offset + u64::from(again.len), 100, "{approach:?}");
            assert_eq!(again.len > 0, lost_bytes);
            assert!(!streams.has_data() && streams.look(ROOM).is_none());
            streams.acked(&Token::Stream(again));
            assert_eq!(events(&mut streams), [StreamEvent::Finished { id }]);
            assert_eq!(streams.stats().streams, 0);
        }
    }
}

#[test]
fn a_reset_forgets_what_was_lost_and_keeps_the_final_size() {
    for (mut streams, approach) in senders() {
        let [a, b] = [0; 2].map(|_| open(&mut streams, 3, true));
        let tokens = [(a, 100), (b, 50), (a, 70)].map(|(id, len)| sent(&mut streams, id, len));
        streams.lose(&tokens);
        streams.reset(a, 9).unwrap();
        assert_eq!(control(&mut streams), [[encode::RESET_STREAM, a.0, 9, 170]]);
        assert_eq!(send_frame(&mut streams), Some(tokens[1]), "{approach:?}");
        assert!(!streams.has_data() && streams.look(ROOM).is_none());
        streams.acked(&Token::Control(ControlToken::ResetStream(a)));
        streams.received_stop_sending(b, 5).unwrap();
        streams.lost(&Token::Stream(tokens[1]));
        assert!(!streams.has_data() && streams.look(ROOM).is_none());
    }
}

fn queue_symbol(sender: &mut Sender, symbol: SymbolRef, frame: &StreamToken) {
    sender.ledger.queue_symbol(&mut sender.streams, symbol, frame);
}

const fn symbol(id: u64) -> SymbolRef {
    SymbolRef { session: 0, id }
}

#[test]
fn symbols_take_their_stream_s_turn() {
    for (mut streams, approach) in senders() {
        let (a, b) = (open(&mut streams, 3, false), open(&mut streams, 3, false));
        let [first, second] = [1, 2].map(|_| sent(&mut streams, a, 100));
        let other = sent(&mut streams, b, 100);
        queue_symbol(&mut streams, symbol(7), &first);
        streams.lost(&Token::Stream(second));
        streams.lost(&Token::Stream(other));
        let pending = streams.look(ROOM).unwrap();
        assert_eq!((pending.id, pending.symbol()), (a, Some(symbol(7))), "{approach:?}");
        let bare = streams.write_stream(&pending, &mut Vec::new(), ROOM, Length::Explicit);
        assert_eq!(bare, None, "a symbol is not written as a frame");
        streams.charge_symbol(&[first]);
        let gone = streams.ledger.sent_symbol(&mut streams.streams, a, symbol(7));
        assert!(gone.is_empty());
        assert!(streams.look(ROOM).is_some_and(|next| next.symbol().is_none()));
        assert_eq!(send_frame(&mut streams), Some(second));
        assert_eq!(send_frame(&mut streams), Some(other));
        assert!(!streams.has_data());
    }
}

#[test]
fn symbols_that_nobody_misses_any_more_are_not_sent() {
    for (mut streams, approach) in senders() {
        let ids = [0; 4].map(|_| open(&mut streams, 3, true));
        let tokens = ids.map(|id| sent(&mut streams, id, 100));
        for (token, id) in tokens.iter().zip(0..) {
            queue_symbol(&mut streams, symbol(id), token);
        }
        assert_eq!(streams.delivered(&tokens[0])[..], [symbol(0)], "{approach:?}");
        assert_eq!(streams.reset(ids[1], 0).unwrap()[..], [symbol(1)], "{approach:?}");
        streams.acked(&Token::Control(ControlToken::ResetStream(ids[1])));
        let gone = streams.received_stop_sending(ids[2], 0).unwrap();
        assert_eq!(gone[..], [symbol(2)], "{approach:?}");
        assert_eq!(streams.look(ROOM).unwrap().symbol(), Some(symbol(3)), "{approach:?}");
        // A symbol that cannot be resent as a whole is sent as bytes, in the same place.
        let Sender { streams: all, ledger } = &mut streams;
        assert_eq!(ledger.unbind(all, ids[3], symbol(3)), (100, Unqueued::new()));
        assert_eq!(send_frame(&mut streams), Some(tokens[3]), "{approach:?}");
        assert!(!streams.has_data());
    }
}

#[test]
fn a_question_changes_nothing() {
    for (mut streams, approach) in senders() {
        let ids = [0, 3, 3].map(|urgency| open(&mut streams, urgency, true));
        let tokens = ids.map(|id| sent(&mut streams, id, 100));
        ids.iter().for_each(|id| assert_eq!(streams.write(*id, &[0; 500]), Ok(500)));
        tokens.iter().for_each(|token| assert!(streams.retransmit(token)));
        streams.delivered(&tokens[1]);
        while let Some(next) = streams.look(ROOM) {
            (0..5).for_each(|_| assert_eq!(streams.look(ROOM), Some(next), "{approach:?}"));
            assert!(send_frame(&mut streams).is_some());
        }
    }
}

#[test]
fn what_is_given_up_is_not_sent_again_and_ends_in_a_reset() {
    let mut streams = with(&ByLoss);
    let id = open(&mut streams, 3, true);
    let tokens = [(); 3].map(|()| sent(&mut streams, id, 100));
    let end = finish(&mut streams, id);
    streams.give_up(&tokens[1], 77);
    assert!(!streams.has_data());
    streams.delivered(&tokens[0]);
    streams.delivered(&end);
    assert_eq!((events(&mut streams), control(&mut streams)), (vec![], Vec::<Vec<u64>>::new()));
    streams.delivered(&tokens[2]);
    assert_eq!(events(&mut streams), [StreamEvent::Finished { id }]);
    assert_eq!(control(&mut streams), [[encode::RESET_STREAM, id.0, 77, 300]]);
    assert_eq!(streams.stats().send_buffered, 0);
    streams.acked(&Token::Control(ControlToken::ResetStream(id)));
    assert_eq!(streams.stats().streams, 0);
}

#[test]
fn what_was_given_up_and_arrived_all_the_same_needs_no_reset() {
    let mut streams = with(&ByLoss);
    let id = open(&mut streams, 3, true);
    let token = sent(&mut streams, id, 100);
    let end = finish(&mut streams, id);
    streams.delivered(&token);
    streams.give_up(&token, 77);
    streams.give_up(&end, 77);
    // The FIN was still missing: the peer learns the final size from the reset.
    assert_eq!(control(&mut streams), [[encode::RESET_STREAM, id.0, 77, 100]]);
}

/// Streams write, send and lose data at random. Returns how often each byte was sent, and how often it was
/// lost.
fn churn(seed: u64, approach: &dyn ResendOrderFactory, rounds: usize) {
    let mut random = Rng::new(seed);
    let limits = StreamLimits { stream_window: 1 << 20, connection_window: 40_000, ..small() };
    let mut streams = endpoint_with(Side::Client, &limits, approach);
    let ids: Vec<_> =
        (0..8).map(|_| open(&mut streams, random.below(8) as u8, random.below(2) == 0)).collect();
    let mut excess: HashMap<(StreamId, u64), i32> = HashMap::new();
    let mut flight = Vec::new();
    for _ in 0..rounds {
        let id = ids[random.below(8) as usize];
        let _ = streams.write(id, &vec![0; random.below(3_000) as usize]);
        for _ in 0..random.below(6) {
            let Some(token) = send_frame(&mut streams) else { break };
            for offset in token.offset..token.offset + u64::from(token.len) {
                *excess.entry((token.id, offset)).or_default() += 1;
            }
            flight.push(token);
        }
        while !flight.is_empty() && random.below(4) > 0 {
            let token = flight.swap_remove(random.below(flight.len() as u64) as usize);
            if random.below(3) > 0 {
                streams.acked(&Token::Stream(token));
                continue;
            }
            streams.lost(&Token::Stream(token));
            for offset in token.offset..token.offset + u64::from(token.len) {
                *excess.get_mut(&(token.id, offset)).unwrap() -= 1;
            }
        }
        assert_eq!(streams.check(), Ok(()));
        if random.below(20) == 0 {
            streams.received_max_data(40_000 + random.below(400_000));
        }
    }
    // No stream starves: once there is credit, all data is sent without any acknowledgement.
    streams.received_max_data(1 << 30);
    while let Some(token) = send_frame(&mut streams) {
        for offset in token.offset..token.offset + u64::from(token.len) {
            *excess.entry((token.id, offset)).or_default() += 1;
        }
    }
    assert!(!streams.has_data());
    for id in ids {
        let send = streams.send_half(id).unwrap();
        assert!(!send.has_unsent() && send.resends == 0);
        assert!(streams.ledger.check_nothing_left().is_ok());
        assert!((0..send.buffer.end()).all(|offset| excess.get(&(id, offset)) == Some(&1)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_is_lost_is_sent_again_once(seed: u64, approach in 0..4usize) {
        churn(seed, &*approaches()[approach], 200);
    }
}

#[test]
fn queues_of_lost_frames_are_bounded_by_what_was_sent() {
    for (mut streams, approach) in senders() {
        let id = open(&mut streams, 3, true);
        let tokens: Vec<_> = (0..1_000).map(|_| sent(&mut streams, id, 5)).collect();
        // Probes queue data that is queued already, and a peer may cause any number of timeouts.
        for _ in 0..20 {
            streams.lose(&tokens);
        }
        assert_eq!(streams.resends(id), tokens.len(), "{approach:?}");
        let again = send_frames(&mut streams);
        assert_eq!(again.iter().map(|token| token.len).sum::<u32>(), 5_000);
        assert!(again.len() <= 5, "neighbours share frames");
        assert!(!streams.has_data());
        assert_eq!(streams.resends(id), 0);
    }
}
