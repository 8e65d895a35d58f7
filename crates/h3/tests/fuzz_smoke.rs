//! The fuzz targets on seeded input: what a machine without a fuzzer can do.
//!
//! `FUZZ_ITERATIONS` sets how many inputs each target gets.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sutura_h3::fuzz;

fn iterations() -> u64 {
    std::env::var("FUZZ_ITERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000)
}

/// Random bytes, seeds, and changes to both.
fn input(random: &mut StdRng, seeds: &[&[u8]]) -> Vec<u8> {
    let len = random.random_range(0..400);
    let mut data: Vec<u8> = match random.random_range(0..3) {
        // Small values reach more than large ones: most are counts, kinds or lengths.
        0 => (0..len).map(|_| random.random_range(0..24)).collect(),
        1 => (0..len).map(|_| random.random()).collect(),
        _ => seeds[random.random_range(0..seeds.len())].to_vec(),
    };
    for _ in 0..random.random_range(0..4) {
        let at = random.random_range(0..=data.len());
        if let Some(byte) = data.get_mut(at) {
            *byte ^= 1 << random.random_range(0..8);
        }
        let other = seeds[random.random_range(0..seeds.len())];
        match random.random_range(0..4) {
            0 => data.truncate(at),
            1 => data.extend_from_slice(&other[random.random_range(0..other.len())..]),
            2 => drop(data.splice(at..at, other.iter().copied())),
            _ => {}
        }
    }
    data
}

fn run(target: fn(&[u8]), input: impl Fn(&mut StdRng) -> Vec<u8>) {
    let mut random = StdRng::seed_from_u64(5);
    for _ in 0..iterations() {
        target(&input(&mut random));
    }
}

#[test]
fn field_sections() {
    // RFC 9204 appendix B.1, indexed and literal lines, and a Huffman string of RFC 7541.
    let seeds: [&[u8]; 3] = [
        b"\0\0\x51\x0b/index.html",
        b"\0\0\xd1\xd7\x50\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
        b"\0\0\x27\x03customkey\x0ccustom-value",
    ];
    run(fuzz::qpack, |random| input(random, &seeds));
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
    run(fuzz::priority, |random| input(random, &seeds));
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
    run(fuzz::frames, |random| input(random, &seeds));
}

/// Frames that are likely to be taken for what they are.
#[test]
fn plausible_frames() {
    run(fuzz::frames, |random| {
        let mut data = vec![random.random_range(0..4), 40, 0, 4, 0];
        for _ in 0..random.random_range(0..12) {
            let len = random.random_range(0..20);
            data.extend_from_slice(&[random.random_range(0..14), len]);
            data.extend((0..len).map(|_| random.random_range(0..64)));
        }
        data
    });
}
