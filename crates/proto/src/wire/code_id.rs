//! The numbers of codes on the wire.

/// The number of a code: in REPAIR_CODED frames, and a bit of the transport parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId(u8);

impl CodeId {
    /// The sliding-window random linear code, which every decoder supports.
    pub const SLIDING_WINDOW: Self = Self(0);
    /// Reed-Solomon blocks.
    pub const REED_SOLOMON: Self = Self(1);
    /// Two-dimensional parity.
    pub const PARITY_2D: Self = Self(2);
    /// LDPC-Staircase blocks.
    pub const LDPC_STAIRCASE: Self = Self(3);

    /// The largest number: a variable-length integer has a bit for each code up to it.
    pub const MAX: Self = Self(61);

    /// The code with this number; `None` if it is above [`MAX`](Self::MAX).
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 as u64 { Some(Self(number as u8)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// A set of codes; [`CodeId::SLIDING_WINDOW`] is always one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeSet(u64);

impl Default for CodeSet {
    /// Only the sliding window.
    fn default() -> Self {
        Self::ONLY_SLIDING_WINDOW
    }
}

impl CodeSet {
    /// Only the sliding window.
    pub const ONLY_SLIDING_WINDOW: Self = Self(1);

    /// This set with one more code.
    #[must_use]
    pub const fn with(self, id: CodeId) -> Self {
        Self(self.0 | 1 << id.0)
    }

    /// The codes that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether a code is in the set.
    #[must_use]
    pub const fn contains(self, id: CodeId) -> bool {
        self.0 >> id.0 & 1 == 1
    }

    /// The codes of the set, ascending.
    pub fn iter(self) -> impl Iterator<Item = CodeId> {
        (0..=CodeId::MAX.0).map(CodeId).filter(move |id| self.contains(*id))
    }

    /// The set given by a bit for each code, starting with code 0 in the lowest bit. There are 62
    /// of them.
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits | 1)
    }

    /// A bit for each code.
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_put_in_and_the_sliding_window() {
        let set = CodeSet::default().with(CodeId::MAX);
        assert_eq!(set.iter().collect::<Vec<_>>(), [CodeId::SLIDING_WINDOW, CodeId::MAX]);
        assert_eq!(CodeId::new(61).map(CodeId::get), Some(61));
        assert_eq!(CodeSet::from_bits(set.bits() & !1), set);
        assert_eq!(set.and(CodeSet::all()), CodeSet::default());
        assert_eq!(CodeId::new(62), None);
        assert_eq!(CodeId::new(1 << 40), None);
    }
}
