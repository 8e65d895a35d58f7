//! Flow control (RFC 9000 section 4), in both directions.

use crate::wire::coding::VARINT_MAX;
use std::time::{Duration, Instant};

/// A new limit, which is announced and then committed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Update {
    /// The limit to announce.
    pub(super) limit: u64,
    size: u64,
    /// Whether the peer has sent all that the limit before allowed.
    used_up: bool,
}

/// The number of steps in which a window is announced that is all used, instead of two.
const STEPS: u64 = 8;
/// The window may limit the peer if all of it is consumed within this many round trips.
const ROUND_TRIPS: u128 = 2;
/// The same for a peer that has used up the window. It waits until what was lost is repaired, which takes some two round
/// trips, and as long again for what is lost twice.
const ROUND_TRIPS_OF_REPAIR: u128 = 8;

/// A receive window: how much the peer may send on a stream or on the connection.
///
/// The window doubles, up to a maximum, when half of it is consumed so fast that the window may limit the peer, rather
/// than the path or the application. A path that loses packets needs a larger window than it holds: what is sent until a
/// loss is repaired waits for it.
///
/// The limit moves when half of the window is consumed. At the maximum, and where the peer has used up the window lately,
/// it moves more often: the peer could otherwise use only half of the window in a round trip, while the other half waits
/// to be announced.
#[derive(Debug)]
pub(super) struct RecvWindow {
    limit: u64,
    size: u64,
    max_size: u64,
    consumed: u64,
    /// The most bytes that the window may have at present, even if `size` is larger.
    allowance: u64,
    /// Since when half a window is being consumed, and how many bytes had been consumed by then; `None` before the first
    /// announcement.
    epoch: Option<(Instant, u64)>,
    /// How many bytes had been consumed when the peer was last found to have used up the window.
    used_up: Option<u64>,
}

impl RecvWindow {
    /// A window of `size` bytes that may grow to `max_size`. The transport parameters have announced the
    /// window already.
    pub(super) fn new(size: u64, max_size: u64) -> Self {
        let size = size.min(VARINT_MAX);
        Self {
            limit: size,
            size,
            max_size: max_size.max(size),
            consumed: 0,
            allowance: u64::MAX,
            epoch: None,
            used_up: None,
        }
    }

    /// The first offset that the peer must not send.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Records that the application consumed another `bytes`.
    pub(super) fn consume(&mut self, bytes: u64) {
        self.consumed = self.consumed.saturating_add(bytes);
    }

    /// How many bytes the application has consumed.
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Changes the size of the window. The announced limit stays; a smaller window takes effect as bytes are
    /// consumed. From now on the window does not grow beyond `size` by itself.
    pub(super) fn resize(&mut self, size: u64) {
        self.size = size.min(VARINT_MAX);
        self.max_size = self.size;
    }

    /// Whether so much of the window is consumed that a new limit should be announced.
    pub(super) fn is_due(&self) -> bool {
        let size = self.size.min(self.allowance);
        self.allowance > 0 && self.limit.saturating_sub(self.consumed) <= size - self.step()
    }

    /// Sets the most bytes that the window may have until the next call. The announced limit stays. Returns
    /// whether the window may be larger than before.
    pub(super) fn set_allowance(&mut self, bytes: u64) -> bool {
        std::mem::replace(&mut self.allowance, bytes) < bytes.min(self.size)
    }

    /// How many bytes must be consumed between two announcements.
    fn step(&self) -> u64 {
        let size = self.size.min(self.allowance);
        let lately = |at| self.consumed.saturating_sub(at) < self.size;
        let all_used = self.size == self.max_size || self.used_up.is_some_and(lately);
        if all_used { size / STEPS } else { size / 2 }
    }

    /// The limit to announce now, when the peer has sent `received` bytes. Never below an earlier limit.
    pub(super) fn propose(&self, now: Instant, rtt: Duration, received: u64) -> Update {
        let used_up = received >= self.limit;
        let mut size = self.size;
        if self.is_due() && self.limits_peer(now, rtt, used_up) {
            size = size.saturating_mul(2).min(self.max_size);
        }
        let usable = size.min(self.allowance);
        let limit = self.consumed.saturating_add(usable).min(VARINT_MAX).max(self.limit);
        Update { limit, size, used_up }
    }

    /// Whether the window may limit the peer: half of it is consumed, and at this rate all of it would be within a few
    /// round trips.
    fn limits_peer(&self, now: Instant, rtt: Duration, used_up: bool) -> bool {
        let Some((since, consumed)) = self.finished_epoch() else { return false };
        let used_up = used_up || self.used_up.is_some_and(|at| at > consumed);
        let round_trips = if used_up { ROUND_TRIPS_OF_REPAIR } else { ROUND_TRIPS };
        let elapsed = now.saturating_duration_since(since).as_nanos();
        let spent = u128::from(self.consumed.saturating_sub(consumed));
        let budget = rtt.as_nanos().saturating_mul(round_trips).saturating_mul(spent);
        elapsed.saturating_mul(u128::from(self.size)) < budget
    }

    /// The epoch, if half a window was consumed in it.
    fn finished_epoch(&self) -> Option<(Instant, u64)> {
        self.epoch.filter(|(_, consumed)| self.consumed.saturating_sub(*consumed) >= self.size / 2)
    }

