//! A request and its response, at either end.

use super::state::HttpState;
use super::{DefaultProtection, Error, Extension, Priority, RecvHalf, SendHalf};
use crate::connection::{Connection, State};
use bytes::{Buf, Bytes, BytesMut};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::Instant;
use sutura_h3::{BodyPiece, CapsuleReader, Code, Field, Fields, Quic, ReceiveError, SendError};
use sutura_proto::{Priority as StreamPriority, Protection, StreamId, WriteError};

/// Bytes of body read at a time.
const READ_SIZE: usize = 64 * 1024;

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The fields, without pseudo-header fields.
    pub fields: Vec<(String, Vec<u8>)>,
}

impl Response {
    pub(super) fn new(head: &Fields) -> Self {
        Self { status: head.status().unwrap_or(0), fields: plain_fields(head) }
    }
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// Where in the body it begins, in bytes.
    pub offset: u64,
    /// Its bytes.
    pub data: Bytes,
}

/// An exchange: this end's message goes out and the peer's comes in. If dropped before both are complete, the
/// exchange is cancelled.
#[derive(Debug)]
pub struct RequestStream {
    shared: Arc<SharedExchange>,
    /// The capsules in the peer's data, if the application reads them.
    pub(super) capsules: Option<CapsuleReader>,
}

/// The state that the halves of an exchange share. When it is dropped, an incomplete message is cancelled.
#[derive(Debug)]
pub(super) struct SharedExchange {
    connection: Connection,
    id: StreamId,
    sent_all: AtomicBool,
    received_all: AtomicBool,
    /// Whether the driver was notified of the request.
    announced: AtomicBool,
    /// Whether a client opened it in 0-RTT.
    early: bool,
}

/// Fields without pseudo-header fields, for applications.
pub(super) fn plain_fields(fields: &Fields) -> Vec<(String, Vec<u8>)> {
    let plain = fields.iter().filter(|f| !f.name.starts_with(b":"));
    plain.map(|f| (String::from_utf8_lossy(&f.name).into_owned(), f.value.to_vec())).collect()
}

pub(super) fn push_fields(into: &mut Fields, fields: &[(&str, &[u8])]) {
    for (name, value) in fields {
        into.push(Field::new(name.as_bytes().to_vec(), value.to_vec()));
    }
}

pub(super) fn send_error(error: SendError) -> Error {
    match error {
        SendError::GoingAway => Error::GoingAway,
        SendError::Stopped(code) => Error::Stopped(code),
        SendError::Connection(error) => Error::Protocol(error),
        other => Error::Invalid(other),
    }
}

