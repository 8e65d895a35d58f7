//! A client that was let in, until the application has decided about it. Such a client takes a few hundred
//! bytes: its connection is made when it is accepted.

use super::accept::{Opener, stateless_close};
use super::half_open::Rank;
use super::{ConnectionHandle, Endpoint};
use crate::connection::{Connection, NewConnection, Opening};
use crate::error::TransportErrorCode;
use crate::ids::{ConnectionId, Side};
use std::net::SocketAddr;
use std::time::Instant;

/// A client that asks for a connection. Decide about it with [`Endpoint::accept`],
/// [`Endpoint::refuse`], [`Endpoint::retry`] or [`Endpoint::ignore`].
///
/// Until then its datagrams lead to its [`handle`](Self::handle). Keep as many of them as you like: the
/// connection needs the first one, and the client sends lost data again.
#[derive(Debug)]
#[must_use = "the endpoint remembers the client until it is decided about"]
pub struct Incoming {
    pub(super) handle: ConnectionHandle,
    /// Tells the client from others that had the same handle.
    pub(super) rank: Rank,
    pub(super) opener: Opener,
    /// The destination of the client's very first Initial, before any Retry.
    pub(super) original_dcid: ConnectionId,
    pub(super) validated: bool,
}

impl Incoming {
    /// The handle that its connection will have.
    #[must_use]
    pub fn handle(&self) -> ConnectionHandle {
        self.handle
    }

    /// The client's address.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        self.opener.remote
    }

    /// Whether the client has shown that it receives packets at its address: it answered a Retry, or was here
    /// before. Otherwise the address may be forged.
    #[must_use]
    pub fn remote_address_validated(&self) -> bool {
        self.validated
    }

    /// Whether [`Endpoint::retry`] is possible: the client has not answered a Retry before.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        !self.opener.retried
    }
}

impl Endpoint {
    /// Makes the connection of a client. Pass it the datagrams that were kept, the first one first.
    /// `None` if the client was given up meanwhile (see [`poll_given_up`](Self::poll_given_up)), or no
    /// connection can be made.
    pub fn accept(&mut self, now: Instant, incoming: Incoming) -> Option<Box<Connection>> {
        self.accept_within(now, incoming, None)
    }

    /// Like [`accept`](Self::accept), but promises the client no more than fits into an allowance in bytes
    /// (see [`Connection::set_allowance`]). Clients that may send 0-RTT must not be given an allowance: they
    /// were promised the limits of the configuration (RFC 9000 section 7.4.1).
    #[allow(clippy::needless_pass_by_value, reason = "a client is decided about once")]
    pub fn accept_within(
        &mut self,
        now: Instant,
        incoming: Incoming,
        allowance: Option<usize>,
    ) -> Option<Box<Connection>> {
        if !self.is_pending(&incoming) {
            return None;
        }
        let handle = incoming.handle;
        let connection = self.open(now, &incoming, allowance);
        if connection.is_none() {
            self.remove(handle);
        }
        connection
    }

    fn open(
        &mut self,
        now: Instant,
        incoming: &Incoming,
        allowance: Option<usize>,
    ) -> Option<Box<Connection>> {
        let Incoming { handle, opener, original_dcid, validated, .. } = *incoming;
        let Opener { remote, version, dcid, scid, retried } = opener;
        let server = self.server.clone()?;
        let local_cid = self.fresh_cid()?;
        let seed = self.random_seed();
        let configured = server.transport.clone();
        let transport = match allowance {
            Some(bytes) => crate::connection::lend(&configured, bytes),
            None => configured.clone(),
        };
        let new = self.describe(Side::Server, remote, transport, original_dcid, local_cid, seed);
        let new = NewConnection { version, ..new };
        let new_token = self.config.new_tokens.then_some(version);
        let new_token =
            new_token.and_then(|version| self.common.tokens().for_later(now, version, remote));
        let opening = Opening {
            remote_cid: scid,
            initial_dcid: dcid,
            retry_source: retried.then_some(dcid),
            validated,
            new_token,
        };
        let mut connection = Connection::server(now, new, &server.crypto, opening).ok()?;
        if let Some(bytes) = allowance {
            connection.borrow_within(&configured, bytes);
        }
        let entry = self.connections.get_mut(handle.0)?;
        entry.undecided = false;
        entry.cids.push(local_cid);
        self.routes.insert(local_cid, handle);
        Some(connection)
    }

    /// Tells the client that it is refused: returns a CONNECTION_CLOSE with CONNECTION_REFUSED (RFC
    /// 9000 section 20.1). Send it to [`Incoming::remote_address`].
    pub fn refuse(&mut self, incoming: Incoming) -> Option<Vec<u8>> {
        let opener = incoming.opener;
        self.ignore(incoming);
        let server = self.server.clone()?;
        let keys = server.crypto.initial_keys(opener.version.number(), &opener.dcid).ok()?;
        stateless_close(&keys, &opener, self.new_cid(), TransportErrorCode::CONNECTION_REFUSED)
    }

    /// Makes the client show that it receives packets at its address (RFC 9000 section 8.1.2): returns a
    /// Retry to send to [`Incoming::remote_address`]. The client comes back with a token, as another
    /// `Incoming`.
    ///
    /// # Errors
    /// Returns the client if [`Incoming::may_retry`] is false.
    pub fn retry(
        &mut self,
        now: Instant,
        incoming: Incoming,
    ) -> Result<Option<Vec<u8>>, Box<Incoming>> {
        if !incoming.may_retry() {
            return Err(Box::new(incoming));
        }
        let opener = incoming.opener;
        self.ignore(incoming);
        Ok(self.retry_packet(now, &opener))
    }

    /// Forgets the client without an answer. It tries again for a while.
    #[allow(clippy::needless_pass_by_value, reason = "a client is decided about once")]
    pub fn ignore(&mut self, incoming: Incoming) {
        if self.is_pending(&incoming) {
            self.remove(incoming.handle);
        }
    }

    /// Whether the client was not given up meanwhile (see [`poll_given_up`](Self::poll_given_up)).
    #[must_use]
    pub fn is_pending(&self, incoming: &Incoming) -> bool {
        let entry = self.connections.get(incoming.handle.0);
        entry.is_some_and(|entry| entry.undecided && entry.half_open == Some(incoming.rank))
    }
}
