//! Runs the fuzz targets on seeded input, without needing a fuzzer.
//!
//! `FUZZ_ITERATIONS` sets the number of inputs for each target.

use sutura_h3::fuzz;
use sutura_random::Rng;
use sutura_random::fuzz::{iterations, run};

#[test]
fn field_sections() {
    // RFC 9204 appendix B.1, indexed and literal lines, and a Huffman string of RFC 7541.
    let seeds: [&[u8]; 3] = [
        b"\0\0\x51\x0b/index.html",
        b"\0\0\xd1\xd7\x50\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
        b"\0\0\x27\x03customkey\x0ccustom-value",
    ];
    run(10_000, &seeds, fuzz::qpack);
}

#[test]
fn priorities() {
    let seeds: [&[u8]; 8] = [
        b"u=3, i",
        b"u=5, i\nu=1\nexp_w=2, exp_p=()",
        b"\n",
        b"exp_d=60000, exp_b=255\nexp_b=0, exp_p=(\"a\" \"b\";exp_w=0.001)",
        b"u=7;a=\"x\\\"y\";b=:aGk=:, i=?0",
        b"x=(1 2.5 a);q, u=-1",
        b"u=3, i, exp_b=3, exp_d=80, exp_w=0.25, exp_p=(\"ivp\";u=3;i;exp_w=0.4 \"img\";u=1)",
        b"exp_p=(a b c d \"\" \"\\\"\" 1 ?1;u=2 *;exp_w=1000 e f), exp_w=1000",
    ];
    run(10_000, &seeds, fuzz::priority);
}

#[test]
fn streams_of_frames() {
    // SETTINGS, DATA, HEADERS, GOAWAY, PRIORITY_UPDATE, a reserved type.
    let seeds: [&[u8]; 5] = [
        b"\x80\x0f\x07\x00\x16\x08u=1, i, exp_p=(a;u=1)",
        &[4, 4, 6, 0x44, 0, 8, 7, 1, 4],
        &[1, 4, 0, 0, 0xd1, 0xd7, 0, 5, 1, 2, 3, 4, 5],
        &[0x80, 0x0f, 0x07, 0x00, 4, 8, b'u', b'=', b'1'],
        &[0x21, 3, 1, 2, 3, 0x40, 0x40, 0],
    ];
    run(10_000, &seeds, fuzz::frames);
}

/// Frames of plausible types and lengths on a stream of a plausible type get further than mutated
/// ones.
#[test]
fn plausible_frames() {
    let mut rng = Rng::new(5);
    for _ in 0..iterations(10_000) {
        let mut data = vec![rng.below(4) as u8, 40, 0, 4, 0];
        for _ in 0..rng.below(12) {
            let len = rng.below(20);
            data.extend([rng.below(14) as u8, len as u8]);
            data.extend((0..len).map(|_| rng.below(64) as u8));
        }
        fuzz::frames(&data);
    }
}
