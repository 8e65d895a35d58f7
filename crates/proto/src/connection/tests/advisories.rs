//! Attacks on other implementations, replayed. Each test names the advisory; `docs/conformance.md` lists the
//! attacks that are replayed elsewhere.

use super::crowd::Crowd;
use super::hostile::{Lies, pair as hostile};
use super::*;
use crate::connection::migration::MAX_PATH_FRAMES;
use crate::path::cids::{ACTIVE_CID_LIMIT, MAX_RETIRE_FACTOR};

fn uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, index)
}

/// CVE-2026-31812, RUSTSEC-2026-0037 (quinn-proto): transport parameters that are cut short in one
/// Initial ended the process.
#[test]
fn transport_parameters_cut_short() {
    let mut refused = 0;
    for cut in 0..70 {
        let mut pair = hostile(Lies { cut: Some(cut), ..Lies::default() });
        pair.run_for(SECOND);
        match pair.loss(Side::Client) {
            // A cut between two parameters leaves a valid extension.
            None => {}
            Some(ConnectionError::ClosedByPeer(error)) => {
                assert_eq!(error.code, TransportErrorCode::TRANSPORT_PARAMETER_ERROR);
                refused += 1;
            }
            Some(other) => panic!("{other}"),
        }
    }
    assert!(refused > 30, "{refused}");
}

/// RUSTSEC-2026-0185 (quinn-proto): fragments with gaps between them cost memory without bound.
#[test]
fn stream_fragments_with_gaps() {
    let mut pair = Pair::connected();
    let mut frames = 0u64;
    while pair.loss(Side::Server).is_none() {
        for _ in 0..100 {
            let (id, offset) = (uni(0), 2 * frames + 1);
            let frame = Frame::Stream(StreamFrame { id, offset, fin: false, data: b"x" });
            frames += 1;
            pair.inject(Side::Client, &[frame]);
        }
        assert!(pair.server.stats().streams.receive_buffered <= 1 << 20);
        assert!(frames < 3000, "unbounded");
    }
}

/// GHSA-qfwj-vfxf-92j2 (quinn-proto): data that overlaps held data was stored again.
#[test]
fn overlapping_fragments_that_never_move_the_end() {
    let mut pair = Pair::connected();
    let data = [7; 1000];
    for n in 0..5000 {
        let (offset, len) = (1 + n % 500, 1 + (n * 7 % 400) as usize);
        let frame = StreamFrame { id: uni(0), offset, fin: false, data: &data[..len] };
        pair.server.conn().inject_frame(&Frame::Stream(frame)).unwrap();
    }
    assert!(pair.server.stats().streams.receive_buffered <= 64 * 1024);
}

/// GHSA-2hv7-gw8g-gpq5 (quinn-proto), CVE-2024-1410 (quiche), CVE-2024-22189 (quic-go): identifiers
/// to be retired piled up, one by one or by jumps, while the peer acknowledged nothing.
#[test]
fn retirements_that_are_never_acknowledged() {
    for step in [1, 3, 1 << 40] {
        let mut pair = Pair::connected();
        pair.cut();
        let mut sequence = 3;
        let mut sent = 0;
        while pair.loss(Side::Server).is_none() {
            sequence += step;
            pair.inject(Side::Client, &[new_id(sequence, sequence)]);
            sent += 1;
            assert!(sent <= MAX_RETIRE_FACTOR * ACTIVE_CID_LIMIT as usize, "unbounded");
        }
        assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::CONNECTION_ID_LIMIT_ERROR));
    }
}

/// CVE-2025-7054 (quiche): retiring identifiers went on for ever.
#[test]
fn a_jump_of_the_sequence_number_is_one_retirement() {
    let mut pair = Pair::connected();
    let last = (1 << 62) - 1;
    pair.inject(Side::Client, &[new_id(last, last)]);
    pair.run_for(SECOND);
    assert_eq!(pair.loss(Side::Server), None);
    pair.send(Side::Client, Dir::Uni, b"still there");
    assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), b"still there");
}

/// CVE-2023-42805 (quinn-proto): a frame of an unknown type was a panic.
#[test]
fn frames_of_every_type() {
    for ty in 0..=255u8 {
        for rest in [&[][..], &[0; 20], &[0x7f; 20], &[0xff; 40]] {
            let payload = [&[ty], rest].concat();
            let mut pair = Pair::connected();
            for side in [Side::Client, Side::Server] {
                pair.inject_packet(side, SpaceId::Data, &payload, Forgery::default());
            }
            pair.flush(Side::Client);
            pair.flush(Side::Server);
        }
    }
}

