//! The sending half of a stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use sutura::http;
use sutura::{Message, Priority, Protection, ResetAtError, StoppedError, StreamId, WriteError};
use tokio::io::AsyncWrite;

use crate::error::{Error, application_error, end_of, wire_code};

/// The sending half of a stream. If dropped without [`finish`](Self::finish) or [`reset`](Self::reset), it is
/// finished.
#[derive(Debug)]
pub struct SendStream {
    stream: sutura::SendStream,
    session: http::Session,
    /// Bytes before those of the application, which a reset lets through.
    header: u64,
}

impl SendStream {
    pub(crate) fn new(stream: sutura::SendStream, session: http::Session, header: u64) -> Self {
        Self { stream, session, header }
    }

    fn error(&self, error: WriteError) -> Error {
        match error {
            WriteError::Stopped(code) => {
                end_of(&self.session).unwrap_or(Error::Stopped(application_error(code)))
            }
            WriteError::ConnectionLost(error) => end_of(&self.session).unwrap_or(error.into()),
            _ => end_of(&self.session).unwrap_or(Error::ClosedStream),
        }
    }

    /// The stream's identifier.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Writes as much of `data` as there is room for, waiting for room if there is none. Returns the number of bytes
    /// written.
    ///
    /// # Errors
    /// The stream or the session is over.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
        self.stream.write(data).await.map_err(|error| self.error(error))
    }

    /// Writes all of `data`.
    ///
    /// # Errors
    /// The stream or the session is over; how much of `data` was written is not known.
    pub async fn write_all(&mut self, data: &[u8]) -> Result<(), Error> {
        self.stream.write_all(data).await.map_err(|error| self.error(error))
    }

    /// Writes all of `data` without copying it.
    ///
    /// # Errors
    /// As [`write_all`](Self::write_all).
    pub async fn write_chunk(&mut self, data: Bytes) -> Result<(), Error> {
        self.stream.write_chunk(data).await.map_err(|error| self.error(error))
    }

    /// Ends the stream after the data written so far. Does not wait for anything.
    ///
    /// # Errors
    /// The stream or the session is over.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.stream.finish().map_err(|error| self.error(error))
    }

    /// Abandons the stream: unacknowledged data is not sent again, and the peer receives `code`.
    ///
    /// # Errors
    /// The stream or the session is over.
    pub fn reset(&mut self, code: u32) -> Result<(), Error> {
        let code = wire_code(code);
        match self.stream.reset_at(code, self.header) {
            Ok(()) => Ok(()),
            Err(ResetAtError::UnsupportedByPeer) => {
                self.stream.reset(code).map_err(|error| self.error(error))
            }
            Err(_) => Err(self.error(WriteError::ClosedStream)),
        }
    }

    /// Waits until the peer has acknowledged everything up to the end, or the stream was reset by this end.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the peer wants no more of the stream; the session is over.
    pub async fn stopped(&mut self) -> Result<(), Error> {
        match self.stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(self.error(WriteError::Stopped(code))),
            Err(StoppedError::ConnectionLost(error)) => Err(self.error(error.into())),
            Err(_) => Err(self.error(WriteError::ClosedStream)),
        }
    }

    /// Sets the priority with which the stream competes with all others of the connection.
    ///
    /// # Errors
    /// The stream or the session is over.
    pub fn set_priority(&self, priority: Priority) -> Result<(), Error> {
        self.stream.set_priority(priority).map_err(|error| self.error(error))
    }

    /// The stream's priority.
    ///
    /// # Errors
    /// The stream or the session is over.
    pub fn priority(&self) -> Result<Priority, Error> {
        self.stream.priority().map_err(|error| self.error(error))
    }

    /// Turns protection by erasure coding on or off for data sent from now on. Has no effect if the peer cannot
    /// decode, as no browser can.
    ///
    /// # Errors
    /// The stream or the session is over.
    pub fn protect(&self, protection: Option<Protection>) -> Result<(), Error> {
        self.stream.protect(protection).map_err(|error| self.error(error))
    }

    /// Declares that the data written next is one message, so that policies know its size and its deadline.
    ///
    /// # Errors
    /// The stream or the session is over.
    pub fn announce(&self, message: Message) -> Result<(), Error> {
        self.stream.announce(message).map_err(|error| self.error(error))
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
