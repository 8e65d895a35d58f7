//! The client's side.

use std::net::SocketAddr;

use sutura::http::{self, Client, Priority, WebTransportDraft};
use sutura::{Connection, Endpoint};
use url::Url;

use crate::error::Error;
use crate::protocols::{self, AVAILABLE, CHOSEN};
use crate::session::Session;

/// Begins a session with the server of a URL such as `https://example.org:4433/room`, over a connection of its own.
///
/// The endpoint's [default configuration](Endpoint::set_default_client_config) must offer the protocol
/// [`http::ALPN`], and is to accept datagrams, as it does by default.
///
/// # Errors
/// The URL is none of WebTransport, the server cannot be found, does not support WebTransport or refuses the
/// session.
pub async fn connect(endpoint: &Endpoint, url: &str) -> Result<Session, Error> {
    Connect::new(url)?.connect(endpoint).await
}

/// A session that is to be begun.
#[derive(Debug, Clone)]
pub struct Connect {
    url: Url,
    fields: Vec<(String, String)>,
    protocols: Vec<String>,
    priority: Option<Priority>,
}

impl Connect {
    /// A session with the server of a URL, whose scheme is `https`.
    ///
    /// # Errors
    /// [`Error::Url`]
    pub fn new(url: &str) -> Result<Self, Error> {
        let parsed = Url::parse(url).map_err(|error| Error::Url(error.to_string()))?;
        if parsed.scheme() != "https" || parsed.host().is_none() {
            return Err(Error::Url("it must begin with https:// and a host".to_owned()));
        }
        Ok(Self { url: parsed, fields: Vec::new(), protocols: Vec::new(), priority: None })
    }

    /// Offers a sub-protocol, which this end likes less than those before it.
    #[must_use]
    pub fn protocol(mut self, protocol: &str) -> Self {
        self.protocols.push(protocol.to_owned());
        self
    }

    /// Adds a field to the request, such as `origin` or `authorization`. Its name must be in lower case.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the priority of the request (RFC 9218).
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Looks the server up, and begins the session over a connection of its own.
    ///
    /// # Errors
    /// As [`connect`].
    pub async fn connect(self, endpoint: &Endpoint) -> Result<Session, Error> {
        let host = self.url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = self.url.port_or_known_default().unwrap_or(443);
        let address = look_up(endpoint, &host, port).await?;
        let connecting = endpoint.connect(address, &host);
        let connecting = connecting.map_err(|error| Error::Connect(error.to_string()))?;
        self.connect_over(connecting.await?).await
    }

    /// Begins the session over a connection that speaks [`http::ALPN`], and nothing else.
    ///
    /// # Errors
    /// The server does not support WebTransport or refuses the session, or the connection is over.
    pub async fn connect_over(self, connection: Connection) -> Result<Session, Error> {
        let client = Client::new(connection, http::Config::for_webtransport()).await?;
        let draft = client.webtransport_draft().await?.ok_or(Error::Unsupported)?;
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        let offered = protocols::list(&self.protocols);
        let own = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let mut fields: Vec<(&str, &[u8])> = own.collect();
        if draft == WebTransportDraft::Draft02 {
            fields.push(("sec-webtransport-http3-draft02", b"1"));
        }
        if let Some(offered) = &offered {
            fields.push((AVAILABLE, offered.as_bytes()));
        }
        let authority = self.url[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
        let request =
            client.connect(draft.protocol(), &authority, &path, &fields, self.priority.clone());
        let mut stream = request.await?;
        let response = stream.recv_response().await?;
        if !(200..300).contains(&response.status) {
            return Err(Error::Refused(response.status));
        }
        let session = stream.into_session();
        let chosen = response.fields.iter().find(|(name, _)| name == CHOSEN);
        let protocol = chosen.and_then(|(_, value)| protocols::parse_item(value));
        if protocol.as_ref().is_some_and(|protocol| !self.protocols.contains(protocol)) {
            return Err(Error::Protocol);
        }
        Ok(Session::new(session, protocol))
    }
}

/// An address of the server, of the family of this end's own address if there is one.
async fn look_up(endpoint: &Endpoint, host: &str, port: u16) -> Result<SocketAddr, Error> {
    let failed = |error: std::io::Error| Error::Connect(error.to_string());
    let local = endpoint.local_addr().map_err(failed)?;
    let found: Vec<_> = tokio::net::lookup_host((host, port)).await.map_err(failed)?.collect();
    let alike = found.iter().find(|address| address.is_ipv4() == local.is_ipv4());
    alike.or(found.first()).copied().ok_or_else(|| Error::Connect(format!("{host} has no address")))
}
