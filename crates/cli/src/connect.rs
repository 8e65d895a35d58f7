//! Connections to servers.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sutura::{
    AsyncUdpSocket, ClientConfig, Connecting, Connection, ConnectionError, Endpoint,
    EndpointConfig, TransportErrorCode,
};
use sutura_tunnel::race::race;
use tokio::time::timeout;

use crate::dial::DialArgs;
use crate::failure::{Exit, Failure};
use crate::qlog::QlogArgs;
use crate::url::Authority;

/// The handshake timeout.
const MAX_HANDSHAKE: Duration = Duration::from_secs(10);
/// The longest wait for the socket to take a CONNECTION_CLOSE frame, which it does at once unless
/// something is wrong.
const MAX_CLOSE: Duration = Duration::from_secs(2);
/// How long servers that keep sending are told again that the connection is closed.
const LINGER: Duration = Duration::from_millis(250);

/// Is told what is done to connect.
type Listener = Arc<dyn Fn(&str) + Send + Sync>;

/// A way to servers other than the system's network.
pub trait Detour: fmt::Debug + Send + Sync {
    /// The socket whose datagrams take this way.
    fn socket(&self) -> Arc<dyn AsyncUdpSocket>;

    /// Opens the way to a server. Returns the address to send to.
    fn open<'a>(
        &'a self,
        dial: &'a DialArgs,
        authority: &'a Authority,
    ) -> BoxFuture<'a, Result<SocketAddr, Failure>>;

    /// Closes all ways, and waits until whoever is on them has had time to learn of it.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Opens connections.
pub struct Connector {
    endpoint: Endpoint,
    config: ClientConfig,
    handshake_limit: Duration,
    dial: DialArgs,
    listener: Option<Listener>,
    opened: Mutex<Vec<Connection>>,
    /// The proxy to go through.
    proxy: Option<Box<dyn Detour>>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("dial", &self.dial).finish_non_exhaustive()
    }
}

impl Connector {
    /// A connector with its own socket. `title` is the title of recordings.
    ///
    /// # Errors
    /// There is no socket.
    pub fn new(
        config: ClientConfig,
        timeout: Duration,
        qlog: &QlogArgs,
        title: &'static str,
    ) -> Result<Self, Failure> {
        let bind = |ip: IpAddr| Endpoint::client((ip, 0).into());
        let endpoint = bind(Ipv6Addr::UNSPECIFIED.into())
            .or_else(|_| bind(Ipv4Addr::UNSPECIFIED.into()))
            .map_err(|e| Failure::local(format!("cannot open a UDP socket: {e}")))?;
        qlog.watch(&endpoint, title);
        Ok(Self::of(endpoint, config, timeout, None))
    }

