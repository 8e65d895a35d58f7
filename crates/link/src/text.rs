//! Numbers with units. They are parsed exactly, and printed so that parsing them gives the same
//! number.

use std::fmt;
use std::time::Duration;

/// A message for the user about a fault in the text of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    message: String,
}

impl ParseError {
    /// `what` is the kind of thing that was expected, and `text` the given text.
    #[must_use]
    pub fn new(what: &str, text: &str, problem: impl fmt::Display) -> Self {
        Self { message: format!("{what} `{text}`: {problem}") }
    }

    /// The same problem, in the context of the enclosing text.
    #[must_use]
    pub fn inside(&self, what: &str, text: &str) -> Self {
        Self::new(what, text, &self.message)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ParseError {}

/// Time units in nanoseconds, largest first.
const TIME_UNITS: &[(&str, u64)] =
    &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// Units of data in bytes, largest first.
pub(crate) const BYTE_UNITS: &[(&str, u64)] = &[("mb", 1_000_000), ("kb", 1_000), ("b", 1)];

/// Parses a number of bytes such as `1228b` or `187.5kb`; `none` is `None`.
pub(crate) fn parse_bytes(what: &str, text: &str) -> Result<Option<u64>, ParseError> {
    if text == "none" {
        return Ok(None);
    }
    parse_quantity(what, text, BYTE_UNITS).map(Some)
}

/// Parses a number of bytes such as `1228b` or `187.5kb`. The unit is required.
///
/// # Errors
/// The text is not a decimal number with a unit of data, or is no whole number of bytes.
pub fn parse_size(text: &str) -> Result<u64, ParseError> {
    parse_quantity("size", text, BYTE_UNITS)
}

/// Formats a number of bytes such that [`parse_bytes`] can parse it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct BytesText(pub(crate) u64);

impl fmt::Display for BytesText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(f, self.0, BYTE_UNITS, "b")
    }
}

/// Parses a duration such as `50ms`, `1.5s`, `20us` or `7ns`. The unit is required, except for a
/// plain `0`.
///
/// # Errors
/// The text is not a decimal number with a unit of time, has a higher resolution than nanoseconds,
/// or is longer than 584 years.
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    parse_quantity("duration", text, TIME_UNITS).map(Duration::from_nanos)
}

/// Formats a duration in the largest unit in which it is a whole number, such that
/// [`parse_duration`] can parse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(f, nanos(self.0), TIME_UNITS, "ms")
    }
}

/// The duration in nanoseconds, at most 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Parses a decimal number followed by one of the units; the result is in the base unit.
pub(crate) fn parse_quantity(
    what: &str,
    text: &str,
    units: &[(&str, u64)],
) -> Result<u64, ParseError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let unit = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(suffix));
    let Some(&(_, scale)) = unit else {
        let names: Vec<&str> = units.iter().map(|&(name, _)| name).collect();
        let problem = format!("expected a number and a unit ({})", names.join(", "));
        return Err(ParseError::new(what, text, problem));
    };
    parse_decimal(number, scale).map_err(|problem| ParseError::new(what, text, problem))
}

/// `number * scale`, exactly.
pub(crate) fn parse_decimal(number: &str, scale: u64) -> Result<u64, &'static str> {
    const MAX_DIGITS: usize = 20;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || number.ends_with('.') {
        return Err("expected a decimal number such as 4 or 0.5");
    }
    let fraction = fraction.trim_end_matches('0');
    if whole.len() > MAX_DIGITS || fraction.len() > MAX_DIGITS {
        return Err("too many digits");
    }
    // 20 digits times the largest scale of any unit, 10^9, are far below 2^128.
    let read = |part: &str| part.bytes().fold(0, |sum, b| sum * 10 + u128::from(b - b'0'));
    let parts = 10u128.pow(u32::try_from(fraction.len()).unwrap_or_default());
    let fraction = read(fraction) * u128::from(scale);
    if !fraction.is_multiple_of(parts) {
        return Err("finer than the smallest unit");
    }
    let total = read(whole) * u128::from(scale) + fraction / parts;
    u64::try_from(total).map_err(|_| "too large")
}

/// Writes an amount given in the base unit, in the largest unit in which it is a whole number.
/// `zero` is the unit to use for 0.
pub(crate) fn write_quantity(
    f: &mut fmt::Formatter<'_>,
    amount: u64,
    units: &[(&str, u64)],
    zero: &str,
) -> fmt::Result {
    if amount == 0 {
        return write!(f, "0{zero}");
    }
    match units.iter().find(|(_, scale)| amount.is_multiple_of(*scale)) {
        Some((name, scale)) => write!(f, "{}{name}", amount / scale),
        None => write!(f, "{amount}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly() {
        for (text, nanos) in [
            ("0", 0),
            ("0ms", 0),
            ("50ms", 50_000_000),
            ("1.5s", 1_500_000_000),
            ("4.8ms", 4_800_000),
            ("4.8000000000000000000000ms", 4_800_000),
            ("0.000000001s", 1),
            ("20us", 20_000),
            ("7ns", 7),
            ("3S", 3_000_000_000),
            ("18446744073709551615ns", u64::MAX),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_an_error_that_says_why() {
        for (text, problem) in [
            ("", "expected a number and a unit (s, ms, us, ns)"),
            ("50", "expected a number and a unit (s, ms, us, ns)"),
            ("50 ms", "expected a number and a unit (s, ms, us, ns)"),
            ("-5ms", "expected a number and a unit (s, ms, us, ns)"),
            ("1e3s", "expected a number and a unit (s, ms, us, ns)"),
            ("ms", "expected a decimal number such as 4 or 0.5"),
            (".5s", "expected a decimal number such as 4 or 0.5"),
            ("5.s", "expected a decimal number such as 4 or 0.5"),
            ("1.2.3s", "expected a decimal number such as 4 or 0.5"),
            ("0.5ns", "finer than the smallest unit"),
            ("18446744073709551616ns", "too large"),
            ("184467440737095516150ns", "too many digits"),
            ("18446744074s", "too large"),
        ] {
            let error = parse_duration(text).unwrap_err().to_string();
            assert_eq!(error, format!("duration `{text}`: {problem}"));
        }
    }

    #[test]
    fn durations_are_written_in_the_largest_whole_unit() {
        for text in ["0ms", "1s", "1500ms", "4800us", "20us", "1001ns"] {
            assert_eq!(DurationText(parse_duration(text).unwrap()).to_string(), text);
        }
    }
}
