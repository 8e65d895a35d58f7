//! The priority of a stream: urgency and the incremental flag (RFC 9218, section 4), weights and
//! classes, and the inputs of other schemes.

use std::any::Any;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use crate::Extension;

/// The urgency of a stream (RFC 9218, section 4.1): 0 to 7, and a more urgent class for the streams
/// that carry the protocol itself.
///
/// Urgencies are ordered by service: the smaller goes first. [`Urgency::CONTROL`] is smaller than
/// urgency 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Urgency(u8);

impl Urgency {
    /// The urgency of streams that every other stream depends on, such as the HTTP/3 control and
    /// QPACK streams. A peer cannot signal it.
    pub const CONTROL: Self = Self(0);
    /// Urgency 0.
    pub const HIGHEST: Self = Self(1);
    /// Urgency 3, for streams whose priority was never signalled.
    pub const DEFAULT: Self = Self(4);
    /// Urgency 7, for background work.
    pub const LOWEST: Self = Self(8);

    /// The number of urgencies, including [`Urgency::CONTROL`].
    pub(crate) const CLASSES: usize = 9;

    /// Urgency `value`; `None` if `value` is above 7.
    #[must_use]
    pub const fn new(value: u8) -> Option<Self> {
        if value <= 7 { Some(Self(value + 1)) } else { None }
    }

    /// The value of RFC 9218, 0 to 7; `None` for [`Urgency::CONTROL`].
    #[must_use]
    pub const fn value(self) -> Option<u8> {
        self.0.checked_sub(1)
    }

    /// The index of this urgency, the most urgent first; below [`Urgency::CLASSES`].
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

/// The share of a stream or class relative to its siblings, in thousandths from 1 to
/// [`Weight::MAX`]. The default is 1.0, that is, 1000 thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u32);

impl Weight {
    /// The smallest weight, one thousandth.
    pub const MIN: Self = Self(1);
    /// The largest weight, one thousand.
    pub const MAX: Self = Self(1_000_000);

    /// A weight in thousandths; `None` if it is 0 or more than [`Weight::MAX`].
    #[must_use]
    pub const fn new(thousandths: u32) -> Option<Self> {
        if thousandths >= Self::MIN.0 && thousandths <= Self::MAX.0 {
            Some(Self(thousandths))
        } else {
            None
        }
    }

    /// The weight in thousandths, at least 1.
    #[must_use]
    pub const fn thousandths(self) -> u32 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self(1000)
    }
}

impl fmt::Display for Weight {
    /// Formats the weight as a decimal with up to three decimal places: `1.0`, `0.4`, `0.125`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1000, self.0 % 1000);
        let digits = format!("{rest:03}");
        let digits = digits.trim_end_matches('0');
        write!(f, "{whole}.{}", if digits.is_empty() { "0" } else { digits })
    }
}

impl fmt::Debug for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Weight({self})")
    }
}

/// A class of streams: an inner node of the tree of [`Priority::parents`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Class {
    /// Streams that name the same class under the same parent share it. A class without a name
    /// belongs to a single stream.
    pub name: Option<Arc<str>>,
    /// Decides which of its siblings go first.
    pub urgency: Urgency,
    /// Whether it shares with siblings of the same urgency.
    pub incremental: bool,
    /// Its share relative to its siblings.
    pub weight: Weight,
}

impl Class {
    crate::setters! {
        with_name: name = Option<Arc<str>>,
        with_urgency: urgency = Urgency,
        with_incremental: incremental = bool,
        with_weight: weight = Weight,
    }
}

/// The maximum number of classes above a stream. Further classes are ignored.
pub const MAX_DEPTH: usize = 8;

/// A strict rank made of the urgencies of a stream and of the classes above it. The smaller goes
/// first; the order among equal ranks is not specified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank([u8; MAX_DEPTH + 1]);

impl Rank {
    /// The rank after all others.
    pub const LAST: Self = Self([u8::MAX; MAX_DEPTH + 1]);
}

/// All parameters that determine how a stream ranks. Each scheme uses the parameters that it supports.
///
/// The default is the same as in RFC 9218: urgency 3, not incremental.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Priority {
    /// Which streams go first.
    pub urgency: Urgency,
    /// Whether a part of the stream is useful before the rest arrives (RFC 9218, section 4.2).
    pub incremental: bool,
    /// The share of the stream among its siblings, for schemes with weights.
    pub weight: Weight,
    /// The classes above the stream, its direct parent first, at most [`MAX_DEPTH`]; for schemes
    /// with classes. `None` if the stream is directly below the root.
    pub parents: Option<Arc<[Class]>>,
    /// When the stream has to be delivered, in any unit and from any origin, for schemes with
    /// deadlines: the smaller goes first. `None` is later than all.
    pub deadline: Option<u64>,
    /// Parameters for a scheme of another crate.
    pub extension: Option<Extension>,
}

