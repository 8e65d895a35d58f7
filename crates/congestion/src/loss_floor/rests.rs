//! Times in which redundancy, more of it or an experiment is left out, each twice as long as the one before.

use std::time::{Duration, Instant};

/// How long the first time lasts, and the longest.
const FIRST: Duration = Duration::from_secs(10);
const MOST: Duration = Duration::from_secs(600);

/// When something is left out, such as redundancy because it did harm.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rests {
    /// Until when the latest time lasts, and how long it is.
    latest: Option<(Instant, Duration)>,
}

impl Rests {
    /// A new time begins at `now`, unless one lasts.
    pub(super) fn begin(&mut self, now: Instant) {
        self.begin_for(now, Duration::ZERO);
    }

    /// The same, for no less than `least`, but for no longer than any.
    pub(super) fn begin_for(&mut self, now: Instant, least: Duration) {
        if self.lasts(now) {
            return;
        }
        let length = self.next().max(least).min(MOST);
        self.latest = Some((now + length, length));
    }

    /// How long the next one is.
    fn next(&self) -> Duration {
        self.latest.map_or(FIRST, |(_, last)| (last * 2).min(MOST))
    }

    /// A new time begins at `now`, even if one lasts.
    pub(super) fn restart(&mut self, now: Instant) {
        let length = self.next();
        self.latest = Some((now + length, length));
    }

    /// A time as long as the latest one begins at `now`.
    pub(super) fn repeat(&mut self, now: Instant) {
        self.latest = self.latest.map(|(_, length)| (now + length, length));
    }

    /// Whether it is left out at `now`.
    pub(super) fn lasts(&self, now: Instant) -> bool {
        self.latest.is_some_and(|(until, _)| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_twice_as_long_as_the_one_before() {
        let (mut now, mut rests) = (Instant::now(), Rests::default());
        assert!(!rests.lasts(now));
        for length in [10, 20, 40, 80, 160, 320, 600, 600] {
            let length = Duration::from_secs(length);
            rests.begin(now);
            // Further harm while it lasts was done before it.
            rests.begin(now + length / 2);
            assert!(rests.lasts(now + length - Duration::from_millis(1)), "{length:?}");
            now += length;
            assert!(!rests.lasts(now), "{length:?}");
        }
    }
}
