//! Clients that ask for a connection, and what a server can answer.

use crate::connection::{Connection, Shared, lock};
use crate::endpoint::{Connecting, Inner};
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use sutura_proto::{self as proto, ConnectionError, ConnectionHandle, EcnCodepoint};

/// Datagrams that are kept of a client until the application has decided about it; further ones are
/// dropped, and the client sends them again.
const MAX_HELD_DATAGRAMS: usize = 8;
/// The most bytes of such datagrams.
const MAX_HELD_BYTES: usize = 16 * 1024;

/// Datagrams of a client that the application has not decided about.
#[derive(Debug, Default)]
pub(crate) struct Held {
    datagrams: Vec<(Option<EcnCodepoint>, Vec<u8>)>,
    bytes: usize,
}

impl Held {
    /// Keeps a datagram, unless there are too many.
    pub(crate) fn push(&mut self, ecn: Option<EcnCodepoint>, datagram: &[u8]) {
        let bytes = self.bytes + datagram.len();
        if self.datagrams.len() < MAX_HELD_DATAGRAMS && bytes <= MAX_HELD_BYTES {
            self.bytes = bytes;
            self.datagrams.push((ecn, datagram.to_vec()));
        }
    }

    pub(crate) fn into_datagrams(self) -> impl Iterator<Item = (Option<EcnCodepoint>, Vec<u8>)> {
        self.datagrams.into_iter()
    }
}

/// A client that asks for a connection. Nothing was processed of its handshake yet. `await` it to
/// accept it; if it is dropped, the client is refused.
#[derive(Debug)]
#[must_use = "dropping this refuses the client"]
pub struct Incoming {
    inner: Arc<Inner>,
    remote: SocketAddr,
    /// `None` once the application has decided.
    connection: Option<Connection>,
}

impl Incoming {
    pub(crate) fn new(inner: Arc<Inner>, shared: Arc<Shared>) -> Self {
        let connection = Connection::new(shared);
        Self { inner, remote: connection.remote_address(), connection: Some(connection) }
    }

    /// The client's address. See [`remote_address_validated`](Self::remote_address_validated).
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        self.remote
    }

    /// Whether the client has shown that it receives what is sent to its address: it answered a
    /// [`retry`](Self::retry), or was here before. Otherwise the address may be forged.
    #[must_use]
    pub fn remote_address_validated(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|c| c.0.lock().quic.remote_address_validated())
    }

    /// Whether [`retry`](Self::retry) is possible: the client has not answered one before.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        let state = lock(&self.inner.state);
        self.connection.as_ref().is_some_and(|c| state.proto.may_retry(c.0.handle))
    }

    /// The connection, for setting an observer before the handshake starts.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    /// Starts the handshake.
    ///
    /// # Errors
    /// The client was given up meanwhile.
    pub fn accept(self) -> Result<Connecting, ConnectionError> {
        if let Some(connection) = &self.connection {
            connection.0.lock().check()?;
        }
        Ok(self.into_future())
    }

    /// Tells the client that the connection is refused (CONNECTION_REFUSED, RFC 9000 section 20.1).
    pub fn refuse(mut self) {
        self.answer(|endpoint, _, handle| endpoint.refuse(handle));
    }

    /// Makes the client show that it receives what is sent to its address (RFC 9000 section 8.1.2).
    /// It will come back as another `Incoming`, whose address is validated.
    ///
    /// # Errors
    /// It has done so before: [`may_retry`](Self::may_retry) is false.
    pub fn retry(mut self) -> Result<(), RetryError> {
        if !self.may_retry() {
            return Err(RetryError(Box::new(self)));
        }
        self.answer(|endpoint, now, handle| endpoint.retry(now, handle));
        Ok(())
    }

    /// Does not answer at all. The client tries again for a while.
    pub fn ignore(mut self) {
        self.answer(|_, _, _| None);
    }

    /// Ends the connection with an answer outside of it.
    fn answer(
        &mut self,
        make: impl FnOnce(&mut proto::Endpoint, Instant, ConnectionHandle) -> Option<Vec<u8>>,
    ) {
        let Some(connection) = self.connection.take() else { return };
        let now = Instant::now();
        let mut state = lock(&self.inner.state);
        let reply = make(&mut state.proto, now, connection.0.handle);
        state.reply(self.remote, reply);
        drop(state);
        connection.0.lock().discard(now);
        connection.0.touch();
    }
}

impl IntoFuture for Incoming {
    type Output = Result<Connection, ConnectionError>;
    type IntoFuture = Connecting;

    fn into_future(mut self) -> Connecting {
        let connection = self.connection.take();
        if let Some(connection) = &connection {
            connection.0.lock().release(Instant::now());
            connection.0.touch();
        }
        Connecting::new(connection)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.answer(|endpoint, _, handle| endpoint.refuse(handle));
    }
}

/// The client has answered a Retry before.
#[derive(Debug, thiserror::Error)]
#[error("the client has answered a Retry before")]
pub struct RetryError(Box<Incoming>);

impl RetryError {
    /// The client, to decide otherwise.
    pub fn into_incoming(self) -> Incoming {
        *self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_datagrams_is_held_within_bounds() {
        for len in [0, 1, 1200, 9000, 65_000] {
            let mut held = Held::default();
            for _ in 0..1000 {
                held.push(None, &vec![7; len]);
            }
            let datagrams: Vec<_> = held.into_datagrams().map(|(_, datagram)| datagram).collect();
            let bytes = datagrams.iter().map(Vec::len).sum::<usize>();
            assert!(datagrams.len() <= MAX_HELD_DATAGRAMS && bytes <= MAX_HELD_BYTES);
            assert_eq!(
                datagrams.len(),
                MAX_HELD_DATAGRAMS.min(MAX_HELD_BYTES / len.max(1)),
                "{len}"
            );
        }
    }
}
