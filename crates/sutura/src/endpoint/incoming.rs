//! Clients that ask for a connection, and the answers that a server can give.

use super::{Connecting, Inner};
use crate::connection::Connection;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use sutura_proto::{self as proto, ConnectionError};

/// A client that asks for a connection. The server has not processed its handshake yet, and keeps little
/// state for it. `await` it to accept it; if it is dropped, the client is refused.
#[derive(Debug)]
#[must_use = "dropping this refuses the client"]
pub struct Incoming {
    inner: Arc<Inner>,
    /// `None` once the application has decided.
    client: Option<proto::Incoming>,
    remote: SocketAddr,
}

impl Incoming {
    pub(crate) fn new(inner: Arc<Inner>, client: proto::Incoming) -> Self {
        Self { inner, remote: client.remote_address(), client: Some(client) }
    }

    /// The client's address. See [`remote_address_validated`](Self::remote_address_validated).
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        self.remote
    }

    /// Whether the client has shown that it receives packets at its address: it answered a
    /// [`retry`](Self::retry), or was here before. Otherwise the address may be forged.
    #[must_use]
    pub fn remote_address_validated(&self) -> bool {
        self.client.as_ref().is_some_and(proto::Incoming::remote_address_validated)
    }

    /// Whether [`retry`](Self::retry) is possible: the client has not answered one before.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        self.client.as_ref().is_some_and(proto::Incoming::may_retry)
    }

    /// Starts the handshake.
    ///
    /// # Errors
    /// The client was given up meanwhile, or the endpoint has ended.
    pub fn accept(mut self) -> Result<Connecting, ConnectionError> {
        let client = self.client.take().ok_or(ConnectionError::TimedOut)?;
        let connection = self.inner.accept(Instant::now(), client)?;
        Ok(Connecting::new(Ok(connection)))
    }

    /// Tells the client that the connection is refused (CONNECTION_REFUSED, RFC 9000 section 20.1).
    pub fn refuse(mut self) {
        self.refuse_client();
    }

    fn refuse_client(&mut self) {
        self.answer(|endpoint, client| endpoint.refuse(client));
    }

    /// Makes the client show that it receives packets at its address (RFC 9000 section 8.1.2). It will come
    /// back as another `Incoming`, whose address is validated.
    ///
    /// # Errors
    /// The client has already done so: [`may_retry`](Self::may_retry) is false.
    pub fn retry(mut self) -> Result<(), RetryError> {
        if !self.may_retry() {
            return Err(RetryError(Box::new(self)));
        }
        let now = Instant::now();
        self.answer(|endpoint, client| endpoint.retry(now, client).ok().flatten());
        Ok(())
    }

    /// Does not answer at all. The client tries again for a while.
    pub fn ignore(mut self) {
        self.answer(|endpoint, client| {
            endpoint.ignore(client);
            None
        });
    }

    /// Forgets the client, with an answer or without one.
    fn answer(
        &mut self,
        make: impl FnOnce(&mut proto::Endpoint, proto::Incoming) -> Option<Vec<u8>>,
    ) {
        if let Some(client) = self.client.take() {
            self.inner.decline(client, make);
        }
    }
}

impl IntoFuture for Incoming {
    type Output = Result<Connection, ConnectionError>;
    type IntoFuture = Connecting;

    fn into_future(self) -> Connecting {
        self.accept().unwrap_or_else(|error| Connecting::new(Err(error)))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.refuse_client();
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
