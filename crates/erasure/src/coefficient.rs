//! Coding coefficients: a function of the repair key and the symbol id, and of nothing else.
//!
//! Because the coefficient of one symbol can be had without those of the others, sender and
//! receiver agree on a repair symbol after naming its key and its span, and a receiver may work
//! out just the coefficients of what it misses.

use crate::symbol::SymbolId;

/// The increment of SplitMix64 (Steele, Lea and Flood, 2014): 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Coefficients that one output of the generator holds, as a power of two.
const BLOCK_BITS: u32 = 3;

/// Output number `n` (from 0) of SplitMix64 that was seeded with `seed`.
const fn split_mix(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(GAMMA.wrapping_mul(n.wrapping_add(1)));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Byte `id mod 8` of an output; a zero becomes one, so that a repair symbol depends on every
/// symbol that it covers.
const fn pick(word: u64, id: SymbolId) -> u8 {
    let byte = word.to_le_bytes()[(id % 8) as usize];
    if byte == 0 { 1 } else { byte }
}

/// The coefficient of source symbol `id` in a repair symbol with `key`. It is never 0.
#[must_use]
pub const fn coefficient(key: u32, id: SymbolId) -> u8 {
    Coefficients::new(key).at(id)
}

/// All coefficients of one repair key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coefficients {
    seed: u64,
}

impl Coefficients {
    /// The coefficients of repair symbols with `key`.
    #[must_use]
    pub const fn new(key: u32) -> Self {
        Self { seed: split_mix(0, key as u64) }
    }

    /// The coefficient of symbol `id`, from 1 to 255.
    #[must_use]
    pub const fn at(self, id: SymbolId) -> u8 {
        pick(split_mix(self.seed, id >> BLOCK_BITS), id)
    }

    /// The coefficients of `first` and of all symbols after it, eight for each step of the
    /// generator.
    pub fn from(self, first: SymbolId) -> impl Iterator<Item = u8> {
        let mut word = split_mix(self.seed, first >> BLOCK_BITS);
        let mut next = first;
        core::iter::repeat_with(move || {
            if next.is_multiple_of(8) {
                word = split_mix(self.seed, next >> BLOCK_BITS);
            }
            let c = pick(word, next);
            next = next.wrapping_add(1);
            c
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::MAX_SYMBOL_ID;
    use std::collections::BTreeSet;

    #[test]
    fn the_generator_is_split_mix() {
        // The published first outputs for the seed 1234567.
        assert_eq!(split_mix(1_234_567, 0), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(1_234_567, 1), 3_203_168_211_198_807_973);
    }

    #[test]
    fn runs_and_single_coefficients_agree() {
        for key in [0, 1, 0x1234_5678, u32::MAX] {
            let coefficients = Coefficients::new(key);
            for first in [0, 1, 5, 7, 8, 1000, MAX_SYMBOL_ID - 30] {
                for (id, c) in (first..).zip(coefficients.from(first)).take(30) {
                    assert_eq!(c, coefficient(key, id), "key {key}, id {id}");
                    assert_ne!(c, 0);
                }
            }
        }
    }

    #[test]
    fn every_value_occurs_about_as_often_as_every_other() {
        let mut counts = [0u32; 256];
        for key in 0..256 {
            for id in 0..1024 {
                counts[usize::from(coefficient(key, id))] += 1;
            }
        }
        // 1024 of each are expected with a deviation of 32, and twice that of the value 1.
        assert_eq!(counts[0], 0);
        assert!((1800..2300).contains(&counts[1]), "{}", counts[1]);
        for (value, count) in counts.iter().enumerate().skip(2) {
            assert!((824..1224).contains(count), "{count} times {value}");
        }
    }

    #[test]
    fn keys_do_not_share_runs() {
        let runs: BTreeSet<[u8; 8]> =
            (0..20_000).map(|key| core::array::from_fn(|id| coefficient(key, id as u64))).collect();
        assert_eq!(runs.len(), 20_000);
    }
}
