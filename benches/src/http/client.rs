//! The client: hyper's over TCP, Sutura's over QUIC.

use crate::report::Load;
use crate::server::{Resource, Site, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper::header::HOST;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura::{ClientConfig, Endpoint, http};
use sutura_benches::costs::Costs;
use sutura_benches::server::Server;
use sutura_benches::tls::{self, Identity};
use sutura_benches::{Error, cpu, process};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long a new server gets until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the client waits for one handshake, and then for the next.
const HANDSHAKE: Duration = Duration::from_millis(500);

/// How long a server has to come to rest: allocators give memory back in about ten seconds.
const REST: Duration = Duration::from_secs(15);

/// A client of a server in one version of HTTP. It offers one cipher and one group, AES-128-GCM and X25519.
pub struct Client {
    server: SocketAddr,
    authority: Arc<str>,
    way: Way,
}

/// How connections are made.
enum Way {
    Tcp { tls: TlsConnector, version: TcpVersion },
    Quic(Endpoint),
}

#[derive(Clone, Copy)]
enum TcpVersion {
    One,
    Two,
}

/// A connection, which answers one request after another, or several at a time.
enum Connection {
    One(http1::SendRequest<Empty<Bytes>>),
    Two(http2::SendRequest<Empty<Bytes>>),
    Three(Arc<http::Client>),
}

impl Client {
    pub fn new(server: SocketAddr, identity: &Identity, version: Version) -> Result<Self, Error> {
        let tls = identity.client_tls(tls::aes_128_gcm())?;
        let way = match version {
            Version::One => Self::tcp(tls, b"http/1.1", TcpVersion::One),
            Version::Two => Self::tcp(tls, b"h2", TcpVersion::Two),
            Version::Three => {
                let mut tls = tls;
                tls.alpn_protocols = vec![http::ALPN.to_vec()];
                let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
                endpoint.set_default_client_config(ClientConfig::with_tls(tls)?);
                Way::Quic(endpoint)
            }
        };
        let authority = format!("localhost:{}", server.port()).into();
        Ok(Self { server, authority, way })
    }

    fn tcp(mut tls: rustls::ClientConfig, protocol: &[u8], version: TcpVersion) -> Way {
        tls.alpn_protocols = vec![protocol.to_vec()];
        Way::Tcp { tls: TlsConnector::from(Arc::new(tls)), version }
    }

    /// Connects as soon as the server listens.
    async fn connect(&self) -> Result<Connection, Error> {
        let start = Instant::now();
        loop {
            match timeout(HANDSHAKE, self.try_to_connect()).await {
                Ok(Ok(connection)) => return Ok(connection),
                failed if start.elapsed() > PATIENCE => drop(failed??),
                _ => sleep(HANDSHAKE / 10).await,
            }
        }
    }

    async fn try_to_connect(&self) -> Result<Connection, Error> {
        match &self.way {
            Way::Tcp { tls, version } => {
                let stream = TcpStream::connect(self.server).await?;
                stream.set_nodelay(true)?;
                let name = ServerName::try_from("localhost")?;
                Self::greet(tls.connect(name, stream).await?, *version).await
            }
            Way::Quic(endpoint) => {
                let connection = endpoint.connect(self.server, "localhost")?.await?;
                let client = http::Client::new(connection, http::Config::default()).await?;
                Ok(Connection::Three(Arc::new(client)))
            }
        }
    }

    async fn greet(stream: TlsStream<TcpStream>, version: TcpVersion) -> Result<Connection, Error> {
        let stream = TokioIo::new(stream);
        match version {
            TcpVersion::One => {
                let (sender, connection) = http1::handshake(stream).await?;
                tokio::spawn(connection);
                Ok(Connection::One(sender))
            }
            TcpVersion::Two => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
                tokio::spawn(connection);
                Ok(Connection::Two(sender))
            }
        }
    }

    /// Connections for this many requests at a time: the same one again and again where it can answer several.
    async fn connections(&self, at_once: u64) -> Result<Vec<Connection>, Error> {
        let mut all = vec![self.connect().await?];
        for _ in 1..at_once {
            let next = match &all[0] {
                Connection::One(_) => self.connect().await?,
                Connection::Two(sender) => Connection::Two(sender.clone()),
                Connection::Three(client) => Connection::Three(client.clone()),
            };
            all.push(next);
        }
        Ok(all)
    }

    /// The costs of each of `count` GETs. A tenth of them go before the measurement, as a warm-up.
    pub async fn measure(
        &self,
        server: &Server,
        site: &Site,
        load: Load,
        count: u64,
    ) -> Result<Costs, Error> {
        let (resource, at_once) = match load {
            Load::Small { at_once } => (site.small, at_once),
            Load::Large => (site.large, 1),
        };
        let mut connections = self.connections(at_once).await?;
        self.get_all(&mut connections, resource, count.div_ceil(10)).await?;
        let before = (process::family_cpu_seconds(server.id())?, cpu::now());
        let start = Instant::now();
        let done = self.get_all(&mut connections, resource, count).await?;
        let all = Costs {
            seconds: start.elapsed().as_secs_f64(),
            server_cpu: process::family_cpu_seconds(server.id())? - before.0,
            client_cpu: (cpu::now() - before.1).as_secs_f64(),
        };
        self.close(connections).await;
        Ok(all.over(done as f64))
    }

    /// Gets a file at least `count` times, over all connections at a time. Returns how often.
    async fn get_all(
        &self,
        connections: &mut Vec<Connection>,
        resource: Resource,
        count: u64,
    ) -> Result<u64, Error> {
        let each = count.div_ceil(connections.len() as u64);
        let askers: Vec<_> = connections
            .drain(..)
            .map(|mut connection| {
                let authority = self.authority.clone();
                tokio::spawn(async move {
                    for _ in 0..each {
                        connection.get(&authority, resource).await?;
                    }
                    Ok::<_, Error>(connection)
                })
            })
            .collect();
        for asker in askers {
            connections.push(asker.await??);
        }
        Ok(each * connections.len() as u64)
    }

    /// What each of `count` connections that have got the small file once, and are silent, adds to the memory of a
    /// server; and what each has left behind when it is over. In bytes.
    pub async fn idle(&self, server: &Server, site: &Site, count: u64) -> Result<Idle, Error> {
        let resident = || process::family_resident_bytes(server.id());
        // What a server allocates once is not of any connection.
        let first = self.connections(1).await?;
        self.close(first).await;
        let before = resident()?;
        let mut connections = Vec::new();
        for _ in 0..count {
            let mut connection = self.connect().await?;
            connection.get(&self.authority, site.small).await?;
            connections.push(connection);
        }
        sleep(REST).await;
        let with = resident()?;
        self.close(connections).await;
        sleep(REST).await;
        let each = |bytes: u64| bytes.saturating_sub(before) as f64 / count as f64;
        Ok(Idle { open: each(with), over: each(resident()?) })
    }

    /// Says goodbye to the server.
    async fn close(&self, connections: Vec<Connection>) {
        for connection in connections {
            if let Connection::Three(client) = connection {
                client.connection().close(0, b"");
            }
        }
        if let Way::Quic(endpoint) = &self.way {
            endpoint.wait_idle().await;
        }
    }
}

