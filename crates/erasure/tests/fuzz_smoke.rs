//! The fuzz targets on seeded input: what a machine without a fuzzer can do.
//!
//! `FUZZ_ITERATIONS` sets how many inputs each target gets.

mod random;

use random::Random;
use sutura_erasure::{fuzz, kernel::Kernel};

fn iterations() -> u64 {
    std::env::var("FUZZ_ITERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000)
}

/// Random bytes, seeds, and changes to both.
fn input(random: &mut Random, seeds: &[&[u8]]) -> Vec<u8> {
    let len = random.below(400);
    let mut data: Vec<u8> = match random.below(3) {
        // Small values reach more than large ones: most are counts, kinds or lengths.
        0 => (0..len).map(|_| (random.next() % 24) as u8).collect(),
        1 => (0..len).map(|_| random.next() as u8).collect(),
        _ => seeds[random.below(seeds.len())].to_vec(),
    };
    for _ in 0..random.below(4) {
        let at = random.below(data.len());
        if let Some(byte) = data.get_mut(at) {
            *byte ^= 1 << random.below(8);
        }
        let other = seeds[random.below(seeds.len())];
        let from = random.below(other.len());
        match random.below(4) {
            0 => data.truncate(at),
            1 => data.extend_from_slice(&other[from..]),
            2 => drop(data.splice(at.min(data.len())..at.min(data.len()), other.iter().copied())),
            _ => {}
        }
    }
    data
}

/// Gives the target the same inputs with the kernel that runs everywhere and with the best.
fn run(target: fn(&[u8], Kernel), seeds: &[&[u8]]) {
    let mut kernels = Kernel::available();
    for kernel in [kernels.next(), kernels.next_back()].into_iter().flatten() {
        let mut random = Random(5);
        for _ in 0..iterations() {
            target(&input(&mut random, seeds), kernel);
        }
    }
}

const SEEDS: [&[u8]; 4] = [
    // Source symbols 0 and 2, then repair symbols over 0..4.
    &[
        0, 0, 3, 1, 2, 3, 0, 2, 3, 4, 5, 6, 3, 0, 4, 1, 5, 9, 8, 7, 6, 5, 3, 0, 4, 2, 5, 1, 2, 3,
        4, 5,
    ],
    &[6, 6, 7, 1, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8],
    // A burst over 0..4, half of it twice, then source symbol 1.
    &[
        8, 4, 0, 4, 1, 5, 9, 8, 7, 6, 5, 0, 4, 2, 5, 1, 2, 3, 4, 5, 0, 4, 1, 5, 9, 8, 7, 6, 5, 0,
        4, 3, 5, 5, 4, 3, 2, 1, 0, 1, 3, 1, 2, 3,
    ],
    // Losses inside of repair symbols that were opened before, and a burst of more.
    &[9, 1, 0, 1, 9, 0, 1, 10, 0, 1, 10, 17, 6, 11, 35, 11, 11, 8, 6, 8],
];

#[test]
fn decoding_what_no_encoder_made() {
    run(fuzz::decoder_with, &SEEDS);
}

#[test]
fn decoding_what_an_encoder_made() {
    run(fuzz::round_trip_with, &SEEDS);
}
