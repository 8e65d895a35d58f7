//! Flow control (RFC 9000 section 4), in both directions.

use crate::wire::coding::VARINT_MAX;
use std::time::{Duration, Instant};

/// A new limit, which is announced and then committed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Update {
    /// The limit to announce.
    pub(super) limit: u64,
    size: u64,
}

/// The number of steps in which a window that grows no more is announced.
const STEPS: u64 = 8;

/// A receive window: how much the peer may send on a stream or on the connection.
///
/// The limit moves when half of the window is consumed. The window doubles, up to a maximum, when it is
/// consumed so fast that the window may limit the peer, rather than the path. At its maximum the limit moves
/// more often: a peer that is limited by the window could otherwise use only half of it in a round trip,
/// while the other half waits to be announced.
#[derive(Debug)]
pub(super) struct RecvWindow {
    limit: u64,
    size: u64,
    max_size: u64,
    consumed: u64,
    /// The most bytes that the window may have at present, even if `size` is larger.
    allowance: u64,
    /// When the limit was last announced, and how many bytes had been consumed by then.
    epoch: Option<(Instant, u64)>,
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
        if self.size < self.max_size { size / 2 } else { size / STEPS }
    }

    /// The limit to announce now. Never below an earlier limit.
    pub(super) fn propose(&self, now: Instant, rtt: Duration) -> Update {
        let mut size = self.size;
        if self.is_due()
            && let Some((since, consumed)) = self.epoch
        {
            // Would the whole window be consumed within two round trips at this rate?
            let elapsed = now.saturating_duration_since(since).as_nanos();
            let spent = u128::from(self.consumed.saturating_sub(consumed));
            let budget = rtt.as_nanos().saturating_mul(2).saturating_mul(spent);
            if elapsed.saturating_mul(u128::from(size)) < budget {
                size = size.saturating_mul(2).min(self.max_size);
            }
        }
        let usable = size.min(self.allowance);
        let limit = self.consumed.saturating_add(usable).min(VARINT_MAX).max(self.limit);
        Update { limit, size }
    }

    /// Records that `update` was announced.
    pub(super) fn commit(&mut self, now: Instant, update: Update) {
        self.limit = update.limit;
        self.size = update.size;
        self.epoch = Some((now, self.consumed));
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

    /// Consumes as many bytes as move the limit, once per `period`; returns the sizes of the window.
    fn sizes(period: Duration, rounds: usize) -> Vec<u64> {
        let mut now = Instant::now();
        let mut window = RecvWindow::new(1000, 5000);
        let mut sizes = Vec::new();
        for _ in 0..rounds {
            window.consume(window.step() - 1);
            assert!(!window.is_due());
            window.consume(1);
            assert!(window.is_due());
            let before = window.limit();
            let update = window.propose(now, RTT);
            window.commit(now, update);
            assert!(window.limit() > before && !window.is_due());
            assert_eq!(window.limit() - window.consumed, window.size());
            sizes.push(window.size());
            now += period;
        }
        sizes
    }

    #[test]
    fn doubles_up_to_the_maximum_while_consumed_within_two_round_trips() {
        assert_eq!(sizes(RTT / 2, 6), [1000, 2000, 4000, 5000, 5000, 5000]);
    }

    #[test]
    fn a_window_that_grows_no_more_is_announced_in_small_steps() {
        let mut window = RecvWindow::new(1000, 1000);
        window.consume(124);
        assert!(!window.is_due());
        window.consume(1);
        assert!(window.is_due());
        let update = window.propose(Instant::now(), RTT);
        window.commit(Instant::now(), update);
        assert!(window.limit() == 1125 && !window.is_due());
    }

    #[test]
    fn stays_when_the_path_is_the_limit() {
        // Half a window takes a little more than a round trip, so a whole window takes more than two.
        assert_eq!(sizes(RTT + Duration::from_millis(1), 4), [1000; 4]);
    }

    #[test]
    fn a_lost_announcement_is_repeated_and_never_lowers_the_limit() {
        let now = Instant::now();
        let mut window = RecvWindow::new(1000, 1000);
        window.consume(700);
        let update = window.propose(now, RTT);
        window.commit(now, update);
        assert_eq!(window.propose(now, RTT).limit, 1700);
        window.consume(100);
        assert_eq!(window.propose(now, RTT).limit, 1800);
    }

    #[test]
    fn a_window_can_be_resized() {
        let (now, mut window) = (Instant::now(), RecvWindow::new(1_000, 4_000));
        window.resize(8_000);
        assert!(window.is_due());
        let update = window.propose(now, Duration::ZERO);
        assert_eq!(update.limit, 8_000);
        window.commit(now, update);
        window.resize(100);
        assert!(!window.is_due());
        window.consume(7_950);
        assert!(window.is_due());
        assert_eq!(window.propose(now, Duration::ZERO).limit, 8_050);
    }

    #[test]
    fn limits_stay_within_a_varint() {
        let mut window = RecvWindow::new(u64::MAX, u64::MAX);
        assert_eq!(window.limit(), VARINT_MAX);
        window.consume(VARINT_MAX);
        assert_eq!(window.propose(Instant::now(), RTT).limit, VARINT_MAX);
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
