//! The byte of `bucket`: a priority and a concurrency (Marx 2020, section 5.1 and figure 10).

use std::fmt;
use std::str::FromStr;

/// A place in the buckets of Meenan's proposal, in a single byte: six bits of priority and two of
/// concurrency.
///
/// ```
/// use sutura_research::marx::{Bucket, Concurrency};
///
/// let visible_image = Bucket::new(63, Concurrency::Shared).ok_or("no such bucket")?;
/// assert_eq!(visible_image.to_byte(), 0b111111_01);
/// assert_eq!("63/1".parse(), Ok(visible_image));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    priority: u8,
    concurrency: Concurrency,
}

/// How the streams of a bucket follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Concurrency {
    /// 1: the stream takes turns with others, for half of the packets that level 3 leaves.
    Shared = 1,
    /// 2: one after the other by stream identifier, for the other half.
    SharedSequential = 2,
    /// 3: one after the other by stream identifier, before the other two.
    ExclusiveSequential = 3,
}

impl Concurrency {
    /// The level with this number, 1 to 3.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Shared),
            2 => Some(Self::SharedSequential),
            3 => Some(Self::ExclusiveSequential),
            _ => None,
        }
    }
}

impl Bucket {
    /// The largest priority, which is served first.
    pub const MAX_PRIORITY: u8 = 63;

    /// A place in the bucket `priority`; `None` if that is above [`Bucket::MAX_PRIORITY`].
    #[must_use]
    pub const fn new(priority: u8, concurrency: Concurrency) -> Option<Self> {
        if priority <= Self::MAX_PRIORITY { Some(Self { priority, concurrency }) } else { None }
    }

    /// A place in a bucket of figure 10.
    pub(super) const fn at(priority: u8, concurrency: Concurrency) -> Self {
        Self { priority: priority & Self::MAX_PRIORITY, concurrency }
    }

    /// The bucket, 0 to [`Bucket::MAX_PRIORITY`].
    #[must_use]
    pub const fn priority(self) -> u8 {
        self.priority
    }

    /// The level in the bucket.
    #[must_use]
    pub const fn concurrency(self) -> Concurrency {
        self.concurrency
    }

    /// The priority in the upper six bits, the concurrency in the lower two.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        self.priority << 2 | self.concurrency as u8
    }

    /// The place that a byte says; `None` if its concurrency is 0, which the proposal does not have.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match Concurrency::from_number(byte & 3) {
            Some(concurrency) => Self::new(byte >> 2, concurrency),
            None => None,
        }
    }
}

impl fmt::Display for Bucket {
    /// Formats it as `63/1`: the priority and the concurrency.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.priority, self.concurrency as u8)
    }
}

impl FromStr for Bucket {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (priority, concurrency) = text.split_once('/').unwrap_or_default();
        let concurrency = concurrency.parse().ok().and_then(Concurrency::from_number);
        let priority = priority.parse().ok();
        priority
            .zip(concurrency)
            .and_then(|(priority, concurrency)| Self::new(priority, concurrency))
            .ok_or("expected a priority from 0 to 63 and a concurrency from 1 to 3, such as 63/1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_carries_priority_and_concurrency() {
        for byte in 0..=255 {
            let bucket = Bucket::from_byte(byte);
            assert_eq!(bucket.is_some(), byte & 3 != 0, "{byte}");
            let Some(bucket) = bucket else { continue };
            assert_eq!(bucket.to_byte(), byte);
            assert_eq!(bucket.to_string().parse(), Ok(bucket));
            assert_eq!((bucket.priority(), bucket.concurrency() as u8), (byte >> 2, byte & 3));
        }
        assert_eq!(Bucket::new(64, Concurrency::Shared), None);
        for text in ["", "63", "64/1", "63/0", "63/4", "-1/1", "63/1/1", "a/b"] {
            assert!(text.parse::<Bucket>().is_err(), "{text}");
        }
    }
}
