//! How much data is sent in a time, by what was sent lately.

use super::super::{LOSS_DETECTION_EIGHTHS, PathView};
use std::time::{Duration, Instant};

/// The weight of the newest interval in the mean is one divided by this number.
const SMOOTHING: u32 = 16;

/// The pace at which source symbols are sent.
#[derive(Debug, Default)]
pub(super) struct Pace {
    newest: Option<Instant>,
    paused: bool,
    /// The mean time from one symbol to the next; zero as long as it is unknown.
    interval: Duration,
    /// The mean time from the last symbol before a pause of the application to the next; zero as long as it is unknown.
    pause: Duration,
}

impl Pace {
    /// A source symbol was sent. Returns whether it is the first one since the application paused.
    pub(super) fn on_sent(&mut self, now: Instant) -> bool {
        let fresh = std::mem::take(&mut self.paused);
        if let Some(before) = self.newest.replace(now) {
            let interval = now.saturating_duration_since(before);
            smooth(&mut self.interval, interval);
            if fresh {
                smooth(&mut self.pause, interval);
            }
        }
        fresh
    }

    /// The application has no more data for now.
    pub(super) fn on_paused(&mut self) {
        self.paused = true;
    }

    /// Whether the application had no more data after the newest symbol.
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// How long after the last packet of a piece packets of the next one show its loss; `None` if that is unknown.
    pub(super) fn shows_loss_after(&self, path: &PathView) -> Option<Duration> {
        let pause = Some(self.pause).filter(|pause| !pause.is_zero());
        pause.map(|pause| pause.saturating_add(path.rtt * LOSS_DETECTION_EIGHTHS / 8))
    }

    /// How many source symbols are sent within `time`; 0 as long as nothing is known.
    pub(super) fn within(&self, time: Duration) -> u32 {
        if self.interval.is_zero() {
            return 0;
        }
        (time.as_secs_f64() / self.interval.as_secs_f64()) as u32
    }
}

/// Moves a mean towards `newest`, or starts with it.
fn smooth(mean: &mut Duration, newest: Duration) {
    *mean = if mean.is_zero() { newest } else { (*mean * (SMOOTHING - 1) + newest) / SMOOTHING };
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn it_follows_the_sender_and_means_over_bursts() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        assert_eq!(pace.within(Duration::MAX), 0);
        (0..3).for_each(|n| _ = pace.on_sent(start + 10 * n * MS));
        assert_eq!(pace.within(100 * MS), 10);
        // Four at once every 40 ms are as many.
        (1..100).for_each(|n| (0..4).for_each(|_| _ = pace.on_sent(start + 40 * n * MS)));
        assert!((8..=12).contains(&pace.within(100 * MS)), "{pace:?}");
        assert_eq!(pace.within(Duration::MAX), u32::MAX);
    }

    #[test]
    fn a_pause_is_not_the_time_between_symbols() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        let path = PathView { rtt: 8 * MS, ..PathView::default() };
        for n in 0..50 {
            assert_eq!(pace.shows_loss_after(&path), (n > 1).then_some(26 * MS));
            let fresh = [0, 1, 3].map(|ms| pace.on_sent(start + (20 * n + ms) * MS));
            assert_eq!(fresh, [n > 0, false, false]);
            pace.on_paused();
            assert!(pace.is_paused());
        }
    }
}
