//! Round-trip times in a row, of which the shortest tells whether the queue of the path was empty in between.

use super::queue::Nanos;
use std::time::{Duration, Instant};

/// How many round-trip times a stretch has, at least.
const LEAST_COUNT: u32 = 16;
/// By how much a long round-trip time exceeds the minimum: this share of it, and at least this, which is more than
/// what timers and schedulers of the ends add.
const LONG_DIVISOR: Nanos = 8;
const LONG: Nanos = 5_000_000;

/// A stretch that is not over yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    least: Nanos,
    count: u32,
    began: Option<Instant>,
}

/// A stretch that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passed {
    /// The shortest round-trip time.
    pub(super) least: Nanos,
    /// How many round-trip times it has, at least one.
    pub(super) count: u32,
    /// How long it lasted.
    pub(super) took: Duration,
}

impl Default for Stretch {
    fn default() -> Self {
        Self { least: Nanos::MAX, count: 0, began: None }
    }
}

impl Stretch {
    /// Adds a round-trip time. Returns the stretch if it has enough of them and lasted for `trips` round trips; the
    /// next one begins then.
    #[inline]
    pub(super) fn add(&mut self, now: Instant, rtt: Nanos, trips: u32) -> Option<Passed> {
        self.least = self.least.min(rtt);
        self.count += 1;
        let began = *self.began.get_or_insert(now);
        if self.count < LEAST_COUNT || now < began + trips * Duration::from_nanos(rtt) {
            return None;
        }
        let Self { least, count, .. } = std::mem::take(self);
        Some(Passed { least, count, took: now.saturating_duration_since(began) })
    }
}

/// Whether a packet with this round-trip time met a queue, on a path whose minimum is `min`.
pub(super) fn is_long(rtt: Nanos, min: Nanos) -> bool {
    rtt > min + (min / LONG_DIVISOR).max(LONG)
}
