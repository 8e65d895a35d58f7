//! Saturating arithmetic on bytes, rates (bytes per second) and times.

use std::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

#[inline]
fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// `time` in nanoseconds.
#[inline]
pub(super) fn nanos(time: Duration) -> u64 {
    narrow(time.as_nanos())
}

/// `value * numerator / denominator` without intermediate overflow; a denominator of 0 counts as 1.
pub(super) fn mul_div(value: u64, numerator: u64, denominator: u64) -> u64 {
    narrow(u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1)))
}

/// `percent` per cent of `value`.
pub(super) fn percent(value: u64, percent: u64) -> u64 {
    mul_div(value, percent, 100)
}

/// How many bytes pass within `time` at `rate` bytes per second.
#[inline]
pub(super) fn bytes_within(rate: u64, time: Duration) -> u64 {
    narrow(u128::from(rate).saturating_mul(time.as_nanos()) / NANOS_PER_SECOND)
}

/// The rate in bytes per second at which `bytes` take `time`; 0 (unknown) if no time passed.
pub(super) fn rate_of(bytes: u64, time: Duration) -> u64 {
    match time.as_nanos() {
        0 => 0,
        nanos => narrow(u128::from(bytes) * NANOS_PER_SECOND / nanos),
    }
}

/// How long `bytes` take at `rate` bytes per second, rounded up; a rate of 0 counts as 1.
#[inline]
pub(super) fn time_for(bytes: u64, rate: u64) -> Duration {
    let nanos = (u128::from(bytes) * NANOS_PER_SECOND).div_ceil(u128::from(rate.max(1)));
    Duration::from_nanos(narrow(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overflows() {
        assert_eq!(mul_div(u64::MAX, u64::MAX, 1), u64::MAX);
        assert_eq!(mul_div(7, 3, 0), 21);
        assert_eq!(bytes_within(u64::MAX, Duration::MAX), u64::MAX);
        assert_eq!(rate_of(u64::MAX, Duration::from_nanos(1)), u64::MAX);
        assert_eq!(rate_of(1, Duration::ZERO), 0);
        assert_eq!(time_for(u64::MAX, 0), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn rates_and_times_agree() {
        assert_eq!(bytes_within(1_000_000, Duration::from_millis(40)), 40_000);
        assert_eq!(rate_of(40_000, Duration::from_millis(40)), 1_000_000);
        assert_eq!(time_for(40_000, 1_000_000), Duration::from_millis(40));
        assert_eq!(time_for(1, 3), Duration::from_nanos(333_333_334));
        assert_eq!(percent(14_720, 277), 40_774);
    }
}
