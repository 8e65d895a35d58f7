//! Coding coefficients. In the window code they depend only on the repair key and the symbol id.
//!
//! Each coefficient can be computed without the others. Key and span are therefore enough to
//! identify a repair symbol, and a receiver computes only the coefficients of the symbols that it
//! is missing.

use crate::symbol::SymbolId;

/// The increment of SplitMix64 (Steele, Lea and Flood, 2014): 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Coefficients per output of the generator, as a power of two.
const BLOCK_BITS: u32 = 3;

/// Output number `n` (from 0) of SplitMix64 seeded with `seed`.
const fn split_mix(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(GAMMA.wrapping_mul(n.wrapping_add(1)));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// How a repair symbol combines the source symbols of its span. Every linear code over GF(256) can
/// be expressed in this way.
///
/// Functions from ids to coefficients implement this.
pub trait Combination {
    /// The coefficient of symbol `id`, which is in the span. 0 omits the symbol.
    fn coefficient(&self, id: SymbolId) -> u8;

    /// Fills `out` with the coefficients of `first` and the symbols after it, all in the span.
    fn fill(&self, first: SymbolId, out: &mut [u8]) {
        for (id, coefficient) in (first..).zip(out) {
            *coefficient = self.coefficient(id);
        }
    }
}

impl<F: Fn(SymbolId) -> u8> Combination for F {
    fn coefficient(&self, id: SymbolId) -> u8 {
        self(id)
    }
}

/// The coefficient of source symbol `id` in a repair symbol of the window code with `key`. Never 0.
#[must_use]
pub const fn coefficient(key: u32, id: SymbolId) -> u8 {
    Coefficients::new(key).at(id)
}

/// The coefficients for one repair key of the window code.
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
        self.word(id >> BLOCK_BITS).to_le_bytes()[(id % 8) as usize]
    }

    /// Fills `out` with the coefficients of `first` and the symbols after it.
    ///
    /// Several times as fast as computing them one by one.
    pub fn fill(self, first: SymbolId, out: &mut [u8]) {
        let mut block = first >> BLOCK_BITS;
        let skip = (first % 8) as usize;
        let (head, rest) = out.split_at_mut(out.len().min((8 - skip) % 8));
        if !head.is_empty() {
            let word = self.word(block).to_le_bytes();
            head.copy_from_slice(&word[skip..][..head.len()]);
            block += 1;
        }
        let (words, tail) = rest.as_chunks_mut::<8>();
        for word in words {
            *word = self.word(block).to_le_bytes();
            block += 1;
        }
        if !tail.is_empty() {
            tail.copy_from_slice(&self.word(block).to_le_bytes()[..tail.len()]);
        }
    }

    /// The coefficients of the eight symbols whose ids divided by 8 give `block`.
    const fn word(self, block: u64) -> u64 {
        without_zeros(split_mix(self.seed, block))
    }
}

impl Combination for Coefficients {
    fn coefficient(&self, id: SymbolId) -> u8 {
        self.at(id)
    }

    fn fill(&self, first: SymbolId, out: &mut [u8]) {
        Self::fill(*self, first, out);
    }
}

/// A word with a one in each zero byte of `word`, so that a repair symbol depends on every symbol
/// that it covers.
const fn without_zeros(word: u64) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    // The top bit of each byte: whether any of the byte's bits is set.
    let nonzero = ((word & LOW) + LOW) | word;
    word | (!nonzero & !LOW) >> 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::MAX_SYMBOL_ID;
    use std::collections::BTreeSet;

    #[test]
    fn the_generator_is_split_mix() {
        // The published first outputs for seed 1234567.
        assert_eq!(split_mix(1_234_567, 0), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(1_234_567, 1), 3_203_168_211_198_807_973);
    }

    #[test]
    fn runs_and_single_coefficients_agree() {
        for key in [0, 1, 0x1234_5678, u32::MAX] {
            let coefficients = Coefficients::new(key);
            for first in [0, 1, 5, 7, 8, 1000, MAX_SYMBOL_ID - 30] {
                for len in 0..30 {
                    let mut run = [0; 30];
                    coefficients.fill(first, &mut run[..len]);
                    for (id, c) in (first..).zip(&run[..len]) {
                        assert_eq!(*c, coefficient(key, id), "key {key}, id {id}");
                        assert_ne!(*c, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn only_zeros_become_ones() {
        let bytes = [0, 1, 0x80, 0, 0xff, 0x7f, 2, 0];
        let expected = [1, 1, 0x80, 1, 0xff, 0x7f, 2, 1];
        assert_eq!(without_zeros(u64::from_le_bytes(bytes)), u64::from_le_bytes(expected));
        assert_eq!(without_zeros(0), 0x0101_0101_0101_0101);
        assert_eq!(without_zeros(u64::MAX), u64::MAX);
    }

    #[test]
    fn every_value_occurs_about_as_often_as_every_other() {
        let mut counts = [0u32; 256];
        for key in 0..256 {
            for id in 0..1024 {
                counts[usize::from(coefficient(key, id))] += 1;
            }
        }
        // Each is expected 1024 times with a deviation of 32, and the value 1 twice as often.
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
