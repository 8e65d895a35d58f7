//! The fuzz targets on seeded, mutated valid input: what a machine without a fuzzer can do.
//!
//! `FUZZ_ITERATIONS` sets how many inputs each target gets.

use std::sync::Arc;
use std::time::Instant;
use sutura_proto::crypto::null::NullClientConfig;
use sutura_proto::wire_format::{Frame, Repair, RepairHeader, StreamFrame, TransportParameters};
use sutura_proto::{
    ClientConfig, CodeId, ConnectionId, Endpoint, EndpointConfig, Side, StreamId, TransportConfig,
    fuzz,
};
use sutura_random::Rng;
use sutura_random::fuzz::{input, iterations, run};

/// The valid examples of all kinds of frames in the test vectors, as far as they are in hex.
fn frames() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = include_str!("data/fec-frames.txt")
        .split_whitespace()
        .filter(|word| word.len() % 2 == 0 && word.bytes().all(|b| b.is_ascii_hexdigit()))
        .map(|word| word.as_bytes().chunks(2).map(hex).collect())
        .collect();
    assert!(seeds.len() > 5);
    let id = StreamId::new(Side::Client, sutura_proto::Dir::Bi, 9);
    let repair = |code| RepairHeader::new(3, code, &(500..520), 7);
    let plain = [
        Frame::Stream(StreamFrame { id, offset: 70_000, fin: true, data: b"some data" }),
        Frame::ResetStream { id, code: 5, final_size: 1 << 40 },
        Frame::Crypto { offset: 300, data: b"some handshake" },
        Frame::NewToken(b"token"),
        Frame::MaxStreams { dir: sutura_proto::Dir::Uni, max: 1 << 60 },
        Frame::PathChallenge([3; 8]),
        Frame::Datagram(b"datagram"),
        Frame::Repair(Repair { header: repair(CodeId::SLIDING_WINDOW), payload: b"repair" }),
        Frame::Repair(Repair { header: repair(CodeId::REED_SOLOMON), payload: b"parity" }),
    ];
    for frame in plain {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        seeds.push(bytes);
    }
    seeds.push(vec![2, 0x44, 0, 5, 3, 2, 0, 1, 9, 9, 4, 4]);
    seeds.push(vec![3, 0x44, 0, 5, 1, 2, 0, 1, 7, 8, 9]);
    seeds
}

fn hex(digits: &[u8]) -> u8 {
    let digits = str::from_utf8(digits).expect("ASCII");
    u8::from_str_radix(digits, 16).expect("hexadecimal digits")
}

#[test]
fn decoding_frames() {
    run(40_000, &frames(), fuzz::frames);
}

#[test]
fn ordered_groups() {
    // A message, one behind a fence and after another, and a notice, each after its length.
    let seeds = [
        vec![7, 2, 0, 0, 0, b'a', b'b', b'c', 4, 2, 1, 0, 0],
        vec![6, 2, 3, 2, 1, 1, 9, 5, 2, 2, 1, 0, 4, 4, 2, 1, 0, 7],
        vec![5, 2, 4, 0, 0, 1, 6, 3, 5, 0, 2, 3, 1, 2, 3, 0],
    ];
    run(40_000, &seeds, fuzz::groups);
}

#[test]
fn judging_tokens() {
    let seeds = [vec![], [vec![0; 30], vec![1]].concat(), b"sRty".repeat(15), b"sNew".repeat(15)];
    run(5_000, &seeds, fuzz::tokens);
}

#[test]
fn decoding_packets() {
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, [1; 32]);
    let config = ClientConfig {
        crypto: Arc::new(NullClientConfig::new(vec![b"x".to_vec()])),
        transport: Arc::new(TransportConfig::default()),
    };
    let (now, remote) = (Instant::now(), ([127, 0, 0, 1], 1).into());
    let (_, mut client) = endpoint
        .connect(now, config, remote, "localhost")
        .expect("a client that can connect and has something to send");
    let mut initial = Vec::new();
    client
        .poll_transmit(now, 1, &mut initial)
        .expect("a client that can connect and has something to send");
    let mut handshake = initial.clone();
    handshake[0] |= 0x20;
    let short = [vec![0x45; 60], vec![0; 40]].concat();
    let negotiation = b"\x80\0\0\0\0\x08dcid-dci\x08scid-sci\0\0\0\x01\x0a\x1a\x2a\x3a".to_vec();
    let retry = b"\xf0\0\0\0\x01\x08dcid-dci\x08scid-scitokentoken0123456789abcdef".to_vec();
    run(20_000, &[initial, handshake, short, negotiation, retry], fuzz::packets);
}

#[test]
fn decoding_transport_parameters() {
    let seeds = [Side::Client, Side::Server].map(|side| {
        let cid = ConnectionId::new(&[5; 8]);
        let parameters = TransportParameters {
            original_destination_connection_id: cid.filter(|_| side == Side::Server),
            initial_source_connection_id: cid,
            max_idle_timeout: 30_000,
            initial_max_data: 1 << 20,
            max_datagram_frame_size: 1_200,
            ..TransportParameters::default()
        };
        let mut out = Vec::new();
        parameters.encode(side, &mut out);
        out
    });
    run(20_000, &seeds, fuzz::transport_parameters);
}

#[test]
fn two_connections_whose_packets_are_rewritten() {
    let mut rng = Rng::new(11);
    let frames = frames();
    for _ in 0..iterations(150) {
        // Mostly untouched packets, so that the handshake goes through, and frames in between.
        let mut data = vec![0; 20 + rng.index(200)];
        while data.len() < 5_000 {
            let chunk = match rng.below(5) {
                0 => replacement(&input(&mut rng, &frames)),
                1 => replacement(&frames[rng.index(frames.len())]),
                2 | 3 => vec![0; rng.index(60)],
                _ => {
                    let len = rng.index(40);
                    rng.bytes(len)
                }
            };
            data.extend(chunk);
        }
        fuzz::connection(&data);
    }
}

/// What tells the fuzz target to put `frames` in the place of a packet's own.
fn replacement(frames: &[u8]) -> Vec<u8> {
    let len = frames.len().min(200);
    [&[200, 0, len as u8], &frames[..len]].concat()
}
