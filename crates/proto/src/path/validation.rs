//! Validates the peer's address and limits what may be sent until then.

use crate::config::MIN_UDP_PAYLOAD;

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

    /// How many bytes may still be sent.
    pub fn allowance(&self) -> u64 {
        if self.validated {
            return u64::MAX;
        }
        (AMPLIFICATION_LIMIT.saturating_mul(self.received)).saturating_sub(self.sent)
    }

    /// Whether nothing but a close may be sent until more arrives from the peer. A server pads its
    /// datagrams until the peer's address is validated (RFC 9000 section 14.1), so anything less
    /// than a padded datagram counts as blocked.
    pub fn is_blocked(&self) -> bool {
        self.allowance() < u64::from(MIN_UDP_PAYLOAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
