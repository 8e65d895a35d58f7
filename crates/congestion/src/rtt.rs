//! Round-trip time estimation (RFC 9002 section 5).

use std::time::{Duration, Instant};

/// Assumed before the first sample (RFC 9002 section 6.2.2).
pub const INITIAL_RTT: Duration = Duration::from_millis(333);
/// The system's timer granularity (RFC 9002 section 6.1.2).
pub const GRANULARITY: Duration = Duration::from_millis(1);

/// The round-trip time of a path.
#[derive(Debug, Clone)]
pub struct RttEstimator {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Duration,
    /// The probe timeout, which follows from the smoothed time and the variance.
    pto_base: Duration,
    first_sample: Option<Instant>,
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::new(INITIAL_RTT)
    }
}

impl RttEstimator {
    /// Starts from an assumed round-trip time.
    #[inline]
    #[must_use]
    pub fn new(initial: Duration) -> Self {
        let variance = initial / 2;
        Self {
            latest: initial,
            smoothed: initial,
            variance,
            min: initial,
            pto_base: initial + (4 * variance).max(GRANULARITY),
            first_sample: None,
        }
    }

    /// Adds a sample: `sample` is the time since the newest acknowledged packet was sent, of which
    /// the peer reports that it spent `ack_delay`. `ack_delay` must already be capped as required
    /// by section 5.3.
    #[inline]
    pub fn update(&mut self, now: Instant, sample: Duration, ack_delay: Duration) {
        self.latest = sample;
        if self.first_sample.is_none() {
            self.first_sample = Some(now);
            self.min = sample;
            self.smoothed = sample;
            self.variance = sample / 2;
        } else {
            self.smooth(sample, ack_delay);
        }
        self.pto_base = self.smoothed + (4 * self.variance).max(GRANULARITY);
    }

    /// Adds a sample after the first.
    fn smooth(&mut self, sample: Duration, ack_delay: Duration) {
        self.min = self.min.min(sample);
        // An acknowledgement delay counts as far as it leaves the minimum. Section 5.3 ignores all of it if it would
        // take the sample below, be it by a microsecond.
        let adjusted = sample.saturating_sub(ack_delay).max(self.min);
        let deviation = self.smoothed.abs_diff(adjusted);
        self.variance = (3 * self.variance + deviation) / 4;
        self.smoothed = (7 * self.smoothed + adjusted) / 8;
    }

    /// The newest sample.
    #[inline]
    #[must_use]
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The smoothed round-trip time.
    #[inline]
    #[must_use]
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation of the round-trip time.
    #[inline]
    #[must_use]
    pub fn variance(&self) -> Duration {
        self.variance
    }

    /// The smallest sample.
    #[inline]
    #[must_use]
    pub fn min(&self) -> Duration {
        self.min
    }

    /// When the first sample was taken, if any.
    #[inline]
    #[must_use]
    pub fn first_sample(&self) -> Option<Instant> {
        self.first_sample
    }

    /// The probe timeout without acknowledgement delay and backoff (section 6.2.1).
    #[inline]
    #[must_use]
    pub fn pto_base(&self) -> Duration {
        self.pto_base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const US: Duration = Duration::from_micros(1);

    #[test]
    fn first_sample_replaces_the_assumption() {
        let mut rtt = RttEstimator::default();
        rtt.update(Instant::now(), 100 * MS, 50 * MS);
        assert_eq!((rtt.smoothed(), rtt.variance(), rtt.min()), (100 * MS, 50 * MS, 100 * MS));
    }

    #[test]
    fn ack_delay_counts_as_far_as_it_leaves_the_minimum() {
        let mut rtt = RttEstimator::default();
        let t = Instant::now();
        rtt.update(t, 100 * MS, Duration::ZERO);
        rtt.update(t, 110 * MS, 20 * MS);
        assert_eq!(rtt.smoothed(), 100 * MS);
        rtt.update(t, 140 * MS, 20 * MS);
        assert_eq!(rtt.smoothed(), (7 * 100 * MS + 120 * MS) / 8);
        rtt.update(t, 90 * MS, 200 * MS);
        assert_eq!((rtt.min(), rtt.latest()), (90 * MS, 90 * MS));
    }

    #[test]
    fn lone_packets_do_not_make_a_path_with_jitter_seem_longer() {
        let mut rtt = RttEstimator::default();
        let t = Instant::now();
        rtt.update(t, 14_500 * US, Duration::ZERO);
        // The peer acknowledges each packet 25 ms late, and no round trip is as long as the first.
        for jitter in (0..1_000).map(|i| (i * 7) % 300) {
            rtt.update(t, (14_200 + jitter) * US + 25 * MS, 25 * MS);
        }
        assert_eq!(rtt.smoothed(), 14_500 * US);
        assert!(rtt.pto_base() <= 16 * MS, "{:?}", rtt.pto_base());
    }
}
