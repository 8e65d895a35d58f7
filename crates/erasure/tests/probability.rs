//! How often as many repair symbols as lost symbols are not enough.
//!
//! Theory: a square matrix whose elements are drawn evenly from the nonzero elements of GF(256) is
//! singular with a probability of about 1/255, whatever its size (exactly that for 2 by 2, a little
//! more for larger ones). Each repair symbol beyond that makes it about 255 times as rare. Keys and
//! ids are counters here, as they are in use, so this puts the coefficients to the test.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use sutura_erasure::{Decoder, DecoderLimits, Encoder};

const LIMITS: DecoderLimits =
    DecoderLimits { symbols: 64, bytes: 4096, symbol_size: 4, repairs: 64 };

/// Recovers `trials` windows in which all of `lost` symbols are missing, with as many repair
/// symbols as it takes. Returns how many windows took more than `lost`, and more than `lost + 1`.
fn failures(trials: u32, lost: u64) -> [u32; 2] {
    let mut encoder = Encoder::new(LIMITS.window());
    let mut decoder = Decoder::new(LIMITS);
    let mut payload = Vec::new();
    let mut key = 0;
    let mut more_than = [0; 2];
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
        more_than[0] += u32::from(used > lost);
        more_than[1] += u32::from(used > lost + 1);
        assert_eq!(decoder.symbol(first), Some(&[1, 2, 3][..]));
        encoder.release_below(span.end);
        decoder.release_below(span.end);
    }
    more_than
}

#[test]
fn a_square_system_is_singular_as_often_as_theory_says() {
    for (trials, lost) in [(50_000, 2), (30_000, 5), (10_000, 20)] {
        let [one_more, two_more] = failures(trials, lost);
        let expected = f64::from(trials) / 255.0;
        // Five standard deviations to each side.
        let margin = 5.0 * expected.sqrt();
        let measured = f64::from(one_more);
        assert!(
            (measured - expected).abs() < margin,
            "{one_more} of {trials} systems of {lost} are singular, expected {expected:.0}"
        );
        assert!(two_more <= 6, "{two_more} of {trials} took two more than {lost}");
    }
}
