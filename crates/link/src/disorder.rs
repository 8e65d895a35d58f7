//! Delays that vary from packet to packet.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::text::DurationText;
use crate::{ParseError, Probability, parse_duration};

/// Random delay of each packet in addition to the propagation delay. Parses and prints as `5ms` and
/// `5ms,reorder`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Jitter {
    /// The delay is uniformly distributed from 0 to this.
    pub max: Duration,
    /// Whether a packet with a small delay may overtake a packet with a large delay. If not, both arrive at
    /// the same time.
    pub reorders: bool,
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", DurationText(self.max), if self.reorders { ",reorder" } else { "" })
    }
}

impl FromStr for Jitter {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (max, reorders) = match text.split_once(',') {
            None => (text, false),
            Some((max, "reorder")) => (max, true),
            Some((_, other)) => {
                let problem = format!("expected `reorder` instead of `{other}`");
                return Err(ParseError::new("jitter", text, problem));
            }
        };
        let max = parse_duration(max).map_err(|e| e.inside("jitter", text))?;
        Ok(Self { max, reorders })
    }
}

/// Some packets are held back while later ones pass. Parses and prints as `0.01,10ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability of being held back, independently for each packet.
    pub probability: Probability,
    /// How long it is held back, in addition to all other delay.
    pub delay: Duration,
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.probability, DurationText(self.delay))
    }
}

impl FromStr for Reorder {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let problem = "expected a probability and a duration such as 0.01,10ms";
        let parts = text.split_once(',');
        let (probability, delay) =
            parts.ok_or_else(|| ParseError::new("reorder", text, problem))?;
        let inside = |e: ParseError| e.inside("reorder", text);
        Ok(Self {
            probability: probability.parse().map_err(inside)?,
            delay: parse_duration(delay).map_err(inside)?,
        })
    }
}
