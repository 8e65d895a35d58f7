//! One request and its response, at either end.

use super::state::HttpState;
use super::{Error, Priority};
use crate::connection::{Connection, State};
use bytes::{Bytes, BytesMut};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Instant;
use sutura_h3::{Code, Field, Fields, Quic, ReceiveError, SendError};
use sutura_proto::StreamId;

/// Bytes of body read at a time.
const READ_SIZE: usize = 64 * 1024;

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The fields, without pseudo-header fields.
    pub fields: Vec<(String, Vec<u8>)>,
}

/// One exchange: this end's message goes out and the peer's comes in. If dropped before both are
/// complete, it is cancelled.
#[derive(Debug)]
pub struct RequestStream {
    connection: Connection,
    id: StreamId,
    sent_all: bool,
    received_all: bool,
    /// Whether the driver was notified of the request.
    announced: bool,
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
    let State { quic, http, .. } = state;
    let http = http.as_mut().ok_or(Error::GoingAway)?;
    http.check()?;
    let result = f(http, &mut Quic { now: Instant::now(), connection: quic });
    http.pump();
    Ok(result)
}

impl RequestStream {
    pub(super) fn new(connection: Connection, id: StreamId) -> Self {
        Self { connection, id, sent_all: false, received_all: false, announced: false }
    }

    /// The stream that carries the exchange.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The connection that carries the exchange.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The response's priority as this end knows it: what the client last asked for, overridden by
    /// the `priority` field of the response (RFC 9218 section 8). `None` once the whole response
    /// has been handed over, or the connection is over.
    #[must_use]
    pub fn priority(&self) -> Option<Priority> {
        let mut state = self.connection.0.lock();
        with_http(&mut state, |http, _| http.h3.priority(self.id)).ok()?
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
        let id = self.id;
        self.send(|http, quic| http.h3.send_response(quic, id, &head, false)).await
    }

    /// Sends a part of the body, waiting until earlier data has left the buffers.
    ///
    /// # Errors
    /// The peer does not want the body, or the connection is over.
    pub async fn send_data(&mut self, data: Bytes) -> Result<(), Error> {
        let id = self.id;
        self.send(|http, quic| http.h3.send_body_chunk(quic, id, data.clone())).await
    }

    /// Ends this end's message with trailers.
    ///
    /// # Errors
    /// The fields are malformed, the peer does not want them, or the connection is over.
    pub async fn send_trailers(&mut self, fields: &[(&str, &[u8])]) -> Result<(), Error> {
        let mut trailers = Fields::new();
        push_fields(&mut trailers, fields);
        let id = self.id;
        self.send(|http, quic| http.h3.send_trailers(quic, id, &trailers)).await?;
        self.sent_all = true;
        Ok(())
    }

    /// Ends this end's message.
    ///
    /// # Errors
    /// The peer does not want the message, or the connection is over.
    pub async fn finish(&mut self) -> Result<(), Error> {
        let id = self.id;
        let result = self.send(|http, quic| http.h3.finish(quic, id)).await;
        self.sent_all = true;
        match result {
            // The peer has its response ready or sent, and does not need the rest of the request
            // (RFC 9114 section 4.1).
            Err(Error::Stopped(Code::NO_ERROR)) => Ok(()),
            result => result,
        }
    }