    /// Records that `update` was announced.
    pub(super) fn commit(&mut self, now: Instant, update: Update) {
        if self.epoch.is_none() || self.finished_epoch().is_some() {
            self.epoch = Some((now, self.consumed));
        }
        if update.used_up {
            self.used_up = Some(self.consumed);
        }
        self.limit = update.limit;
        self.size = update.size;
    }

    /// Bytes of the window.
    #[cfg(test)]
    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

/// How many bytes we may send on the connection.
#[derive(Debug, Default)]
pub(super) struct SendCredit {
    limit: u64,
    used: u64,
    /// The limit for which DATA_BLOCKED was queued.
    blocked_at: Option<u64>,
}

impl SendCredit {
    /// The peer's limit.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Number of bytes that may still be sent.
    pub(super) fn available(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Bytes sent.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Records that `bytes` new bytes were sent.
    pub(super) fn charge(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
    }

    /// Raises the limit. A lower limit is outdated and ignored (RFC 9000 section 4.1).
    pub(super) fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Records that data waits for credit. True the first time for each limit.
    pub(super) fn block(&mut self) -> bool {
        self.available() == 0 && self.blocked_at.replace(self.limit) != Some(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Consumes half of the window at once, step by step, in each `period`, while the peer sends as far as it may or not
    /// quite (`used_up`); returns the sizes of the window.
    fn sizes(period: Duration, rounds: usize, used_up: bool) -> Vec<u64> {
        let mut now = Instant::now();
        let mut window = RecvWindow::new(1000, 5000);
        let mut sizes = Vec::new();
        for _ in 0..rounds {
            let half = window.consumed() + window.size() / 2;
            while window.consumed() < half {
                window.consume(window.step() - 1);
                assert!(!window.is_due());
                window.consume(1);
                assert!(window.is_due());
                let before = window.limit();
                let update = window.propose(now, RTT, before - u64::from(!used_up));
                window.commit(now, update);
                assert!(window.limit() > before && !window.is_due());
                assert_eq!(window.limit() - window.consumed(), window.size());
            }
            sizes.push(window.size());
            now += period;
        }
        sizes
    }

    #[test]
    fn doubles_up_to_the_maximum_while_consumed_within_two_round_trips() {
        assert_eq!(sizes(RTT / 2, 6, false), [1000, 2000, 4000, 5000, 5000, 5000]);
    }

    #[test]
    fn a_peer_that_waits_for_repairs_gets_more() {
        // What was lost twice holds up each half of the window for almost four round trips.
        let period = 4 * RTT - Duration::from_millis(1);
        assert_eq!(sizes(period, 4, true), [1000, 2000, 4000, 5000]);
        assert_eq!(sizes(period, 4, false), [1000; 4]);
    }

    #[test]
    fn a_slow_application_gets_no_more() {
        assert_eq!(sizes(4 * RTT + Duration::from_millis(1), 4, true), [1000; 4]);
    }

    #[test]
    fn a_window_that_grows_no_more_is_announced_in_small_steps() {
        let mut window = RecvWindow::new(1000, 1000);
        window.consume(124);
        assert!(!window.is_due());
        window.consume(1);
        assert!(window.is_due());
        let update = window.propose(Instant::now(), RTT, 0);
        window.commit(Instant::now(), update);
        assert!(window.limit() == 1125 && !window.is_due());
    }

    #[test]
    fn stays_when_the_path_is_the_limit() {
        // Half a window takes a little more than a round trip, so a whole window takes more than two.
        assert_eq!(sizes(RTT + Duration::from_millis(1), 4, false), [1000; 4]);
    }

    #[test]
    fn a_lost_announcement_is_repeated_and_never_lowers_the_limit() {
        let now = Instant::now();
        let mut window = RecvWindow::new(1000, 1000);
        window.consume(700);
        let update = window.propose(now, RTT, 0);
        window.commit(now, update);
        assert_eq!(window.propose(now, RTT, 0).limit, 1700);
        window.consume(100);
        assert_eq!(window.propose(now, RTT, 0).limit, 1800);
    }

    #[test]
    fn a_window_can_be_resized() {
        let (now, mut window) = (Instant::now(), RecvWindow::new(1_000, 4_000));
        window.resize(8_000);
        assert!(window.is_due());
        let update = window.propose(now, Duration::ZERO, 0);
        assert_eq!(update.limit, 8_000);
        window.commit(now, update);
        window.resize(100);
        assert!(!window.is_due());
        window.consume(7_950);
        assert!(window.is_due());
        assert_eq!(window.propose(now, Duration::ZERO, 0).limit, 8_050);
    }

    #[test]
    fn limits_stay_within_a_varint() {
        let mut window = RecvWindow::new(u64::MAX, u64::MAX);
        assert_eq!(window.limit(), VARINT_MAX);
        window.consume(VARINT_MAX);
        assert_eq!(window.propose(Instant::now(), RTT, 0).limit, VARINT_MAX);
    }

    #[test]
    fn credit_never_shrinks_and_blocks_once_per_limit() {
        let mut credit = SendCredit::default();
        assert!(credit.block());
        assert!(!credit.block());
        credit.raise(10);
        credit.raise(5);
        assert_eq!(credit.available(), 10);
        assert!(!credit.block());
        credit.charge(10);
        assert!(credit.block());
        assert!(!credit.block());
    }
}
