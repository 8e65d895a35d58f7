//! The receiving half of a stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use sutura::http;
use sutura::{ReadError, ResetError, StreamId};
use tokio::io::{AsyncRead, ReadBuf};

use crate::error::{Error, application_error, end_of, wire_code};

/// Bytes read at a time.
const READ_SIZE: usize = 64 << 10;

/// The receiving half of a stream. If dropped before its end, the peer is asked to stop sending, with the error
/// code 0.
#[derive(Debug)]
pub struct RecvStream {
    stream: sutura::RecvStream,
    session: http::Session,
}

impl RecvStream {
    pub(crate) fn new(stream: sutura::RecvStream, session: http::Session) -> Self {
        Self { stream, session }
    }

    fn error(&self, error: ReadError) -> Error {
        match error {
            ReadError::Reset(code) => match application_error(code) {
                Some(error) => Error::Reset(Some(error)),
                None => end_of(&self.session).unwrap_or(Error::Reset(None)),
            },
            ReadError::ConnectionLost(error) => end_of(&self.session).unwrap_or(error.into()),
            _ => end_of(&self.session).unwrap_or(Error::ClosedStream),
        }
    }

    /// The stream's identifier.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Reads the next bytes into `out`, waiting for them. `None` at the end of the stream.
    ///
    /// # Errors
    /// The peer has reset the stream, or the session is over.
    pub async fn read(&mut self, out: &mut [u8]) -> Result<Option<usize>, Error> {
        self.stream.read(out).await.map_err(|error| self.error(error))
    }

    /// Reads the next bytes, at most `max`, without copying. `None` at the end of the stream.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, Error> {
        let chunk = self.stream.read_chunk(max, true).await.map_err(|error| self.error(error))?;
        Ok(chunk.map(|chunk| chunk.bytes))
    }

    /// Reads the rest of the stream.
    ///
    /// # Errors
    /// It is longer than `limit` bytes; else as [`read`](Self::read).
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(READ_SIZE).await? {
            if chunk.len() > limit - all.len() {
                return Err(Error::TooLong(limit));
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    /// Stops reading, and asks the peer to stop sending, with an error code of the application.
    ///
    /// # Errors
    /// The stream or the session is over.
    pub fn stop(&mut self, code: u32) -> Result<(), Error> {
        self.stream.stop(wire_code(code)).map_err(|error| self.error(error))
    }

    /// Waits until the peer has reset the stream; or until it cannot any more, because all data has arrived, was read,
    /// or the stream was stopped. Reads nothing.
    ///
    /// # Errors
    /// [`Error::Reset`]; the session is over.
    pub async fn received_reset(&mut self) -> Result<(), Error> {
        match self.stream.received_reset().await {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(self.error(ReadError::Reset(code))),
            Err(ResetError::ConnectionLost(error)) => Err(self.error(error.into())),
            Err(_) => Err(self.error(ReadError::ClosedStream)),
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        // Nothing happens if it was read to its end.
        let _ = self.stream.stop(wire_code(0));
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, out)
    }
}
