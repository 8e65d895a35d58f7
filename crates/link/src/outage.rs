//! Times during which every packet is lost.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::text::{DurationText, nanos};
use crate::{ParseError, parse_duration};

/// A time during which every packet is lost. Parses and prints as `2s..2500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outage {
    /// The first instant at which packets are lost.
    pub from: Duration,
    /// The first instant at which packets are no longer lost.
    pub to: Duration,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", DurationText(self.from), DurationText(self.to))
    }
}

impl FromStr for Outage {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = |problem| ParseError::new("outage", text, problem);
        let (from, to) =
            text.split_once("..").ok_or_else(|| error("expected two times such as 2s..2500ms"))?;
        let time = |text| parse_duration(text).map_err(|e: ParseError| e.inside("outage", text));
        let outage = Self { from: time(from)?, to: time(to)? };
        if outage.from < outage.to { Ok(outage) } else { Err(error("ends before it begins")) }
    }
}

/// The outages of a link, each of which is removed once it has passed.
#[derive(Clone, Debug)]
pub(crate) struct Outages {
    /// Start and end in nanoseconds, in descending order of the ends: the outage that ends first is
    /// last.
    ahead: Vec<(u64, u64)>,
}

impl Outages {
    pub(crate) fn new(outages: &[Outage]) -> Self {
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(outages.len());
        let mut sorted = outages.to_vec();
        sorted.sort_unstable();
        for Outage { from, to } in sorted {
            let (from, to) = (nanos(from), nanos(to));
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        merged.reverse();
        Self { ahead: merged }
    }

    /// Whether `now` is within an outage. `now` must never decrease.
    pub(crate) fn covers(&mut self, now: u64) -> bool {
        while self.ahead.pop_if(|outage| outage.1 <= now).is_some() {}
        self.ahead.last().is_some_and(|outage| outage.0 <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_has_its_beginning_and_not_its_end() {
        let outages = ["5s..6s", "1s..2s", "1500ms..3s", "3s..4s", "5100ms..5200ms"];
        let outages = outages.map(|text| text.parse().unwrap());
        let mut passed = Outages::new(&outages);
        for now in (0..7_000_000_000u64).step_by(50_000_000) {
            let at = Duration::from_nanos(now);
            let expected = outages.iter().any(|o: &Outage| o.from <= at && at < o.to);
            assert_eq!(passed.covers(now), expected, "{at:?}");
        }
    }

    #[test]
    fn outages_are_read_and_written() {
        let outage: Outage = "2s..2.5s".parse().unwrap();
        assert_eq!(outage.to_string(), "2s..2500ms");
        for (text, problem) in [
            ("2s", "outage `2s`: expected two times such as 2s..2500ms"),
            ("2s..1s", "outage `2s..1s`: ends before it begins"),
            ("2s..2s", "outage `2s..2s`: ends before it begins"),
            ("2..3s", "outage `2`: duration `2`: expected a number and a unit (s, ms, us, ns)"),
        ] {
            assert_eq!(text.parse::<Outage>().unwrap_err().to_string(), problem);
        }
    }
}
