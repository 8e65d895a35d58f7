//! Streams.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::{fmt, io};

use bytes::{Buf, Bytes};
use h3::quic::{self, StreamErrorIncoming, StreamId, WriteBuf};
use sutura::WriteError;
use tokio::io::AsyncWrite;

use crate::error;

/// Bytes that are read at a time.
const READ_SIZE: usize = 64 * 1024;

/// The identifier of a stream as h3 has it. Sutura's have 62 bits, as h3's.
fn identifier(id: sutura::StreamId) -> StreamId {
    StreamId::try_from(id.0).unwrap_or_else(|_| unreachable!("stream identifiers have 62 bits"))
}

/// The sending half of a stream.
pub struct SendStream<B: Buf> {
    stream: sutura::SendStream,
    /// Data that h3 has given to be sent.
    pending: Option<WriteBuf<B>>,
}

impl<B: Buf> fmt::Debug for SendStream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl<B: Buf> SendStream<B> {
    pub(crate) const fn new(stream: sutura::SendStream) -> Self {
        Self { stream, pending: None }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        Pin::new(&mut self.stream).poll_write(cx, data).map_err(of_io)
    }
}

/// The error in an [`io::Error`] of a stream.
fn of_io(error: io::Error) -> StreamErrorIncoming {
    match error.downcast::<WriteError>() {
        Ok(error) => error::of_write(error),
        Err(error) => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(mut pending) = self.pending.take_if(|pending| pending.has_remaining()) {
            match self.poll_write(cx, pending.chunk()) {
                Poll::Ready(Ok(written)) => {
                    pending.advance(written);
                    self.pending = Some(pending);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.pending = Some(pending);
                    return Poll::Pending;
                }
            }
        }
        self.pending = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.pending.is_some() {
            let reason = "data is given before the stream is ready".into();
            return Err(StreamErrorIncoming::Unknown(reason));
        }
        self.pending = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        Poll::Ready(self.stream.finish().map_err(error::of_write))
    }

    fn reset(&mut self, reset_code: u64) {
        self.pending = None;
        // If the stream is over already, there is nothing to abandon.
        let _ = self.stream.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        identifier(self.stream.id())
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for SendStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        ready!(quic::SendStream::poll_ready(self, cx))?;
        let written = ready!(self.poll_write(cx, buf.chunk()))?;
        buf.advance(written);
        Poll::Ready(Ok(written))
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub struct RecvStream {
    stream: sutura::RecvStream,
}

impl RecvStream {
    pub(crate) fn new(mut stream: sutura::RecvStream) -> Self {
        // Frames make sense only in sequence, whatever the connection does by default. Nothing was
        // read yet, so that this can be chosen.
        let _ = stream.set_delivery(&sutura::policy::StreamOrder);
        Self { stream }
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let chunk = ready!(pin!(self.stream.read_chunk(READ_SIZE, true)).poll(cx));
        Poll::Ready(chunk.map(|chunk| chunk.map(|chunk| chunk.bytes)).map_err(error::of_read))
    }

    fn stop_sending(&mut self, error_code: u64) {
        let _ = self.stream.stop(error_code);
    }

    fn recv_id(&self) -> StreamId {
        identifier(self.stream.id())
    }
}

/// Both halves of a stream.
#[derive(Debug)]
pub struct BidiStream<B: Buf> {
    send: SendStream<B>,
    recv: RecvStream,
}

impl<B: Buf> BidiStream<B> {
    pub(crate) fn new((send, recv): (sutura::SendStream, sutura::RecvStream)) -> Self {
        Self { send: SendStream::new(send), recv: RecvStream::new(recv) }
    }
}

impl<B: Buf> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream<B>, RecvStream) {
        (self.send, self.recv)
    }
}

impl<B: Buf> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for BidiStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        self.send.poll_send(cx, buf)
    }
}

impl<B: Buf> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}