    async fn send(
        &mut self,
        mut step: impl FnMut(&mut HttpState, &mut Quic<'_>) -> Result<(), SendError>,
    ) -> Result<(), Error> {
        let id = self.id;
        poll_fn(|cx| {
            let mut state = self.connection.0.lock();
            let result = with_http(&mut state, |http, quic| {
                if let Some(code) = http.exchange(id).stopped {
                    return Err(SendError::Stopped(code));
                }
                let result = step(http, quic);
                if result == Err(SendError::Blocked) {
                    http.exchange(id).wait_writable(cx);
                }
                result
            })?;
            drop(state);
            self.connection.0.touch();
            match result {
                Ok(()) => Poll::Ready(Ok(())),
                Err(SendError::Blocked) => Poll::Pending,
                Err(error) => Poll::Ready(Err(send_error(error))),
            }
        })
        .await
    }

    /// Waits for the head of the response.
    ///
    /// # Errors
    /// The server abandons the response or sends a malformed one, or the connection is over.
    pub async fn recv_response(&mut self) -> Result<Response, Error> {
        let id = self.id;
        let head = poll_fn(|cx| {
            self.receive(|http, _| {
                let exchange = http.exchange(id);
                if let Some(head) = exchange.head.take() {
                    return Poll::Ready(Ok(head));
                }
                wait_or_fail(exchange, cx)
            })
        })
        .await?;
        let status = head.status().unwrap_or(0);
        Ok(Response { status, fields: plain_fields(&head) })
    }

    /// Waits for the next part of the peer's body; `None` at its end.
    ///
    /// # Errors
    /// The peer abandons its message, or the connection is over.
    pub async fn recv_data(&mut self) -> Result<Option<Bytes>, Error> {
        if self.received_all {
            return Ok(None);
        }
        let data = poll_fn(|cx| self.poll_data(cx)).await?;
        self.received_all = data.is_none();
        Ok(data)
    }

    fn poll_data(&mut self, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        let id = self.id;
        self.receive(|http, quic| {
            let mut buffer = BytesMut::zeroed(READ_SIZE);
            let result = http.h3.read_body(quic, id, &mut buffer);
            http.pump();
            let exchange = http.exchange(id);
            match result {
                Ok(0) => Poll::Ready(Ok(None)),
                Ok(n) => {
                    buffer.truncate(n);
                    Poll::Ready(Ok(Some(buffer.freeze())))
                }
                Err(ReceiveError::Connection(error)) => Poll::Ready(Err(Error::Protocol(error))),
                Err(_) if exchange.finished => Poll::Ready(Ok(None)),
                Err(_) => wait_or_fail(exchange, cx),
            }
        })
    }

    /// Waits for the peer's trailers, after the end of its body; `None` if there are none.
    ///
    /// # Errors
    /// The peer abandons its message, or the connection is over.
    pub async fn recv_trailers(&mut self) -> Result<Option<Vec<(String, Vec<u8>)>>, Error> {
        let id = self.id;
        let trailers = poll_fn(|cx| {
            self.receive(|http, _| {
                let exchange = http.exchange(id);
                if let Some(trailers) = exchange.trailers.take() {
                    return Poll::Ready(Ok(Some(trailers)));
                }
                if exchange.finished {
                    return Poll::Ready(Ok(None));
                }
                wait_or_fail(exchange, cx)
            })
        })
        .await?;
        Ok(trailers.as_ref().map(plain_fields))
    }

    fn receive<T>(
        &mut self,
        step: impl FnOnce(&mut HttpState, &mut Quic<'_>) -> Poll<Result<T, Error>>,
    ) -> Poll<Result<T, Error>> {
        let mut state = self.connection.0.lock();
        let result = with_what_arrived(&mut state, step)?;
        if result.is_pending() {
            state.check()?;
        }
        let news = state.quic.wants_to_grant_credit() || !self.announced;
        drop(state);
        if news {
            self.announced = true;
            self.connection.0.touch();
        }
        result
    }

    /// Abandons the exchange with `code`.
    pub fn reset(&mut self, code: Code) {
        let id = self.id;
        let mut state = self.connection.0.lock();
        let _ = with_http(&mut state, |http, quic| http.h3.cancel(quic, id, code));
        drop(state);
        self.sent_all = true;
        self.received_all = true;
        self.connection.0.touch();
    }
}

fn wait_or_fail<T>(
    exchange: &mut super::state::Exchange,
    cx: &Context<'_>,
) -> Poll<Result<T, Error>> {
    if let Some(error) = &exchange.failed {
        return Poll::Ready(Err(error.clone()));
    }
    exchange.wait_readable(cx);
    Poll::Pending
}

impl Drop for RequestStream {
    fn drop(&mut self) {
        let id = self.id;
        let mut state = self.connection.0.lock();
        let (sent_all, received_all) = (self.sent_all, self.received_all);
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
            http.forget(id);
        });
        drop(state);
        self.connection.0.touch();
    }
}
