//! The pseudorandom numbers of RFC 5170, section 5.7.

/// 2^31 - 1, the modulus of the generator. It is prime.
const MODULUS: u32 = 0x7FFF_FFFF;

/// 7^5, a generator of the multiplicative group.
const MULTIPLIER: u64 = 16807;

/// The "minimal standard" generator of Park and Miller, scaled as in RFC 5170, section 5.7.
#[derive(Debug, Clone)]
pub struct ParkMiller {
    state: u32,
}

impl ParkMiller {
    /// The generator for a seed from 1 to 2^31 - 2; `None` for any other.
    #[must_use]
    pub const fn new(seed: u32) -> Option<Self> {
        if seed == 0 || seed >= MODULUS { None } else { Some(Self { state: seed }) }
    }

    /// A pseudorandom number below `end`. Meaningless if `end` is 0.
    ///
    /// The RFC computes the quotient in floating point, from a product that is exact below 2^53,
    /// and truncates it. For an `end` below 2^21 the quotient is never rounded up to an integer, so
    /// integer arithmetic gives the same number.
    pub fn below(&mut self, end: u32) -> u32 {
        self.state = (u64::from(self.state) * MULTIPLIER % u64::from(MODULUS)) as u32;
        (u64::from(self.state) * u64::from(end) / u64::from(MODULUS)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_thousandth_number_is_the_published_one() {
        // Park and Miller (1988): a correct generator seeded with 1 is in this state.
        let mut prng = ParkMiller::new(1).unwrap();
        for _ in 0..10_000 {
            prng.below(1);
        }
        assert_eq!(prng.state, 1_043_618_065);
    }

    #[test]
    fn scaling_is_that_of_floating_point() {
        let mut prng = ParkMiller::new(1).unwrap();
        for end in (1..1 << 21).step_by(7) {
            let scaled = prng.below(end);
            let float = f64::from(prng.state) * f64::from(end) / f64::from(MODULUS);
            assert_eq!(scaled, float as u32);
            assert!(scaled < end);
        }
        // The states for which the quotient comes closest to an integer from below.
        for state in [MODULUS - 1, MODULUS - 2] {
            for end in [2_u32, 3, 1 << 20, (1 << 21) - 1] {
                let float = f64::from(state) * f64::from(end) / f64::from(MODULUS);
                let exact = u64::from(state) * u64::from(end) / u64::from(MODULUS);
                assert_eq!(exact, float as u64);
            }
        }
    }

    #[test]
    fn seeds_that_would_not_move_are_refused() {
        assert!(ParkMiller::new(0).is_none());
        assert!(ParkMiller::new(MODULUS).is_none());
        assert!(ParkMiller::new(MODULUS - 1).is_some());
    }
}
