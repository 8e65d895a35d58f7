//! Rest: lists that are empty keep the memory for the next burst, which many connections never see. It is given
//! back at the end of the handshake's work, and whenever a connection has been silent for a while.

use super::Connection;
use crate::ids::SpaceId;
use std::time::{Duration, Instant};

/// A connection rests when it has neither sent nor received a datagram for this long, or for up to twice as
/// long: longer than the breaks of most applications that are at work.
const SILENCE: Duration = Duration::from_secs(1);

/// The state of rest.
#[derive(Debug, Default)]
pub struct Rest {
    /// Whether the memory that the handshake needed was given back.
    after_handshake: bool,
    /// When to look whether the connection has been silent.
    at: Option<Instant>,
    /// How many datagrams there were when that was decided, or when the connection last rested.
    datagrams: u64,
}

impl Rest {
    /// When to call [`Connection::rest_when_silent`].
    pub fn timeout(&self) -> Option<Instant> {
        self.at
    }
}

impl Connection {
    /// Gives back the memory that the handshake needed, once the peer has acknowledged all of it, and sees to it
    /// that later memory is given back as well.
    pub(super) fn rest_in_time(&mut self, now: Instant) {
        let is_busy = self.rest.at.is_some() || self.path.recovery.bytes_in_flight() > 0;
        if is_busy || !self.handshake.confirmed || self.is_closed() {
            return;
        }
        if self.rest.after_handshake {
            self.await_silence(now);
        } else if !self.handshake.done_due {
            self.rest.after_handshake = true;
            self.give_back();
        }
    }

    /// Looks again later if there were datagrams meanwhile.
    fn await_silence(&mut self, now: Instant) {
        let datagrams = self.stats.sent.datagrams + self.stats.received.datagrams;
        if datagrams != self.rest.datagrams {
            self.rest.datagrams = datagrams;
            self.rest.at = Some(now + SILENCE);
        }
    }

    /// Gives back the memory of lists that have been empty for a while.
    pub(super) fn rest_when_silent(&mut self, now: Instant) {
        if self.rest.at.is_none_or(|at| now < at) {
            return;
        }
        self.rest.at = None;
        self.await_silence(now);
        if self.rest.at.is_none() {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        self.settled = Default::default();
        self.path.shrink();
        self.streams.shrink();
        self.events.shrink_to_fit();
        self.endpoint_events.shrink_to_fit();
        self.identity.cids.shrink();
        self.spaces[SpaceId::Data].crypto.shrink();
    }
}
