//! Resend orders combined with all other policies that decide about lost data.

use super::*;
use crate::Outcome;
use crate::egress::PacketOutcome as Fate;
use crate::ids::SymbolRef;
use crate::policy::{
    ByLoss, First, FirstBy, HoldForRepair, InTurn, LossReactionFactory, ResendAtOnce,
    ResendOrderFactory,
};
use crate::recovery::token::StreamToken;

/// Runs `test` for every resend order with every loss reaction.
fn each(mut test: impl FnMut(Pair)) {
    let reactions: [Arc<dyn LossReactionFactory>; 2] =
        [Arc::new(ResendAtOnce), Arc::new(HoldForRepair)];
    let first_by = FirstBy(Arc::new(Scheme::EPS));
    let approaches: [Arc<dyn ResendOrderFactory>; 4] =
        [Arc::new(ByLoss), Arc::new(InTurn), Arc::new(First), Arc::new(first_by)];
    for approach in approaches {
        for loss_reaction in &reactions {
            test(Pair::with_both(|config| {
                config.loss_reaction = loss_reaction.clone();
                config.resend_order = approach.clone();
            }));
        }
    }
}

fn open(pair: &mut Pair, len: usize, protection: Option<Protection>, urgency: u8) -> StreamId {
    let id = pair.send_protected(Side::Server, len, protection);
    let priority = Priority::new(urgency, urgency.is_multiple_of(2)).unwrap();
    pair.server.conn().send_stream(id).set_priority(priority).unwrap();
    id
}

#[test]
fn protected_and_bare_streams_lose_and_get_everything() {
    each(|mut pair| {
        let mut n = 0u32;
        pair.filter = Box::new(move |_, _| {
            n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            n >> 29 != 0
        });
        for i in 0..8u8 {
            open(&mut pair, 60_000, (i % 2 == 0).then(tail), i % 4);
        }
        for _ in 0..8 {
            pair.takes(Side::Client, 60_000);
        }
        let stats = pair.server.stats();
        assert!(stats.stream_bytes_retransmitted > 0 && stats.fec.repair_symbols_sent > 0);
        pair.mend();
        pair.run_for(10 * SECOND);
        let streams = pair.server.stats().streams;
        assert_eq!((streams.streams, streams.send_buffered), (0, 0));
    });
}

#[test]
fn symbols_that_wait_when_their_stream_is_reset_leave_the_session_free() {
    each(|mut pair| {
        let id = open(&mut pair, 9_000, Some(tail()), 3);
        pair.mute(Side::Server);
        pair.flush(Side::Server);
        // Nothing arrives, so probes are sent and sent data is queued again.
        pair.run_for(SECOND);
        pair.server.conn().send_stream(id).reset(7).unwrap();
        pair.mend();
        pair.run_for(20 * SECOND);
        assert_eq!(pair.server.conn().send_stream(id).outcome(), Some(Outcome::Finished));
        assert!(pair.server.conn().egress.is_coding_quiet());
        // The session is free for the next stream.
        open(&mut pair, 5_000, Some(tail()), 3);
        assert_eq!(pair.client.conn().accept(Dir::Uni), Some(id));
        pair.takes(Side::Client, 5_000);
    });
}

/// Makes the server send one datagram, which is lost; returns whether there was one.
fn lose_one(pair: &mut Pair) -> bool {
    let now = pair.now;
    pair.server.conn().poll_transmit(now, 1, &mut Vec::new()).is_some()
}

/// A datagram from the client with one byte of a stream.
fn byte(pair: &mut Pair, id: StreamId) -> Vec<u8> {
    let now = pair.now;
    let mut datagram = Vec::new();
    pair.client.conn().send_stream(id).write(&[1]).unwrap();
    pair.client.conn().poll_transmit(now, 1, &mut datagram).unwrap();
    datagram
}

#[test]
fn a_small_symbol_in_turn_does_not_keep_a_large_repair_symbol_from_going() {
    let mut pair = Pair::with_server(|server| server.resend_order = Arc::new(InTurn));
    // Every other packet is lost, so acknowledgements become long.
    let id = pair.client.conn().open(Dir::Uni).unwrap();
    for n in 0..20 {
        let datagram = byte(&mut pair, id);
        if n % 2 == 1 {
            pair.receive(Side::Server, datagram);
        }
    }
    open(&mut pair, 50, Some(tail()), 3);
    while lose_one(&mut pair) {}
    open(&mut pair, 1_500, Some(tail()), 3);
    let has_data = |pair: &mut Pair| {
        let conn = pair.server.conn();
        conn.egress.has_stream_data(&conn.streams)
    };
    while has_data(&mut pair) {
        assert!(lose_one(&mut pair));
    }
    let small = SymbolRef { session: 0, id: 0 };
    let conn = pair.server.conn();
    conn.egress.probe_symbol(&mut conn.streams, small);
    // This packet leaves no gap, so its acknowledgement may wait and is sent only where it has room.
    let datagram = byte(&mut pair, id);
    pair.receive(Side::Server, datagram);

    let now = pair.now;
    let acks = &pair.server.space().acks;
    assert!(acks.has_news() && !acks.is_due(now));
    let repairs = pair.server.stats().fec.repair_symbols_sent;
    assert!(lose_one(&mut pair));
    let conn = pair.server.conn();
    assert_eq!(conn.stats().fec.repair_symbols_sent, repairs + 1);
    assert_eq!(conn.egress.queued_frames(small), 1, "it waits for its turn");
}

/// The frame with all `len` bytes of a stream, sent bare.
fn whole(id: StreamId, len: u32) -> StreamToken {
    StreamToken { id, offset: 0, len, fin: true, symbol: None }
}

#[test]
fn a_symbol_whose_bytes_arrive_in_another_frame_is_waited_for_no_longer() {
    each(|mut pair| {
        let ids = [0; 2].map(|_| open(&mut pair, 500, Some(tail()), 3));
        while lose_one(&mut pair) {}
        let (now, conn) = (pair.now, pair.server.conn());
        let path = conn.path.view(now);
        for session in [0, 1] {
            conn.egress.probe_symbol(&mut conn.streams, SymbolRef { session, id: 0 });
        }
        assert_eq!(conn.check(), Ok(()));
        // The session of the second stream waits behind that of the first, or the other way round.
        for id in ids {
            let (streams, frame) = (&mut conn.streams, whole(id, 500));
            conn.egress.on_stream_frame(streams, now, &frame, Fate::Acked, &path);
            assert_eq!(conn.check(), Ok(()));
        }
        assert!(conn.egress.is_coding_quiet(), "a session waits for what nobody sends");
        assert_eq!(conn.streams.session_members(), 0, "streams that are over have left");
        assert!(!conn.egress.has_stream_data(&conn.streams));
    });
}

#[test]
fn lost_data_that_is_held_is_forgotten_once_it_arrives() {
    each(|mut pair| {
        let id = open(&mut pair, 500, None, 3);
        while lose_one(&mut pair) {}
        let (now, conn) = (pair.now, pair.server.conn());
        let path = conn.path.view(now);
        conn.egress.hold(now + 100 * SECOND, whole(id, 500));
        assert_eq!(conn.egress.timeout(now), Some(now + 100 * SECOND));
        conn.egress.on_stream_frame(&mut conn.streams, now, &whole(id, 500), Fate::Acked, &path);
        conn.egress.release_overdue(&mut conn.streams, now);
        assert_eq!(conn.egress.timeout(now), None, "a timer outlives what it was for");
    });
}
