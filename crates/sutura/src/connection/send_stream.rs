//! The sending half of a stream.

use super::{Connection, State};
use bytes::Bytes;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::MutexGuard;
use std::task::{Context, Poll};
use sutura_proto::{
    ConnectionError, Message, Outcome, Priority, Protection, ResetAtError, StreamId,
};
use tokio::io::AsyncWrite;

/// Why a write failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer stopped the stream, with this error code of its application.
    #[error("stopped by peer: code {0}")]
    Stopped(u64),
    /// The stream was finished or reset.
    #[error("stream closed")]
    ClosedStream,
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was opened in 0-RTT, which the server does not accept. It never existed for the server.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

/// Why the outcome of a stream is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoppedError {
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was opened in 0-RTT, which the server does not accept. It never existed for the server.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Stopped(_) | WriteError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            WriteError::ClosedStream | WriteError::ConnectionLost(_) => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

/// The sending half of a stream. If dropped without [`finish`](Self::finish) or
/// [`reset`](Self::reset), it is finished.
#[derive(Debug)]
pub struct SendStream {
    connection: Connection,
    id: StreamId,
    /// Whether it was opened in 0-RTT.
    early: bool,
}

impl SendStream {
    pub(crate) fn new(connection: Connection, id: StreamId, early: bool) -> Self {
        Self { connection, id, early }
    }

    /// The connection's state; an error if the stream was opened in 0-RTT that the server rejected.
    fn lock(&self) -> Result<MutexGuard<'_, State>, WriteError> {
        let state = self.connection.0.lock();
        if state.is_void(self.early) { Err(WriteError::ZeroRttRejected) } else { Ok(state) }
    }

    /// Changes the stream without sending anything.
    fn change(
        &self,
        change: impl FnOnce(&mut sutura_proto::SendStream<'_>) -> Result<(), sutura_proto::WriteError>,
    ) -> Result<(), WriteError> {
        change(&mut self.lock()?.quic.send_stream(self.id)).map_err(convert)
    }

    /// The stream's identifier.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Writes as much of `data` as there is room for, waiting for room if there is none. Returns
    /// the number of bytes written.
    ///
    /// # Errors
    /// The stream accepts no more data.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_bytes(cx, data)).await
    }

    /// Writes all of `data`.
    ///
    /// # Errors
    /// The stream accepts no more data; how much of `data` it accepted is not known.
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        while !data.is_empty() {
            let n = self.write(data).await?;
            data = &data[n..];
        }
        Ok(())
    }

    /// Writes all of `data` without copying it.
    ///
    /// # Errors
    /// The stream accepts no more data; how much of `data` it accepted is not known.
    pub async fn write_chunk(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        while !data.is_empty() {
            let n = poll_fn(|cx| {
                let offer = data.clone();
                self.poll_with(cx, |s| s.write_chunk(offer.clone()))
            })
            .await?;
            let _ = data.split_to(n);
        }
        Ok(())
    }

    fn poll_write_bytes(&self, cx: &Context<'_>, data: &[u8]) -> Poll<Result<usize, WriteError>> {
        self.poll_with(cx, |s| s.write(data))
    }

    fn poll_with(
        &self,
        cx: &Context<'_>,
        mut write: impl FnMut(
            &mut sutura_proto::SendStream<'_>,
        ) -> Result<usize, sutura_proto::WriteError>,
    ) -> Poll<Result<usize, WriteError>> {
        let mut state = self.lock()?;
        state.check()?;
        let result = write(&mut state.quic.send_stream(self.id));
        if result == Err(sutura_proto::WriteError::Blocked) {
            state.wait_writable(self.id, cx);
            return Poll::Pending;
        }
        drop(state);
        self.connection.0.touch();
        Poll::Ready(result.map_err(convert))
    }

    /// Ends the stream after the data written so far. Does not wait for anything.
    ///
    /// # Errors
    /// The stream is already finished, or the peer stopped it.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let mut state = self.lock()?;
        state.check()?;
        state.quic.send_stream(self.id).finish().map_err(convert)?;
        drop(state);
        self.connection.0.touch();
        Ok(())
    }

    /// Abandons the stream: unacknowledged data is not sent again, and the peer receives `code`.
    ///
    /// # Errors
    /// The stream is already over.
    pub fn reset(&mut self, code: u64) -> Result<(), WriteError> {
        let mut state = self.lock()?;
        state.check()?;
        state.quic.send_stream(self.id).reset(code).map_err(convert)?;
        drop(state);
        self.connection.0.touch();
        Ok(())
    }

    /// Abandons the stream beyond its first `reliable_size` bytes, or beyond all written bytes if these are
    /// fewer (draft-ietf-quic-reliable-stream-reset): the first bytes still reach the peer, which then
    /// receives `code`. May be called again for fewer bytes, which leaves the code as it was.
    ///
    /// # Errors
    /// The peer cannot do this, or the stream is already over.
    pub fn reset_at(&mut self, code: u64, reliable_size: u64) -> Result<(), ResetAtError> {
        let mut state = self.connection.0.lock();
        state.check().map_err(|_| ResetAtError::Closed)?;
        state.quic.send_stream(self.id).reset_at(code, reliable_size)?;
        drop(state);
        self.connection.0.touch();
        Ok(())
    }

    /// Waits until the peer has acknowledged everything up to the end (`None`), or has stopped the
    /// stream (its error code).
    ///
    /// # Errors
    /// The connection is over, or the stream was opened in 0-RTT, which the server does not accept.
    pub async fn stopped(&mut self) -> Result<Option<u64>, StoppedError> {
        poll_fn(|cx| {
            let mut state = self.lock().map_err(|_| StoppedError::ZeroRttRejected)?;
            state.check()?;
            match state.quic.send_stream(self.id).outcome() {
                None => {
                    state.wait_finished(self.id, cx);
                    Poll::Pending
                }
                Some(Outcome::Finished) => Poll::Ready(Ok(None)),
                Some(Outcome::Stopped(code)) => Poll::Ready(Ok(Some(code))),
            }
        })
        .await
    }

    /// Sets the priority with which the stream competes with other streams.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn set_priority(&self, priority: Priority) -> Result<(), WriteError> {
        self.change(|stream| stream.set_priority(priority))
    }

    /// The stream's priority.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn priority(&self) -> Result<Priority, WriteError> {
        self.lock()?.quic.send_stream(self.id).priority().map_err(convert)
    }

    /// Turns protection by erasure coding on or off for data sent from now on (`burst` is the burst
    /// loss tolerance, `delay` the repair delay tolerance). Has no effect if the peer cannot
    /// decode.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn protect(&self, protection: Option<Protection>) -> Result<(), WriteError> {
        self.change(|stream| stream.protect(protection))
    }

    /// Declares that the data written next is one message, so that policies know its size and its
    /// deadline. The data sent is the same.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn announce(&self, message: Message) -> Result<(), WriteError> {
        self.change(|stream| stream.announce(message))
    }
}

fn convert(error: sutura_proto::WriteError) -> WriteError {
    match error {
        sutura_proto::WriteError::Stopped(code) => WriteError::Stopped(code),
        _ => WriteError::ClosedStream,
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let Ok(mut state) = self.lock() else { return };
        state.forget_sender(self.id);
        if state.error.is_none() && state.quic.send_stream(self.id).finish().is_ok() {
            drop(state);
            self.connection.0.touch();
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_bytes(cx, data).map_err(Into::into)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.finish().map_err(Into::into))
    }
}
