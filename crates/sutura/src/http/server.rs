//! An HTTP/3 server.

use super::exchange::{RequestStream, plain_fields, with_http};
use super::types::request_of;
use super::{Body, Config, Error, Extension, HttpState, Refused, SendHalf, Timeouts};
use crate::connection::{Connection, Upper};
use ::http::{Method, header};
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;
use sutura_h3::{Code, Fields, Quic, SendError};
use sutura_proto::{ConnectionError, StreamId, TransportErrorCode};
use tokio::time::{Sleep, sleep_until};

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// The scheme, such as `https`.
    pub scheme: String,
    /// Host and port as sent by the client.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// The protocol of an extended CONNECT (RFC 9220), such as `websocket`. Only if
    /// [`Config::enable_connect_protocol`] permits extended CONNECT.
    pub protocol: Option<String>,
    /// The fields, without pseudo-header fields.
    pub fields: Vec<(String, Vec<u8>)>,
}

impl Request {
    fn new(fields: &Fields) -> Self {
        let text = |name: &str| {
            let value = fields.get(name).unwrap_or_default();
            String::from_utf8_lossy(value).into_owned()
        };
        let authority = match text(":authority") {
            empty if empty.is_empty() => text("host"),
            authority => authority,
        };
        Self {
            method: text(":method"),
            scheme: text(":scheme"),
            authority,
            path: text(":path"),
            protocol: fields.get(":protocol").map(|_| text(":protocol")),
            fields: plain_fields(fields),
        }
    }

    /// The first value of a field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice())
    }
}

/// Answers a request. If dropped before the response is complete, the request is abandoned.
#[derive(Debug)]
pub struct Responder {
    send: SendHalf,
    is_head: bool,
}

impl Responder {
    /// As [`RequestStream::set_extension`].
    ///
    /// # Errors
    /// The connection is over.
    pub fn set_extension(&self, extension: Option<Extension>) -> Result<(), Error> {
        self.send.set_extension(extension)
    }

    /// Sends an interim response (1xx, RFC 9110 section 15.2), of which only the head is used.
    ///
    /// # Errors
    /// The client does not want the response, or the connection is over.
    pub async fn send_interim<B>(&mut self, response: ::http::Response<B>) -> Result<(), Error> {
        self.send.send_head(&response.into_parts().0).await
    }

    /// Sends the response. The length of a body that knows it is added as `content-length`; a `priority`
    /// field of the response overrides the request's (RFC 9218 section 8).
    ///
    /// # Errors
    /// As [`SendHalf::send_body`].
    pub async fn respond<B>(mut self, response: ::http::Response<B>) -> Result<(), Error>
    where
        B: http_body::Body,
        B::Error: Display,
    {
        let (mut parts, body) = response.into_parts();
        let without_content = matches!(parts.status.as_u16(), 204 | 304);
        let length = body.size_hint().exact().filter(|length| !(self.is_head && *length == 0));
        if let Some(length) = length.filter(|_| !without_content) {
            parts.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
        }
        self.send.send_head(&parts).await?;
        if self.is_head || without_content || body.is_end_stream() {
            return self.send.finish().await;
        }
        self.send.send_body(body).await
    }

    /// The half of the exchange that sends the response, for those who send it part by part. The length of the
    /// body is then theirs to announce, and that a response to HEAD has no body.
    #[must_use]
    pub fn into_half(self) -> SendHalf {
        self.send
    }

    /// Waits until the client does not want the response any more, or the connection is over.
    pub async fn unwanted(&self) {
        self.send.unwanted().await;
    }
}

/// An HTTP/3 server on one connection.
#[derive(Debug)]
pub struct Server {
    connection: Connection,
    /// The wait for the next check whether clients make progress.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Server {
    /// Speaks HTTP/3 on `connection`. Its streams must not be used otherwise.
    #[must_use]
    pub fn new(connection: Connection, config: Config) -> Self {
        let mut state = connection.0.lock();
        let mut http = HttpState::server(config);
        let over = state.error.is_some();
        http.process(Instant::now(), &mut state.quic, over);
        state.uppers.insert(http);
        drop(state);
        connection.0.touch();
        Self { connection, sleep: None }
    }

    /// Sets how long to wait for a client that makes no progress. Progress is checked only while
    /// [`accept`](Self::accept) is awaited.
    pub fn set_timeouts(&self, timeouts: Timeouts) {
        if let Some(http) = self.connection.0.lock().uppers.get::<HttpState>() {
            http.timeouts = timeouts;
        }
    }

    /// Waits for the next request. `None` if the connection ended without an error.
    ///
    /// # Errors
    /// The connection ended with an error.
    pub async fn accept(&mut self) -> Result<Option<(Request, RequestStream)>, Error> {
        let next = self.next().await?;
        Ok(next.map(|(stream, fields)| (Request::new(&fields), stream)))
    }

