//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).

/// The increment of the state: 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A counter followed by a mixing function: a generator with one word of state. All seeds are good,
/// including zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates the generator from a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Number `n`, counted from 0, of the generator with this seed.
    #[must_use]
    pub const fn nth(seed: u64, n: u64) -> u64 {
        mix(seed.wrapping_add(n.wrapping_add(1).wrapping_mul(GAMMA)))
    }

    /// 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A number below `bound`, or 0 if that is 0. Always takes one draw. The bias is below `bound`
    /// / 2^64.
    pub const fn below(&mut self, bound: u64) -> u64 {
        crate::scale(self.next_u64(), bound)
    }
}

const fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_known_numbers() {
        let expected =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        let mut rng = SplitMix64::new(1_234_567);
        assert_eq!(expected.map(|_| rng.next_u64()), expected);
        assert_eq!([0, 1, 2].map(|n| SplitMix64::nth(1_234_567, n)), expected);
    }

    #[test]
    fn below_covers_the_range_and_stays_in_it() {
        let mut rng = SplitMix64::new(7);
        let mut seen = [0u32; 5];
        for _ in 0..5_000 {
            seen[rng.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (800..1_200).contains(n)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
    }
}