    /// A connector whose connections go through a proxy.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn through(
        proxy: Box<dyn Detour>,
        config: ClientConfig,
        timeout: Duration,
        qlog: &QlogArgs,
        title: &'static str,
    ) -> Result<Self, Failure> {
        let (own, socket) = (EndpointConfig::default(), proxy.socket());
        let endpoint = Endpoint::with_abstract_socket(own, None, socket)
            .map_err(|e| Failure::local(format!("cannot make an endpoint: {e}")))?;
        qlog.watch(&endpoint, title);
        Ok(Self::of(endpoint, config, timeout, Some(proxy)))
    }

    fn of(
        endpoint: Endpoint,
        config: ClientConfig,
        timeout: Duration,
        proxy: Option<Box<dyn Detour>>,
    ) -> Self {
        let handshake_limit = timeout.min(MAX_HANDSHAKE);
        let (dial, listener, opened) = (DialArgs::default(), None, Mutex::default());
        Self { endpoint, config, handshake_limit, dial, listener, opened, proxy }
    }

    /// Chooses addresses as `dial` says.
    pub fn dialling(mut self, dial: DialArgs) -> Self {
        self.handshake_limit = dial.connect_timeout.unwrap_or(self.handshake_limit);
        self.dial = dial;
        self
    }

    /// Tells `listener` which addresses are tried.
    pub fn telling(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    fn tell(&self, text: &str) {
        tracing::debug!("{}", text.trim());
        if let Some(listener) = &self.listener {
            listener(text);
        }
    }

    /// Opens a connection to the server at whichever of its addresses answers first.
    ///
    /// # Errors
    /// The host is unknown, does not answer, or is not trusted.
    pub async fn connect(&self, authority: &Authority) -> Result<Connection, Failure> {
        let connecting = self.connect_to_any(authority);
        let connection = match self.dial.connect_timeout {
            None => connecting.await?,
            Some(limit) => match timeout(limit, connecting).await {
                Ok(connection) => connection?,
                Err(_) => return Err(no_answer(authority, limit)),
            },
        };
        Ok(self.keep(connection))
    }

    /// Opens another connection to a server at the address of an earlier one, without waiting for its
    /// answer if there is a ticket for 0-RTT.
    ///
    /// # Errors
    /// The server does not answer, or is not trusted.
    pub async fn reconnect(
        &self,
        authority: &Authority,
        address: SocketAddr,
    ) -> Result<Connection, Failure> {
        let connection = match self.start(authority, address)?.into_0rtt() {
            Ok((connection, _)) => connection,
            Err(connecting) => answer(connecting, authority.clone(), self.handshake_limit).await?,
        };
        Ok(self.keep(connection))
    }

    fn keep(&self, connection: Connection) -> Connection {
        let mut opened = self.opened();
        opened.retain(|old| old.close_reason().is_none());
        opened.push(connection.clone());
        connection
    }

    /// Closes all connections with an application error code, and waits until the servers have had time to
    /// learn of it.
    pub async fn close(&self, code: u64) {
        let opened = std::mem::take(&mut *self.opened());
        for connection in &opened {
            connection.close(code, b"");
        }
        let told = async {
            for connection in &opened {
                connection.closed().await;
            }
        };
        let _ = timeout(MAX_CLOSE, told).await;
        let _ = timeout(LINGER, self.endpoint.wait_idle()).await;
        if let Some(proxy) = &self.proxy {
            proxy.close().await;
        }
    }

    fn opened(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect_to_any(&self, authority: &Authority) -> Result<Connection, Failure> {
        let addresses = match &self.proxy {
            None => self.dial.addresses(authority).await?,
            Some(proxy) => vec![proxy.open(&self.dial, authority).await?],
        };
        let told = match &self.proxy {
            None => {
                let list: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
                format!("Host {authority} has the addresses {}", list.join(", "))
            }
            Some(_) => format!("The proxy carries datagrams to {authority}"),
        };
        self.tell(&told);
        let is_final = |failure: &Failure| failure.exit == Exit::Certificate;
        let won = race(addresses, |address| self.begin(authority, address), is_final).await;
        won.map_err(|failure| {
            let nothing = || Failure::new(Exit::NoConnection, format!("no way to {authority}"));
            failure.unwrap_or_else(nothing)
        })
    }

    /// Starts a handshake.
    fn start(&self, authority: &Authority, address: SocketAddr) -> Result<Connecting, Failure> {
        if self.proxy.is_none() {
            self.tell(&format!("  Trying {address}..."));
        }
        let connecting = self.endpoint.connect_with(self.config.clone(), address, &authority.host);
        connecting.map_err(|e| {
            Failure::new(Exit::NoConnection, format!("cannot connect to {authority}: {e}"))
        })
    }

    /// Starts a handshake, and waits for its end.
    fn begin(
        &self,
        authority: &Authority,
        address: SocketAddr,
    ) -> Result<impl Future<Output = Result<Connection, Failure>> + use<>, Failure> {
        let connecting = self.start(authority, address)?;
        Ok(answer(connecting, authority.clone(), self.handshake_limit))
    }
}

/// Waits for the end of a handshake.
async fn answer(
    connecting: Connecting,
    authority: Authority,
    limit: Duration,
) -> Result<Connection, Failure> {
    match timeout(limit, connecting).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(ConnectionError::TimedOut)) | Err(_) => Err(no_answer(&authority, limit)),
        Ok(Err(error)) => Err(refused(&authority, &error)),
    }
}

fn no_answer(authority: &Authority, limit: Duration) -> Failure {
    let message = format!("{authority} does not answer over QUIC within {} s", limit.as_secs_f64());
    Failure::new(Exit::NoConnection, message)
}

/// The failure for a handshake that failed.
fn refused(authority: &Authority, error: &ConnectionError) -> Failure {
    if let ConnectionError::Transport(error) = error
        && is_about_certificates(error.code)
    {
        let why = if error.reason.is_empty() { "for a reason unknown" } else { &error.reason };
        let message = format!("the certificate of {authority} is not trusted: {why}");
        return Failure::new(Exit::Certificate, message);
    }
    if let Some(why) = about_client_certificate(error) {
        return Failure::new(Exit::Certificate, format!("cannot connect to {authority}: {why}"));
    }
    let message = match error {
        ConnectionError::ClosedByPeer(error)
            if error.code == TransportErrorCode::CONNECTION_REFUSED =>
        {
            format!("{authority} accepts no connections at present")
        }
        error => format!("cannot connect to {authority}: {error}"),
    };
    Failure::new(Exit::NoConnection, message)
}

/// Why a server does not let this client in, if that is because of the client's certificate (RFC 8446 section 6.2).
pub fn about_client_certificate(error: &ConnectionError) -> Option<&'static str> {
    /// certificate_required.
    const REQUIRED: TransportErrorCode = TransportErrorCode::crypto(116);
    match error {
        ConnectionError::ClosedByPeer(error) if error.code == REQUIRED => Some(
            "it lets in only clients that show a certificate: give one by --client-cert FILE and \
             --client-key FILE, which `sutura tunnel connect` and `sutura vnc connect` have",
        ),
        ConnectionError::ClosedByPeer(error) if is_about_certificates(error.code) => Some(
            "it does not trust the certificate that this client shows: --client-cert needs one that leads to \
             an authority in the file that the server was given by --client-ca, is meant for clients, and \
             is not expired",
        ),
        _ => None,
    }
}

/// Whether an error is a TLS alert about certificates (RFC 8446 section 6.2): from bad_certificate to
/// certificate_unknown, unknown_ca, access_denied, decrypt_error, and bad_certificate_status_response.
fn is_about_certificates(code: TransportErrorCode) -> bool {
    const ALERTS: [u8; 9] = [42, 43, 44, 45, 46, 48, 49, 51, 113];
    ALERTS.into_iter().any(|alert| code == TransportErrorCode::crypto(alert))
}
