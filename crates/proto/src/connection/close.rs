//! The end of a connection (RFC 9000 section 10).
//!
//! A server that ends a handshake whose client has not shown that it exists says so once and forgets the
//! connection: the closing period is for peers whose later packets can be told from forged ones. The packets
//! of a client without a validated address cannot, and are answered like first packets.

use super::timer::Timer;
use super::{Connection, EndpointEvent, LifeStage};
use crate::error::{ConnectionError, TransportError, TransportErrorCode};
use crate::ids::SpaceId;
use crate::reset;
use crate::wire::frame::Close;
use std::time::Instant;

/// How many probe timeouts the closing and draining periods last.
const CLOSE_PERIOD: u32 = 3;
/// Longer reason phrases are truncated, so that the frame fits in any packet.
const MAX_REASON: usize = 256;

/// Why this end closed the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// A transport error.
    Transport(TransportError),
    /// The application closed it.
    Application {
        /// The application's error code.
        code: u64,
        /// The application's reason phrase.
        reason: Vec<u8>,
    },
}

/// The state of closing.
#[derive(Debug, Default)]
pub struct CloseState {
    /// Whether the application was told that the connection is lost.
    pub announced: bool,
    /// Why this end closed, if it did.
    pub reason: Option<Box<CloseReason>>,
    /// Whether to send a CONNECTION_CLOSE now.
    pub due: bool,
    /// Whether the connection is over once the CONNECTION_CLOSE was sent.
    once: bool,
    /// Packets received since this end closed, and the count at which the CONNECTION_CLOSE is sent
    /// again. The count doubles each time, so that two ends never keep each other busy.
    received: u64,
    answer_at: u64,
}

impl CloseState {
    /// Handles a packet that arrived after this end closed.
    pub fn on_received(&mut self) {
        self.received += 1;
        if self.received >= self.answer_at {
            self.answer_at = self.answer_at.max(1) * 2;
            self.due = true;
        }
    }
}

impl Connection {
    /// Closes the connection with the application's `code` and `reason`. Unacknowledged data is
    /// lost. Does nothing if the connection is already closed.
    pub fn close(&mut self, now: Instant, code: u64, reason: &[u8]) {
        if self.is_closed() {
            return;
        }
        let reason = reason[..reason.len().min(MAX_REASON)].to_vec();
        self.lost(now, ConnectionError::LocallyClosed);
        self.start_closing(now, CloseReason::Application { code, reason });
    }

    pub(super) fn start_closing(&mut self, now: Instant, reason: CloseReason) {
        self.close.once = self.is_of_nobody();
        self.fail_handshake();
        self.state = LifeStage::Closing;
        self.close.reason = Some(Box::new(reason));
        self.close.due = true;
        self.start_close_period(now);
        if self.close.once && self.path.address.is_blocked() {
            self.drained(now);
        }
    }

    /// Tells the endpoint if the handshake ends without being complete.
    fn fail_handshake(&mut self) {
        if self.state == LifeStage::Handshaking {
            self.endpoint_events.push_back(EndpointEvent::HandshakeFailed);
        }
    }

    /// Whether this is a server's handshake with a client that has not shown that it exists.
    fn is_of_nobody(&self) -> bool {
        self.side.is_server() && self.is_handshaking() && !self.path.address.is_validated()
    }

    /// Ends a connection that is to be forgotten with its CONNECTION_CLOSE, which was sent.
    pub(super) fn on_close_sent(&mut self, now: Instant) {
        self.close.due = false;
        if self.close.once {
            self.drained(now);
        }
    }

    /// Handles the peer's CONNECTION_CLOSE.
    pub(super) fn on_close_frame(&mut self, now: Instant, error: ConnectionError) {
        self.lost(now, error);
        self.close.due = false;
        if self.is_of_nobody() {
            self.drained(now);
            return;
        }
        self.fail_handshake();
        match self.state {
            LifeStage::Handshaking | LifeStage::Established => self.start_close_period(now),
            // The closing period continues (RFC 9000 section 10.2.2).
            LifeStage::Closing => {}
            LifeStage::Draining | LifeStage::Drained => return,
        }
        self.state = LifeStage::Draining;
    }

    /// Takes equally long for any token.
    pub(super) fn is_reset(&self, datagram: &[u8]) -> bool {
        reset::token_of(datagram).is_some_and(|token| self.path.remote_cids.is_reset(&token))
    }

    /// Ends the connection: the peer has lost its state.
    pub(super) fn on_stateless_reset(&mut self, now: Instant) {
        if self.is_closed() {
            return;
        }
        self.lost(now, ConnectionError::Reset);
        self.fail_handshake();
        self.start_close_period(now);
        self.state = LifeStage::Draining;
    }

    fn start_close_period(&mut self, now: Instant) {
        self.timers.clear();
        self.timers.set(Timer::Close, Some(now + CLOSE_PERIOD * self.pto()));
    }

    pub(super) fn drained(&mut self, _now: Instant) {
        if self.state == LifeStage::Drained {
            return;
        }
        self.state = LifeStage::Drained;
        self.timers.clear();
        self.close.due = false;
        let losses = self.path.loss_memory();
        if !losses.is_empty() {
            let learned = EndpointEvent::Learned(self.path.remote.ip(), Box::new(losses));
            self.endpoint_events.push_back(learned);
        }
        self.endpoint_events.push_back(EndpointEvent::Drained);
    }

    /// Appends the CONNECTION_CLOSE for `space`. Before 1-RTT anyone could read an application's
    /// reason, so it is replaced (RFC 9000 section 10.2.3).
    pub(super) fn write_close(&self, space: SpaceId, room: usize, out: &mut Vec<u8>) {
        let close = match self.close.reason.as_deref() {
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
