//! The fuzz targets on seeded, mutated valid input: for machines without a fuzzer.
//!
//! `FUZZ_ITERATIONS` sets how many inputs each target gets.

use std::sync::Arc;
use std::time::Instant;
use sutura_proto::crypto::null::NullClientConfig;
use sutura_proto::wire_format::{
    AckFrequency, Frame, Repair, RepairHeader, StreamFrame, TransportParameters,
};
use sutura_proto::{
    ClientConfig, CodeId, ConnectionId, Endpoint, EndpointConfig, Side, StreamId, TransportConfig,
    fuzz,
};
use sutura_random::Rng;
use sutura_random::fuzz::{input, iterations, replay, run};

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
        Frame::ResetStreamAt { id, code: 5, final_size: 1 << 40, reliable_size: 1 << 20 },
        Frame::AckFrequency(AckFrequency {
            sequence: 3,
            threshold: 10,
            max_ack_delay: 20_000,
            reordering_threshold: 3,
        }),
        Frame::ImmediateAck,
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

fn tokens() -> [Vec<u8>; 4] {
    [vec![], [vec![0; 30], vec![1]].concat(), b"sRty".repeat(15), b"sNew".repeat(15)]
}

#[test]
fn judging_tokens() {
    run(5_000, &tokens(), fuzz::tokens);
}

fn packets() -> [Vec<u8>; 5] {
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, [1; 32]);
    let config = ClientConfig::new(
        Arc::new(NullClientConfig::new(vec![b"x".to_vec()])),
        Arc::new(TransportConfig::default()),
    );
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
    [initial, handshake, short, negotiation, retry]
}

#[test]
fn decoding_packets() {
    run(20_000, &packets(), fuzz::packets);
}

fn transport_parameters() -> [Vec<u8>; 2] {
    [Side::Client, Side::Server].map(|side| {
        let cid = ConnectionId::new(&[5; 8]);
        let mut parameters = TransportParameters::default();
        parameters.original_destination_connection_id = cid.filter(|_| side == Side::Server);
        parameters.initial_source_connection_id = cid;
        parameters.max_idle_timeout = 30_000;
        parameters.initial_max_data = 1 << 20;
        parameters.max_datagram_frame_size = 1_200;
        let mut out = Vec::new();
        parameters.encode(side, &mut out);
        out
    })
}

#[test]
fn decoding_transport_parameters() {
    run(20_000, &transport_parameters(), fuzz::transport_parameters);
}

/// The input of the fuzzer of two connections: mostly untouched packets, so that the handshake goes through,
/// and frames in between. With `early`, the connection begins in 0-RTT, where frames come from the start.
fn rewriting(rng: &mut Rng, frames: &[Vec<u8>], length: usize, early: bool) -> Vec<u8> {
    let mut data = vec![0; if early { 1 + rng.index(60) } else { 20 + rng.index(200) }];
    data[0] = if early { 0x80 } else { 0 };
    while data.len() < length {
        let chunk = match rng.below(5) {
            0 => replacement(&input(rng, frames)),
            1 => replacement(&frames[rng.index(frames.len())]),
            2 | 3 => vec![0; rng.index(60)],
            _ => {
                let len = rng.index(40);
                rng.bytes(len)
            }
        };
        data.extend(chunk);
    }
    data
}

#[test]
fn two_connections_whose_packets_are_rewritten() {
    let mut rng = Rng::new(11);
    let frames = frames();
    for n in 0..iterations(200) {
        fuzz::connection(&rewriting(&mut rng, &frames, 5_000, n % 4 == 3));
    }
}

/// The input of the fuzzer of two endpoints: mostly bytes that change nothing.
fn network(rng: &mut Rng) -> Vec<u8> {
    let len = 50 + rng.index(1500);
    let calm = 1 + rng.below(8);
    let byte = |rng: &mut Rng| match rng.below(calm) {
        0 => rng.below(256) as u8,
        _ => 9,
    };
    (0..len).map(|_| byte(rng)).collect()
}

#[test]
fn two_endpoints_on_a_hostile_network() {
    let mut rng = Rng::new(12);
    for _ in 0..iterations(200) {
        fuzz::endpoints(&network(&mut rng));
    }
}

/// The actions of clients and of a server's application.
fn crowd(rng: &mut Rng) -> Vec<u8> {
    (0..2 + rng.index(800)).map(|_| rng.index(256) as u8).collect()
}

#[test]
fn many_clients_of_a_server() {
    let mut rng = Rng::new(13);
    for _ in 0..iterations(200) {
        fuzz::admission(&crowd(&mut rng));
    }
}

#[test]
fn stored_inputs() {
    replay("proto_frames", |rng| input(rng, &frames()), fuzz::frames);
    replay("proto_tokens", |rng| input(rng, &tokens()), fuzz::tokens);
    replay("proto_packets", |rng| input(rng, &packets()), fuzz::packets);
    let name = "proto_transport_parameters";
    replay(name, |rng| input(rng, &transport_parameters()), fuzz::transport_parameters);
    replay("proto_connection", |rng| rewriting(rng, &frames(), 3_000, false), fuzz::connection);
    replay("proto_endpoints", network, fuzz::endpoints);
    replay("proto_admission", crowd, fuzz::admission);
}

/// The input that makes the fuzz target put `frames` in the place of a packet's own.
fn replacement(frames: &[u8]) -> Vec<u8> {
    let len = frames.len().min(200);
    [&[200, 0, len as u8], &frames[..len]].concat()
}