    /// Like [`Self::accept`], with the types of the `http` crate. The extensions of the request have
    /// its [`Priority`](super::Priority), and the [`Protocol`](super::Protocol) of an extended CONNECT.
    ///
    /// # Errors
    /// The connection ended with an error.
    pub async fn accept_http(
        &mut self,
    ) -> Result<Option<(::http::Request<Body>, Responder)>, Error> {
        loop {
            let Some((mut stream, fields)) = self.next().await? else { return Ok(None) };
            let Ok((mut parts, length)) = request_of(fields) else {
                stream.reset(Code::MESSAGE_ERROR);
                continue;
            };
            if let Some(priority) = stream.priority() {
                parts.extensions.insert(priority);
            }
            let is_head = parts.method == Method::HEAD;
            let (send, recv) = stream.split();
            let request = ::http::Request::from_parts(parts, Body::new(recv, length));
            return Ok(Some((request, Responder { send, is_head })));
        }
    }

    /// Waits for the next request, with its head.
    async fn next(&mut self) -> Result<Option<(RequestStream, Fields)>, Error> {
        let Self { connection, sleep } = self;
        let next = poll_fn(|cx| {
            let next = poll_request(connection, sleep, cx);
            match next {
                Ok(Some(next)) => Poll::Ready(Ok(Some(next))),
                Ok(None) => Poll::Pending,
                Err(error) if is_clean(&error) => Poll::Ready(Ok(None)),
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await?;
        Ok(next
            .map(|(id, fields)| (RequestStream::new(self.connection.clone(), id, false), fields)))
    }

    /// Calls `listen` with each request that [`accept`](Self::accept) never returns, because its head
    /// is malformed or exceeds a limit. The task that does the endpoint's I/O calls `listen`, so it should
    /// return quickly, and must not use the connection.
    pub fn on_refused(&self, listen: impl FnMut(Refused) + Send + 'static) {
        let mut state = self.connection.0.lock();
        if let Some(http) = state.uppers.get::<HttpState>() {
            http.refused.set(Box::new(listen));
        }
    }

    /// Asks the client to send no more requests. Requests that it still sends are answered. A server that
    /// shuts down calls this, waits for a round trip or more, and then calls [`goaway`](Self::goaway), so
    /// that no request under way is rejected (RFC 9114 section 5.2).
    pub fn announce_goaway(&self) {
        self.tell(|http, quic| http.h3.announce_goaway(quic));
    }

    /// Accepts no more requests: requests that have not arrived yet are rejected, and the client may send
    /// them elsewhere. Requests that have arrived are still answered.
    pub fn goaway(&self) {
        self.tell(|http, quic| http.h3.goaway(quic));
    }

    fn tell(&self, act: impl FnOnce(&mut HttpState, &mut Quic<'_>) -> Result<(), SendError>) {
        let mut state = self.connection.0.lock();
        let _ = with_http(&mut state, act);
        drop(state);
        self.connection.0.touch();
    }

    /// The underlying connection.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// The next request, if there is one. Looks whether clients make progress when it is time.
fn poll_request(
    connection: &Connection,
    sleep: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Result<Option<(StreamId, Fields)>, Error> {
    loop {
        let mut state = connection.0.lock();
        let held_back = state.holds_back();
        let (next, at, ended) = with_http(&mut state, |http, quic| {
            let (at, ended) = http.look(Instant::now(), quic);
            let next = if held_back { None } else { http.next_request(quic) };
            if next.is_none() {
                http.wait_request(cx);
            }
            (next, at, ended)
        })?;
        drop(state);
        if ended {
            connection.0.touch();
        }
        if at.is_none() {
            *sleep = None;
        }
        let Some(at) = at.filter(|_| next.is_none()) else { return Ok(next) };
        let sleep = sleep.get_or_insert_with(|| Box::pin(sleep_until(at.into())));
        if sleep.deadline() != at.into() {
            sleep.as_mut().reset(at.into());
        }
        if sleep.as_mut().poll(cx).is_pending() {
            return Ok(None);
        }
    }
}

/// Whether a connection ended without an error.
fn is_clean(error: &Error) -> bool {
    match error {
        Error::Connection(ConnectionError::ApplicationClosed { code, .. }) => {
            *code == 0 || Code(*code) == Code::NO_ERROR
        }
        Error::Connection(ConnectionError::LocallyClosed | ConnectionError::TimedOut) => true,
        // Chromium says goodbye in the name of the transport.
        Error::Connection(ConnectionError::ClosedByPeer(error)) => {
            error.code == TransportErrorCode::NO_ERROR
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_proto::TransportError;

    fn closed(code: TransportErrorCode) -> Error {
        ConnectionError::ClosedByPeer(TransportError::new(code, "")).into()
    }

    #[test]
    fn a_goodbye_is_clean_in_the_name_of_the_transport_too() {
        assert!(is_clean(&closed(TransportErrorCode::NO_ERROR)));
        assert!(!is_clean(&closed(TransportErrorCode::PROTOCOL_VIOLATION)));
    }
}
