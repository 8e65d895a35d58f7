//! Runs the fuzz targets on seeded input, without needing a fuzzer.
//!
//! `FUZZ_ITERATIONS` sets the number of inputs for each target.

use sutura_erasure::{block, fuzz, kernel::Kernel};
use sutura_random::Rng;
use sutura_random::fuzz::{input, iterations, noise, replay};

/// Gives the target the same inputs with the portable kernel and with the best one.
fn run(target: fn(&[u8], Kernel), seeds: &[&[u8]]) {
    let mut kernels = Kernel::available();
    for kernel in [kernels.next(), kernels.next_back()].into_iter().flatten() {
        sutura_random::fuzz::run(10_000, seeds, |data| target(data, kernel));
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
    // Losses within open repair symbols, and a burst of more.
    &[9, 1, 0, 1, 9, 0, 1, 10, 0, 1, 10, 17, 6, 11, 35, 11, 11, 8, 6, 8],
];

#[test]
fn decoding_what_no_encoder_made() {
    run(fuzz::decoder, &SEEDS);
}

#[test]
fn decoding_what_an_encoder_made() {
    run(fuzz::round_trip, &SEEDS);
}

#[test]
fn blocks() {
    let mut rng = Rng::new(1);
    for _ in 0..iterations(5000) {
        block::fuzz::block_decode(&noise(&mut rng, 400));
        block::fuzz::block_round_trip(&noise(&mut rng, 400));
    }
}

#[test]
fn stored_inputs() {
    let best = Kernel::best();
    replay("erasure_decoder", |rng| input(rng, &SEEDS), |data| fuzz::decoder(data, best));
    replay("erasure_round_trip", |rng| input(rng, &SEEDS), |data| fuzz::round_trip(data, best));
    replay("erasure_block_decode", |rng| noise(rng, 400), block::fuzz::block_decode);
    replay("erasure_block_round_trip", |rng| noise(rng, 400), block::fuzz::block_round_trip);
}
