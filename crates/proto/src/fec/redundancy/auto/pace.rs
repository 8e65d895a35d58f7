//! How much data is sent in a time, by what was sent lately.

use std::time::{Duration, Instant};

/// The weight of the newest interval in the mean is one divided by this number.
const SMOOTHING: u32 = 16;

/// The pace at which source symbols are sent.
#[derive(Debug, Default)]
pub(super) struct Pace {
    newest: Option<Instant>,
    /// The mean time from one symbol to the next; zero as long as it is unknown.
    interval: Duration,
}

impl Pace {
    /// A source symbol was sent.
    pub(super) fn on_sent(&mut self, now: Instant) {
        let Some(before) = self.newest.replace(now) else { return };
        let interval = now.saturating_duration_since(before);
        self.interval = if self.interval.is_zero() {
            interval
        } else {
            (self.interval * (SMOOTHING - 1) + interval) / SMOOTHING
        };
    }

    /// How many source symbols are sent within `time`; 0 as long as nothing is known.
    pub(super) fn within(&self, time: Duration) -> u32 {
        if self.interval.is_zero() {
            return 0;
        }
        (time.as_secs_f64() / self.interval.as_secs_f64()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn it_follows_the_sender_and_means_over_bursts() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        assert_eq!(pace.within(Duration::MAX), 0);
        (0..3).for_each(|n| pace.on_sent(start + 10 * n * MS));
        assert_eq!(pace.within(100 * MS), 10);
        // Four at once every 40 ms are as many.
        (1..100).for_each(|n| (0..4).for_each(|_| pace.on_sent(start + 40 * n * MS)));
        assert!((8..=12).contains(&pace.within(100 * MS)), "{pace:?}");
        assert_eq!(pace.within(Duration::MAX), u32::MAX);
    }
}
