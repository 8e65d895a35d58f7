//! The end of a connection (RFC 9000 section 10).

use super::timer::Timer;
use super::{Connection, EndpointEvent, State};
use crate::error::{ConnectionError, TransportError, TransportErrorCode};
use crate::ids::SpaceId;
use crate::wire::frame::Close;
use std::time::Instant;

/// How many probe timeouts the closing and draining periods last.
const CLOSE_PERIOD: u32 = 3;
/// A reason phrase longer than this is cut: the frame must fit in any packet.
const MAX_REASON: usize = 256;

/// Why this end closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// A transport error.
    Transport(TransportError),
    /// The application wants to.
    Application {
        /// Its code.
        code: u64,
        /// Its reason.
        reason: Vec<u8>,
    },
}

/// What is to be known about the end.
#[derive(Debug, Default)]
pub struct CloseState {
    /// Whether the application was told.
    pub announced: bool,
    /// Why this end closes, if it does.
    pub reason: Option<CloseReason>,
    /// Whether a CONNECTION_CLOSE is to be sent now.
    pub due: bool,
    /// Packets that came since this end closed, and at how many the peer is told again: doubling,
    /// so that two ends never keep each other busy.
    received: u64,
    answer_at: u64,
}

impl CloseState {
    /// A packet came though this end has closed.
    pub fn on_received(&mut self) {
        self.received += 1;
        if self.received >= self.answer_at {
            self.answer_at = self.answer_at.max(1) * 2;
            self.due = true;
        }
    }
}

impl Connection {
    /// Closes the connection with an application's `code` and `reason`. Data that was not
    /// acknowledged is lost. Does nothing if the connection is closed already.
    pub fn close(&mut self, now: Instant, code: u64, reason: &[u8]) {
        if self.is_closed() {
            return;
        }
        let reason = reason[..reason.len().min(MAX_REASON)].to_vec();
        self.lost(now, ConnectionError::LocallyClosed);
        self.start_closing(now, CloseReason::Application { code, reason });
    }

    pub(super) fn start_closing(&mut self, now: Instant, reason: CloseReason) {
        self.state = State::Closing;
        self.close.reason = Some(reason);
        self.close.due = true;
        self.endpoint_events.push_back(EndpointEvent::HandshakeDone);
        self.start_close_period(now);
    }

    /// The peer closed.
    pub(super) fn on_close_frame(&mut self, now: Instant, error: ConnectionError) {
        self.lost(now, error);
        self.close.due = false;
        match self.state {
            State::Handshaking | State::Established => self.start_close_period(now),
            // The period of closing goes on (RFC 9000 section 10.2.2).
            State::Closing => {}
            State::Draining | State::Drained => return,
        }
        self.state = State::Draining;
    }

    fn start_close_period(&mut self, now: Instant) {
        self.timers.clear();
        self.timers.set(Timer::Close, Some(now + CLOSE_PERIOD * self.pto()));
    }

    pub(super) fn drained(&mut self, _now: Instant) {
        if self.state == State::Drained {
            return;
        }
        self.state = State::Drained;
        self.timers.clear();
        self.close.due = false;
        self.endpoint_events.push_back(EndpointEvent::Drained);
    }

    /// Appends the CONNECTION_CLOSE for `space`. Before 1-RTT an application's reason would be
    /// readable by anyone, so it is replaced (RFC 9000 section 10.2.3).
    pub(super) fn write_close(&self, space: SpaceId, room: usize, out: &mut Vec<u8>) {
        let close = match &self.close.reason {
            Some(CloseReason::Application { code, reason }) if space == SpaceId::Data => {
                Close::Application { code: *code, reason }
            }
            Some(CloseReason::Application { .. }) => Close::Transport {
                code: TransportErrorCode::APPLICATION_ERROR,
                frame: None,
                reason: b"",
            },
            Some(CloseReason::Transport(error)) => Close::Transport {
                code: error.code,
                frame: error.frame,
                reason: error.reason.as_bytes(),
            },
            None => return,
        };
        close.encode_within(room, out);
    }
}
