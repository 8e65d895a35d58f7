//! Options that are numbers of seconds.

use std::time::Duration;

/// The longest time that an option takes, in seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// Reads a limit in seconds.
///
/// # Errors
/// It is no number of seconds from a thousandth to a day.
pub fn limit(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|s| (0.001..=MAX_SECONDS).contains(s));
    seconds.map(Duration::from_secs_f64).ok_or("expected 0.001 to 86400 seconds".into())
}

/// Reads a pause in seconds, which may be none.
///
/// # Errors
/// It is no number of seconds from 0 to a day.
pub fn pause(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|s| (0.0..=MAX_SECONDS).contains(s));
    seconds.map(Duration::from_secs_f64).ok_or("expected 0 to 86400 seconds".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_bounded() {
        assert_eq!(limit("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(pause("0"), Ok(Duration::ZERO));
        for text in ["", "x", "-1", "nan", "inf", "86401"] {
            assert!(limit(text).is_err() && pause(text).is_err(), "{text}");
        }
        assert!(limit("0").is_err());
    }
}
