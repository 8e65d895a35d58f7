//! The receiving half of a stream.

use crate::connection::Connection;
use bytes::Bytes;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use sutura_proto::{ConnectionError, StreamId};
use tokio::io::{AsyncRead, ReadBuf};

/// How much is taken from a stream at a time.
const READ_SIZE: usize = 64 * 1024;

/// Why a stream gives nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The peer gave up, for this reason of its application's.
    #[error("reset by peer: code {0}")]
    Reset(u64),
    /// The stream was stopped, or read to its end.
    #[error("stream closed")]
    ClosedStream,
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::ClosedStream | ReadError::ConnectionLost(_) => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

/// Why [`RecvStream::read_exact`] failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadExactError {
    /// The stream ended after this many bytes.
    #[error("stream ended after {0} bytes")]
    FinishedEarly(usize),
    /// The stream failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why [`RecvStream::read_to_end`] failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadToEndError {
    /// The stream is longer than the limit.
    #[error("stream longer than {0} bytes")]
    TooLong(usize),
    /// The stream failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The receiving half of a stream. Dropped before its end was read, it is stopped with code 0.
#[derive(Debug)]
pub struct RecvStream {
    connection: Connection,
    id: StreamId,
    ended: bool,
}

impl RecvStream {
    pub(crate) fn new(connection: Connection, id: StreamId) -> Self {
        Self { connection, id, ended: false }
    }

    /// The stream's identifier.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Reads what is next in order into `out`, waiting for it. `None` at the end of the stream.
    ///
    /// # Errors
    /// The stream failed.
    pub async fn read(&mut self, out: &mut [u8]) -> Result<Option<usize>, ReadError> {
        poll_fn(|cx| self.poll_read_bytes(cx, out)).await
    }

    /// Reads what is next in order, at most `max` bytes, without copying. `None` at the end.
    ///
    /// # Errors
    /// The stream failed.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max)).await
    }

    /// Fills `out`.
    ///
    /// # Errors
    /// The stream ended before, or failed.
    pub async fn read_exact(&mut self, out: &mut [u8]) -> Result<(), ReadExactError> {
        let mut filled = 0;
        while filled < out.len() {
            match self.read(&mut out[filled..]).await? {
                Some(n) => filled += n,
                None => return Err(ReadExactError::FinishedEarly(filled)),
            }
        }
        Ok(())
    }

    /// Reads all of the stream.
    ///
    /// # Errors
    /// There is more than `limit` bytes, or the stream failed.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(READ_SIZE).await? {
            if chunk.len() > limit - all.len() {
                return Err(ReadToEndError::TooLong(limit));
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    /// Says that nothing more will be read; the peer is asked to stop with `code`.
    ///
    /// # Errors
    /// The stream is over already.
    pub fn stop(&mut self, code: u64) -> Result<(), ReadError> {
        let mut state = self.connection.0.lock();
        let result = state.quic.recv_stream(self.id).stop(code);
        drop(state);
        self.connection.0.touch();
        self.ended = true;
        result.map_err(|_| ReadError::ClosedStream)
    }

    fn poll_read_bytes(
        &mut self,
        cx: &Context<'_>,
        out: &mut [u8],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if out.is_empty() {
            return Poll::Ready(Ok(Some(0)));
        }
        match ready!(self.poll_with(cx, |s| s.read(out)))? {
            sutura_proto::Read::Data(n) => Poll::Ready(Ok(Some(n))),
            sutura_proto::Read::Fin => {
                self.ended = true;
                Poll::Ready(Ok(None))
            }
        }
    }

    fn poll_read_chunk(
        &mut self,
        cx: &Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        let chunk = ready!(self.poll_with(cx, |s| s.read_chunk(max)))?;
        self.ended |= chunk.is_none();
        Poll::Ready(Ok(chunk))
    }

    fn poll_with<T>(
        &mut self,
        cx: &Context<'_>,
        mut read: impl FnMut(&mut sutura_proto::RecvStream<'_>) -> Result<T, sutura_proto::ReadError>,
    ) -> Poll<Result<T, ReadError>> {
        let mut state = self.connection.0.lock();
        // What arrived before the end of the connection can still be read.
        match read(&mut state.quic.recv_stream(self.id)) {
            Ok(value) => {
                let credit = state.quic.wants_to_grant_credit();
                drop(state);
                if credit {
                    self.connection.0.touch();
                }
                Poll::Ready(Ok(value))
            }
            Err(sutura_proto::ReadError::Blocked) => {
                state.check()?;
                state.wait_readable(self.id, cx);
                Poll::Pending
            }
            Err(sutura_proto::ReadError::Reset(code)) => {
                self.ended = true;
                Poll::Ready(Err(ReadError::Reset(code)))
            }
            Err(sutura_proto::ReadError::Closed) => {
                self.ended = true;
                Poll::Ready(Err(ReadError::ClosedStream))
            }
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let mut state = self.connection.0.lock();
        state.forget_receiver(self.id);
        if !self.ended && state.error.is_none() && state.quic.recv_stream(self.id).stop(0).is_ok() {
            drop(state);
            self.connection.0.touch();
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n = ready!(self.get_mut().poll_read_bytes(cx, out.initialize_unfilled()))?;
        out.advance(n.unwrap_or(0));
        Poll::Ready(Ok(()))
    }
}
