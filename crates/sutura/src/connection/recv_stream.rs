//! The receiving half of a stream.

use super::{Connection, State};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::MutexGuard;
use std::task::{Context, Poll, ready};
use sutura_proto::policy::DeliveryFactory;
use sutura_proto::{Chunk, ConnectionError, StreamId};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes taken from a stream at a time.
const READ_SIZE: usize = 64 * 1024;

/// Why a read failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer reset the stream, with this error code of its application.
    #[error("reset by peer: code {0}")]
    Reset(u64),
    /// The stream was stopped, or has been read to its end.
    #[error("stream closed")]
    ClosedStream,
    /// The stream's bytes are not delivered in order, so a read without offsets makes no sense.
    #[error("ordered read of a stream that is delivered out of order")]
    IllegalOrderedRead,
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was opened in 0-RTT, which the server does not accept. It never existed for the server.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Reset(_) | ReadError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            ReadError::ClosedStream | ReadError::ConnectionLost(_) => io::ErrorKind::NotConnected,
            ReadError::IllegalOrderedRead => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

/// Why [`RecvStream::received_reset`] failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResetError {
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was opened in 0-RTT, which the server does not accept.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

/// Why [`RecvStream::read_exact`] failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
#[non_exhaustive]
pub enum ReadToEndError {
    /// The stream is longer than the limit.
    #[error("stream longer than {0} bytes")]
    TooLong(usize),
    /// The stream failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The receiving half of a stream. If dropped before its end was read, it is stopped with code 0.
///
/// All methods read in stream order, except [`read_chunk`](Self::read_chunk) with `ordered`
/// false.
#[derive(Debug)]
pub struct RecvStream {
    connection: Connection,
    id: StreamId,
    ended: bool,
    /// Whether it was opened in 0-RTT.
    early: bool,
}

impl RecvStream {
    pub(crate) fn new(connection: Connection, id: StreamId, early: bool) -> Self {
        Self { connection, id, ended: false, early }
    }

    /// The connection's state; an error if the stream was opened in 0-RTT that the server rejected.
    fn lock(&self) -> Result<MutexGuard<'_, State>, ReadError> {
        let state = self.connection.0.lock();
        if state.is_void(self.early) { Err(ReadError::ZeroRttRejected) } else { Ok(state) }
    }

    /// Whether some of the data came in 0-RTT packets and the handshake is not complete yet: it may
    /// then be a copy that an attacker has sent again (RFC 9001 section 9.2). Once the handshake is
    /// complete, it is certain that the client has sent it on this connection.
    #[must_use]
    pub fn is_0rtt(&self) -> bool {
        self.connection.0.lock().quic.recv_stream(self.id).is_0rtt()
    }

    /// The stream's identifier.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Reads the next bytes in order into `out`, waiting for them. `None` at the end of the stream.
    ///
    /// # Errors
    /// The stream failed, or is not delivered in order.
    pub async fn read(&mut self, out: &mut [u8]) -> Result<Option<usize>, ReadError> {
        poll_fn(|cx| self.poll_read_bytes(cx, out)).await
    }

