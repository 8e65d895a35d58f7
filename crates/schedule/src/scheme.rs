//! The table of schemes.

use std::fmt;
use std::str::FromStr;

use crate::marx::{
    Planned, bucket, bucket_html, dfifo, fifo, firefox, pplus, rr, spdyrr, splus, wrr, zeroweight,
};
use crate::{Deadline, Eps, H2, Hls, Hmm, Preset, Scheduler, SchedulerFactory};

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
    /// The dependency tree of HTTP/2 (RFC 7540, section 5.3): [`H2`].
    H2,
    /// Marx 2020: the same share for every stream, as old Edge had it.
    Rr,
    /// Marx 2020: shares by the kind of resource, as in Safari.
    Wrr,
    /// Marx 2020: one stream after the other.
    Fifo,
    /// Marx 2020: five levels, one stream after the other in each, as in Chrome.
    Dfifo,
    /// Marx 2020: the weighted groups of Firefox.
    Firefox,
    /// [`Scheme::Firefox`] with the weights that the paper measured by mistake: 22 for pictures, 32 for
    /// everything else.
    FirefoxMeasured,
    /// Marx 2020, p+: what is important in sequence, and beside it a trickle of the rest.
    PPlus,
    /// Marx 2020, s+: two sequences, and the groups of Firefox for the rest.
    SPlus,
    /// Marx 2020: the levels of [`Scheme::Dfifo`] with turns of one packet in each.
    SpdyRr,
    /// Marx 2020: the buckets that Meenan proposed.
    Bucket,
    /// [`Scheme::Bucket`] with documents in the highest bucket.
    BucketHtml,
    /// Marx 2020: weight 255 in sequence, then shares, then weight 0 in sequence.
    ZeroWeight,
    /// [`Scheme::ZeroWeight`] with weights for what is above the fold.
    ZeroWeightAtf,
    /// What a stack of Marx 2020, section 2 does by default, without a look at priorities.
    Stack(&'static Preset),
}

impl Scheme {
    /// All schemes except [`Preset::ALL`], in the order in which they are listed to users.
    pub const ALL: &[Self] = &[
        Self::Eps,
        Self::Hmm,
        Self::Hls,
        Self::Deadline,
        Self::H2,
        Self::Rr,
        Self::Wrr,
        Self::Fifo,
        Self::Dfifo,
        Self::Firefox,
        Self::FirefoxMeasured,
        Self::PPlus,
        Self::SPlus,
        Self::SpdyRr,
        Self::Bucket,
        Self::BucketHtml,
        Self::ZeroWeight,
        Self::ZeroWeightAtf,
    ];