/// Calls `f` with the HTTP/3 state of a connection and its transport.
pub(super) fn with_http<T>(
    state: &mut State,
    f: impl FnOnce(&mut HttpState, &mut Quic<'_>) -> T,
) -> Result<T, Error> {
    state.check()?;
    with_what_arrived(state, f)
}

/// Like [`with_http`], but also works on a closed connection, so that received data can still be
/// read.
fn with_what_arrived<T>(
    state: &mut State,
    f: impl FnOnce(&mut HttpState, &mut Quic<'_>) -> T,
) -> Result<T, Error> {
    let State { quic, uppers, .. } = state;
    let http: &mut HttpState = uppers.get().ok_or(Error::GoingAway)?;
    http.check()?;
    let result = f(http, &mut Quic { now: Instant::now(), connection: quic });
    http.pump();
    Ok(result)
}

impl RequestStream {
    pub(super) fn new(connection: Connection, id: StreamId, early: bool) -> Self {
        let shared = SharedExchange {
            connection,
            id,
            sent_all: AtomicBool::new(false),
            received_all: AtomicBool::new(false),
            announced: AtomicBool::new(false),
            early,
        };
        Self { shared: Arc::new(shared), capsules: None }
    }

    /// The two halves, for two tasks.
    #[must_use]
    pub fn split(self) -> (SendHalf, RecvHalf) {
        (SendHalf::new(Arc::clone(&self.shared)), RecvHalf::new(self.shared))
    }

    /// On a server: whether some of the request came in 0-RTT packets and the handshake is not complete
    /// yet. The request may then be a copy that an attacker has sent again. If it must not be done twice,
    /// wait for [`Connection::handshake_complete`], or answer with 425 (Too Early, RFC 8470 section 5.2),
    /// upon which the client sends the request again.
    #[must_use]
    pub fn is_0rtt(&self) -> bool {
        self.connection().0.lock().quic.recv_stream(self.id()).is_0rtt()
    }

    /// The stream that carries the exchange.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.shared.id
    }

    /// The connection that carries the exchange.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.shared.connection
    }

    /// The response's priority as this end knows it: the one that the client asked for last, overridden by
    /// the `priority` field of the response (RFC 9218 section 8). `None` once the whole response has been
    /// handed over, or the connection is over.
    #[must_use]
    pub fn priority(&self) -> Option<Priority> {
        self.shared.priority()
    }

    /// On a server: gives the scheduler information about the response that no `priority` field has, such as
    /// the kind of resource. It is in effect at once, whatever the client asks for later, and can be changed
    /// while the response is being sent; once the whole response has been handed over, only if it had an
    /// extension or a `priority` field before.
    ///
    /// # Errors
    /// The response is not remembered any more, this is a client, or the connection is over.
    pub fn set_extension(&self, extension: Option<Extension>) -> Result<(), Error> {
        self.shared.set_extension(extension)
    }

    /// On a server: the entry of [`Config::protections`](super::Config::protections) that protects the
    /// response, if neither the response nor the request names a protection. `None` as for
    /// [`priority`](Self::priority), too.
    #[must_use]
    pub fn default_protection(&self) -> Option<DefaultProtection> {
        self.shared.default_protection()
    }

    /// Sends the head of a response; interim responses (1xx) may precede the final one.
    ///
    /// # Errors
    /// The fields are malformed, the client does not want the response, or the connection is over.
    pub async fn send_response(
        &mut self,
        status: u16,
        fields: &[(&str, &[u8])],
    ) -> Result<(), Error> {
        let mut head = Fields::response(status);
        push_fields(&mut head, fields);
        self.shared.send_response(&head).await
    }

    /// Announces the next `length` bytes of body, so that the peer can read them in any order
    /// ([`recv_piece`](Self::recv_piece)). They are sent in one DATA frame, and nothing else before its end.
    ///
    /// # Errors
    /// Announced bytes are still to be sent, the peer does not want the body, or the connection is over.
    pub async fn announce_body(&mut self, length: u64) -> Result<(), Error> {
        self.shared.announce_body(length).await
    }

    /// Waits until some of the body can be sent, and returns how many bytes there is room for: an application
    /// that fetches no more bytes from their source holds nothing for a peer that does not read.
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

    /// Sends as much of a part of the body as there is room for now, and returns how many bytes that is. For
    /// applications that can fetch the rest again, and so need not hold data for a peer that does not read.
    ///
    /// # Errors
    /// As [`send_data`](Self::send_data).
    pub fn try_send_data(&mut self, data: Bytes) -> Result<usize, Error> {
        self.shared.try_send_data(data)
    }

    /// Ends this end's message with trailers.
    ///
    /// # Errors
    /// The fields are malformed, the peer does not want them, or the connection is over.
    pub async fn send_trailers(&mut self, fields: &[(&str, &[u8])]) -> Result<(), Error> {
        let mut trailers = Fields::new();
        push_fields(&mut trailers, fields);
        self.shared.send_trailers(&trailers).await
    }

    /// Ends this end's message.
    ///
    /// # Errors
    /// The peer does not want the message, or the connection is over.
    pub async fn finish(&mut self) -> Result<(), Error> {
        self.shared.finish().await
    }

    /// Waits for the next interim response (1xx, RFC 9110 section 15.2); `None` once the final one is
    /// there. Interim responses that nobody asks for are skipped.
    ///
    /// # Errors
    /// As [`Self::recv_response`].
    pub async fn recv_interim(&mut self) -> Result<Option<Response>, Error> {
        let head = poll_fn(|cx| {
            self.shared.receive(|http, id, _| {
                let exchange = http.exchange(id);
                if let Some(head) = exchange.interim.pop_front() {
                    return Poll::Ready(Ok(Some(head)));
                }
                if exchange.head.is_some() {
                    return Poll::Ready(Ok(None));
                }
                wait_or_fail(exchange, cx)
            })
        })
        .await?;
        Ok(head.as_ref().map(Response::new))
    }

    /// Waits for the head of the final response.
    ///
    /// # Errors
    /// The server abandons the response or sends a malformed one, or the connection is over.
    pub async fn recv_response(&mut self) -> Result<Response, Error> {
        Ok(Response::new(&self.shared.recv_head().await?))
    }

    /// Waits for the next part of the peer's body; `None` at its end.
    ///
    /// # Errors
    /// The peer abandons its message, or the connection is over; [`Error::OutOfOrder`] if
    /// [`recv_piece`](Self::recv_piece) has left out bytes that have not come yet.
    pub async fn recv_data(&mut self) -> Result<Option<Bytes>, Error> {
        poll_fn(|cx| self.shared.poll_data(cx)).await
    }

    /// Waits for a piece of the peer's body in the order of arrival, also if bytes before it are missing;
    /// each byte is returned once. `None` at the end of the body.
    ///
    /// A piece of an [announced](Self::announce_body) body does not wait for lost data. Otherwise a piece
    /// waits until the DATA frames before its own are complete, since only then it is known to be body (RFC
    /// 9114 section 4.1).
    ///
    /// # Errors
    /// The peer abandons its message, or the connection is over.
    pub async fn recv_piece(&mut self) -> Result<Option<Piece>, Error> {
        poll_fn(|cx| self.shared.poll_piece(cx)).await
    }

    /// Waits for the peer's trailers, after the end of its body; `None` if there are none.
    ///
    /// # Errors
    /// The peer abandons its message, or the connection is over.
    pub async fn recv_trailers(&mut self) -> Result<Option<Vec<(String, Vec<u8>)>>, Error> {
        let trailers = poll_fn(|cx| self.shared.poll_trailers(cx)).await?;
        Ok(trailers.as_ref().map(plain_fields))
    }

    /// Abandons the exchange with `code`.
    pub fn reset(&mut self, code: Code) {
        self.shared.cancel(code);
    }

    pub(super) fn shared(&self) -> &Arc<SharedExchange> {
        &self.shared
    }
}