/// CVE-2024-45311 (quinn-proto): packets of a client that was sent a Retry or refused, again and
/// again, met a state that was gone.
#[test]
fn initials_after_a_refusal() {
    for config in [
        EndpointConfig { retry_above: Some(0), ..EndpointConfig::default() },
        EndpointConfig { max_connections: 0, ..EndpointConfig::default() },
        EndpointConfig { max_handshakes: 0, ..EndpointConfig::default() },
    ] {
        let mut pair = Pair::new();
        let mut server = Crowd::new(config).server;
        let (now, from) = (pair.now, pair.client.address);
        for n in 0..50u8 {
            let dcid = ConnectionId::new(&[n % 5 + 1; 8]);
            let forgery = Forgery { dcid, ..Forgery::default() };
            let initial = pair.forge(Side::Client, SpaceId::Initial, &padded(&[1]), forgery);
            let event = server.handle(now, from, &initial);
            assert!(!matches!(event, DatagramEvent::NewConnection(..)));
        }
        assert!(server.is_empty());
    }
}

/// CVE-2023-6193 (quiche), CVE-2023-49295 (quic-go), CVE-2023-50247 (quicly): answers to
/// PATH_CHALLENGEs piled up while nothing could be sent, which RFC 9000 allows if read by the letter
/// (erratum 8875).
#[test]
fn path_challenges_while_nothing_is_acknowledged() {
    let mut pair = Pair::connected();
    pair.mute(Side::Server);
    pair.send(Side::Server, Dir::Uni, &[7; 100_000]);
    pair.flush(Side::Server);
    for n in 0..2000u64 {
        pair.inject(Side::Client, &[Frame::PathChallenge(n.to_be_bytes())]);
        assert!(pair.server.conn().migration.queued() <= MAX_PATH_FRAMES);
    }
    let before = pair.sent(Side::Server);
    pair.flush(Side::Server);
    assert!(pair.sent(Side::Server) - before <= MAX_PATH_FRAMES + 2);
}

/// CVE-2025-54939, "QUIC-LEAK" (lsquic): packets for another destination behind an Initial, before there is a
/// connection, cost memory that no limit counted.
#[test]
fn packets_for_somebody_else_before_the_handshake() {
    let mut pair = Pair::new();
    let now = pair.now;
    let from = ([192, 0, 2, 9], 9).into();
    let ping = [1; 200];
    let mut datagram = Vec::new();
    for n in 1..8 {
        let forgery = Forgery { dcid: ConnectionId::new(&[n; 8]), ..Forgery::default() };
        datagram.extend(pair.forge(Side::Client, SpaceId::Initial, &ping, forgery));
    }
    for _ in 0..1000 {
        let event = pair.server.endpoint.handle(now, from, &datagram);
        assert!(matches!(event, DatagramEvent::Drop));
    }
    assert!(pair.server.endpoint.is_empty());
}

/// CVE-2023-44487 (HTTP/2, "rapid reset"): streams that are opened and reset at once were not
/// limited, because none of them stayed. Here each uses up a credit that takes a round trip.
#[test]
fn streams_opened_and_reset_at_once_take_credit() {
    const LIMIT: u64 = 20;
    let mut pair = Pair::with_server(|server| server.max_concurrent_uni_streams = LIMIT);
    let (mut opened, start, rounds) = (0, pair.now, 20);
    let mut reset = 0;
    while pair.now < start + 2 * pair.latency * rounds {
        while let Some(id) = pair.client.conn().open(Dir::Uni) {
            pair.client.conn().send_stream(id).write(b"x").unwrap();
            pair.client.conn().send_stream(id).reset(0).unwrap();
            opened += 1;
        }
        pair.step(pair.now + SECOND);
        while let Some(id) = pair.server.conn().accept(Dir::Uni) {
            let read = pair.server.conn().recv_stream(id).read(&mut [0]);
            reset += u64::from(read == Err(ReadError::Reset(0)));
        }
        assert!(pair.server.stats().streams.streams as u64 <= LIMIT);
    }
    assert!(reset > 0, "none was reset");
    assert!(opened <= LIMIT * u64::from(rounds + 1), "{opened} in {rounds} round trips");
}
