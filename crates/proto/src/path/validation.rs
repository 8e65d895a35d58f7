//! Whether the peer is where it says it is, and what may be sent there before that is known.

use crate::config::MIN_UDP_PAYLOAD;

/// How many times the bytes received a server may send before it knows that the client is where
/// it says it is (RFC 9000 section 8.1).
const AMPLIFICATION_LIMIT: u64 = 3;

/// The validation of the peer's address.
#[derive(Debug)]
pub struct Validation {
    validated: bool,
    received: u64,
    sent: u64,
}

impl Validation {
    /// An address that is `validated`, as a client's is from the start, or not yet.
    pub fn new(validated: bool) -> Self {
        Self { validated, received: 0, sent: 0 }
    }

    /// A datagram of `bytes` came from the address, whatever was in it.
    pub fn on_received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// A datagram of `bytes` was sent there.
    pub fn on_sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }

    /// The peer proved to be reachable at its address.
    pub fn validate(&mut self) {
        self.validated = true;
    }

    /// Bytes that may still be sent.
    pub fn allowance(&self) -> u64 {
        if self.validated {
            return u64::MAX;
        }
        (AMPLIFICATION_LIMIT.saturating_mul(self.received)).saturating_sub(self.sent)
    }

    /// Whether nothing but a close may be sent until more is heard from the peer. A server pads
    /// what it sends before the peer's address is validated (RFC 9000 section 14.1), so anything
    /// below a padded datagram counts as blocked.
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