    /// All schemes, with [`Preset::ALL`] last.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().chain(Preset::ALL.iter().map(Self::Stack))
    }

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eps => "eps",
            Self::Hmm => "hmm",
            Self::Hls => "hls",
            Self::Deadline => "deadline",
            Self::H2 => "h2",
            Self::Rr => "rr",
            Self::Wrr => "wrr",
            Self::Fifo => "fifo",
            Self::Dfifo => "dfifo",
            Self::Firefox => "firefox",
            Self::FirefoxMeasured => "firefox-measured",
            Self::PPlus => "pplus",
            Self::SPlus => "splus",
            Self::SpdyRr => "spdyrr",
            Self::Bucket => "bucket",
            Self::BucketHtml => "bucket-html",
            Self::ZeroWeight => "zeroweight",
            Self::ZeroWeightAtf => "zeroweight-atf",
            Self::Stack(preset) => preset.name,
        }
    }

    /// A one-line description for users who choose a scheme.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Eps => "by urgency, then in sequence or in turns (RFC 9218)",
            Self::Hmm => "shares by weight and class, packet by packet",
            Self::Hls => "shares by weight and class, in rounds",
            Self::Deadline => "the earliest deadline first, streams without one last",
            Self::H2 => "the dependency tree of HTTP/2 (RFC 7540)",
            Self::Rr => "the same share for every stream, as in old Edge",
            Self::Wrr => "shares by the kind of resource, as in Safari",
            Self::Fifo => "one stream after the other, the oldest first",
            Self::Dfifo => "five levels by kind, in sequence, as in Chrome",
            Self::Firefox => "weighted groups by kind, as in Firefox",
            Self::FirefoxMeasured => "firefox with the weights of a published measurement",
            Self::PPlus => "what is important in sequence, beside a trickle of the rest",
            Self::SPlus => "two sequences, then the groups of firefox",
            Self::SpdyRr => "the levels of dfifo, in turns of one packet",
            Self::Bucket => "the buckets by kind that Meenan proposed",
            Self::BucketHtml => "bucket with documents in the highest one",
            Self::ZeroWeight => "weight 255 in sequence, then shares, then weight 0",
            Self::ZeroWeightAtf => "zeroweight, with what is above the fold first",
            Self::Stack(preset) => preset.summary,
        }
    }

    /// Creates a scheduler of this scheme, without streams.
    #[must_use]
    pub fn build(self) -> Box<dyn Scheduler> {
        match self {
            Self::Eps => Box::new(Eps::new()),
            Self::Hmm => Box::new(Hmm::new()),
            Self::Hls => Box::new(Hls::new()),
            Self::Deadline => Box::new(Deadline::new()),
            Self::H2 => Box::new(H2::new()),
            Self::Rr => Box::new(Planned::new(&rr::PLAN)),
            Self::Wrr => Box::new(Planned::new(&wrr::PLAN)),
            Self::Fifo => Box::new(Planned::new(&fifo::PLAN)),
            Self::Dfifo => Box::new(Planned::new(&dfifo::PLAN)),
            Self::Firefox => Box::new(Planned::new(&firefox::PLAN)),
            Self::FirefoxMeasured => Box::new(Planned::new(&firefox::MEASURED)),
            Self::PPlus => Box::new(Planned::new(&pplus::PLAN)),
            Self::SPlus => Box::new(Planned::new(&splus::PLAN)),
            Self::SpdyRr => Box::new(Planned::new(&spdyrr::PLAN)),
            Self::Bucket => Box::new(Planned::new(&bucket::PLAN)),
            Self::BucketHtml => Box::new(Planned::new(&bucket_html::PLAN)),
            Self::ZeroWeight => Box::new(Planned::new(&zeroweight::PLAN)),
            Self::ZeroWeightAtf => Box::new(Planned::new(&zeroweight::ABOVE_THE_FOLD)),
            Self::Stack(preset) => preset.build(),
        }
    }
}

impl SchedulerFactory for Scheme {
    fn name(&self) -> &str {
        (*self).name()
    }

    fn build(&self) -> Box<dyn Scheduler> {
        (*self).build()
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
        let known = Self::all().find(|scheme| scheme.name() == name);
        known.ok_or_else(|| ParseSchemeError { name: name.to_owned() })
    }
}

/// The error for an unknown scheme name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSchemeError {
    name: String,
}

impl fmt::Display for ParseSchemeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown scheduling scheme `{}`, expected one of:", self.name)?;
        for (i, scheme) in Scheme::all().enumerate() {
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
        for scheme in Scheme::all() {
            assert_eq!(scheme.to_string().parse(), Ok(scheme));
            let mut scheduler = scheme.build();
            assert!(scheduler.is_empty());
            scheduler.insert(8, Priority::default());
            scheduler.activate(8);
            assert_eq!(scheduler.next(1200), Some(Grant { stream: 8, bytes: 1200 }));
            assert!(!scheduler.is_empty());
            // With every scheme, the protocol's own streams go first.
            scheduler.insert(99, Priority::CONTROL);
            scheduler.activate(99);
            assert_eq!(scheduler.next(1200), Some(Grant { stream: 99, bytes: 1200 }));
            scheduler.reprioritize(99, Priority::default());
            scheduler.reprioritize(8, Priority::CONTROL);
            assert_eq!(scheduler.next(1200), Some(Grant { stream: 8, bytes: 1200 }));
        }
    }

    #[test]
    fn every_scheme_is_a_factory_with_a_line_of_its_own() {
        let mut lines = Vec::new();
        for scheme in Scheme::all() {
            let factory: &dyn SchedulerFactory = &scheme;
            assert_eq!(factory.name(), scheme.to_string());
            assert_eq!(format!("{:?}", factory.build()), format!("{:?}", scheme.build()));
            let summary = scheme.summary();
            assert!((1..=60).contains(&summary.chars().count()), "{summary:?}");
            assert!(!summary.contains('\n') && !summary.ends_with('.'), "{summary:?}");
            assert!(!lines.contains(&summary), "{summary:?} is said twice");
            lines.push(summary);
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        let error = "EPS ".parse::<Scheme>().unwrap_err();
        let names: Vec<_> = Scheme::all().map(|scheme| scheme.name()).collect();
        let known = names.join(", ");
        let text = format!("unknown scheduling scheme `EPS `, expected one of: {known}");
        assert_eq!(error.to_string(), text);
    }
}