/// Memory of a server, in bytes for each connection.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Idle {
    /// While the connections are open.
    pub open: f64,
    /// When they are over.
    pub over: f64,
}

impl Connection {
    /// Gets a file and counts its bytes.
    async fn get(&mut self, authority: &str, resource: Resource) -> Result<(), Error> {
        let bytes = match self {
            Self::One(sender) => {
                sender.ready().await?;
                let request = Request::get(resource.path).header(HOST, authority);
                count(sender.send_request(request.body(Empty::new())?).await?).await?
            }
            Self::Two(sender) => {
                sender.ready().await?;
                let target = format!("https://{authority}{}", resource.path);
                let request = Request::get(target).body(Empty::new())?;
                count(sender.send_request(request).await?).await?
            }
            Self::Three(client) => get_over_quic(client, authority, resource).await?,
        };
        if bytes == resource.bytes { Ok(()) } else { Err(format!("{bytes} bytes").into()) }
    }
}

/// The length of the body of a response over TCP.
async fn count(response: Response<hyper::body::Incoming>) -> Result<u64, Error> {
    if response.status() != StatusCode::OK {
        return Err(format!("the status is {}", response.status()).into());
    }
    let (mut body, mut bytes) = (response.into_body(), 0);
    while let Some(frame) = body.frame().await {
        bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(bytes)
}

/// The length of the body of a response over QUIC.
async fn get_over_quic(
    client: &http::Client,
    authority: &str,
    resource: Resource,
) -> Result<u64, Error> {
    let mut stream = client.request("GET", authority, resource.path, &[], None).await?;
    stream.finish().await?;
    let response = stream.recv_response().await?;
    if response.status != 200 {
        return Err(format!("the status is {}", response.status).into());
    }
    let mut bytes = 0;
    while let Some(data) = stream.recv_data().await? {
        bytes += data.len() as u64;
    }
    Ok(bytes)
}
