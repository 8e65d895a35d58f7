//! The algorithms that come with this crate, by their names.

use super::{Bbr, CongestionController, CongestionFactory, Cubic, NewReno, PathParameters};
use std::fmt;
use std::str::FromStr;

/// A congestion control algorithm of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Algorithm {
    /// NewReno as in RFC 9002.
    NewReno,
    /// CUBIC (RFC 9438) with HyStart++ (RFC 9406).
    #[default]
    Cubic,
    /// BBR version 3 (draft-ietf-ccwg-bbr).
    Bbr,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NewReno, Self::Cubic, Self::Bbr];

    /// Its name, as [`FromStr`] takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// What it does, in a line.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::NewReno => "one datagram more per round trip, half the window after a loss",
            Self::Cubic => "growth by the time since the last loss, 70 % of the window after one",
            Self::Bbr => "as fast as the path was measured to deliver, little queue, some loss",
        }
    }
}

impl CongestionFactory for Algorithm {
    fn name(&self) -> &str {
        (*self).name()
    }

    fn build(&self, path: &PathParameters) -> Box<dyn CongestionController> {
        let limits = path.limits();
        match self {
            Self::NewReno => Box::new(NewReno::new(limits)),
            Self::Cubic => Box::new(Cubic::new(limits)),
            Self::Bbr => Box::new(Bbr::new(limits, path.seed)),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad((*self).name())
    }
}

/// A name that is none of an algorithm's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown congestion control algorithm `{0}` (expected newreno, cubic or bbr)")]
pub struct UnknownAlgorithm(String);

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|algorithm| (*algorithm).name() == name);
        known.ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}
