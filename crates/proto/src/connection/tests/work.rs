//! How much work frames make, in steps of the loops whose length a peer influences. `benches`, bin `frames`,
//! measures their cost in time.

use super::acknowledgement::acknowledge;
use super::forge::empty;
use super::*;
use crate::recovery::sent::SentPacket;

/// The most steps for each byte that a peer sends: one frame of five bytes may move a quarter of the
/// [gaps](crate::streams) of a stream, and one packet half of the ranges of packet numbers.
const MAX_STEPS_PER_BYTE: u64 = 64;

/// Bytes of frames in a packet.
const ROOM: usize = 1150;

/// Sends the server packets that are full of these frames; returns the steps for each byte.
fn steps_per_byte(pair: &mut Pair, packets: usize, mut frame: impl FnMut(&mut Vec<u8>)) -> u64 {
    let (mut bytes, mut steps) = (0, 0);
    for _ in 0..packets {
        let mut payload = Vec::new();
        while payload.len() < ROOM {
            frame(&mut payload);
        }
        let datagram = pair.forge(Side::Client, SpaceId::Data, &payload, Forgery::default());
        bytes += datagram.len() as u64;
        take_steps();
        pair.receive(Side::Server, datagram);
        steps += take_steps();
        assert_eq!(pair.loss(Side::Server), None);
    }
    assert!(steps / bytes <= MAX_STEPS_PER_BYTE, "{} steps for each byte", steps / bytes);
    steps / bytes
}

fn shuffle<T>(values: &mut [T]) {
    let mut rng = Rng::new(4);
    for at in 1..values.len() {
        values.swap(at, rng.index(at + 1));
    }
}

/// Makes the server believe that it has sent `packets` packets of which none was acknowledged.
fn with_outstanding(packets: u64) -> (Pair, u64) {
    let mut pair = Pair::connected();
    let now = pair.now;
    let server = pair.server.conn();
    let first = server.spaces[SpaceId::Data].peek_pn();
    for pn in first..first + packets {
        let space = &mut server.spaces[SpaceId::Data];
        while space.peek_pn() <= pn {
            space.take_pn(false, &mut server.rng);
        }
        let packet =
            SentPacket { size: 1200, ack_eliciting: true, in_flight: true, ..empty(pn, now) };
        server.path.recovery.on_packet_sent(SpaceId::Data, packet);
    }
    (pair, first)
}

fn ack(ranges: &[(u64, u64)], out: &mut Vec<u8>) {
    let ranges = ranges.iter().map(|(first, end)| *first..*end);
    encode_ack(ranges, 0, None, 1000, out).unwrap();
}

/// The path is known to reorder, so that thousands of packets stay outstanding between the newest
/// and the oldest that are acknowledged, again and again.
#[test]
fn acknowledgements_that_say_nothing_new_visit_no_packets() {
    let (mut pair, first) = with_outstanding(4000);
    let newest = first + 3999;
    acknowledge(&mut pair, &[(first + 1, first + 2)]);
    acknowledge(&mut pair, &[(first, first + 1)]);
    acknowledge(&mut pair, &[(newest, newest + 1)]);
    assert!(pair.server.conn().path.recovery.sent(SpaceId::Data).count() > 3900);
    let steps = steps_per_byte(&mut pair, 20, |out| {
        ack(&[(newest, newest + 1), (first, first + 2)], out);
    });
    assert_eq!(steps, 0);
}

#[test]
fn confetti_moves_few_gaps() {
    // Bytes with gaps between them, in random order.
    let mut pair = Pair::connected();
    let mut offsets: Vec<u64> = (0..1000).map(|n| 1 + 2 * n).collect();
    shuffle(&mut offsets);
    let mut next = offsets.iter().cycle();
    steps_per_byte(&mut pair, 20, |out| {
        let offset = *next.next().unwrap();
        let id = StreamId::new(Side::Client, Dir::Uni, 0);
        Frame::Stream(StreamFrame { id, offset, fin: false, data: b"x" }).encode(out);
    });
}

#[test]
fn handshake_data_in_pieces_moves_few_gaps() {
    let mut pair = Pair::connected();
    let mut next = (0..100).map(|n| 3 * (n * 37 % 100) + 2).cycle();
    steps_per_byte(&mut pair, 20, |out| {
        Frame::Crypto { offset: next.next().unwrap(), data: b"x" }.encode(out);
    });
}

#[test]
fn streams_touched_here_and_there_move_few_ranges() {
    let mut pair = Pair::with_server(|server| server.max_concurrent_uni_streams = 1000);
    let mut next = (0..500).map(|n| (n * 337 % 500) * 2 + 1).cycle();
    steps_per_byte(&mut pair, 20, |out| {
        let id = StreamId::new(Side::Client, Dir::Uni, next.next().unwrap());
        Frame::StreamDataBlocked { id, limit: 0 }.encode(out);
    });
}

/// Packets arrive with gaps between their numbers, the oldest last.
#[test]
fn packets_out_of_order_move_few_ranges() {
    let mut pair = Pair::connected();
    let mut packets = Vec::new();
    for n in 0..2000 {
        let packet = pair.packet(Side::Client, &[Frame::Ping]);
        if n % 2 == 0 {
            packets.push(packet);
        }
    }
    shuffle(&mut packets);
    let bytes: usize = packets.iter().map(Vec::len).sum();
    take_steps();
    for packet in packets {
        pair.receive(Side::Server, packet);
    }
    assert!(take_steps() / bytes as u64 <= MAX_STEPS_PER_BYTE);
}
