//! Validates the peer's address and limits what may be sent until then.

use crate::ids::MIN_UDP_PAYLOAD;
use std::time::{Duration, Instant};

/// Before the client's address is validated, a server may send at most this many times the bytes it
/// received (RFC 9000 section 8.1).
const AMPLIFICATION_LIMIT: u64 = 3;

/// The validation of the peer's address.
#[derive(Debug)]
pub struct Validation {
    validated: bool,
    received: u64,
    sent: u64,
}

impl Validation {
    /// `validated` is whether the address is validated from the start, as it is for a client.
    pub fn new(validated: bool) -> Self {
        Self { validated, received: 0, sent: 0 }
    }

    /// Counts a datagram of `bytes` received from the address, whatever its contents.
    pub fn on_received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// Counts a datagram of `bytes` sent to the address.
    pub fn on_sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }

    /// Marks the address as validated.
    pub fn validate(&mut self) {
        self.validated = true;
    }

    /// Whether the peer is known to receive at the address.
    pub fn is_validated(&self) -> bool {
        self.validated
    }

    /// How many bytes may still be sent.
    pub fn allowance(&self) -> u64 {
        if self.validated {
            return u64::MAX;
        }
        (AMPLIFICATION_LIMIT.saturating_mul(self.received)).saturating_sub(self.sent)
    }

    /// Whether nothing but a close may be sent until more arrives from the peer. A server pads its
    /// datagrams until the peer's address is validated (RFC 9000 section 14.1), so an allowance below a
    /// padded datagram counts as blocked.
    pub fn is_blocked(&self) -> bool {
        self.allowance() < u64::from(MIN_UDP_PAYLOAD)
    }
}

/// How many unanswered PATH_CHALLENGE frames are remembered, the newest ones.
pub const MAX_CHALLENGES: usize = 4;
/// After this many probe timeouts without an answer nobody receives at the address (RFC 9000 section
/// 8.2.4).
const PATIENCE: u32 = 3;

/// Finds out whether the peer receives at an address (RFC 9000 section 8.2).
#[derive(Debug)]
pub struct Challenge {
    /// The data of the frames sent so far, and whether their datagrams were as large as every path
    /// must carry.
    sent: Vec<([u8; 8], bool)>,
    due: bool,
    /// When to send another frame, as the last one may have been lost.
    repeat_at: Instant,
    interval: Duration,
    deadline: Instant,
}

impl Challenge {
    /// A validation that begins at `now`. `pto` is the probe timeout so far, `unknown` the probe timeout of
    /// an unknown path.
    pub fn new(now: Instant, pto: Duration, unknown: Duration) -> Self {
        let deadline = now + PATIENCE * pto.max(unknown);
        Self { sent: Vec::new(), due: true, repeat_at: deadline, interval: pto, deadline }
    }

    /// Whether to send a PATH_CHALLENGE as soon as that is allowed.
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// Handles a PATH_CHALLENGE with this data that is being sent; `full` if its datagram has the size
    /// that every path must carry.
    pub fn on_sent(&mut self, now: Instant, data: [u8; 8], full: bool) {
        if self.sent.len() == MAX_CHALLENGES {
            self.sent.remove(0);
        }
        self.sent.push((data, full));
        self.due = false;
        self.repeat_at = now + self.interval;
        self.interval *= 2;
    }

    /// When to call [`on_timeout`](Self::on_timeout).
    pub fn timeout(&self) -> Instant {
        if self.due { self.deadline } else { self.repeat_at.min(self.deadline) }
    }

    /// Handles the timeout; returns whether nobody has answered in time.
    pub fn on_timeout(&mut self, now: Instant) -> bool {
        self.due |= now >= self.repeat_at;
        now >= self.deadline
    }

    /// Whether a PATH_RESPONSE with this data answers a challenge, and if so, whether a challenge of full
    /// size.
    pub fn is_answered(&self, data: [u8; 8]) -> Option<bool> {
        self.sent.iter().find(|(sent, _)| *sent == data).map(|(_, full)| *full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_repeated_ever_more_slowly_and_the_newest_count() {
        let (start, ms) = (Instant::now(), Duration::from_millis(1));
        let mut challenge = Challenge::new(start, 100 * ms, 1000 * ms);
        let mut sent = Vec::new();
        loop {
            let at =
                if challenge.is_due() && sent.is_empty() { start } else { challenge.timeout() };
            if challenge.on_timeout(at) {
                assert_eq!(at, start + 3000 * ms);
                break;
            }
            sent.push((at - start).as_millis());
            challenge.on_sent(at, [sent.len() as u8; 8], true);
        }
        assert_eq!(sent, [0, 100, 300, 700, 1500]);
        assert_eq!(challenge.is_answered([1; 8]), None, "forgotten");
        assert_eq!(challenge.is_answered([2; 8]), Some(true));
        assert_eq!(challenge.sent.len(), MAX_CHALLENGES);
    }

    #[test]
    fn three_times_what_came_until_validated() {
        let mut path = Validation::new(false);
        assert!(path.is_blocked());
        path.on_received(1200);
        assert_eq!(path.allowance(), 3600);
        path.on_sent(2500);
        assert!(path.is_blocked());
        path.on_received(200);
        assert!(!path.is_blocked());
        path.validate();
        assert_eq!(path.allowance(), u64::MAX);
    }
}
