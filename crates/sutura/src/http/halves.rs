//! The halves of an exchange.

use super::exchange::{Piece, Response, SharedExchange};
use super::types::{fields_of, response_fields, trailers_of};
use super::{Body, Code, DefaultProtection, Error, Extension, Priority};
use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use std::fmt::Display;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use sutura_h3::Fields;
use sutura_proto::{Priority as StreamPriority, Protection, StreamId};

/// The half of an exchange that sends this end's message. If dropped before that is complete, the
/// message is abandoned.
#[derive(Debug)]
pub struct SendHalf {
    shared: Arc<SharedExchange>,
}

impl SendHalf {
    pub(super) fn new(shared: Arc<SharedExchange>) -> Self {
        Self { shared }
    }

    /// The stream that carries the exchange.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.shared.id()
    }

    /// As [`RequestStream::priority`](super::RequestStream::priority).
    #[must_use]
    pub fn priority(&self) -> Option<Priority> {
        self.shared.priority()
    }

    /// As [`RequestStream::set_extension`](super::RequestStream::set_extension).
    ///
    /// # Errors
    /// The response is not remembered any more, this is a client, or the connection is over.
    pub fn set_extension(&self, extension: Option<Extension>) -> Result<(), Error> {
        self.shared.set_extension(extension)
    }

    /// As [`RequestStream::default_protection`](super::RequestStream::default_protection).
    #[must_use]
    pub fn default_protection(&self) -> Option<DefaultProtection> {
        self.shared.default_protection()
    }

    /// Sets how what this end sends competes with the other streams of the connection, and tells nobody. For
    /// exchanges of CONNECT, whose data changes its nature: their ends know best what they send. Wishes of the
    /// client's that come later (RFC 9218 section 7) replace it.
    ///
    /// # Errors
    /// This end's message is complete or abandoned, or the connection is over.
    pub fn set_stream_priority(&self, priority: StreamPriority) -> Result<(), Error> {
        self.shared.set_stream_priority(priority)
    }

    /// Protects what this end sends from now on by erasure coding, or not at all, as
    /// [`SendStream::protect`](crate::SendStream::protect).
    ///
    /// # Errors
    /// As [`set_stream_priority`](Self::set_stream_priority).
    pub fn protect(&self, protection: Option<Protection>) -> Result<(), Error> {
        self.shared.protect(protection)
    }

    /// Protects what this end sends from now on as other streams of the connection are by default.
    ///
    /// # Errors
    /// As [`set_stream_priority`](Self::set_stream_priority).
    pub fn protect_by_default(&self) -> Result<(), Error> {
        self.shared.protect_by_default()
    }

    /// Sends the head of a response; interim responses (1xx) may precede the final one.
    ///
    /// # Errors
    /// The fields are malformed, the client does not want the response, or the connection is over.
    pub async fn send_head(&mut self, head: &::http::response::Parts) -> Result<(), Error> {
        self.shared.send_response(&response_fields(head)).await
    }

    /// As [`RequestStream::announce_body`](super::RequestStream::announce_body).
    ///
    /// # Errors
    /// Announced bytes are still to be sent, the peer does not want the body, or the connection is over.
    pub async fn announce_body(&mut self, length: u64) -> Result<(), Error> {
        self.shared.announce_body(length).await
    }

    /// As [`RequestStream::body_room`](super::RequestStream::body_room).
    ///
    /// # Errors
    /// As [`send_data`](Self::send_data).
    pub async fn body_room(&mut self) -> Result<usize, Error> {
        self.shared.body_room().await
    }

    /// Sends a part of the body, waiting until earlier data has left the buffers.
    ///
    /// # Errors
    /// The peer does not want the body, or the connection is over.
    pub async fn send_data(&mut self, data: Bytes) -> Result<(), Error> {
        self.shared.send_data(data).await
    }

    /// Ends this end's message with trailers.
    ///
    /// # Errors
    /// The fields are malformed, the peer does not want them, or the connection is over.
    pub async fn send_trailers(&mut self, trailers: &::http::HeaderMap) -> Result<(), Error> {
        self.shared.send_trailers(&fields_of(Fields::new(), trailers)).await
    }

    /// Ends this end's message.
    ///
    /// # Errors
    /// The peer does not want the message, or the connection is over.
    pub async fn finish(&mut self) -> Result<(), Error> {
        self.shared.finish().await
    }

    /// Sends all of `body`, and ends this end's message.
    ///
    /// # Errors
    /// As [`send_data`](Self::send_data); [`Error::Body`] if the body fails, and then the message is
    /// abandoned.
    pub async fn send_body<B>(&mut self, body: B) -> Result<(), Error>
    where
        B: http_body::Body,
        B::Error: Display,
    {
        let mut body = pin!(body);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                self.shared.stop_sending();
                Error::Body(error.to_string())
            })?;
            match frame.into_data() {
                Ok(mut data) => self.send_data(data.copy_to_bytes(data.remaining())).await?,
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        return self.send_trailers(&trailers).await;
                    }
                }
            }
        }
        self.finish().await
    }

    /// Abandons the exchange with `code`, also what the peer still sends.
    pub fn reset(&mut self, code: Code) {
        self.shared.cancel(code);
    }

    /// Waits until the peer does not want this end's message any more, or the connection is over.
    pub async fn unwanted(&self) {
        self.shared.unwanted().await;
    }
}

