//! A number that may be missing, in no more memory than a number takes.

use std::num::NonZero;

/// A number below `u64::MAX`, or none. Half as large as an `Option<u64>`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OptionalNumber(
    /// The complement of the number.
    Option<NonZero<u64>>,
);

impl OptionalNumber {
    /// This number; none for `u64::MAX`.
    pub(super) const fn some(number: u64) -> Self {
        Self(NonZero::new(!number))
    }

    /// The number, if there is one.
    pub(super) fn get(self) -> Option<u64> {
        self.0.map(|complement| !complement.get())
    }

    /// Takes the number out.
    pub(super) fn take(&mut self) -> Option<u64> {
        std::mem::take(self).get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_but_the_largest_is_kept() {
        for number in [0, 1, 1 << 62, u64::MAX - 1] {
            let mut kept = OptionalNumber::some(number);
            assert_eq!((kept.get(), kept.take(), kept.get()), (Some(number), Some(number), None));
        }
        assert_eq!(OptionalNumber::some(u64::MAX), OptionalNumber::default());
        assert_eq!(size_of::<OptionalNumber>(), size_of::<u64>());
    }
}
