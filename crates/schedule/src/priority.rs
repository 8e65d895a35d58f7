//! Urgency and the incremental flag (RFC 9218, section 4).

use std::fmt;

/// How urgent a stream is (RFC 9218, section 4.1): 0 to 7, and one class above for the streams that
/// carry the protocol.
///
/// The order is the order of service: the smaller, the sooner. [`Urgency::CONTROL`] is smaller than
/// urgency 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Urgency(u8);

impl Urgency {
    /// The class of streams that every other stream depends on, such as the HTTP/3 control and
    /// QPACK streams. No signal of a peer names it.
    pub const CONTROL: Self = Self(0);
    /// Urgency 0.
    pub const HIGHEST: Self = Self(1);
    /// Urgency 3, for streams whose priority was never signalled.
    pub const DEFAULT: Self = Self(4);
    /// Urgency 7, background work.
    pub const LOWEST: Self = Self(8);

    /// How many classes there are, [`Urgency::CONTROL`] included.
    pub(crate) const CLASSES: usize = 9;

    /// Urgency `value`, or `None` above 7.
    #[must_use]
    pub const fn new(value: u8) -> Option<Self> {
        if value <= 7 { Some(Self(value + 1)) } else { None }
    }

    /// The value of RFC 9218, 0 to 7; `None` for [`Urgency::CONTROL`].
    #[must_use]
    pub const fn value(self) -> Option<u8> {
        self.0.checked_sub(1)
    }

    /// Position among the classes, the most urgent first; below [`Urgency::CLASSES`].
    pub(crate) const fn class(self) -> usize {
        self.0 as usize
    }
}

impl Default for Urgency {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Urgency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Some(value) => write!(f, "{value}"),
            None => f.write_str("control"),
        }
    }
}

impl fmt::Debug for Urgency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Urgency({self})")
    }
}

/// The priority of a stream in the Extensible Prioritization Scheme (RFC 9218, section 4).
///
/// The default is the one of the RFC: urgency 3, not incremental.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Priority {
    /// Which streams go first.
    pub urgency: Urgency,
    /// Whether a part of the stream is of use before the rest is there (RFC 9218, section 4.2).
    pub incremental: bool,
}

impl Priority {
    /// The priority of the streams that carry the protocol itself: before every urgency, one after
    /// the other.
    pub const CONTROL: Self = Self { urgency: Urgency::CONTROL, incremental: false };

    /// Shorthand for the two fields; `None` if `urgency` is above 7.
    #[must_use]
    pub const fn new(urgency: u8, incremental: bool) -> Option<Self> {
        match Urgency::new(urgency) {
            Some(urgency) => Some(Self { urgency, incremental }),
            None => None,
        }
    }
}

impl fmt::Display for Priority {
    /// In the notation of the `Priority` header field: `u=3` or `u=3, i`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u={}{}", self.urgency, if self.incremental { ", i" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgencies_are_those_of_the_rfc_with_control_above() {
        assert_eq!(Urgency::new(0), Some(Urgency::HIGHEST));
        assert_eq!(Urgency::new(3), Some(Urgency::default()));
        assert_eq!(Urgency::new(7), Some(Urgency::LOWEST));
        assert_eq!(Urgency::new(8), None);
        assert_eq!(Urgency::new(255), None);
        assert!(Urgency::CONTROL < Urgency::HIGHEST && Urgency::HIGHEST < Urgency::LOWEST);
        assert_eq!(Urgency::CONTROL.value(), None);
        for value in 0..=7 {
            assert_eq!(Urgency::new(value).and_then(Urgency::value), Some(value));
        }
        assert_eq!(Urgency::LOWEST.class() + 1, Urgency::CLASSES);
    }

    #[test]
    fn the_default_is_urgency_3_and_not_incremental() {
        assert_eq!(Some(Priority::default()), Priority::new(3, false));
        assert_eq!(Priority::default().to_string(), "u=3");
        assert_eq!(Priority::new(0, true).unwrap().to_string(), "u=0, i");
        assert_eq!(Priority::CONTROL.to_string(), "u=control");
        assert_eq!(Priority::new(8, true), None);
    }
}
