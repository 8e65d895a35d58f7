//! Requests that the client cancels before they are answered.
//!
//! A cancelled request frees its stream at once, so that a client can make a server begin requests as fast
//! as it can send their heads, without ever waiting for an answer (CVE-2023-44487 is such an attack on
//! HTTP/2). So cancelled requests are counted. A client that leaves a page with all its requests under way is
//! within the limit, and each answered request makes up for a cancelled one.

use crate::config::CancelLimit;
use std::time::{Duration, Instant};

/// Most answered requests that make up for cancelled ones later.
const MAX_CREDIT: u32 = 100;

/// The cancelled requests of a client.
#[derive(Debug, Default)]
pub(super) struct Cancellations {
    /// Answered requests that have not made up for cancelled ones yet.
    credit: u32,
    /// Cancelled requests that count.
    count: u32,
    /// Since when none was forgotten.
    since: Option<Instant>,
}

impl Cancellations {
    /// Handles that a request was answered.
    pub(super) fn on_answered(&mut self) {
        self.credit = MAX_CREDIT.min(self.credit + 1);
    }

    /// Handles that a request was cancelled. Returns whether that counts. Without the time nothing is
    /// forgotten.
    pub(super) fn on_cancelled(&mut self, now: Option<Instant>, limit: CancelLimit) -> bool {
        if let Some(credit) = self.credit.checked_sub(1) {
            self.credit = credit;
            return false;
        }
        if let Some(now) = now {
            self.forget(now, limit);
        }
        self.count = self.count.saturating_add(1);
        true
    }

    fn forget(&mut self, now: Instant, limit: CancelLimit) {
        let since = *self.since.get_or_insert(now);
        let Some(interval) = Duration::from_secs(1).checked_div(limit.per_second) else { return };
        let passed = now.saturating_duration_since(since).as_nanos();
        let forgotten = passed.checked_div(interval.as_nanos()).unwrap_or(u128::MAX);
        if let Some(left) = u32::try_from(forgotten).ok().and_then(|n| self.count.checked_sub(n)) {
            self.count = left;
            self.since = Some(since + interval * forgotten as u32);
        } else {
            (self.count, self.since) = (0, Some(now));
        }
    }

    /// Whether there were too many.
    pub(super) fn exceeds(&self, limit: CancelLimit) -> bool {
        self.count > limit.burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: CancelLimit = CancelLimit { burst: 100, per_second: 10 };

    /// Cancels `count` requests at `now`; returns whether that was too much.
    fn cancel(state: &mut Cancellations, count: u32, now: Instant) -> bool {
        for _ in 0..count {
            state.on_cancelled(Some(now), LIMIT);
        }
        state.exceeds(LIMIT)
    }

    #[test]
    fn a_burst_and_a_rate_are_permitted() {
        let mut state = Cancellations::default();
        let start = Instant::now();
        assert!(!cancel(&mut state, 100, start));
        // Ten a second, however they are spread.
        for tenth in 1..1000 {
            assert!(!cancel(&mut state, 1, start + Duration::from_millis(100 * tenth)));
        }
        let late = start + Duration::from_secs(100);
        assert!(!cancel(&mut state, 1, late));
        assert!(cancel(&mut state, 1, late));
        // All is forgotten in time.
        assert!(!cancel(&mut state, 100, late + Duration::from_secs(11)));
        assert!(cancel(&mut state, 1, late + Duration::from_secs(11)));
        assert!(!cancel(&mut state, 100, late + Duration::from_secs(1_000_000)));
    }

    #[test]
    fn answered_requests_make_up_for_cancelled_ones_within_bounds() {
        let mut state = Cancellations::default();
        let start = Instant::now();
        for _ in 0..1000 {
            state.on_answered();
            assert!(!state.on_cancelled(Some(start), LIMIT));
        }
        (0..1_000_000).for_each(|_| state.on_answered());
        assert!(!cancel(&mut state, 200, start));
        assert!(cancel(&mut state, 1, start));
    }

    #[test]
    fn without_the_time_nothing_is_forgotten() {
        let mut state = Cancellations::default();
        for _ in 0..101 {
            state.on_cancelled(None, LIMIT);
        }
        assert!(state.exceeds(LIMIT));
    }
}
