//! Changes of a path in the course of time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::text::{BytesText, DurationText, nanos, parse_bytes};
use crate::{ParseError, Probability, Rate, parse_duration};

/// A change of the path at some time, which lasts until the next one. Parses and prints as
/// `2s,rate=5mbit`, `2s,delay=80ms`, `2s,mtu=1228b`, `2s,loss=0.05`, or with several changes,
/// `2s,rate=5mbit,delay=80ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// When, since the link came up.
    pub at: Duration,
    /// The rate from then on, if it changes. Packets that wait in the queue are sent at the new rate, too.
    pub rate: Option<Rate>,
    /// The propagation delay from then on, if it changes. Packets that are on their way keep theirs.
    pub delay: Option<Duration>,
    /// The longest packet in bytes from then on, if it changes.
    pub mtu: Option<u64>,
    /// The probability from then on that a packet is lost, besides what the loss model loses, if it changes.
    pub loss: Option<Probability>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", DurationText(self.at))?;
        if let Some(rate) = self.rate {
            write!(f, ",rate={rate}")?;
        }
        if let Some(delay) = self.delay {
            write!(f, ",delay={}", DurationText(delay))?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, ",mtu={}", BytesText(mtu))?;
        }
        if let Some(loss) = self.loss {
            write!(f, ",loss={loss}")?;
        }
        Ok(())
    }
}

impl FromStr for Step {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let inside = |e: ParseError| e.inside("step", text);
        let mut parts = text.split(',');
        let at = parse_duration(parts.next().unwrap_or_default()).map_err(inside)?;
        let mut step = Self { at, ..Self::default() };
        for part in parts {
            match part.split_once('=') {
                Some(("rate", rate)) => step.rate = Some(rate.parse().map_err(inside)?),
                Some(("delay", delay)) => step.delay = Some(parse_duration(delay).map_err(inside)?),
                Some(("mtu", mtu)) => step.mtu = parse_bytes("mtu", mtu).map_err(inside)?,
                Some(("loss", loss)) => step.loss = Some(loss.parse().map_err(inside)?),
                _ => {
                    let problem = format!(
                        "expected rate=..., delay=..., mtu=... or loss=... instead of `{part}`"
                    );
                    return Err(ParseError::new("step", text, problem));
                }
            }
        }
        if step == (Self { at, ..Self::default() }) {
            return Err(ParseError::new("step", text, "changes nothing, try 2s,rate=5mbit"));
        }
        Ok(step)
    }
}

/// A value that changes at given times, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Course<T> {
    first: T,
    /// In ascending order of time. Of several changes at the same time, the last counts.
    changes: Vec<(u64, T)>,
}

impl<T: Copy> Course<T> {
    /// `first`, until the changes that `steps` make.
    pub(crate) fn new(first: T, steps: &[Step], change: impl Fn(&Step) -> Option<T>) -> Self {
        let changes = steps.iter().filter_map(|step| Some((nanos(step.at), change(step)?)));
        let mut changes: Vec<(u64, T)> = changes.collect();
        changes.sort_by_key(|(at, _)| *at);
        Self { first, changes }
    }

    /// The value at `now`.
    pub(crate) fn at(&self, now: u64) -> T {
        let past = self.changes.partition_point(|(at, _)| *at <= now);
        let last = past.checked_sub(1).and_then(|last| self.changes.get(last));
        last.map_or(self.first, |(_, value)| *value)
    }

    /// When it changes next after `now`.
    pub(crate) fn next_change(&self, now: u64) -> Option<u64> {
        let past = self.changes.partition_point(|(at, _)| *at <= now);
        self.changes.get(past).map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_written() {
        for (text, written) in [
            ("2s,rate=5mbit", "2s,rate=5mbit"),
            ("2.5s,delay=80ms,rate=1gbit", "2500ms,rate=1gbit,delay=80ms"),
            ("0,delay=0", "0ms,delay=0ms"),
            ("1s,mtu=1.228kb", "1s,mtu=1228b"),
            ("1s,loss=5%,delay=1ms", "1s,delay=1ms,loss=0.05"),
        ] {
            let step: Step = text.parse().unwrap();
            assert_eq!(step.to_string(), written);
            assert_eq!(written.parse(), Ok(step));
        }
        for (text, problem) in [
            ("2s", "changes nothing, try 2s,rate=5mbit"),
            ("2s,5mbit", "expected rate=..., delay=..., mtu=... or loss=... instead of `5mbit`"),
            ("2s,rate=0bit", "rate `0bit`: is zero"),
            ("rate=1bit", "duration `rate=1bit`: expected a number and a unit (s, ms, us, ns)"),
        ] {
            let error = text.parse::<Step>().unwrap_err().to_string();
            assert_eq!(error, format!("step `{text}`: {problem}"));
        }
    }

    #[test]
    fn a_value_holds_until_the_next_change() {
        let steps = ["3ns,delay=30ns", "1ns,delay=9ns", "2ns,rate=1bit", "1ns,delay=10ns"];
        let course = Course::new(0, &steps.map(|s| s.parse().unwrap()), |s| s.delay.map(nanos));
        assert_eq!([0, 1, 2, 3, 9].map(|now| course.at(now)), [0, 10, 10, 30, 30]);
        let next = [0, 1, 2, 3].map(|now| course.next_change(now));
        assert_eq!(next, [Some(1), Some(3), Some(3), None]);
    }
}