impl SharedExchange {
    /// The connection's state; an error if the exchange began in 0-RTT that the server rejected.
    pub(super) fn lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.connection.0.lock();
        if state.is_void(self.early) { Err(Error::ZeroRttRejected) } else { Ok(state) }
    }

    pub(super) fn id(&self) -> StreamId {
        self.id
    }

    /// Neither message is the application's any more: HTTP/3 brings both to their end.
    pub(super) fn leave(&self) {
        self.sent_all.store(true, Relaxed);
        self.received_all.store(true, Relaxed);
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn priority(&self) -> Option<Priority> {
        let mut state = self.lock().ok()?;
        with_http(&mut state, |http, _| http.h3.priority(self.id)).ok()?
    }

    pub(super) fn default_protection(&self) -> Option<DefaultProtection> {
        let mut state = self.lock().ok()?;
        with_http(&mut state, |http, _| http.h3.default_protection(self.id).cloned()).ok()?
    }

    pub(super) fn set_extension(&self, extension: Option<Extension>) -> Result<(), Error> {
        let mut state = self.lock()?;
        let told =
            with_http(&mut state, |http, quic| http.h3.set_extension(quic, self.id, extension))?;
        drop(state);
        self.connection.0.touch();
        told.map_err(send_error)
    }

    pub(super) fn set_stream_priority(&self, priority: StreamPriority) -> Result<(), Error> {
        self.change(|stream| stream.set_priority(priority))
    }

    pub(super) fn protect(&self, protection: Option<Protection>) -> Result<(), Error> {
        self.change(|stream| stream.protect(protection))
    }

    pub(super) fn protect_by_default(&self) -> Result<(), Error> {
        self.change(|stream| stream.protect_by_default())
    }

    /// Changes how the stream is sent.
    fn change(
        &self,
        f: impl FnOnce(&mut sutura_proto::SendStream<'_>) -> Result<(), WriteError>,
    ) -> Result<(), Error> {
        let mut state = self.lock()?;
        state.check()?;
        let changed = f(&mut state.quic.send_stream(self.id));
        drop(state);
        self.connection.0.touch();
        changed.map_err(|_| Error::Invalid(SendError::UnknownStream))
    }

    pub(super) async fn send_response(&self, head: &Fields) -> Result<(), Error> {
        self.send(|http, quic| {
            http.exchange(self.id).responding = true;
            http.h3.send_response(quic, self.id, head, false)
        })
        .await
    }

    pub(super) async fn announce_body(&self, length: u64) -> Result<(), Error> {
        self.send(|http, quic| http.h3.announce_body(quic, self.id, length)).await
    }

    pub(super) async fn body_room(&self) -> Result<usize, Error> {
        let mut room = 0;
        self.send(|http, quic| {
            room = http.h3.body_room(quic, self.id)?;
            Ok(())
        })
        .await?;
        Ok(room)
    }

    pub(super) async fn send_data(&self, data: Bytes) -> Result<(), Error> {
        let mut data = data;
        while !data.is_empty() {
            let mut sent = 0;
            self.send(|http, quic| {
                sent = http.h3.send_body_part(quic, self.id, data.clone())?;
                Ok(())
            })
            .await?;
            data.advance(sent);
        }
        Ok(())
    }

    /// Sends as much of `data` as there is room for now.
    pub(super) fn try_send_data(&self, data: Bytes) -> Result<usize, Error> {
        let mut state = self.lock()?;
        let result = with_http(&mut state, |http, quic| {
            if let Some(code) = http.exchange(self.id).stopped {
                return Err(SendError::Stopped(code));
            }
            http.h3.send_body_part(quic, self.id, data)
        })?;
        drop(state);
        self.connection.0.touch();
        match result {
            Err(SendError::Blocked) => Ok(0),
            result => result.map_err(send_error),
        }
    }

    pub(super) async fn send_trailers(&self, trailers: &Fields) -> Result<(), Error> {
        self.send(|http, quic| http.h3.send_trailers(quic, self.id, trailers)).await?;
        self.sent_all.store(true, Relaxed);
        Ok(())
    }

    pub(super) async fn finish(&self) -> Result<(), Error> {
        let result = self.send(|http, quic| http.h3.finish(quic, self.id)).await;
        self.sent_all.store(true, Relaxed);
        match result {
            // The peer has its response ready or sent, and does not need the rest of the request
            // (RFC 9114 section 4.1).
            Err(Error::Stopped(Code::NO_ERROR)) => Ok(()),
            result => result,
        }
    }

    async fn send(
        &self,
        mut step: impl FnMut(&mut HttpState, &mut Quic<'_>) -> Result<(), SendError>,
    ) -> Result<(), Error> {
        let id = self.id;
        poll_fn(|cx| {
            let mut state = self.lock()?;
            let (result, failed) = with_http(&mut state, |http, quic| {
                if let Some(code) = http.exchange(id).stopped {
                    return (Err(SendError::Stopped(code)), None);
                }
                let result = step(http, quic);
                if result == Err(SendError::Blocked) {
                    http.exchange(id).wait_writable(cx);
                }
                (result, http.exchange(id).failed.clone())
            })?;
            drop(state);
            self.connection.0.touch();
            match result {
                Ok(()) => Poll::Ready(Ok(())),
                Err(SendError::Blocked) => Poll::Pending,
                // The exchange may have recorded why it is over.
                Err(SendError::UnknownStream) => {
                    let unknown = || send_error(SendError::UnknownStream);
                    Poll::Ready(Err(failed.unwrap_or_else(unknown)))
                }
                Err(error) => Poll::Ready(Err(send_error(error))),
            }
        })
        .await
    }

    /// Waits until the peer does not want this end's message any more, or the connection is over.
    pub(super) async fn unwanted(&self) {
        poll_fn(|cx| {
            let Ok(mut state) = self.lock() else { return Poll::Ready(()) };
            let unwanted = with_http(&mut state, |http, _| {
                let exchange = http.exchange(self.id);
                let unwanted = exchange.stopped.is_some() || exchange.failed.is_some();
                if !unwanted {
                    exchange.wait_writable(cx);
                }
                unwanted
            });
            if unwanted.unwrap_or(true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    pub(super) async fn recv_head(&self) -> Result<Fields, Error> {
        poll_fn(|cx| {
            self.receive(|http, id, _| {
                let exchange = http.exchange(id);
                if let Some(head) = exchange.head.take() {
                    return Poll::Ready(Ok(head));
                }
                wait_or_fail(exchange, cx)
            })
        })
        .await
    }

    pub(super) fn poll_data(&self, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        let piece = self.poll_body(cx, |h3, quic, id, buffer| {
            h3.read_body(quic, id, buffer).map(|bytes| BodyPiece { offset: 0, bytes })
        });
        piece.map_ok(|piece| piece.map(|piece| piece.data))
    }

    pub(super) fn poll_piece(&self, cx: &Context<'_>) -> Poll<Result<Option<Piece>, Error>> {
        self.poll_body(cx, |h3, quic, id, buffer| h3.read_body_piece(quic, id, buffer))
    }

    fn poll_body(
        &self,
        cx: &Context<'_>,
        read: impl FnOnce(
            &mut sutura_h3::Connection,
            &mut Quic<'_>,
            StreamId,
            &mut [u8],
        ) -> Result<BodyPiece, ReceiveError>,
    ) -> Poll<Result<Option<Piece>, Error>> {
        if self.received_all.load(Relaxed) {
            return Poll::Ready(Ok(None));
        }
        let data = self.receive(|http, id, quic| {
            let mut buffer = BytesMut::zeroed(READ_SIZE);
            let result = read(&mut http.h3, quic, id, &mut buffer);
            http.pump();
            let exchange = http.exchange(id);
            match result {
                Ok(BodyPiece { bytes: 0, .. }) => Poll::Ready(Ok(None)),
                Ok(BodyPiece { offset, bytes }) => {
                    buffer.truncate(bytes);
                    Poll::Ready(Ok(Some(Piece { offset, data: buffer.freeze() })))
                }
                Err(ReceiveError::Connection(error)) => Poll::Ready(Err(Error::Protocol(error))),
                Err(ReceiveError::OutOfOrder) => Poll::Ready(Err(Error::OutOfOrder)),
                Err(_) if exchange.finished => Poll::Ready(Ok(None)),
                Err(_) => wait_or_fail(exchange, cx),
            }
        });
        if let Poll::Ready(Ok(None)) = data {
            self.received_all.store(true, Relaxed);
        }
        data
    }

    pub(super) fn poll_trailers(&self, cx: &Context<'_>) -> Poll<Result<Option<Fields>, Error>> {
        self.receive(|http, id, _| {
            let exchange = http.exchange(id);
            if let Some(trailers) = exchange.trailers.take() {
                return Poll::Ready(Ok(Some(trailers)));
            }
            if exchange.finished {
                return Poll::Ready(Ok(None));
            }
            wait_or_fail(exchange, cx)
        })
    }

    /// Whether the peer's message is complete, and nothing of it is left to be read.
    pub(super) fn is_read(&self) -> bool {
        let Ok(mut state) = self.lock() else { return false };
        let read = with_what_arrived(&mut state, |http, _| {
            let exchange = http.exchange(self.id);
            exchange.finished && exchange.trailers.is_none()
        });
        read.unwrap_or(false)
    }

    pub(super) fn receive<T>(
        &self,
        step: impl FnOnce(&mut HttpState, StreamId, &mut Quic<'_>) -> Poll<Result<T, Error>>,
    ) -> Poll<Result<T, Error>> {
        let mut state = self.lock()?;
        let result = with_what_arrived(&mut state, |http, quic| step(http, self.id, quic))?;
        if result.is_pending() {
            state.check()?;
        }
        let news = !self.announced.swap(true, Relaxed) || state.quic.wants_to_grant_credit();
        drop(state);
        if news {
            self.connection.0.touch();
        }
        result
    }

    /// Abandons the exchange with `code`.
    pub(super) fn cancel(&self, code: Code) {
        if let Ok(mut state) = self.lock() {
            let _ = with_http(&mut state, |http, quic| http.h3.cancel(quic, self.id, code));
        }
        self.sent_all.store(true, Relaxed);
        self.received_all.store(true, Relaxed);
        self.connection.0.touch();
    }

    /// Abandons this end's message, unless it is complete.
    pub(super) fn stop_sending(&self) {
        if self.sent_all.swap(true, Relaxed) {
            return;
        }
        let Ok(mut state) = self.lock() else { return };
        let is_server = state.quic.side().is_server();
        let code = if is_server { Code::INTERNAL_ERROR } else { Code::REQUEST_CANCELLED };
        let _ = with_http(&mut state, |http, quic| http.h3.reset(quic, self.id, code));
        drop(state);
        self.connection.0.touch();
    }

    /// Tells the peer that the rest of its message is not read, unless it is complete.
    pub(super) fn stop_receiving(&self) {
        if self.received_all.swap(true, Relaxed) {
            return;
        }
        let Ok(mut state) = self.lock() else { return };
        // A server that answers does not need the rest of the request.
        let is_server = state.quic.side().is_server();
        let code = if is_server { Code::NO_ERROR } else { Code::REQUEST_CANCELLED };
        let _ = with_http(&mut state, |http, quic| {
            if !http.exchange(self.id).finished {
                let _ = http.h3.stop(quic, self.id, code);
            }
        });
        drop(state);
        self.connection.0.touch();
    }
}

pub(super) fn wait_or_fail<T>(
    exchange: &mut super::state::Exchange,
    cx: &Context<'_>,
) -> Poll<Result<T, Error>> {
    if let Some(error) = &exchange.failed {
        return Poll::Ready(Err(error.clone()));
    }
    exchange.wait_readable(cx);
    Poll::Pending
}

impl Drop for SharedExchange {
    fn drop(&mut self) {
        let id = self.id;
        let Ok(mut state) = self.lock() else { return };
        let (sent_all, received_all) =
            (self.sent_all.load(Relaxed), self.received_all.load(Relaxed));
        let is_server = state.quic.side().is_server();
        let _ = with_http(&mut state, |http, quic| {
            let finished = received_all || http.exchange(id).finished;
            if !sent_all {
                let code = if is_server { Code::INTERNAL_ERROR } else { Code::REQUEST_CANCELLED };
                let _ = http.h3.cancel(quic, id, code);
            } else if !finished {
                // A server that has answered does not need the rest of the request.
                let code = if is_server { Code::NO_ERROR } else { Code::REQUEST_CANCELLED };
                let _ = http.h3.stop(quic, id, code);
            }
            http.forget(id, quic);
        });
        drop(state);
        self.connection.0.touch();
    }
}
