//! How often an equal number of repair symbols does not suffice for lost symbols.
//!
//! Theory: let a square matrix over GF(256) have independent elements, each 1 with a probability of
//! 2/256 and any other nonzero value with 1/256. The expected number of nonzero vectors that the matrix maps
//! to zero is 1 to seven digits, for any size from 2 on. These vectors come in lines of 255, so a matrix is
//! singular with a probability of 1/255. (Matrices with more than one such line count several times, but are
//! only one in 256 to the fourth.) The uneven distribution of the elements makes no visible difference: for 2
//! by 2, where all matrices can be counted, see below.
//!
//! Keys and ids are counters here, as in practice, so this tests the coefficients.
//! `PROBABILITY_TRIALS` multiplies the number of trials.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::thread;

use sutura_erasure::{Decoder, DecoderLimits, Encoder, gf256};

const LIMITS: DecoderLimits =
    DecoderLimits { symbols: 64, bytes: 4096, symbol_size: 4, repairs: 64 };

/// The probability that a square matrix of uniformly distributed elements is singular.
fn theory(size: u32) -> f64 {
    1.0 - (1..=size).map(|i| 1.0 - 256f64.powi(-(i as i32))).product::<f64>()
}

/// The probability that a 2 by 2 matrix of coefficients is singular, that is, ad = bc.
fn two_by_two() -> f64 {
    let weight = |c: u8| if c == 1 { 2.0 } else { 1.0 };
    let mut products = [0.0; 256];
    for a in 1..=255 {
        for d in 1..=255 {
            products[usize::from(gf256::mul(a, d))] += weight(a) * weight(d) / 65536.0;
        }
    }
    products.iter().map(|p| p * p).sum()
}

#[test]
fn theory_has_the_right_value_where_it_can_be_counted() {
    assert!((two_by_two() * 255.0 - 1.0).abs() < 1e-6, "{}", two_by_two());
    for size in [2, 3, 20, 1000] {
        assert!((theory(size) * 255.0 - 1.0).abs() < 1e-4, "{}", theory(size));
    }
}

/// How many windows needed more repair symbols than lost symbols, and how many needed at least two
/// more.
#[derive(Default, Clone, Copy)]
struct Failures {
    singular: u32,
    one_more_too: u32,
}

/// Recovers windows in which all of `lost` symbols are missing, with the number of repair symbols that is
/// needed. Keys start at `key`.
fn failures(trials: u32, lost: u64, mut key: u32) -> Failures {
    let mut encoder = Encoder::new(LIMITS.window());
    let mut decoder = Decoder::new(LIMITS);
    let mut payload = Vec::new();
    let mut failures = Failures::default();
    for _ in 0..trials {
        let first = encoder.next_id();
        for id in 0..lost {
            encoder.push(&[id as u8 + 1, 2, 3]).unwrap();
        }
        let span = encoder.window();
        let mut used = 0;
        while used == 0 || decoder.missing().len() > 0 {
            payload.clear();
            encoder.repair(span.clone(), key, &mut payload).unwrap();
            decoder.repair(span.clone(), key, &payload).unwrap();
            key += 1;
            used += 1;
            assert!(used < lost + 10, "repair symbols do not recover the window");
        }
        assert!(used >= lost, "no code does with less");
        failures.singular += u32::from(used > lost);
        failures.one_more_too += u32::from(used > lost + 1);
        assert_eq!(decoder.symbol(first), Some(&[1, 2, 3][..]));
        encoder.release_below(span.end);
        decoder.release_below(span.end);
    }
    failures
}

/// The same on two threads with different keys.
fn failures_on_two_threads(trials: u32, lost: u64) -> Failures {
    thread::scope(|scope| {
        let halves = [0, 1 << 31].map(|key| scope.spawn(move || failures(trials / 2, lost, key)));
        let [a, b] = halves.map(|half| half.join().unwrap());
        Failures {
            singular: a.singular + b.singular,
            one_more_too: a.one_more_too + b.one_more_too,
        }
    })
}

#[test]
fn a_square_system_is_singular_as_often_as_theory_says() {
    let factor = std::env::var("PROBABILITY_TRIALS").ok().and_then(|n| n.parse().ok());
    let factor: u32 = factor.unwrap_or(1);
    let mut table = String::from("size   trials  singular  expected  deviations  per 255\n");
    let mut agrees = true;
    for (lost, trials) in [(2, 300_000), (5, 200_000), (20, 30_000), (50, 8_000)] {
        let trials = trials * factor;
        let Failures { singular, one_more_too } = failures_on_two_threads(trials, lost);
        let expected = f64::from(trials) * theory(lost as u32);
        let deviations = (f64::from(singular) - expected) / expected.sqrt();
        let per_255 = f64::from(singular) * 255.0 / f64::from(trials);
        table += &format!(
            "{lost:4} {trials:8} {singular:9} {expected:9.1} {deviations:+11.2} {per_255:8.3}\n"
        );
        // With one more repair symbol, failures are 255 times as rare again.
        let rare = expected / 255.0;
        agrees &=
            deviations.abs() < 5.0 && f64::from(one_more_too) < rare + 5.0 * rare.sqrt() + 2.0;
    }
    println!("{table}");
    assert!(agrees, "measured and expected numbers of singular systems:\n{table}");
}
