//! Connections whose handshake is under way.

use crate::connection::{Connection, Shared};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use sutura_proto::ConnectionError;

/// A connection whose handshake is under way.
#[derive(Debug)]
pub struct Connecting(Result<Connection, ConnectionError>);

impl Connecting {
    pub(crate) fn new(connection: Result<Connection, ConnectionError>) -> Self {
        Self(connection)
    }

    /// The connection, for setting an observer before the handshake is complete.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        self.0.as_ref().ok()
    }

    /// The connection at once, before the handshake is complete.
    ///
    /// On a client this is 0-RTT (RFC 9001 section 4.6): data that is sent until the handshake is complete
    /// needs no round trip, but has weaker properties. An attacker may send the server copies of it on other
    /// connections, so it should change nothing there, and an attacker who learns the secret of the session
    /// later can read it. The server may not accept 0-RTT: streams that were opened then fail with
    /// `ZeroRttRejected`, messages and datagrams are given up, and the application has to send their data
    /// again. 0-RTT is possible if the configuration allows it
    /// ([`ClientConfig::early_data`](crate::ClientConfig::early_data)) and an earlier connection of the same
    /// configuration left a ticket of a server that accepts it. Erasure coding protects no data in 0-RTT.
    ///
    /// On a server this is always possible. The client's 0-RTT data can then be read and answered before the
    /// handshake is complete: see [`RecvStream::is_0rtt`](crate::RecvStream::is_0rtt). It is not certain yet
    /// that the client exists. An application that awaits the connection never sees what an attacker has
    /// copied.
    ///
    /// ```no_run
    /// # async fn run(endpoint: sutura::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// let connecting = endpoint.connect("192.0.2.1:4433".parse()?, "example.org")?;
    /// let connection = match connecting.into_0rtt() {
    ///     Ok((connection, accepted)) => {
    ///         connection.open_uni().await?.write_all(b"whatever may be repeated").await?;
    ///         if !accepted.await {
    ///             connection.open_uni().await?.write_all(b"the same once more").await?;
    ///         }
    ///         connection
    ///     }
    ///     Err(connecting) => connecting.await?,
    /// };
    /// # drop(connection);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// 0-RTT is not possible; wait for the handshake instead.
    pub fn into_0rtt(self) -> Result<(Connection, ZeroRttAccepted), Self> {
        let connection = self.0.map_err(|error| Self(Err(error)))?;
        let mut state = connection.0.lock();
        let possible = state.quic.side().is_server() || state.quic.start_0rtt(Instant::now());
        drop(state);
        if !possible {
            return Err(Self(Ok(connection)));
        }
        connection.0.touch();
        let accepted = ZeroRttAccepted(connection.0.clone());
        Ok((connection, accepted))
    }
}

/// Whether 0-RTT is accepted, which is known when the handshake is complete. False if the connection
/// ends before.
#[derive(Debug)]
pub struct ZeroRttAccepted(Arc<Shared>);

impl Future for ZeroRttAccepted {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.0.lock();
        if !state.connected && state.error.is_none() {
            state.wait_connected(cx);
            return Poll::Pending;
        }
        Poll::Ready(state.connected && state.quic.zero_rtt_accepted() == Some(true))
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let connection = match &self.0 {
            Ok(connection) => connection,
            Err(error) => return Poll::Ready(Err(error.clone())),
        };
        let mut state = connection.0.lock();
        if !state.connected {
            if let Err(error) = state.check() {
                return Poll::Ready(Err(error));
            }
            state.wait_connected(cx);
            return Poll::Pending;
        }
        drop(state);
        Poll::Ready(std::mem::replace(&mut self.0, Err(ConnectionError::LocallyClosed)))
    }
}
