//! A session.

use bytes::Bytes;
use sutura::http;
use sutura::{Connection, DatagramOptions, Dir};

use crate::error::{Error, end_of};
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;

/// A session of WebTransport: streams and datagrams in both directions. Cheap to clone; when all handles, with those
/// of its streams, are dropped, it is closed.
#[derive(Debug, Clone)]
pub struct Session {
    http: http::Session,
    /// The sub-protocol that the server has chosen.
    protocol: Option<String>,
}

impl Session {
    pub(crate) fn new(http: http::Session, protocol: Option<String>) -> Self {
        Self { http, protocol }
    }

    /// The sub-protocol that the ends have agreed on, if the client has offered any.
    #[must_use]
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// The connection that carries the session, with its statistics and the address of the peer. Its streams and
    /// datagrams must not be used.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        self.http.connection()
    }

    /// Waits for the next bidirectional stream that the peer opens.
    ///
    /// # Errors
    /// The session is over.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), Error> {
        let (send, recv) = self.http.accept_bi().await.map_err(|error| self.cause(error))?;
        Ok((SendStream::new(send, self.http.clone(), 0), RecvStream::new(recv, self.http.clone())))
    }

    /// Waits for the next unidirectional stream that the peer opens.
    ///
    /// # Errors
    /// The session is over.
    pub async fn accept_uni(&self) -> Result<RecvStream, Error> {
        let recv = self.http.accept_uni().await.map_err(|error| self.cause(error))?;
        Ok(RecvStream::new(recv, self.http.clone()))
    }

    /// Opens a bidirectional stream, waiting until the peer allows one more. The peer learns of it at once.
    ///
    /// # Errors
    /// The session is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), Error> {
        let (send, recv) = self.http.open_bi().await.map_err(|error| self.cause(error))?;
        let header = self.http.header_size(Dir::Bi);
        Ok((
            SendStream::new(send, self.http.clone(), header),
            RecvStream::new(recv, self.http.clone()),
        ))
    }

    /// Opens a unidirectional stream, waiting until the peer allows one more. The peer learns of it at once.
    ///
    /// # Errors
    /// The session is over.
    pub async fn open_uni(&self) -> Result<SendStream, Error> {
        let send = self.http.open_uni().await.map_err(|error| self.cause(error))?;
        Ok(SendStream::new(send, self.http.clone(), self.http.header_size(Dir::Uni)))
    }

    /// Sends a datagram, which may be lost. If too many are waiting to be sent, the oldest of the least urgent ones
    /// are dropped.
    ///
    /// # Errors
    /// The datagram is too large, or the session is over.
    pub fn send_datagram(&self, payload: &[u8]) -> Result<(), Error> {
        self.send_datagram_with(payload, &DatagramOptions::default())
    }

    /// Like [`send_datagram`](Self::send_datagram), with a deadline, an urgency or a protection of its own.
    ///
    /// # Errors
    /// As [`send_datagram`](Self::send_datagram).
    pub fn send_datagram_with(
        &self,
        payload: &[u8],
        options: &DatagramOptions,
    ) -> Result<(), Error> {
        self.http.datagrams().send(payload, options).map_err(|error| self.datagram_error(error))
    }

    /// Like [`send_datagram_with`](Self::send_datagram_with), but waits for room rather than to have datagrams
    /// dropped.
    ///
    /// # Errors
    /// As [`send_datagram`](Self::send_datagram).
    pub async fn send_datagram_wait(
        &self,
        payload: &[u8],
        options: &DatagramOptions,
    ) -> Result<(), Error> {
        let sent = self.http.datagrams().send_wait(payload, options).await;
        sent.map_err(|error| self.datagram_error(error))
    }

    /// Waits for the next datagram. Unread datagrams are dropped, oldest first. One task at a time may wait.
    ///
    /// # Errors
    /// The session is over.
    pub async fn recv_datagram(&self) -> Result<Bytes, Error> {
        match self.http.datagrams().recv().await {
            Ok(Some(payload)) => Ok(payload),
            Ok(None) => Err(Error::of_end(self.http.closed().await)),
            Err(error) => Err(self.cause(error)),
        }
    }

    /// The largest payload of a datagram, in bytes; `None` if no datagram can be sent. It changes with the path.
    #[must_use]
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.http.datagrams().max_size()
    }

    /// Closes the session with an error code of the application and a text for people, of which the first 1024 bytes
    /// are sent. All its streams end. Does nothing if it is over.
    pub fn close(&self, code: u32, reason: &str) {
        self.http.close(code, reason);
    }

    /// Waits until the session is over, and tells how: [`Error::ClosedByPeer`] or [`Error::Closed`], unless something
    /// has failed.
    pub async fn closed(&self) -> Error {
        Error::of_end(self.http.closed().await)
    }

    /// Asks the peer to end the session soon. Both ends may go on using it.
    ///
    /// # Errors
    /// The session is over.
    pub fn drain(&self) -> Result<(), Error> {
        self.http.drain().map_err(|error| self.cause(error))
    }

    /// Waits until the peer has asked to end the session soon, or it is over.
    pub async fn draining(&self) {
        self.http.draining().await;
    }

    /// Why an operation has failed: the end of the session, if it has ended.
    fn cause(&self, error: http::Error) -> Error {
        end_of(&self.http).unwrap_or_else(|| error.into())
    }

    fn datagram_error(&self, error: http::SendDatagramError) -> Error {
        match error {
            http::SendDatagramError::UnknownStream | http::SendDatagramError::Closed => {
                end_of(&self.http).unwrap_or_else(|| error.into())
            }
            http::SendDatagramError::Unsupported | http::SendDatagramError::TooLarge => {
                error.into()
            }
        }
    }
}
