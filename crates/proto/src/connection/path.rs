//! The network path: the peer's address and what may be sent there.

use crate::config::MIN_UDP_PAYLOAD;
use std::net::SocketAddr;

/// How many times the bytes received a server may send before it knows that the client is where
/// it says it is (RFC 9000 section 8.1).
const AMPLIFICATION_LIMIT: u64 = 3;

/// A path to the peer.
#[derive(Debug)]
pub struct Path {
    /// The peer's address.
    pub remote: SocketAddr,
    /// Bytes of UDP payload that the path is known to carry.
    pub mtu: u16,
    /// What the peer's newest PATH_CHALLENGE asked, until it is answered. Older ones are
    /// forgotten, so that a flood of them costs nothing.
    pub response_due: Option<[u8; 8]>,
    validated: bool,
    received: u64,
    sent: u64,
}

impl Path {
    /// A path to `remote`. A client's is validated from the start.
    pub fn new(remote: SocketAddr, mtu: u16, validated: bool) -> Self {
        Self { remote, mtu, response_due: None, validated, received: 0, sent: 0 }
    }

    /// A datagram of `bytes` came from the path, whatever was in it.
    pub fn on_received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// A datagram of `bytes` was sent.
    pub fn on_sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }

    /// The peer asks whether this end is reachable.
    pub fn on_challenge(&mut self, data: [u8; 8]) {
        self.response_due = Some(data);
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
        let mut path = Path::new(([127, 0, 0, 1], 1).into(), 1200, false);
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
