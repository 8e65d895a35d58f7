//! An HTTP/3 client.

use super::exchange::{RequestStream, push_fields, send_error, with_http};
use super::{Config, Error, HttpState, Priority};
use crate::connection::Connection;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;
use sutura_h3::{Fields, SendError};
use sutura_proto::Dir;

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
        let mut http = HttpState::new(sutura_h3::Connection::client(config));
        http.process(Instant::now(), &mut state.quic, false);
        http.check()?;
        state.http = Some(Box::new(http));
        drop(state);
        connection.0.touch();
        Ok(Self { connection })
    }

    /// Begins a request, waiting until the server permits one more. Its head is sent with the next
    /// call on the stream, so that a request without body, to be
    /// [`finished`](RequestStream::finish) at once, takes one packet.
    ///
    /// The fields are malformed, the server is going away, or the connection is over.
    /// The fields are malformed, the server goes away, or the connection is over.
    pub async fn request(
        &self,
        method: &str,
        authority: &str,
        path: &str,
        fields: &[(&str, &[u8])],
        priority: Option<Priority>,
    ) -> Result<RequestStream, Error> {
        let mut head = Fields::request(
            method.to_owned(),
            "https".to_owned(),
            authority.to_owned(),
            path.to_owned(),
        );
        push_fields(&mut head, fields);
        let id = poll_fn(|cx| {
            let mut state = self.connection.0.lock();
            let result = with_http(&mut state, |http, quic| {
                let result = http.h3.send_request(quic, &head, priority.as_ref(), false);
                match result {
                    Ok(id) => http.open(id),
                    // The server may go away before it permits one more.
                    Err(SendError::StreamsBlocked) => http.wait_request(cx),
                    Err(_) => {}
                }
                result
            })?;
            if result == Err(SendError::StreamsBlocked) {
                state.wait_open(Dir::Bi, cx);
                // Tells the server that a stream is wanted.
                self.connection.0.touch();
            }
            drop(state);
            match result {
                Ok(id) => Poll::Ready(Ok(id)),
                Err(SendError::StreamsBlocked) => Poll::Pending,
                Err(error) => Poll::Ready(Err(send_error(error))),
            }
        })
        .await?;
        Ok(RequestStream::new(self.connection.clone(), id))
    }

    /// Replaces the whole priority of a request that was sent, by a PRIORITY_UPDATE frame (RFC 9218
    /// section 7). This can also move the response to other classes and turn its protection on or
    /// off.
    ///
    /// The exchange or the connection is over, or too many changes are waiting to be sent.
    /// The exchange or the connection is over, or too many changes wait to be sent.
    pub fn set_priority(&self, request: &RequestStream, priority: &Priority) -> Result<(), Error> {
        let mut state = self.connection.0.lock();
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
