//! Rates in bits per second.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::ParseError;
use crate::text::{parse_quantity, write_quantity};

/// Bits per second, never 0. Parses and prints as `10mbit`, `1.5gbit`, `64kbit` or `9600bit`; the
/// prefixes are decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

const UNITS: &[(&str, u64)] =
    &[("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

impl Rate {
    /// A rate of this many bits per second; `None` for 0.
    #[must_use]
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(f, self.0.get(), UNITS, "bit")
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bits = parse_quantity("rate", text, UNITS)?;
        Self::from_bits_per_second(bits).ok_or_else(|| ParseError::new("rate", text, "is zero"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for (text, bits, written) in [
            ("10mbit", 10_000_000, "10mbit"),
            ("1.5Gbit", 1_500_000_000, "1500mbit"),
            ("64kbit", 64_000, "64kbit"),
            ("9601bit", 9_601, "9601bit"),
            ("0.001kbit", 1, "1bit"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.bits_per_second(), bits);
            assert_eq!(rate.to_string(), written);
            assert_eq!(written.parse(), Ok(rate));
        }
    }

    #[test]
    fn what_is_no_rate_is_an_error_that_says_why() {
        for (text, problem) in [
            ("0mbit", "is zero"),
            ("10", "expected a number and a unit (gbit, mbit, kbit, bit)"),
            ("10mbps", "expected a number and a unit (gbit, mbit, kbit, bit)"),
            ("0.5bit", "finer than the smallest unit"),
        ] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert_eq!(error, format!("rate `{text}`: {problem}"));
        }
    }
}