impl Drop for SendHalf {
    fn drop(&mut self) {
        self.shared.stop_sending();
    }
}

/// The half of an exchange that receives the peer's message. If dropped before that is complete, the
/// peer is told that the rest is not needed.
#[derive(Debug)]
pub struct RecvHalf {
    shared: Arc<SharedExchange>,
}

impl RecvHalf {
    pub(super) fn new(shared: Arc<SharedExchange>) -> Self {
        Self { shared }
    }

    /// The stream that carries the exchange.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.shared.id()
    }

    /// The peer's body, from where it has been read to.
    #[must_use]
    pub fn into_body(self) -> Body {
        Body::new(self, None)
    }

    /// As [`RequestStream::recv_response`](super::RequestStream::recv_response).
    ///
    /// # Errors
    /// The server abandons the response or sends a malformed one, or the connection is over.
    pub async fn recv_response(&mut self) -> Result<Response, Error> {
        Ok(Response::new(&self.shared.recv_head().await?))
    }

    /// As [`RequestStream::recv_data`](super::RequestStream::recv_data).
    ///
    /// # Errors
    /// The peer abandons its message, or the connection is over; [`Error::OutOfOrder`] if
    /// [`recv_piece`](Self::recv_piece) has left out bytes that have not come yet.
    pub async fn recv_data(&mut self) -> Result<Option<Bytes>, Error> {
        poll_fn(|cx| self.shared.poll_data(cx)).await
    }

    /// As [`RequestStream::recv_piece`](super::RequestStream::recv_piece).
    ///
    /// # Errors
    /// The peer abandons its message, or the connection is over.
    pub async fn recv_piece(&mut self) -> Result<Option<Piece>, Error> {
        poll_fn(|cx| self.shared.poll_piece(cx)).await
    }

    pub(super) async fn recv_head(&self) -> Result<Fields, Error> {
        self.shared.recv_head().await
    }

    pub(super) fn poll_data(&self, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        self.shared.poll_data(cx)
    }

    pub(super) fn poll_trailers(
        &self,
        cx: &Context<'_>,
    ) -> Poll<Result<Option<::http::HeaderMap>, Error>> {
        self.shared.poll_trailers(cx).map(|trailers| trailers?.map(trailers_of).transpose())
    }

    pub(super) fn is_read(&self) -> bool {
        self.shared.is_read()
    }
}

impl Drop for RecvHalf {
    fn drop(&mut self) {
        self.shared.stop_receiving();
    }
}
