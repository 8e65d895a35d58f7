//! Opening and accepting the streams of a connection.

use super::Connection;
use super::opening::Opening;
use super::recv_stream::RecvStream;
use super::send_stream::SendStream;
use crate::sync::enlist;
use std::future::poll_fn;
use std::task::{Context, Poll};
use sutura_proto::{ConnectionError, Dir, StreamId};

impl Connection {
    /// Opens a bidirectional stream, waiting until the peer allows one more. The peer learns of the stream
    /// when data is sent on it.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let (id, early) = self.open(Dir::Bi).await?;
        Ok((SendStream::new(self.clone(), id, early), RecvStream::new(self.clone(), id, early)))
    }

    /// Opens a unidirectional stream, waiting until the peer allows one more.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let (id, early) = self.open(Dir::Uni).await?;
        Ok(SendStream::new(self.clone(), id, early))
    }

    /// Opens a stream; the flag says whether in 0-RTT.
    async fn open(&self, dir: Dir) -> Result<(StreamId, bool), ConnectionError> {
        let mut opening = Opening::new(&self.0, dir);
        poll_fn(|cx| {
            let mut state = self.0.lock();
            state.check()?;
            if let Some(id) = state.quic.open(dir) {
                opening.done(&mut state);
                return Poll::Ready(Ok((id, state.quic.is_sending_0rtt())));
            }
            opening.wait(&mut state, cx);
            drop(state);
            // Tells the peer that a stream is wanted.
            self.0.touch();
            Poll::Pending
        })
        .await
    }

    /// Waits for the next bidirectional stream that the peer opens.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = poll_fn(|cx| self.poll_accept(cx, Dir::Bi)).await?;
        Ok((SendStream::new(self.clone(), id, false), RecvStream::new(self.clone(), id, false)))
    }

    /// Waits for the next unidirectional stream that the peer opens.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        let id = poll_fn(|cx| self.poll_accept(cx, Dir::Uni)).await?;
        Ok(RecvStream::new(self.clone(), id, false))
    }

    fn poll_accept(&self, cx: &Context<'_>, dir: Dir) -> Poll<Result<StreamId, ConnectionError>> {
        let mut state = self.0.lock();
        if let Some(id) = state.quic.accept(dir) {
            return Poll::Ready(Ok(id));
        }
        state.check()?;
        enlist(&mut state.waiters.accept[dir.index()], cx);
        Poll::Pending
    }
}