    /// Reads the next bytes, at most `max`, without copying. `None` at the end, after all bytes.
    ///
    /// With `ordered`, these are the next bytes in stream order. Without, they are any bytes that
    /// have arrived: they need not wait for lost bytes before them, and the chunk's offset says
    /// where they belong. The first unordered read switches the stream to
    /// [`ArrivalOrder`](sutura_proto::policy::ArrivalOrder) for good, unless it already has an
    /// unordered [delivery](Self::set_delivery); ordered reads fail from then on. Either way each
    /// byte is read once, and reading gives the peer flow-control credit.
    ///
    /// ```no_run
    /// # async fn run(mut recv: sutura::RecvStream) -> Result<(), sutura::ReadError> {
    /// // A picture of known size, drawn as it comes.
    /// let mut picture = vec![0; 640 * 480 * 3];
    /// while let Some(chunk) = recv.read_chunk(usize::MAX, false).await? {
    ///     let start = usize::try_from(chunk.offset).unwrap_or(usize::MAX);
    ///     let end = start.saturating_add(chunk.bytes.len());
    ///     if let Some(pixels) = picture.get_mut(start..end) {
    ///         pixels.copy_from_slice(&chunk.bytes);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The stream failed; or `ordered` was set and the stream is not delivered in order.
    pub async fn read_chunk(
        &mut self,
        max: usize,
        ordered: bool,
    ) -> Result<Option<Chunk>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max, ordered)).await
    }

    /// Sets the delivery, made by `factory`, that decides which bytes are read next from now on. It
    /// does not affect bytes already read. Streams begin with
    /// [`TransportConfig::delivery`](crate::TransportConfig::delivery).
    ///
    /// Switching back to an ordered delivery is possible only until an unordered one has read a
    /// byte: after that there may be holes, which an ordered read could not report.
    ///
    /// # Errors
    /// The stream was already read to its end or stopped; or it is too late for an ordered delivery
    /// ([`ReadError::IllegalOrderedRead`]), and nothing changes.
    pub fn set_delivery(&mut self, factory: &dyn DeliveryFactory) -> Result<(), ReadError> {
        let mut state = self.lock()?;
        state.quic.recv_stream(self.id).set_delivery(factory).map_err(|error| match error {
            sutura_proto::ReadError::IllegalOrderedRead => ReadError::IllegalOrderedRead,
            _ => ReadError::ClosedStream,
        })
    }

    /// Reads exactly enough bytes to fill `out`.
    ///
    /// # Errors
    /// The stream failed, or ended too early.
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

    /// Reads the whole stream, in order.
    ///
    /// # Errors
    /// The stream is longer than `limit` bytes, it failed, or it is not delivered in order.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(READ_SIZE, true).await? {
            if chunk.bytes.len() > limit - all.len() {
                return Err(ReadToEndError::TooLong(limit));
            }
            all.extend_from_slice(&chunk.bytes);
        }
        Ok(all)
    }

    /// Stops reading and asks the peer to stop sending, with `code`.
    ///
    /// # Errors
    /// The stream is over already.
    pub fn stop(&mut self, code: u64) -> Result<(), ReadError> {
        let mut state = self.lock()?;
        let result = state.quic.recv_stream(self.id).stop(code);
        drop(state);
        self.connection.0.touch();
        self.ended = true;
        result.map_err(|_| ReadError::ClosedStream)
    }

    /// Waits until the peer has reset the stream, and returns its code; or until it cannot any more, because all
    /// data has arrived, was read, or the stream was stopped: `None`. Reads nothing, and may be asked again. A
    /// reset that lets some bytes through (RESET_STREAM_AT) is seen when these can be read, at the latest.
    ///
    /// # Errors
    /// The connection is over, or the stream was opened in 0-RTT that the server rejected.
    pub async fn received_reset(&mut self) -> Result<Option<u64>, ResetError> {
        poll_fn(|cx| {
            let mut state = self.connection.0.lock();
            if state.is_void(self.early) {
                return Poll::Ready(Err(ResetError::ZeroRttRejected));
            }
            if let Ok(code) = state.quic.recv_stream(self.id).received_reset_code() {
                return Poll::Ready(Ok(code));
            }
            state.check()?;
            state.wait_readable(self.id, cx);
            Poll::Pending
        })
        .await
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
        ordered: bool,
    ) -> Poll<Result<Option<Chunk>, ReadError>> {
        let chunk = ready!(self.poll_with(cx, |s| s.read_chunk(max, ordered)))?;
        self.ended |= chunk.is_none();
        Poll::Ready(Ok(chunk))
    }

    fn poll_with<T>(
        &mut self,
        cx: &Context<'_>,
        mut read: impl FnMut(&mut sutura_proto::RecvStream<'_>) -> Result<T, sutura_proto::ReadError>,
    ) -> Poll<Result<T, ReadError>> {
        let mut state = self.connection.0.lock();
        if state.is_void(self.early) {
            return Poll::Ready(Err(ReadError::ZeroRttRejected));
        }
        // Data that arrived before the end of the connection can still be read.
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
            Err(sutura_proto::ReadError::IllegalOrderedRead) => {
                Poll::Ready(Err(ReadError::IllegalOrderedRead))
            }
            Err(_) => {
                self.ended = true;
                Poll::Ready(Err(ReadError::ClosedStream))
            }
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let Ok(mut state) = self.lock() else { return };
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
