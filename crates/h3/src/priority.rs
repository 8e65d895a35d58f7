//! Priorities (RFC 9218) and the experimental parameters that ask for erasure coding.
//!
//! `exp_b` is the burst loss tolerance (repair symbols on each occasion) and `exp_d` the repair
//! delay tolerance in milliseconds. As RFC 9218 section 4 wants it of every parameter, one that is
//! unknown, of the wrong type or out of range counts as absent and spoils nothing else.

use std::time::Duration;

use sfv::{BareItem, DictSerializer, Dictionary, Integer, KeyRef, ListEntry, Parser, key_ref};

use crate::fields::Fields;
use crate::transport::{Protection, StreamPriority};

/// Largest `exp_b`, in repair symbols. Larger values count as absent.
pub const MAX_BURST: u32 = 255;

/// Largest `exp_d`. Larger values count as absent.
pub const MAX_DELAY: Duration = Duration::from_secs(60);

/// Bytes of a priority field value that are looked at. A longer one counts as unparseable.
pub const MAX_PRIORITY_SIZE: usize = 4096;

const DEFAULT_URGENCY: u8 = 3;
const MAX_URGENCY: u8 = 7;

const URGENCY: &KeyRef = key_ref("u");
const INCREMENTAL: &KeyRef = key_ref("i");
const BURST: &KeyRef = key_ref("exp_b");
const DELAY: &KeyRef = key_ref("exp_d");

/// The priority of a response, every parameter decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Priority {
    /// 0 (first) to 7; 3 by default (RFC 9218 section 4.1).
    pub urgency: u8,
    /// Whether parts are of use before the whole (RFC 9218 section 4.2).
    pub incremental: bool,
    /// Burst loss tolerance: repair symbols on each occasion, at most [`MAX_BURST`]; 0 asks for
    /// no erasure coding.
    pub burst: u32,
    /// Repair delay tolerance, in whole milliseconds, at most [`MAX_DELAY`].
    pub delay: Duration,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: DEFAULT_URGENCY, incremental: false, burst: 0, delay: Duration::ZERO }
    }
}

impl Priority {
    /// The value of a `priority` field or PRIORITY_UPDATE frame that says this. Parameters that
    /// have their default are left out, unless nothing would be left.
    #[must_use]
    pub fn to_field_value(&self) -> String {
        let mut dictionary = DictSerializer::new();
        if self.urgency != DEFAULT_URGENCY {
            let _ = dictionary.bare_item(URGENCY, Integer::from(self.urgency.min(MAX_URGENCY)));
        }
        if self.incremental {
            let _ = dictionary.bare_item(INCREMENTAL, true);
        }
        if self.burst > 0 {
            let _ = dictionary.bare_item(BURST, Integer::from(self.burst.min(MAX_BURST)));
        }
        if !self.delay.is_zero() {
            // At most 60 000 by the line above it.
            let millis = self.delay.min(MAX_DELAY).as_millis() as u32;
            let _ = dictionary.bare_item(DELAY, Integer::from(millis));
        }
        dictionary.finish().unwrap_or_else(|| format!("u={DEFAULT_URGENCY}"))
    }

    /// Where the stream that carries the response stands.
    pub(crate) fn stream_priority(&self) -> StreamPriority {
        StreamPriority::Request {
            urgency: self.urgency.min(MAX_URGENCY),
            incremental: self.incremental,
        }
    }

    /// The erasure coding that it asks for.
    pub(crate) fn protection(&self) -> Option<Protection> {
        (self.burst > 0).then_some(Protection {
            burst: self.burst,
            delay: self.delay,
            incremental: self.incremental,
        })
    }
}

/// What one side said about a priority: `None` where it has no opinion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PriorityParameters {
    /// `u`, 0 to 7.
    pub urgency: Option<u8>,
    /// `i`.
    pub incremental: Option<bool>,
    /// `exp_b`, 0 to [`MAX_BURST`].
    pub burst: Option<u32>,
    /// `exp_d`, up to [`MAX_DELAY`].
    pub delay: Option<Duration>,
}