impl Priority {
    crate::setters! {
        with_urgency: urgency = Urgency,
        with_incremental: incremental = bool,
        with_weight: weight = Weight,
        with_parents: parents = Option<Arc<[Class]>>,
        with_deadline: deadline = Option<u64>,
    }

    /// The priority of the streams that carry the protocol itself. They go before every urgency,
    /// one after the other.
    pub const CONTROL: Self = Self::of(Urgency::CONTROL, false);

    /// Creates a priority from urgency and incremental flag; `None` if `urgency` is above 7.
    #[must_use]
    pub const fn new(urgency: u8, incremental: bool) -> Option<Self> {
        match Urgency::new(urgency) {
            Some(urgency) => Some(Self::of(urgency, incremental)),
            None => None,
        }
    }

    /// The rank of the stream. It is the stream's urgency or, with `by_classes`, the urgencies of the classes
    /// above the stream, the outermost first, followed by its own. Streams that carry the protocol rank
    /// before all others.
    #[must_use]
    pub fn rank(&self, by_classes: bool) -> Rank {
        let mut rank = [0; MAX_DEPTH + 1];
        if self.urgency == Urgency::CONTROL {
            return Rank(rank);
        }
        let classes = self.parents.as_deref().filter(|_| by_classes).unwrap_or_default();
        let classes = classes.iter().take(MAX_DEPTH).rev().map(|class| class.urgency);
        for (level, urgency) in rank.iter_mut().zip(classes.chain([self.urgency])) {
            *level = urgency.0;
        }
        Rank(rank)
    }

    /// The same priority with an extension, in place of any that it had.
    #[must_use]
    pub fn with_extension<T>(self, value: T) -> Self
    where
        T: Any + fmt::Debug + Eq + Hash + Send + Sync,
    {
        Self { extension: Some(Extension::new(value)), ..self }
    }

    /// The extension, if it is a `T`.
    #[must_use]
    pub fn extension<T: Any>(&self) -> Option<&T> {
        self.extension.as_ref()?.get()
    }

    const fn of(urgency: Urgency, incremental: bool) -> Self {
        Self {
            urgency,
            incremental,
            weight: Weight(1000),
            parents: None,
            deadline: None,
            extension: None,
        }
    }
}

impl fmt::Display for Priority {
    /// Formats the priority in the notation of the `Priority` header field: `u=3` or `u=3, i`.
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

    #[test]
    fn the_outermost_class_ranks_first() {
        let urgency = |value| Urgency::new(value).unwrap();
        let class = |value| Class { urgency: urgency(value), ..Class::default() };
        let stream = |own, parents: &[Class]| Priority {
            urgency: urgency(own),
            parents: (!parents.is_empty()).then(|| parents.into()),
            ..Priority::default()
        };
        let [hidden, plain] = [stream(0, &[class(7)]), stream(3, &[])];
        assert!(plain.rank(true) < hidden.rank(true) && hidden.rank(false) < plain.rank(false));
        // Within a class, the streams' own urgency decides. The direct parent comes first in the
        // list.
        let inner = |own| stream(own, &[class(5), class(2)]);
        assert!(inner(0).rank(true) < inner(7).rank(true));
        assert!(inner(7).rank(true) < plain.rank(true));
        assert!(stream(0, &[class(2), class(5)]).rank(true) > plain.rank(true));
        assert!(Priority::CONTROL.rank(true) < stream(0, &[]).rank(true));
        assert!(stream(7, &[class(7)]).rank(true) < Rank::LAST);
    }

    #[test]
    fn weights_are_thousandths_above_zero() {
        assert_eq!(Weight::new(0), None);
        assert_eq!(Weight::new(1_000_001), None);
        assert_eq!(Weight::default().to_string(), "1.0");
        assert_eq!(Weight::new(400).unwrap().to_string(), "0.4");
        assert_eq!(Weight::new(1125).unwrap().to_string(), "1.125");
        assert_eq!(Weight::MIN.to_string(), "0.001");
        assert_eq!(Weight::MAX.to_string(), "1000.0");
    }
}
