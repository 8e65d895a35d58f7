//! Connections, which open and accept streams.
//!
//! The futures of Sutura's connections keep no state between two polls: a waker stays registered when they
//! are dropped. So each poll here makes a new future.

use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};

use crate::error;
use crate::stream::{BidiStream, RecvStream, SendStream};

/// A connection, for `h3::client` and `h3::server`. Its streams must not be used otherwise.
#[derive(Debug)]
pub struct Connection {
    opener: Opener,
}

impl Connection {
    /// Wraps a connection.
    #[must_use]
    pub fn new(connection: sutura::Connection) -> Self {
        Self { opener: Opener { connection } }
    }

    /// The wrapped connection.
    #[must_use]
    pub fn inner(&self) -> &sutura::Connection {
        &self.opener.connection
    }
}

/// Opens the streams of a [`Connection`].
#[derive(Debug, Clone)]
pub struct Opener {
    connection: sutura::Connection,
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let accepted = ready!(pin!(self.opener.connection.accept_uni()).poll(cx));
        Poll::Ready(accepted.map(RecvStream::new).map_err(error::of_connection))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let accepted = ready!(pin!(self.opener.connection.accept_bi()).poll(cx));
        Poll::Ready(accepted.map(BidiStream::new).map_err(error::of_connection))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: h3::error::Code, reason: &[u8]) {
        quic::OpenStreams::<B>::close(&mut self.opener, code, reason);
    }
}

impl<B: Buf> quic::OpenStreams<B> for Opener {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        let opened = ready!(pin!(self.connection.open_bi()).poll(cx));
        Poll::Ready(opened.map(BidiStream::new).map_err(error::of_stream))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let opened = ready!(pin!(self.connection.open_uni()).poll(cx));
        Poll::Ready(opened.map(SendStream::new).map_err(error::of_stream))
    }

    fn close(&mut self, code: h3::error::Code, reason: &[u8]) {
        self.connection.close(code.value(), reason);
    }
}
