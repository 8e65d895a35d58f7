//! Whether a connection that sends nothing has a reason not to: an oracle for fuzzers and simulators.

use super::timer::Timer;
use super::{Connection, SpaceId};
use crate::streams::Backlog;
use std::time::Instant;

/// Why a connection sends nothing for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standstill {
    /// There is nothing to send.
    Idle,
    /// The connection is over.
    Closed,
    /// What is to be sent waits for keys of the handshake.
    Handshake,
    /// What is to be sent waits until more is heard from the client (RFC 9000 section 8.1).
    Amplification,
    /// What is to be sent waits for acknowledgements, and a timer runs in case none comes.
    Window,
    /// What is to be sent waits for the pacer, whose timer runs.
    Pacing,
    /// What is to be sent waits for the peer's flow control.
    Credit,
    /// Something could be sent and nothing will ever send it. A bug.
    Stuck,
}

impl Connection {
    /// Why there was nothing to send at `now`, after [`poll_transmit`](Self::poll_transmit) returned
    /// `None` then. Visits every stream: not for every packet.
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
        if self.path.address.is_blocked() {
            return Standstill::Amplification;
        }
        let has_keys = self.spaces[SpaceId::Data as usize].keys.is_some();
        let ready = has_keys && self.may_send_in(SpaceId::Data);
        if !crypto && !ready {
            return Standstill::Handshake;
        }
        if !crypto && backlog == Backlog::Credit {
            return Standstill::Credit;
        }
        let full = u64::from(self.path.mtu);
        let window = self.path.recovery.bytes_in_flight() + full > self.path.congestion.window();
        if window && self.timers.is_set(Timer::LossDetection) {
            return Standstill::Window;
        }
        if window && !self.handshake.confirmed {
            // What fills the window may not be acknowledged before the handshake is confirmed, and
            // has no probe timeout (RFC 9002 section 6.2.1): the peer's handshake has one.
            return Standstill::Handshake;
        }
        if !window && self.timers.is_set(Timer::Pacing) {
            return Standstill::Pacing;
        }
        Standstill::Stuck
    }

    /// What waits in 1-RTT packets.
    fn backlog(&self, now: Instant) -> Backlog {
        if self.wants_control(now, SpaceId::Data) || self.egress.has_datagrams() {
            return Backlog::Sendable;
        }
        self.egress.streams.backlog()
    }
}
