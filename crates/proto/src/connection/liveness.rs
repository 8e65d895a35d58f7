//! Checks whether a silent connection has a reason to be silent: an oracle for fuzzers and
//! simulators.

use super::timer::Timer;
use super::{Connection, SpaceId};
use crate::streams::Backlog;
use std::time::Instant;

/// Why a connection is not sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standstill {
    /// There is nothing to send.
    Idle,
    /// The connection is over.
    Closed,
    /// Pending data waits for handshake keys.
    Handshake,
    /// Pending data waits until more arrives from the client (RFC 9000 section 8.1).
    Amplification,
    /// Pending data waits for acknowledgements, with a timer running in case none arrives.
    Window,
    /// Pending data waits for the pacer, whose timer is running.
    Pacing,
    /// Pending data waits for flow control credit from the peer.
    Credit,
    /// Some data could be sent but no event or timer will ever trigger it. This is a bug.
    Stuck,
}

impl Connection {
    /// Why there was nothing to send at `now`, after [`poll_transmit`](Self::poll_transmit)
    /// returned `None` at that time. Visits every stream, so do not call it for every packet.
    #[must_use]
    pub fn standstill(&self, now: Instant) -> Standstill {
        if self.is_closed() {
            return Standstill::Closed;
        }
        let early = [SpaceId::Initial, SpaceId::Handshake];
        let crypto = early.into_iter().any(|space| self.wants_control(now, space));
        let backlog = self.backlog(now);
        if !crypto && backlog == Backlog::Empty {
            return Standstill::Idle;
        }
        let full = u64::from(self.path.mtu.size());
        // Not every packet can be split to fit into the rest of the allowance.
        if self.path.address.allowance() < full {
            return Standstill::Amplification;
        }
        let ready = self.sealer(SpaceId::Data).is_some();
        if !crypto && !ready {
            return Standstill::Handshake;
        }
        if !crypto && backlog == Backlog::Credit {
            return Standstill::Credit;
        }
        let window = self.path.recovery.bytes_in_flight() + full > self.path.congestion.window();
        if window && self.timers.is_set(Timer::LossDetection) {
            return Standstill::Window;
        }
        if window && !self.handshake.confirmed {
            // The packets that fill the window may stay unacknowledged until the handshake is confirmed, and
            // have no probe timeout until then (RFC 9002 section 6.2.1). The peer's handshake packets have
            // one.
            return Standstill::Handshake;
        }
        if !window && self.timers.is_set(Timer::Pacing) {
            return Standstill::Pacing;
        }
        Standstill::Stuck
    }

    /// The data that waits to be sent in 1-RTT packets.
    fn backlog(&self, now: Instant) -> Backlog {
        if self.wants_control(now, SpaceId::Data) || self.egress.has_datagrams() {
            return Backlog::Sendable;
        }
        self.egress.backlog(&self.streams)
    }
}
