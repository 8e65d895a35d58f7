//! The table of schemes.

use std::fmt;
use std::str::FromStr;

use crate::{Deadline, Eps, Hls, Hmm, Scheduler};

/// The schemes by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// The Extensible Prioritization Scheme of RFC 9218: [`Eps`]. The default.
    #[default]
    Eps,
    /// Weighted hierarchical max-min fair sharing by virtual time: [`Hmm`].
    Hmm,
    /// Weighted hierarchical max-min fair sharing by rounds, hierarchical link sharing: [`Hls`].
    Hls,
    /// Earliest deadline first: [`Deadline`].
    Deadline,
}

impl Scheme {
    /// Every scheme, in the order in which they are listed to people.
    pub const ALL: &[Self] = &[Self::Eps, Self::Hmm, Self::Hls, Self::Deadline];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eps => "eps",
            Self::Hmm => "hmm",
            Self::Hls => "hls",
            Self::Deadline => "deadline",
        }
    }

    /// A scheduler of this scheme without streams.
    #[must_use]
    pub fn build(self) -> Box<dyn Scheduler> {
        match self {
            Self::Eps => Box::new(Eps::new()),
            Self::Hmm => Box::new(Hmm::new()),
            Self::Hls => Box::new(Hls::new()),
            Self::Deadline => Box::new(Deadline::new()),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scheme {
    type Err = ParseSchemeError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.iter().copied().find(|scheme| scheme.name() == name);
        known.ok_or_else(|| ParseSchemeError { name: name.to_owned() })
    }
}

/// No scheme has that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSchemeError {
    name: String,
}

impl fmt::Display for ParseSchemeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown scheduling scheme `{}`, expected one of:", self.name)?;
        for (i, scheme) in Scheme::ALL.iter().enumerate() {
            write!(f, "{} {scheme}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseSchemeError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grant, Priority};

    #[test]
    fn every_scheme_is_found_by_its_name_and_works() {
        for &scheme in Scheme::ALL {
            assert_eq!(scheme.to_string().parse(), Ok(scheme));
            let mut scheduler = scheme.build();
            assert!(scheduler.is_empty());
            scheduler.insert(8, Priority::default());
            scheduler.activate(8);
            assert_eq!(scheduler.next(1200), Some(Grant { stream: 8, bytes: 1200 }));
            assert!(!scheduler.is_empty());
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        let error = "EPS ".parse::<Scheme>().unwrap_err();
        let message = error.to_string();
        let names = message.strip_prefix("unknown scheduling scheme `EPS `, expected one of: ");
        let names: Vec<&str> = names.unwrap().split(", ").collect();
        assert_eq!(names, Scheme::ALL.iter().map(|scheme| scheme.name()).collect::<Vec<_>>());
    }
}
