//! xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS
//! 2021), seeded by SplitMix64.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::SplitMix64;

/// A small, fast pseudo-random number generator, not for cryptography.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates the generator from a seed. All seeds are good, including zero.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: core::array::from_fn(|n| SplitMix64::nth(seed, n as u64)) }
    }

    /// One of many independent generators derived from the same seed.
    #[must_use]
    pub fn stream(seed: u64, stream: u64) -> Self {
        Self::new(SplitMix64::nth(seed, 0) ^ SplitMix64::nth(stream, 0).rotate_left(32))
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s0.wrapping_add(*s3).rotate_left(23).wrapping_add(*s0);
        let shifted = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= shifted;
        *s3 = s3.rotate_left(45);
        result
    }

    /// A number from 0 (inclusive) to 1 (exclusive), in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 * STEP
    }

    /// Returns true with probability `p`: never at 0 or below, always at 1 or above. Always takes
    /// one draw.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// A number below `bound`, or 0 if that is 0. Always takes one draw. The bias is below `bound`
    /// / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        crate::scale(self.next_u64(), bound)
    }

    /// A number in `range`, or its start if it is empty. Always takes one draw.
    pub fn range(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// An index into a slice of length `len`, or 0 if that is 0. Always takes one draw.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Fills `out` with random bytes, eight from each draw.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// `len` random bytes, eight from each draw.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.fill(&mut bytes);
        bytes
    }

    /// Shuffles `items` (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// An exponentially distributed number with mean `mean`, rounded down.
    ///
    /// Uses von Neumann's method, which compares uniform numbers instead of computing a logarithm:
    /// the length of the first descending run that starts at x is odd with probability e^-x.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole = 0u64;
        loop {
            let first = self.next_u64();
            let mut last = first;
            let mut odd = true;
            loop {
                let number = self.next_u64();
                if number >= last {
                    break;
                }
                last = number;
                odd = !odd;
            }
            if odd {
                return mean.saturating_mul(whole).saturating_add(crate::scale(first, mean));
            }
            whole += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xoshiro_gives_the_known_numbers() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let expected = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
            14_011_001_112_246_962_877,
            12_406_186_145_184_390_807,
            15_849_039_046_786_891_736,
            10_450_023_813_501_588_000,
        ];
        assert_eq!(expected.map(|_| rng.next_u64()), expected);
    }

    #[test]
    fn streams_of_one_seed_and_one_stream_of_many_seeds_differ() {
        let first = |seed, stream| Rng::stream(seed, stream).next_u64();
        let mut all: Vec<u64> = (0..1000).map(|n| first(7, n)).collect();
        all.extend((0..1000).map(|n| first(n + 8, 3)));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2000);
        assert_eq!(first(7, 3), first(7, 3));
    }

    #[test]
    fn uniform_numbers_have_their_mean_and_their_bounds() {
        let mut rng = Rng::new(0);
        let n = 100_000;
        let mean = (0..n).map(|_| rng.unit()).sum::<f64>() / f64::from(n);
        // The standard deviation of the mean is 0.0009.
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        assert!((0..n).all(|_| (0.0..1.0).contains(&rng.unit())));
        assert!((0..n).all(|_| rng.below(10) < 10));
        assert!((0..10).all(|digit| (0..1000).any(|_| rng.below(10) == digit)));
        assert_eq!(rng.below(0), 0);
        assert!((0..n).all(|_| !rng.chance(0.0) && rng.chance(1.0)));
    }

    #[test]
    fn ranges_and_indexes_stay_inside() {
        let mut rng = Rng::new(1);
        assert!((0..1000).all(|_| (5..8).contains(&rng.range(5..8)) && rng.index(3) < 3));
        assert!((5..8).all(|number| (0..100).any(|_| rng.range(5..8) == number)));
        assert_eq!((rng.range(9..9), rng.index(0)), (9, 0));
    }

    #[test]
    fn bytes_are_those_of_the_words() {
        let words: Vec<u8> =
            [Rng::new(4).next_u64()].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(Rng::new(4).bytes(11)[..8], words);
        assert_eq!(Rng::new(4).bytes(3), words[..3]);
    }

    #[test]
    fn every_order_comes_about_as_often() {
        let mut rng = Rng::new(2);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = [1, 2, 3];
            rng.shuffle(&mut items);
            *seen.entry(items).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|n| (850..1150).contains(n)), "{seen:?}");
    }

    #[test]
    fn exponential_numbers_have_their_mean_and_their_tail() {
        let mut rng = Rng::new(5);
        let n = 100_000;
        let draws: Vec<u64> = (0..n).map(|_| rng.exponential(1_000_000)).collect();
        let mean = draws.iter().sum::<u64>() as f64 / 1e6 / f64::from(n);
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        for limit in [0.1f64, 0.5, 1.0, 2.0, 4.0] {
            let above = draws.iter().filter(|&&x| x as f64 > limit * 1e6).count();
            let share = above as f64 / f64::from(n);
            assert!((share - (-limit).exp()).abs() < 0.008, "P(x > {limit}) = {share}");
        }
        assert_eq!(rng.exponential(0), 0);
    }
}
