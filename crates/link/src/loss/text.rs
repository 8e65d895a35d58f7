//! Parsing and formatting of loss models.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Background, Loss};
use crate::text::{nanos, parse_decimal};
use crate::{ParseError, Probability};

const FORMS: &str = "expected none, a share such as 2% or 0.02, bern:P, ge:P,R,BAD,GOOD, gt:MS,MS,BAD,GOOD or trace:0101";

/// A millisecond in nanoseconds.
const MILLISECOND: u64 = 1_000_000;

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Bernoulli(p) => write!(f, "bern:{p}"),
            Self::GilbertElliott { p, r, loss_bad, loss_good } => {
                write!(f, "ge:{p},{r},{loss_bad},{loss_good}")
            }
            Self::GilbertElliottTime { mean_good, mean_bad, loss_bad, loss_good } => {
                let (good, bad) = (Millis(*mean_good), Millis(*mean_bad));
                write!(f, "gt:{good},{bad},{loss_bad},{loss_good}")
            }
            Self::Trace(trace) => write!(f, "trace:{trace}"),
        }
    }
}

impl FromStr for Loss {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = |problem: &str| ParseError::new("loss", text, problem);
        let inside = |e: ParseError| e.inside("loss", text);
        let probability = |part: &str| part.parse::<Probability>().map_err(inside);
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "none" if text == "none" => Ok(Self::None),
            "bern" => Ok(Self::Bernoulli(probability(rest)?)),
            "ge" => {
                let [p, r, loss_bad, loss_good] =
                    four(rest).ok_or_else(|| error("expected four probabilities"))?;
                Ok(Self::GilbertElliott {
                    p: probability(p)?,
                    r: probability(r)?,
                    loss_bad: probability(loss_bad)?,
                    loss_good: probability(loss_good)?,
                })
            }
            "gt" => {
                let [mean_good, mean_bad, loss_bad, loss_good] = four(rest).ok_or_else(|| {
                    error("expected two times in milliseconds and two probabilities")
                })?;
                Ok(Self::GilbertElliottTime {
                    mean_good: millis(mean_good).map_err(inside)?,
                    mean_bad: millis(mean_bad).map_err(inside)?,
                    loss_bad: probability(loss_bad)?,
                    loss_good: probability(loss_good)?,
                })
            }
            "trace" => rest.parse().map(Self::Trace),
            // A share alone is the share of independent losses.
            _ if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                Ok(Self::Bernoulli(probability(text)?))
            }
            _ => Err(error(FORMS)),
        }
    }
}

fn four(list: &str) -> Option<[&str; 4]> {
    let mut parts = list.split(',');
    let four = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(four)
}

/// Parses a mean duration in milliseconds, without the unit.
fn millis(text: &str) -> Result<Duration, ParseError> {
    let error = |problem| ParseError::new("milliseconds", text, problem);
    let nanos = parse_decimal(text, MILLISECOND).map_err(error)?;
    if nanos < 1_000 {
        return Err(error("is below a microsecond"));
    }
    Ok(Duration::from_nanos(nanos))
}

/// Formats a duration so that [`millis`] can parse it.
struct Millis(Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = nanos(self.0);
        write!(f, "{}", nanos / MILLISECOND)?;
        match nanos % MILLISECOND {
            0 => Ok(()),
            rest => write!(f, ".{}", format!("{rest:06}").trim_end_matches('0')),
        }
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rate)?;
        match self.packet_size {
            Self::DEFAULT_PACKET_SIZE => Ok(()),
            size => write!(f, ",{size}"),
        }
    }
}

impl FromStr for Background {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (rate, packet_size) = match text.split_once(',') {
            None => (text, Ok(Self::DEFAULT_PACKET_SIZE)),
            Some((rate, size)) => (rate, size.parse()),
        };
        let rate = rate.parse().map_err(|e: ParseError| e.inside("background", text))?;
        match packet_size {
            Ok(packet_size) if packet_size > 0 => Ok(Self { rate, packet_size }),
            _ => Err(ParseError::new("background", text, "expected a packet size in bytes")),
        }
    }
}