impl PriorityParameters {
    /// Parses a priority field value. `None` if it is no dictionary of RFC 8941; members that are
    /// unknown or of no use are skipped.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        if value.len() > MAX_PRIORITY_SIZE {
            return None;
        }
        let dictionary: Dictionary = Parser::new(value).parse().ok()?;
        let item = |key: &KeyRef| match dictionary.get(key)? {
            ListEntry::Item(item) => Some(&item.bare_item),
            ListEntry::InnerList(_) => None,
        };
        let integer = |key| {
            let value = item(key).and_then(BareItem::as_integer)?;
            u32::try_from(i64::from(value)).ok()
        };
        let urgency = integer(URGENCY).and_then(|u| u8::try_from(u).ok());
        let delay = integer(DELAY).map(|millis| Duration::from_millis(millis.into()));
        Some(Self {
            urgency: urgency.filter(|&u| u <= MAX_URGENCY),
            incremental: item(INCREMENTAL).and_then(BareItem::as_boolean),
            burst: integer(BURST).filter(|&burst| burst <= MAX_BURST),
            delay: delay.filter(|&delay| delay <= MAX_DELAY),
        })
    }

    /// What the `priority` field lines of a header section say together; no opinion if there is
    /// none or it cannot be parsed.
    #[must_use]
    pub fn from_fields(fields: &Fields) -> Self {
        let mut lines = fields.get_all("priority");
        let Some(first) = lines.next() else {
            return Self::default();
        };
        let Some(second) = lines.next() else {
            return Self::parse(first).unwrap_or_default();
        };
        let mut combined = first.to_vec();
        for line in std::iter::once(second).chain(lines) {
            combined.extend_from_slice(b", ");
            combined.extend_from_slice(line);
        }
        Self::parse(&combined).unwrap_or_default()
    }

    /// The client's view overridden by what the server's own `priority` field has an opinion on
    /// (RFC 9218 section 8).
    #[must_use]
    pub fn overridden_by(self, server: Self) -> Self {
        Self {
            urgency: server.urgency.or(self.urgency),
            incremental: server.incremental.or(self.incremental),
            burst: server.burst.or(self.burst),
            delay: server.delay.or(self.delay),
        }
    }

    /// The priority with the default for everything that was not said.
    #[must_use]
    pub fn resolve(self) -> Priority {
        let default = Priority::default();
        Priority {
            urgency: self.urgency.unwrap_or(default.urgency),
            incremental: self.incremental.unwrap_or(default.incremental),
            burst: self.burst.unwrap_or(default.burst),
            delay: self.delay.unwrap_or(default.delay),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(value: &str) -> Priority {
        PriorityParameters::parse(value.as_bytes()).unwrap().resolve()
    }

    #[test]
    fn each_parameter_falls_back_alone() {
        let default = Priority::default();
        for (value, expected) in [
            ("", default),
            ("u=0", Priority { urgency: 0, ..default }),
            ("i", Priority { incremental: true, ..default }),
            ("u=5, i=?0", Priority { urgency: 5, ..default }),
            ("u=8, i", Priority { incremental: true, ..default }),
            ("u=-1, i", Priority { incremental: true, ..default }),
            ("u=1.0, i", Priority { incremental: true, ..default }),
            ("u=\"1\";a=b, i", Priority { incremental: true, ..default }),
            ("i=1, u=2", Priority { urgency: 2, ..default }),
            ("u=(1 2), i", Priority { incremental: true, ..default }),
            ("u=999999999999999, exp_b=2", Priority { burst: 2, ..default }),
            ("u=1, u=2", Priority { urgency: 2, ..default }),
            ("exp_b=-3, u=1", Priority { urgency: 1, ..default }),
            ("exp_b=3.5, u=1", Priority { urgency: 1, ..default }),
            ("exp_b=256, u=1", Priority { urgency: 1, ..default }),
            ("exp_d=60001, u=1", Priority { urgency: 1, ..default }),
        ] {
            assert_eq!(parsed(value), expected, "{value}");
        }
    }

    #[test]
    fn the_value_of_the_papers_example() {
        let value = r#"u=3, i, exp_b=3, exp_d=80, exp_p=("ivp";u=3;i;exp_w=0.4 "img";u=1)"#;
        let expected =
            Priority { urgency: 3, incremental: true, burst: 3, delay: Duration::from_millis(80) };
        assert_eq!(parsed(value), expected);
    }

    #[test]
    fn what_is_no_dictionary_is_none() {
        for value in [&b"u="[..], b"U=1", b"u=1,", b"\xff", b"u=1 i", b"u=1000000000000000"] {
            assert_eq!(PriorityParameters::parse(value), None, "{value:?}");
        }
        assert_eq!(PriorityParameters::parse(&vec![b' '; MAX_PRIORITY_SIZE + 1]), None);
        assert!(PriorityParameters::parse(&vec![b' '; MAX_PRIORITY_SIZE]).is_some());
    }

    #[test]
    fn lines_combine() {
        let fields = Fields::new().with("priority", "u=1").with("priority", "i, exp_b=1");
        let expected = Priority { urgency: 1, incremental: true, burst: 1, ..Priority::default() };
        assert_eq!(PriorityParameters::from_fields(&fields).resolve(), expected);
    }

    /// The example of RFC 9218 section 8: the server sets the urgency and leaves `i` alone.
    #[test]
    fn the_server_overrides_what_it_names() {
        let client = PriorityParameters::parse(b"u=5, i").unwrap();
        let server = PriorityParameters::parse(b"u=1, i=1").unwrap();
        let expected = Priority { urgency: 1, incremental: true, ..Priority::default() };
        assert_eq!(client.overridden_by(server).resolve(), expected);
    }

    #[test]
    fn default_has_a_value() {
        assert_eq!(Priority::default().to_field_value(), "u=3");
    }

    proptest! {
        #[test]
        fn round_trip(urgency in 0u8..8, incremental: bool, burst in 0..=MAX_BURST, ms in 0u64..=60_000) {
            let delay = Duration::from_millis(ms);
            let priority = Priority { urgency, incremental, burst, delay };
            prop_assert_eq!(parsed(&priority.to_field_value()), priority);
        }

        #[test]
        fn any_bytes_resolve_within_bounds(value: Vec<u8>) {
            if let Some(parameters) = PriorityParameters::parse(&value) {
                let priority = parameters.resolve();
                prop_assert!(priority.urgency <= 7 && priority.burst <= MAX_BURST);
            }
        }
    }
}
