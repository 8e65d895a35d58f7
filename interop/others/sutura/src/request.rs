//! What a client asks for, as JSON.

use std::convert::Infallible;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use sutura::Protection;

/// Bytes in front of a message: when it was made, in microseconds since 1970, and its size as a `u32`.
pub const HEADER: usize = 12;

/// A request.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Request {
    /// Bytes, over and over.
    Download {
        /// How many bytes.
        bytes: usize,
        /// How often.
        count: usize,
        /// Whether each is on a connection of its own.
        fresh: bool,
    },
    /// Messages on one stream, or each on a stream of its own.
    Messages {
        /// The time of each message in microseconds, and its bytes, [`HEADER`] at least.
        messages: Vec<(u64, usize)>,
        /// Whether all go on one stream.
        ordered: bool,
        /// Milliseconds after which a message is late, if it can be.
        deadline_ms: Option<u64>,
        /// Seconds after the last message until the rest counts as lost.
        drain_s: f64,
    },
}

/// What repairs losses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redundancy {
    /// Retransmissions only.
    None,
    /// As many repair symbols behind all data.
    Tail(u32),
    /// A policy of Sutura's.
    Policy(String),
}

impl FromStr for Redundancy {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.strip_prefix("tail:").and_then(|burst| burst.parse().ok()) {
            Some(burst) => Self::Tail(burst),
            None if text == "none" => Self::None,
            None => Self::Policy(text.to_owned()),
        })
    }
}

impl Redundancy {
    /// The protection that a stream asks for itself, incremental on a stream of messages; `None` leaves it to the
    /// connection.
    pub fn protection(&self, incremental: bool) -> Option<Protection> {
        let make = if incremental { Protection::incremental } else { Protection::tail };
        match self {
            Self::Tail(burst) => Some(make(*burst, Duration::ZERO)),
            Self::None | Self::Policy(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redundancy_is_a_name_or_a_number_of_symbols() {
        let parse = |text: &str| text.parse::<Redundancy>();
        assert_eq!(parse("none"), Ok(Redundancy::None));
        assert_eq!(parse("tail:3"), Ok(Redundancy::Tail(3)));
        assert_eq!(parse("auto"), Ok(Redundancy::Policy("auto".into())));
        let protection = Redundancy::Tail(3).protection(true);
        assert_eq!(protection, Some(Protection::incremental(3, Duration::ZERO)));
        assert_eq!(Redundancy::None.protection(false), None);
    }

    #[test]
    fn requests_are_json() {
        let request = r#"{"kind":"messages","messages":[[0,5000],[16667,5000]],"ordered":true,"deadline_ms":null,
            "drain_s":3.0}"#;
        let read: Request = serde_json::from_str(request).unwrap();
        assert!(
            matches!(read, Request::Messages { messages, ordered: true, .. } if messages.len() == 2)
        );
    }
}
