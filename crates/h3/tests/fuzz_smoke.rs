//! Runs the fuzz targets on seeded input, without needing a fuzzer.
//!
//! `FUZZ_ITERATIONS` sets the number of inputs for each target.

use sutura_h3::fuzz;
use sutura_random::Rng;
use sutura_random::fuzz::{input, iterations, replay, run};

/// RFC 9204 appendix B.1, indexed and literal lines, and a Huffman string of RFC 7541.
const SECTIONS: [&[u8]; 5] = [
    b"\0\0\0\0\x51\x0b/index.html",
    b"\0\0\0\0\xd1\xd7\x50\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
    b"\0\0\0\0\x27\x03customkey\x0ccustom-value",
    b"\x20\x21\x3f\xbd\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path\x03\x81\x10\x11",
    b"\x20\x1a\x3f\x45\x4acustom-key\x0ccustom-value\0\x03\0\x81\x80\x40\x01a\0",
];

#[test]
fn field_sections() {
    run(10_000, &SECTIONS, fuzz::qpack);
}

const PRIORITIES: [&[u8]; 8] = [
    b"u=3, i",
    b"u=5, i\nu=1\nexp_w=2, exp_p=()",
    b"\n",
    b"exp_d=60000, exp_b=255\nexp_b=0, exp_p=(\"a\" \"b\";exp_w=0.001)",
    b"u=7;a=\"x\\\"y\";b=:aGk=:, i=?0",
    b"x=(1 2.5 a);q, u=-1",
    b"u=3, i, exp_b=3, exp_d=80, exp_w=0.25, exp_p=(\"ivp\";u=3;i;exp_w=0.4 \"img\";u=1)",
    b"exp_p=(a b c d \"\" \"\\\"\" 1 ?1;u=2 *;exp_w=1000 e f), exp_w=1000",
];

#[test]
fn dynamic_tables_of_both_ends() {
    let seeds: [&[u8]; 3] = [
        b"\xff\x03\0\x07\0\x48\x03\xff\x04\0\x04\x01\x07\0\x05\xff\0\x07\x04\0",
        b"\x40\x01\0\x10\0\xd1\x06\0\x03\x20\0\x51\x04\x02\x06\x05\0\x17\x03\xff",
        b"\x20\x02\0\x31\0\x32\0\x33\x03\x10\x04\0\x07\0\x05\x02\0\x34\x06\x01",
    ];
    run(10_000, &seeds, fuzz::qpack_pair);
}

#[test]
fn capsules() {
    let seeds: [&[u8]; 2] =
        [b"\x02\x00\x05hello\x40\x40\x03abc\x01\x00", b"\xff\x03\x80\x00\x00\x02ab\x05\x01x"];
    run(10_000, &seeds, fuzz::capsules);
}

#[test]
fn datagrams_of_requests() {
    let seeds: [&[u8]; 3] = [
        b"\x03abc\x40\x80\x13xyz\x40\x90\xc0\x02no\x80",
        b"\x40\x05hello\x80\x80\x12ab\x40\x90",
        &[0; 600],
    ];
    run(10_000, &seeds, fuzz::datagrams);
}

#[test]
fn priorities() {
    run(10_000, &PRIORITIES, fuzz::priority);
}

/// SETTINGS, DATA, HEADERS, GOAWAY, PRIORITY_UPDATE, a reserved type.
const FRAMES: [&[u8]; 5] = [
    b"\x80\x0f\x07\x00\x16\x08u=1, i, exp_p=(a;u=1)",
    &[4, 4, 6, 0x44, 0, 8, 7, 1, 4],
    &[1, 4, 0, 0, 0xd1, 0xd7, 0, 5, 1, 2, 3, 4, 5],
    &[0x80, 0x0f, 0x07, 0x00, 4, 8, b'u', b'=', b'1'],
    &[0x21, 3, 1, 2, 3, 0x40, 0x40, 0],
];

#[test]
fn streams_of_frames() {
    run(10_000, &FRAMES, fuzz::frames);
}

/// Frames of plausible types and lengths on a stream of a plausible type get further than mutated
/// ones.
fn plausible(rng: &mut Rng) -> Vec<u8> {
    let mut data = vec![rng.below(4) as u8, 40, 0, 4, 0];
    for _ in 0..rng.below(12) {
        let len = rng.below(20);
        data.extend([rng.below(14) as u8, len as u8]);
        data.extend((0..len).map(|_| rng.below(64) as u8));
    }
    data
}

#[test]
fn plausible_frames() {
    let mut rng = Rng::new(5);
    for _ in 0..iterations(10_000) {
        fuzz::frames(&plausible(&mut rng));
    }
}

/// Streams of a session, of others, and of none; capsules that drain and close.
const SESSIONS: [&[u8]; 6] = [
    b"\x00\x07\x05\x40\x54\x00hi\x06\x40\x41\x00hello\x04\x40\x54\x04x",
    b"\x03\x09\x04\x40\x41\x00a\x05\x40\x54\x40\x00b",
    b"\x02\x20\x0d\x00\x0b\x68\x43\x08\x00\x00\x00\x07bye!\x04\x40\x54\x00c",
    b"\x05\x11\x05\x00\x03\xf8\xae\x00\x05\x40\x41\x00dd\x03\x40\x41\x01",
    b"\x01\x04\x02\x40\x54\x01\x40\x02\x40\x41",
    b"\x06\xff\x06\x00\x04\x68\x43\x02\x00\x04\x40\x41\x00e",
];

#[test]
fn streams_of_sessions() {
    run(10_000, &SESSIONS, fuzz::sessions);
}

/// A message whose frames are plausible, which arrives in any order.
fn scattered(rng: &mut Rng) -> Vec<u8> {
    let arrivals = 2 * rng.below(12);
    let mut data = vec![rng.below(8) as u8, arrivals as u8];
    data.extend((0..arrivals).map(|_| rng.below(256) as u8));
    // The head of a response, or of a request.
    let head: &[u8] = match data[0] & 1 {
        1 => &[1, 3, 0, 0, 0xd9],
        _ => &[1, 11, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 0x04, b'h', b'o', b's', b't'],
    };
    data.extend(head);
    for _ in 0..rng.below(4) {
        let length = rng.below(60);
        data.extend([0, length as u8]);
        // Sometimes more or less than the frame has.
        let given = if rng.below(8) == 0 { rng.below(60) } else { length };
        data.extend((0..given).map(|_| rng.below(64) as u8));
    }
    if rng.below(3) == 0 {
        data.extend([1, 5, 0, 0, 0x21, b'x', 0]);
    }
    data
}

#[test]
fn bodies_in_pieces() {
    let mut rng = Rng::new(6);
    for _ in 0..iterations(10_000) {
        fuzz::pieces(&scattered(&mut rng));
    }
    run(10_000, &FRAMES, fuzz::pieces);
}

#[test]
fn stored_inputs() {
    replay("h3_qpack", |rng| input(rng, &SECTIONS), fuzz::qpack);
    replay("h3_priority", |rng| input(rng, &PRIORITIES), fuzz::priority);
    let frames = |rng: &mut Rng| {
        if rng.below(2) == 0 { plausible(rng) } else { input(rng, &FRAMES) }
    };
    replay("h3_frames", frames, fuzz::frames);
    replay("h3_pieces", scattered, fuzz::pieces);
    replay("h3_sessions", |rng| input(rng, &SESSIONS), fuzz::sessions);
}
