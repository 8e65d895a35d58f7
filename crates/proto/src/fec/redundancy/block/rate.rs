//! The rate of parity symbols of blocks.

/// The inverse of a code rate, n/k: source and parity symbols of a block for each source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRate {
    /// Number of parity symbols for [`UNIT`](Self::UNIT) source symbols.
    parity: u32,
}

impl BlockRate {
    /// Rates are multiples of 1/10 000, so that `1.05` is exactly 21/20.
    const UNIT: u32 = 10_000;

    /// The rate `n/k`, rounded to four decimals. `None` if it is not between 1.0001 and 4.
    #[must_use]
    pub fn new(n_by_k: f64) -> Option<Self> {
        let parity = ((n_by_k - 1.0) * f64::from(Self::UNIT)).round();
        let fits = (1.0..=3.0 * f64::from(Self::UNIT)).contains(&parity);
        fits.then_some(Self { parity: parity as u32 })
    }

    /// Parity symbols of `symbols` source symbols: k (n/k - 1), rounded up; 0 for 0 symbols. Eghbal and Lu
    /// 2025, section 4.2.
    #[must_use]
    pub fn parity(self, symbols: u64) -> u32 {
        let parity = u128::from(symbols) * u128::from(self.parity);
        u32::try_from(parity.div_ceil(Self::UNIT.into())).unwrap_or(u32::MAX)
    }

    /// The same, rounded down.
    pub(super) fn whole_parity(self, symbols: u64) -> u32 {
        let parity = u128::from(symbols) * u128::from(self.parity) / u128::from(Self::UNIT);
        u32::try_from(parity).unwrap_or(u32::MAX)
    }

    /// The most source symbols, at most `most`, that `fits` allows together with their parity symbols. `fits`
    /// must allow all smaller numbers, too.
    pub(super) fn most(self, most: u32, fits: impl Fn(u32, u32) -> bool) -> u32 {
        (0..most).take_while(|k| fits(k + 1, self.parity(u64::from(k + 1)))).count() as u32
    }
}

impl std::fmt::Display for BlockRate {
    /// Writes the rate as a decimal fraction: `1.05`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n_by_k = f64::from(Self::UNIT + self.parity) / f64::from(Self::UNIT);
        f.pad(&n_by_k.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parity_is_a_share_rounded_up() {
        let parity = |rate: f64, symbols| BlockRate::new(rate).unwrap().parity(symbols);
        assert_eq!([0, 1, 20, 21, 100, 101].map(|k| parity(1.05, k)), [0, 1, 1, 2, 5, 6]);
        assert_eq!([1, 33, 34, 100, 1000].map(|k| parity(1.03, k)), [1, 1, 2, 3, 30]);
        assert_eq!([1, 10, 11, 100].map(|k| parity(1.1, k)), [1, 1, 2, 10]);
        assert_eq!((parity(4.0, 7), parity(1.0001, u64::MAX)), (21, u32::MAX));
    }

    #[test]
    fn rates_are_above_one_and_bounded() {
        for wrong in [1.0, 1.00004, 0.9, -1.0, 4.01, f64::NAN, f64::INFINITY] {
            assert_eq!(BlockRate::new(wrong), None, "{wrong}");
        }
        for rate in [1.0001, 1.03, 1.05, 1.1, 1.2, 4.0] {
            assert_eq!(BlockRate::new(rate).unwrap().to_string(), rate.to_string());
        }
    }
}
