//! A tiny seeded generator: enough to spread probe times, no more.

/// SplitMix64. Not for secrets; every seed is a good seed.
#[derive(Debug, Clone)]
pub(crate) struct Prng(u64);

impl Prng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 uniformly distributed bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product is unbiased up to 2^-64 * bound: no loop needed here.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_repeat_and_differ() {
        let draw = |seed| {
            let mut prng = Prng::new(seed);
            [prng.next(), prng.next(), prng.next()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn below_covers_the_range_and_stays_in_it() {
        let mut prng = Prng::new(7);
        let mut seen = [0u32; 5];
        for _ in 0..5_000 {
            seen[prng.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1_200).contains(&n)), "{seen:?}");
        assert_eq!(prng.below(0), 0);
    }
}
