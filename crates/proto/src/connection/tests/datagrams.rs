//! Unreliable datagrams (RFC 9221).

use super::*;
use crate::{DatagramOptions, SendDatagramError};
use sutura_schedule::Urgency;

#[test]
fn the_largest_one_fits_and_one_byte_more_does_not() {
    let mut pair = Pair::connected();
    let max = pair.client.conn().datagrams().max_size().unwrap();
    assert!(max > 1150);
    let data = Bytes::from(pattern(max + 1));
    assert!(pair.client.conn().datagrams().send(data.slice(..max)).is_ok());
    let sent = pair.client.conn().datagrams().send(data.clone());
    assert_eq!(sent, Err(SendDatagramError::TooLarge));
    pair.run_for(SECOND);
    assert_eq!(pair.server.events, [Event::DatagramReceived]);
    assert_eq!(pair.server.conn().datagrams().recv(), Some(data.slice(..max)));
    assert_eq!(pair.server.conn().datagrams().recv(), None);
}

#[test]
fn a_peer_that_takes_none_gets_none() {
    let mut pair = Pair::with_server(|server| server.datagram_receive_buffer = None);
    let sent = pair.client.conn().datagrams().send(Bytes::from_static(b"x"));
    assert_eq!(sent, Err(SendDatagramError::UnsupportedByPeer));
    pair.inject(Side::Client, &[Frame::Datagram(b"x")]);
    assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn floods_cost_bounded_memory_and_one_event() {
    for buffer in [0, 64 * 100] {
        let mut pair = Pair::with_server(|server| server.datagram_receive_buffer = Some(buffer));
        for _ in 0..5_000 {
            pair.server.conn().inject_frame(&Frame::Datagram(b"")).unwrap();
        }
        assert!(pair.server.conn().events.len() <= 1);
        assert_eq!(pair.server.stats().datagrams_dropped_in, 5_000 - buffer as u64 / 64);
    }
}

#[test]
fn lost_ones_are_not_sent_again() {
    let mut pair = Pair::connected();
    pair.filter = Box::new(|from, bytes| from == Side::Server || bytes.len() < 600);
    pair.client.conn().datagrams().send(Bytes::from(pattern(1_000))).unwrap();
    pair.run_for(5 * SECOND);
    assert!(pair.client.stats().packets_lost > 0);
    assert_eq!(pair.server.conn().datagrams().recv(), None);
    assert_eq!(pair.client.conn().path.recovery.bytes_in_flight(), 0);
}

/// A connection that carries nothing else is not taken for one whose peer takes nothing.
#[test]
fn what_is_sent_and_what_is_read_counts_as_taken() {
    let mut pair = Pair::connected();
    let before = [pair.client.conn().taken(), pair.server.conn().taken()];
    pair.client.conn().datagrams().send(Bytes::from(pattern(1_000))).unwrap();
    assert_eq!(pair.client.conn().taken(), before[0], "it waits");
    pair.run_for(SECOND);
    assert_eq!(pair.client.conn().taken(), before[0] + 1_000);
    assert_eq!(pair.server.conn().taken(), before[1], "it waits");
    assert!(pair.server.conn().datagrams().recv().is_some());
    assert_eq!(pair.server.conn().taken(), before[1] + 1_000);
}

/// How many datagrams the server has received.
fn received(pair: &mut Pair) -> usize {
    std::iter::from_fn(|| pair.server.conn().datagrams().recv()).count()
}

#[test]
fn the_largest_ones_flow_one_way_whatever_is_to_be_acknowledged() {
    let mut pair = Pair::connected();
    let max = pair.client.conn().datagrams().max_size().unwrap();
    let mut arrived = 0;
    for _ in 0..20 {
        pair.client.conn().datagrams().send(Bytes::from(pattern(max))).unwrap();
        pair.run_for(200 * MS);
        arrived += received(&mut pair);
    }
    assert_eq!(arrived, 20);
}

#[test]
fn a_longer_identifier_of_the_peer_does_not_block_the_queue() {
    let mut pair = Pair::connected();
    let max = pair.client.conn().datagrams().max_size().unwrap();
    pair.client.conn().datagrams().send(Bytes::from(pattern(max))).unwrap();
    pair.client.conn().datagrams().send(Bytes::from(pattern(500))).unwrap();
    pair.client.conn().inject_frame(&long_id()).unwrap();
    assert!(pair.client.conn().datagrams().max_size().unwrap() < max);
    let now = pair.now;
    assert!(pair.client.conn().poll_transmit(now, 10, &mut Vec::new()).is_some());
    let stats = pair.client.stats();
    assert_eq!(stats.datagrams_dropped_out, 1, "nothing that is sent has room for it");
    assert!(!pair.client.conn().egress.has_datagrams());
}

fn urgency(value: u8) -> DatagramOptions {
    DatagramOptions::default().with_urgency(Urgency::new(value).unwrap())
}

#[test]
fn the_more_urgent_ones_are_sent_first() {
    let mut pair = Pair::connected();
    for (value, data) in [(7, "last"), (3, "third"), (0, "first"), (0, "second")] {
        let data = Bytes::from_static(data.as_bytes());
        pair.client.conn().datagrams().send_with(data, &urgency(value)).unwrap();
    }
    pair.run_for(SECOND);
    let received = std::iter::from_fn(|| pair.server.conn().datagrams().recv());
    assert_eq!(received.collect::<Vec<_>>(), ["first", "second", "third", "last"]);
}

#[test]
fn one_that_would_come_too_late_is_not_sent() {
    let mut pair = Pair::connected();
    let now = pair.now;
    let ids = [now + MS, now + SECOND].map(|deadline| {
        let options = DatagramOptions::default().with_deadline(Some(deadline));
        let data = Bytes::from_static(b"x");
        pair.client.conn().datagrams().send_with(data, &options).unwrap()
    });
    pair.run_for(SECOND);
    assert_eq!(received(&mut pair), 1);
    let outcomes: Vec<_> =
        std::iter::from_fn(|| pair.client.conn().poll_message_outcome()).collect();
    assert_eq!(outcomes, [(ids[0], MessageOutcome::GivenUp), (ids[1], MessageOutcome::Arrived)]);
    assert_eq!(pair.client.stats().datagrams_dropped_out, 1);
}

#[test]
fn who_waits_for_room_loses_none() {
    let mut pair = Pair::connected();
    let data = Bytes::from(pattern(1_000));
    let mut sent = 0;
    for _ in 0..20 {
        while pair.client.conn().datagrams().want_room(data.len()) {
            pair.client.conn().datagrams().send(data.clone()).unwrap();
            sent += 1;
        }
        pair.client.events.clear();
        let told = |pair: &Pair| pair.client.events.contains(&Event::DatagramsWritable);
        assert!(!told(&pair));
        while !told(&pair) {
            pair.run_for(MS);
        }
        // What has arrived makes room at the receiver.
        received(&mut pair);
    }
    assert!(sent > 200, "{sent}");
    assert_eq!(pair.client.stats().datagrams_dropped_out, 0);
}
