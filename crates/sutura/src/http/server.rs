//! An HTTP/3 server.

use super::exchange::{RequestStream, plain_fields, with_http};
use super::{Config, Error, HttpState, Refused};
use crate::connection::Connection;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;
use sutura_h3::{Code, Fields};
use sutura_proto::ConnectionError;

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// The scheme, such as `https`.
    pub scheme: String,
    /// Host and port as sent by the client.
    pub authority: String,
    /// Path and query.
    pub path: String,
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
            fields: plain_fields(fields),
        }
    }

    /// The first value of a field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice())
    }
}

/// An HTTP/3 server on one connection.
#[derive(Debug)]
pub struct Server {
    connection: Connection,
}

impl Server {
    /// Speaks HTTP/3 on `connection`. Its streams must not be used otherwise.
    #[must_use]
    pub fn new(connection: Connection, config: Config) -> Self {
        let mut state = connection.0.lock();
        let mut http = HttpState::new(sutura_h3::Connection::server(config));
        let over = state.error.is_some();
        http.process(Instant::now(), &mut state.quic, over);
        state.http = Some(Box::new(http));
        drop(state);
        connection.0.touch();
        Self { connection }
    }

    /// Waits for the next request. `None` if the connection ended without an error.
    ///
    /// # Errors
    /// The connection ended with an error.
    pub async fn accept(&mut self) -> Result<Option<(Request, RequestStream)>, Error> {
        let next = poll_fn(|cx| {
            let mut state = self.connection.0.lock();
            let next = with_http(&mut state, |http, _| {
                let next = http.next_request();
                if next.is_none() {
                    http.wait_request(cx);
                }
                next
            });
            match next {
                Ok(Some(next)) => Poll::Ready(Ok(Some(next))),
                Ok(None) => Poll::Pending,
                Err(error) if is_clean(&error) => Poll::Ready(Ok(None)),
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await?;
        Ok(next.map(|(id, fields)| {
            (Request::new(&fields), RequestStream::new(self.connection.clone(), id))
        }))
    }

    /// Calls `listen` with each request that [`accept`](Self::accept) never returns, because its head
    /// is malformed or exceeds a limit. It is called by the task that does the endpoint's I/O, so it
    /// should return quickly, and must not use the connection.
    pub fn on_refused(&self, listen: impl FnMut(Refused) + Send + 'static) {
        let mut state = self.connection.0.lock();
        if let Some(http) = &mut state.http {
            http.refused.set(Box::new(listen));
        }
    }

    /// Asks the client to send no more requests. Those that it has sent are still answered.
    pub fn goaway(&self) {
        let mut state = self.connection.0.lock();
        let _ = with_http(&mut state, |http, quic| http.h3.goaway(quic));
        drop(state);
        self.connection.0.touch();
    }

    /// The underlying connection.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// Whether a connection ended without an error.
fn is_clean(error: &Error) -> bool {
    match error {
        Error::Connection(ConnectionError::ApplicationClosed { code, .. }) => {
            *code == 0 || Code(*code) == Code::NO_ERROR
        }
        Error::Connection(ConnectionError::LocallyClosed | ConnectionError::TimedOut) => true,
        _ => false,
    }
}
