//! When a request is sent again, and after which pause.

use std::time::{Duration, SystemTime};

use crate::failure::Failure;
use crate::seconds;

/// The first pause, which doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, unless the user asks for a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, clap::Args)]
pub struct RetryArgs {
    /// Try again up to so many times if no connection comes about, one breaks, or the status is 408, 429,
    /// 500, 502, 503 or 504; after 1 s, 2 s, 4 s, ... or when the server says (Retry-After), but 600 s at
    /// most. A response of which some came goes on where it broke off if it has a strong ETag
    #[arg(long, value_name = "N", default_value = "0", value_parser = count)]
    pub retry: u16,
    /// Wait so many seconds before each further attempt
    #[arg(long, value_name = "SECONDS", value_parser = seconds::pause)]
    retry_delay: Option<Duration>,
}

/// Reads how often something is done at most.
///
/// # Errors
/// It is no number, or too large.
pub fn count(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "expected a number from 0 to 65535")
}

impl RetryArgs {
    /// Checks that all options have an effect.
    ///
    /// # Errors
    /// There are no attempts to wait for.
    pub fn check(&self) -> Result<(), Failure> {
        if self.retry_delay.is_some() && self.retry == 0 {
            let message =
                "--retry-delay is for further attempts, and there are none: add --retry N";
            return Err(Failure::usage(message));
        }
        Ok(())
    }

    /// The pause after attempt number `attempt`, counted from 0, if the server asks for `asked`.
    pub fn pause(&self, attempt: u16, asked: Option<Duration>) -> Duration {
        let times = 1_u32.checked_shl(attempt.into()).unwrap_or(u32::MAX);
        let doubled = || FIRST_PAUSE.saturating_mul(times).min(MAX_PAUSE);
        self.retry_delay.unwrap_or_else(doubled).max(asked.unwrap_or_default().min(MAX_PAUSE))
    }
}

/// Whether a later attempt may have another status.
pub fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// How long a `retry-after` field says to wait: seconds, or a date (RFC 9110 section 10.2.3).
pub fn retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // More than that is bounded anyway.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn pauses_double_and_are_bounded() {
        let args = RetryArgs { retry: 100, retry_delay: None };
        let pauses: Vec<u64> = (0..4).map(|n| args.pause(n, None).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8]);
        assert_eq!(args.pause(40, None), MAX_PAUSE);
        assert_eq!(args.pause(0, Some(seconds(5))), seconds(5));
        assert_eq!(args.pause(3, Some(seconds(5))), seconds(8));
        assert_eq!(args.pause(0, Some(Duration::MAX)), MAX_PAUSE);
        let args = RetryArgs { retry_delay: Some(Duration::ZERO), ..args };
        assert_eq!(args.pause(9, None), Duration::ZERO);
        assert_eq!(args.pause(9, Some(seconds(2))), seconds(2));
    }

    #[test]
    fn servers_say_when_in_seconds_or_by_a_date() {
        let now = SystemTime::UNIX_EPOCH + seconds(784_111_777);
        for (value, pause) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:40 GMT", Some(3)),
            ("Sun, 06 Nov 1994 08:49:30 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
            ("", None),
        ] {
            assert_eq!(retry_after(value.as_bytes(), now), pause.map(seconds), "{value}");
        }
        assert_eq!(retry_after(b"\xff", now), None);
    }

    #[test]
    fn only_some_statuses_are_worth_another_attempt() {
        let transient: Vec<u16> = (100..600).filter(|&status| is_transient(status)).collect();
        assert_eq!(transient, [408, 429, 500, 502, 503, 504]);
    }
}
