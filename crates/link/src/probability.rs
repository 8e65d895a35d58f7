//! Probabilities.

use std::fmt;
use std::str::FromStr;

use crate::ParseError;

/// A number from 0 to 1. Parses `0.02` and `2%`, prints the former.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);
    /// Always.
    pub const ONE: Self = Self(1.0);

    /// The probability `value`; `None` if it is not in the range 0 to 1.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        // Adding 0 turns minus zero into zero.
        (0.0..=1.0).contains(&value).then_some(Self(value + 0.0))
    }

    /// The value, from 0 to 1.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }

    /// Whether it is 0.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Probability {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = |problem| ParseError::new("probability", text, problem);
        let (number, scale) = match text.strip_suffix('%') {
            Some(percent) => (percent, 100.0),
            None => (text, 1.0),
        };
        let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let value = plain.then(|| number.parse::<f64>().ok()).flatten();
        let value = value.ok_or_else(|| error("expected a number such as 0.02 or 2%"))?;
        Self::new(value / scale).ok_or_else(|| error("is above 1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_read_as_fractions_and_percentages() {
        for (text, value) in
            [("0", 0.0), ("1", 1.0), ("0.02", 0.02), ("2%", 0.02), ("100%", 1.0), ("0.5%", 0.005)]
        {
            let probability: Probability = text.parse().unwrap();
            assert_eq!(probability.value(), value);
            assert_eq!(probability.to_string().parse(), Ok(probability));
        }
    }

    #[test]
    fn what_is_no_probability_is_an_error_that_says_why() {
        for (text, problem) in [
            ("", "expected a number such as 0.02 or 2%"),
            ("-0.1", "expected a number such as 0.02 or 2%"),
            ("nan", "expected a number such as 0.02 or 2%"),
            ("1e-3", "expected a number such as 0.02 or 2%"),
            ("1.01", "is above 1"),
            ("101%", "is above 1"),
        ] {
            let error = text.parse::<Probability>().unwrap_err().to_string();
            assert_eq!(error, format!("probability `{text}`: {problem}"));
        }
        assert_eq!(Probability::new(f64::NAN), None);
        assert_eq!(Probability::new(-0.0).map(|p| p.to_string()), Some("0".to_owned()));
    }
}
