//! The server's side.

use sutura::Connection;
use sutura::http::{self, RequestStream, is_webtransport};

use crate::error::Error;
use crate::protocols::{self, AVAILABLE, CHOSEN};
use crate::session::Session;

/// The sessions that a client asks for on one connection.
#[derive(Debug)]
pub struct Server {
    http: http::Server,
}

impl Server {
    /// Speaks WebTransport, and no other HTTP/3, on `connection`.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self { http: http::Server::new(connection, http::Config::for_webtransport()) }
    }

    /// Waits for the next request for a session. Other requests are answered with the status 404. `None` if the
    /// connection ended without an error.
    ///
    /// # Errors
    /// The connection ended with an error.
    pub async fn accept(&mut self) -> Result<Option<Request>, Error> {
        while let Some((head, stream)) = self.http.accept().await? {
            match Request::of_http(head, stream) {
                Ok(request) => return Ok(Some(request)),
                Err(other) => {
                    let (_, stream) = *other;
                    tokio::spawn(refuse(stream, 404));
                }
            }
        }
        Ok(None)
    }

    /// The underlying connection.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        self.http.connection()
    }
}

/// Answers a request with a status and nothing else.
async fn refuse(mut stream: RequestStream, status: u16) -> Result<(), http::Error> {
    stream.send_response(status, &[]).await?;
    stream.finish().await
}

/// A client asks for a session. If dropped, it is refused.
#[derive(Debug)]
pub struct Request {
    head: http::Request,
    stream: RequestStream,
    protocols: Vec<String>,
}

impl Request {
    /// The request for a session that has come to an HTTP/3 server, which has
    /// [`Config::for_webtransport`](http::Config::for_webtransport).
    ///
    /// # Errors
    /// It is another request, and is given back.
    pub fn of_http(
        head: http::Request,
        stream: RequestStream,
    ) -> Result<Self, Box<(http::Request, RequestStream)>> {
        let protocol = head.protocol.as_deref().unwrap_or_default();
        if head.method != "CONNECT" || !is_webtransport(protocol.as_bytes()) {
            return Err(Box::new((head, stream)));
        }
        // A field that comes several times is one list (RFC 9651 section 4.2).
        let lines = head.fields.iter().filter(|(name, _)| name == AVAILABLE);
        let lines: Vec<&[u8]> = lines.map(|(_, value)| value.as_slice()).collect();
        let protocols = protocols::parse_list(&lines.join(&b", "[..]));
        Ok(Self { head, stream, protocols })
    }

    /// Path and query, such as `/room?name=a`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.head.path
    }

    /// Host and port that the client has asked.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.head.authority
    }

    /// Where the web page comes from that asks, such as `https://example.org`; `None` if the client is no browser.
    /// A server must refuse origins that it does not know, with the status 403, if its sessions are not for
    /// everybody.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.head.field("origin").and_then(|origin| std::str::from_utf8(origin).ok())
    }

    /// The sub-protocols that the client offers, the one that it likes best first.
    #[must_use]
    pub fn protocols(&self) -> &[String] {
        &self.protocols
    }

    /// The whole head of the request.
    #[must_use]
    pub fn head(&self) -> &http::Request {
        &self.head
    }

    /// The connection on which the request has come.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        self.stream.connection()
    }

    /// Accepts the session.
    ///
    /// # Errors
    /// The client does not want it any more, or the connection is over.
    pub async fn ok(self) -> Result<Session, Error> {
        self.accept(None).await
    }

    /// Accepts the session, which speaks one of the [`protocols`](Self::protocols) that the client offers.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the client does not offer it; else as [`ok`](Self::ok).
    pub async fn ok_with(self, protocol: &str) -> Result<Session, Error> {
        if !self.protocols.iter().any(|offered| offered == protocol) {
            return Err(Error::Protocol);
        }
        self.accept(Some(protocol.to_owned())).await
    }

    async fn accept(mut self, protocol: Option<String>) -> Result<Session, Error> {
        let chosen = protocol.as_deref().and_then(protocols::item);
        let mut fields: Vec<(&str, &[u8])> = vec![];
        if self.head.field("sec-webtransport-http3-draft02").is_some() {
            // What drafts up to 06 expect.
            fields.push(("sec-webtransport-http3-draft", b"draft02"));
        }
        if let Some(chosen) = &chosen {
            fields.push((CHOSEN, chosen.as_bytes()));
        }
        self.stream.send_response(200, &fields).await?;
        Ok(Session::new(self.stream.into_session(), protocol))
    }

    /// Refuses the session with a status of HTTP, such as 404, or 403 for an origin that is not let in.
    ///
    /// # Errors
    /// The client does not want it any more, or the connection is over.
    pub async fn reject(self, status: u16) -> Result<(), Error> {
        Ok(refuse(self.stream, status).await?)
    }
}
