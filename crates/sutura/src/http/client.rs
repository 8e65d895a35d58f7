//! An HTTP/3 client.

use super::exchange::{RequestStream, push_fields, send_error, with_http};
use super::types::{request_fields, response_of};
use super::{Body, Config, Error, HttpState, Priority, Protocol, WebTransportDraft};
use crate::connection::opening::Opening;
use crate::connection::{Connection, Upper};
use ::http::{Method, StatusCode};
use std::fmt::Display;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;
use sutura_h3::{Fields, SendError};
use sutura_proto::Dir;

/// Whether a request with this method is not meant to change anything (RFC 9110 section 9.2.1).
fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
}

/// An HTTP/3 client on one connection. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    connection: Connection,
}

impl Client {
    /// Speaks HTTP/3 on `connection`. Its streams must not be used otherwise.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn new(connection: Connection, config: Config) -> Result<Self, Error> {
        let mut state = connection.0.lock();
        state.check()?;
        let mut http = HttpState::client(config);
        http.process(Instant::now(), &mut state.quic, false);
        http.check()?;
        state.uppers.insert(http);
        drop(state);
        connection.0.touch();
        Ok(Self { connection })
    }

    /// Begins a request, waiting until the server permits one more. Its head is sent with the next
    /// call on the stream, so that a request without body, to be
    /// [`finished`](RequestStream::finish) at once, takes one packet.
    ///
    /// On a connection from [`Connecting::into_0rtt`](crate::Connecting::into_0rtt), only requests with a
    /// safe method (GET, HEAD, OPTIONS, TRACE) are sent at once; other requests wait for the handshake (RFC
    /// 8470 section 4). If the server then rejects 0-RTT, the request fails with [`Error::ZeroRttRejected`].
    /// If the server first wants to be sure that the request is no copy, it answers with 425 (Too Early). In
    /// both cases the request can be sent again, in the latter case after [`Connection::handshake_complete`].
    ///
    /// # Errors
    /// The fields are malformed, the server goes away, or the connection is over.
    pub async fn request(
        &self,
        method: &str,
        authority: &str,
        path: &str,
        fields: &[(&str, &[u8])],
        priority: Option<Priority>,
    ) -> Result<RequestStream, Error> {
        if !is_safe(method) {
            self.connection.handshake_complete().await?;
        }
        let mut head = Fields::request(
            method.to_owned(),
            "https".to_owned(),
            authority.to_owned(),
            path.to_owned(),
        );
        push_fields(&mut head, fields);
        self.send_head(&head, priority.as_ref()).await
    }

    /// Sends a request with its body, and waits for the head of the response. The body is sent by a
    /// task of its own, also after the head of the response has come.
    ///
    /// The request's URI has scheme and authority; by default, the scheme is `https` and the authority is
    /// taken from the `host` field. A [`Priority`] among the extensions becomes the `priority` field, a
    /// [`Protocol`](super::Protocol) makes it an extended CONNECT. Interim responses are skipped. In 0-RTT,
    /// methods are treated as by [`request`](Self::request).
    ///
    /// # Errors
    /// The request is malformed or the server abandons it, the server goes away, or the connection is
    /// over.
    pub async fn send<B>(
        &self,
        request: ::http::Request<B>,
    ) -> Result<::http::Response<Body>, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Display + Send,
    {
        let (parts, body) = request.into_parts();
        if !parts.method.is_safe() {
            self.connection.handshake_complete().await?;
        }
        if parts.extensions.get::<Protocol>().is_some() {
            self.wait(|http| http.h3.peer_settings().is_some()).await?;
        }
        let is_head = parts.method == Method::HEAD;
        let priority = parts.extensions.get::<Priority>();
        let stream = self.send_head(&request_fields(&parts), priority).await?;
        let (mut send, recv) = stream.split();
        if body.is_end_stream() {
            send.finish().await?;
        } else {
            // If this fails, so does the response, or the server does not need the rest.
            tokio::spawn(async move { send.send_body(body).await });
        }
        let (parts, length) = response_of(recv.recv_head().await?)?;
        // The response to HEAD, and a 304, have the length of a body that is not sent.
        let length = length.filter(|_| !is_head && parts.status != StatusCode::NOT_MODIFIED);
        Ok(::http::Response::from_parts(parts, Body::new(recv, length)))
    }

    /// Begins an extended CONNECT (RFC 9220) for `protocol`, such as `websocket`, waiting until the server
    /// has said whether it supports extended CONNECT and permits one more request. After a response with a
    /// status of 2xx, both ends send data until they finish.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the server does not support extended CONNECT or the fields are malformed, the
    /// server goes away, or the connection is over.
    pub async fn connect(
        &self,
        protocol: &str,
        authority: &str,
        path: &str,
        fields: &[(&str, &[u8])],
        priority: Option<Priority>,
    ) -> Result<RequestStream, Error> {
        let mut head = Fields::request("CONNECT", "https", authority.to_owned(), path.to_owned())
            .with(":protocol", protocol.to_owned());
        push_fields(&mut head, fields);
        self.connection.handshake_complete().await?;
        self.wait(|http| http.h3.peer_settings().is_some()).await?;
        self.send_head(&head, priority.as_ref()).await
    }

    /// Waits for the server's SETTINGS, and returns the draft of WebTransport that both ends speak, if any
    /// ([`Config::enable_webtransport`]). The extended CONNECT that begins a [`Session`](super::Session) has its
    /// [`protocol`](super::WebTransportDraft::protocol).
    ///
    /// # Errors
    /// The connection is over.
    pub async fn webtransport_draft(&self) -> Result<Option<WebTransportDraft>, Error> {
        self.connection.handshake_complete().await?;
        self.wait(|http| http.h3.peer_settings().is_some()).await?;
        let mut state = self.connection.0.lock();
        with_http(&mut state, |http, _| {
            http.h3.webtransport_draft().filter(|_| http.h3.has_datagrams())
        })
    }

    /// Begins a CONNECT (RFC 9114 section 4.4): asks the server, a proxy, for a TCP connection to `authority`, a
    /// host and a port. After a response with a status of 2xx, the data of the exchange is that of the TCP
    /// connection, until both ends finish; [`Code::CONNECT_ERROR`](super::Code::CONNECT_ERROR) stands for a reset.
    /// Waits for the handshake, and until the server permits one more request.
    ///
    /// # Errors
    /// The fields are malformed, the server goes away, or the connection is over.
    pub async fn tunnel(
        &self,
        authority: &str,
        fields: &[(&str, &[u8])],
        priority: Option<Priority>,
    ) -> Result<RequestStream, Error> {
        let head = Fields::new().with(":method", "CONNECT");
        let mut head = head.with(":authority", authority.to_owned());
        push_fields(&mut head, fields);
        self.connection.handshake_complete().await?;
        self.send_head(&head, priority.as_ref()).await
    }

    /// Waits until the server says that it accepts no further requests (GOAWAY, RFC 9114 section
    /// 5.2). Requests that it accepted before are still answered.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn going_away(&self) -> Result<(), Error> {
        self.wait(|http| http.going_away).await
    }

    /// Says that this end sends no further requests. Requests that it has sent are still answered.
    pub fn goaway(&self) {
        let mut state = self.connection.0.lock();
        let _ = with_http(&mut state, |http, quic| http.h3.goaway(quic));
        drop(state);
        self.connection.0.touch();
    }

    /// Waits until HTTP/3 is in a state.
    async fn wait(&self, reached: impl Fn(&HttpState) -> bool) -> Result<(), Error> {
        poll_fn(|cx| {
            let mut state = self.connection.0.lock();
            let reached = with_http(&mut state, |http, _| {
                let reached = reached(http);
                if !reached {
                    http.wait_request(cx);
                }
                reached
            })?;
            if reached { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }

    /// Sends the head of a request once the server permits one more.
    pub(super) async fn send_head(
        &self,
        head: &Fields,
        priority: Option<&Priority>,
    ) -> Result<RequestStream, Error> {
        let mut opening = Opening::new(&self.connection.0, Dir::Bi);
        let (id, early) = poll_fn(|cx| {
            let mut state = self.connection.0.lock();
            let result = with_http(&mut state, |http, quic| {
                let result = http.h3.send_request(quic, head, priority, false);
                match result {
                    Ok(id) => http.open(id),
                    // The server may go away before it permits one more request.
                    Err(SendError::StreamsBlocked) => http.wait_request(cx),
                    Err(_) => {}
                }
                result
            })?;
            if result == Err(SendError::StreamsBlocked) {
                opening.wait(&mut state, cx);
                // Tells the server that a stream is wanted.
                self.connection.0.touch();
            } else {
                opening.done(&mut state);
            }
            let early = state.quic.is_sending_0rtt();
            drop(state);
            match result {
                Ok(id) => Poll::Ready(Ok((id, early))),
                Err(SendError::StreamsBlocked) => Poll::Pending,
                Err(error) => Poll::Ready(Err(send_error(error))),
            }
        })
        .await?;
        Ok(RequestStream::new(self.connection.clone(), id, early))
    }

    /// Replaces the whole priority of a request that was sent, by a PRIORITY_UPDATE frame (RFC 9218
    /// section 7). This can also move the response to other classes and turn its protection on or
    /// off.
    ///
    /// # Errors
    /// The exchange or the connection is over, or too many changes wait to be sent.
    pub fn set_priority(&self, request: &RequestStream, priority: &Priority) -> Result<(), Error> {
        let mut state = request.shared().lock()?;
        with_http(&mut state, |http, quic| {
            http.h3.send_priority_update(quic, request.id(), priority)
        })?
        .map_err(send_error)?;
        drop(state);
        self.connection.0.touch();
        Ok(())
    }

    /// The underlying connection.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}
