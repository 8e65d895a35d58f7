//! How a connection starts beside the handshake: address validation and its tokens (RFC 9000 section
//! 8.1), and giving up a handshake.

use super::first_answer::MAX_TOKEN;
use super::{Connection, EndpointEvent};
use crate::connection::Offence;
use crate::error::ConnectionError;
use crate::ids::ConnectionId;
use crate::wire::frame::Frame;
use std::time::{Duration, Instant};

/// A server gives up a handshake after this much silence of a client that has not shown that it receives
/// packets at its address. On a new path, a client probes after 1, 3, 7 and 15 seconds (RFC 9002 section
/// 6.2), and any of these probes may be lost.
pub const UNVALIDATED_TIMEOUT: Duration = Duration::from_secs(20);
/// Tokens that a server may give this client on one connection; further ones are ignored.
pub const MAX_NEW_TOKENS: u8 = 4;

/// A server endpoint's knowledge of a client that it lets in.
#[derive(Debug, Default)]
pub struct Opening {
    /// The identifier that the client chose for itself.
    pub remote_cid: ConnectionId,
    /// The destination of the client's Initial, from which its keys are derived.
    pub initial_dcid: ConnectionId,
    /// The source of the Retry that the client answers, if there was one.
    pub retry_source: Option<ConnectionId>,
    /// Whether the client had a token that proves its address.
    pub validated: bool,
    /// The token for the client's next connection.
    pub new_token: Option<Vec<u8>>,
}

/// The tokens of NEW_TOKEN frames, of either side.
#[derive(Debug, Default)]
pub struct NewToken {
    /// The token for the client.
    pub token: Option<Vec<u8>>,
    /// Whether it must be sent.
    pub due: bool,
    /// How many came from the server.
    received: u8,
}

impl NewToken {
    /// The handshake is complete: the token may be sent.
    pub fn offer(&mut self) {
        self.due = self.token.is_some();
    }

    /// Appends the frame if it is due and there is room. Returns whether it was written.
    pub fn write(&mut self, room: usize, out: &mut Vec<u8>) -> bool {
        let Some(token) = self.token.as_deref().filter(|_| self.due) else { return false };
        let frame = Frame::NewToken(token);
        if frame.size() > room {
            return false;
        }
        frame.encode(out);
        self.due = false;
        true
    }
}

impl Connection {
    /// Whether the peer has shown that it receives packets at its address. Always true on a client.
    #[must_use]
    pub fn remote_address_validated(&self) -> bool {
        self.path.address.is_validated()
    }

    /// Ends the connection without a word to the peer.
    pub fn discard(&mut self, now: Instant) {
        self.lost(now, ConnectionError::TimedOut);
        self.drained(now);
    }

    /// Tells the endpoint that the peer made this end work in vain. Call it for offences in the application's
    /// protocol: the connection itself reports breaches of QUIC. A peer that offends often is refused for a
    /// while, even if each of its connections does little. Does nothing on a client, nor while the peer's
    /// address is not validated.
    pub fn blame(&mut self, now: Instant, offence: Offence) {
        if self.side.is_server() && self.path.address.is_validated() {
            let blamed = EndpointEvent::Blamed(self.path.remote.ip(), now, offence);
            self.endpoint_events.push_back(blamed);
        }
    }

    /// Sets the token of a client's first Initial.
    pub(crate) fn set_token(&mut self, token: Vec<u8>) {
        self.handshake.retry.token = token;
    }

    /// Handles the endpoint's knowledge of the client, on a server.
    pub(super) fn admitted(&mut self, now: Instant, validated: bool, new_token: Option<Vec<u8>>) {
        self.handshake.new_token.token = new_token;
        if validated {
            self.path.address.validate();
        }
        self.reset_idle_timer(now);
    }

    /// Handles proof that the client receives packets at its address.
    pub(super) fn on_address_validated(&mut self) {
        if !self.path.address.is_validated() {
            self.path.address.validate();
            self.endpoint_events.push_back(EndpointEvent::AddressValidated);
        }
    }

    /// Keeps a token of the server for the next connection.
    pub(super) fn on_new_token(&mut self, token: &[u8]) {
        // The next connection begins with the version with which this connection began, or would have begun
        // if the server had not refused it. A token is good for one version only (RFC 9369 section 5), so a
        // token of another version is useless.
        let first = self.negotiation.original;
        let useful = !self.handshake.retry.negotiated && first == self.version;
        let new_token = &mut self.handshake.new_token;
        if useful && new_token.received < MAX_NEW_TOKENS && token.len() <= MAX_TOKEN {
            new_token.received += 1;
            self.endpoint_events.push_back(EndpointEvent::NewToken(token.to_vec()));
        }
    }

    /// How long the client may be silent during the handshake, if its address is not validated. A client that
    /// moves later has shown who it is.
    pub(super) fn unvalidated_timeout(&self) -> Option<Duration> {
        let unknown = self.is_handshaking() && !self.path.address.is_validated();
        unknown.then_some(UNVALIDATED_TIMEOUT)
    }
}
