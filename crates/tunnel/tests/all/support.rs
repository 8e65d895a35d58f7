//! A proxy, a tunnel to it, and programs at both ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sutura::{ClientConfig, Endpoint, ServerConfig as QuicConfig, TransportConfig, http};
use sutura_tunnel::access::{AllowList, Target};
use sutura_tunnel::client::{Dial, DialError, Dialled, Dialling, Notices, Tunnel};
use sutura_tunnel::flow::Rules;
use sutura_tunnel::local::forward_tcp;
use sutura_tunnel::masque::UdpTemplate;
use sutura_tunnel::server::{
    Admission, Decision, FlowAtRest, Gate, Identity, Observer, Record, Server, ServerConfig,
    http_config,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The token that the proxies of these tests know.
pub const TOKEN: &str = "0123456789abcdef";
/// The token of another client.
pub const OTHER_TOKEN: &str = "fedcba9876543210";
/// When connections count as lost.
const IDLE: Duration = Duration::from_secs(10);
/// The same in tests that lose them, which wait for it.
const SHORT_IDLE: Duration = Duration::from_secs(2);
const KEEP_ALIVE: Duration = Duration::from_millis(200);
/// Flows of one connection.
const STREAMS: u64 = 4096;

/// Lines that were said, and a way to wait for one.
#[derive(Debug, Clone)]
pub struct Said(watch::Sender<Vec<String>>);

impl Default for Said {
    fn default() -> Self {
        Self(watch::Sender::new(Vec::new()))
    }
}

impl Said {
    fn say(&self, line: String) {
        self.0.send_modify(|lines| lines.push(line));
    }

    /// Waits until a line was said that has this text in it, and returns it.
    pub async fn wait(&self, text: &str) -> String {
        let mut lines = self.0.subscribe();
        let found = |lines: &Vec<String>| lines.iter().any(|line| line.contains(text));
        let lines = lines.wait_for(found).await.unwrap();
        lines.iter().find(|line| line.contains(text)).unwrap().clone()
    }

    /// Waits until so many lines have this text in them.
    pub async fn wait_for(&self, text: &str, count: usize) {
        let mut lines = self.0.subscribe();
        let enough =
            |lines: &Vec<String>| lines.iter().filter(|line| line.contains(text)).count() >= count;
        lines.wait_for(enough).await.unwrap();
    }

    /// How many lines have this text in them.
    pub fn count(&self, text: &str) -> usize {
        self.0.borrow().iter().filter(|line| line.contains(text)).count()
    }
}

impl Observer for Said {
    fn record(&self, record: &Record<'_>) {
        let Record { client, ask, .. } = record;
        self.say(match record.decision {
            Decision::Begun => format!("{client}: {ask} begun"),
            Decision::Resumed => format!("{client}: {ask} resumed"),
            Decision::Suspended { to_target, from_target, .. } => {
                format!("{client}: {ask} suspended: {to_target} {from_target}")
            }
            Decision::Refused { cause, details } => {
                format!("{client}: {ask} refused: {details} ({cause})")
            }
            Decision::Ended { to_target, from_target, complete, .. } => {
                format!("{client}: {ask} ended: {to_target} {from_target} {complete}")
            }
        });
    }

    fn complain(&self, text: &str) {
        self.say(text.to_owned());
    }
}

impl Notices for Said {
    fn note(&self, text: &str) {
        self.say(text.to_owned());
    }

    fn complain(&self, text: &str) {
        self.say(text.to_owned());
    }
}

/// Lets in whoever shows the token.
struct TokenGate;

impl Gate for TokenGate {
    fn admit<'a>(&'a self, shown: Option<&'a [u8]>) -> Admission<'a> {
        let known = [(TOKEN, "ann"), (OTHER_TOKEN, "bob")];
        let known =
            known.iter().find(|(token, _)| shown == Some(format!("Bearer {token}").as_bytes()));
        let identity = known.map(|(_, name)| Identity((*name).into()));
        Box::pin(async move { identity })
    }
}

/// Where a proxy is, and its certificate and key.
pub struct Place {
    address: SocketAddr,
    keys: Arc<Keys>,
}

/// A proxy, which ends when this is dropped.
pub struct Proxy {
    pub server: Server,
    pub said: Said,
    endpoint: Endpoint,
    pub address: SocketAddr,
    keys: Arc<Keys>,
}

fn transport(idle: Duration) -> TransportConfig {
    TransportConfig::default()
        .with_max_idle_timeout(Some(idle))
        .with_keep_alive(Some(KEEP_ALIVE))
        .with_max_concurrent_bidi_streams(STREAMS)
}

/// A certificate and its key.
type Keys = (Vec<u8>, Vec<u8>);

fn new_keys() -> Keys {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (key.cert.der().to_vec(), key.signing_key.serialize_der())
}

fn listening(address: SocketAddr, keys: &Keys) -> Endpoint {
    let chain = vec![keys.0.clone().into()];
    let quic =
        QuicConfig::with_single_cert(chain, keys.1.clone().try_into().unwrap(), &[http::ALPN]);
    Endpoint::server(quic.unwrap().transport(transport(IDLE)), address).unwrap()
}

/// A proxy by others with these settings, which says each request, and agrees to it.
pub fn agreeable(config: http::Config, udp: UdpTemplate) -> (Near, Said) {
    let (keys, said) = (new_keys(), Said::default());
    let endpoint = listening(([127, 0, 0, 1], 0).into(), &keys);
    let address = endpoint.local_addr().unwrap();
    let near = near_with(vec![address], sutura::certificate_fingerprint(&keys.0), TOKEN, IDLE, udp);
    let requests = said.clone();
    tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let mut server = http::Server::new(connection, config);
        let mut streams = Vec::new();
        while let Ok(Some((request, mut stream))) = server.accept().await {
            requests.say(format!("{} {}", request.method, request.path));
            stream.send_response(200, &[]).await.unwrap();
            streams.push(stream);
        }
    });
    (near, said)
}

impl Proxy {
    /// A proxy at any port that allows these targets.
    pub fn start(allow: &[&str]) -> Self {
        Self::with(config(allow))
    }

    pub fn with(config: ServerConfig) -> Self {
        let place = Place { address: ([127, 0, 0, 1], 0).into(), keys: Arc::new(new_keys()) };
        Self::at(place, config, Vec::new())
    }

    fn at(place: Place, config: ServerConfig, flows: Vec<FlowAtRest>) -> Self {
        let Place { address, keys } = place;
        let endpoint = listening(address, &keys);
        let address = endpoint.local_addr().unwrap();
        let said = Said::default();
        let server = Server::new(config, Box::new(said.clone()));
        server.restore(flows);
        let (accepting, serving) = (endpoint.clone(), server.clone());
        tokio::spawn(async move {
            while let Some(incoming) = accepting.accept().await {
                let server = serving.clone();
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else { return };
                    let _ = server.serve(connection, Arc::new(TokenGate)).await;
                });
            }
        });
        Self { server, said, endpoint, address, keys }
    }

    /// Ends the proxy without a word to anybody, and starts one that knows of no flows at its address.
    pub async fn restart(self, config: ServerConfig) -> Self {
        Self::at(self.end().await, config, Vec::new())
    }

    /// Ends the proxy, and starts one that has its flows at its address.
    pub async fn hand_over(self, config: ServerConfig) -> Self {
        let (place, flows) = self.suspend().await;
        Self::again(place, config, flows)
    }

    /// Ends the proxy, and returns its flows.
    pub async fn suspend(self) -> (Place, Vec<FlowAtRest>) {
        let flows = self.server.suspend(b"it is started again").await;
        (self.end().await, flows)
    }

    /// A proxy with the flows of an earlier one, which come as another process would get them.
    pub fn again(place: Place, config: ServerConfig, flows: Vec<FlowAtRest>) -> Self {
        let handed_over = |flow: FlowAtRest| {
            let (socket, state) = flow.into_parts().unwrap();
            FlowAtRest::from_parts(socket, state.into()).unwrap()
        };
        Self::at(place, config, flows.into_iter().map(handed_over).collect())
    }

    /// Ends the proxy, and waits until its place is free.
    async fn end(self) -> Place {
        let place = Place { address: self.address, keys: self.keys.clone() };
        self.endpoint.stop_accepting();
        self.endpoint.close(1, b"killed");
        self.endpoint.wait_idle().await;
        drop(self);
        // The socket is closed by a task of its own.
        while std::net::UdpSocket::bind(place.address).is_err() {
            tokio::task::yield_now().await;
        }
        place
    }

    pub fn fingerprint(&self) -> [u8; 32] {
        sutura::certificate_fingerprint(&self.keys.0)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.endpoint.close(1, b"dropped");
    }
}

/// What allows these targets.
pub fn config(allow: &[&str]) -> ServerConfig {
    let mut config = ServerConfig::default();
    config.allow = rules(allow).into();
    config
}

pub fn rules(rules: &[&str]) -> AllowList {
    rules.iter().map(|rule| rule.parse().unwrap()).collect()
}

/// Connects to proxies with one certificate.
struct Dialer {
    endpoint: Endpoint,
    config: ClientConfig,
    addresses: Vec<SocketAddr>,
    udp: UdpTemplate,
}

impl Dial for Dialer {
    fn proxies(&self) -> usize {
        self.addresses.len()
    }

    fn dial(&self, proxy: usize) -> Dialling<'_> {
        let connecting =
            self.endpoint.connect_with(self.config.clone(), self.addresses[proxy], "localhost");
        Box::pin(async move {
            let failed = |message: String| DialError { message, is_final: false };
            let connecting = connecting.map_err(|error| failed(error.to_string()))?;
            let connection = connecting.await.map_err(|error| failed(error.to_string()))?;
            let (authority, udp) = ("localhost".into(), self.udp.clone());
            Ok(Dialled { connection, authority, udp })
        })
    }
}

/// The end beside the programs.
pub struct Near {
    pub tunnel: Tunnel,
    pub said: Said,
}

impl Drop for Near {
    fn drop(&mut self) {
        self.tunnel.close();
    }
}

/// A tunnel to a proxy.
pub async fn near(proxy: &Proxy) -> Near {
    let near = near_at(vec![proxy.address], proxy.fingerprint(), TOKEN);
    near.tunnel.ready().await.unwrap();
    near
}

/// A tunnel to a proxy at one of these addresses, which may not be up yet.
pub fn near_at(addresses: Vec<SocketAddr>, fingerprint: [u8; 32], token: &str) -> Near {
    near_with(addresses, fingerprint, token, IDLE, UdpTemplate::default())
}

/// The same, which soon notices when its connection is lost.
pub fn alert(address: SocketAddr, fingerprint: [u8; 32]) -> Near {
    near_with(vec![address], fingerprint, TOKEN, SHORT_IDLE, UdpTemplate::default())
}

fn near_with(
    addresses: Vec<SocketAddr>,
    fingerprint: [u8; 32],
    token: &str,
    idle: Duration,
    udp: UdpTemplate,
) -> Near {
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    let config = ClientConfig::with_fingerprint(fingerprint, &[http::ALPN]).unwrap();
    let config = config.transport(transport(idle));
    let said = Said::default();
    let dialer = Dialer { endpoint, config, addresses, udp };
    let tunnel =
        Tunnel::new(Box::new(dialer), Box::new(said.clone()), Some(token), Rules::default());
    let running = tunnel.clone();
    tokio::spawn(async move { running.run().await });
    Near { tunnel, said }
}

/// A client of HTTP/3 that is no tunnel, and its endpoint, which must be kept.
pub async fn raw(proxy: &Proxy) -> (http::Client, Endpoint) {
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    let config = ClientConfig::with_fingerprint(proxy.fingerprint(), &[http::ALPN]).unwrap();
    let config = config.transport(transport(IDLE));
    let connecting = endpoint.connect_with(config, proxy.address, "localhost").unwrap();
    let client = http::Client::new(connecting.await.unwrap(), http_config()).await.unwrap();
    (client, endpoint)
}

/// A port that leads to a target.
pub async fn forwarded(near: &Near, target: SocketAddr) -> SocketAddr {
    forwarded_to(near, target.into_target()).await
}

pub async fn forwarded_to(near: &Near, target: Target) -> SocketAddr {
    let (listener, at) = listener().await;
    tokio::spawn(forward_tcp(listener, near.tunnel.clone(), target));
    at
}

pub trait IntoTarget {
    fn into_target(self) -> Target;
}

impl IntoTarget for SocketAddr {
    fn into_target(self) -> Target {
        self.to_string().parse().unwrap()
    }
}

pub async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// A server that sends back what it gets, in each direction until its end.
pub async fn echo() -> SocketAddr {
    let (listener, at) = listener().await;
    tokio::spawn(async move {
        loop {
            let (mut tcp, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = tcp.split();
                // A program that is reset is none of its business.
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    at
}

/// The same for datagrams.
pub async fn echo_udp() -> SocketAddr {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
    let at = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        loop {
            let (size, from) = socket.recv_from(&mut buffer).await.unwrap();
            socket.send_to(&buffer[..size], from).await.unwrap();
        }
    });
    at
}

/// Sends bytes and the end, and returns what comes back until the end.
pub async fn converse(tcp: TcpStream, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let (mut read, mut write) = tcp.into_split();
    let bytes = bytes.to_vec();
    let sending = tokio::spawn(async move {
        write.write_all(&bytes).await?;
        write.shutdown().await
    });
    let mut back = Vec::new();
    read.read_to_end(&mut back).await?;
    sending.await.unwrap()?;
    Ok(back)
}

/// Bytes of which each eight are different.
pub fn pattern(size: usize) -> Vec<u8> {
    (0..size as u64 / 8)
        .flat_map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes())
        .collect()
}

/// Bytes that a program sends, and reads as they come back.
pub struct Transfer {
    read: OwnedReadHalf,
    sending: JoinHandle<()>,
    back: Vec<u8>,
}

impl Transfer {
    /// Begins to send them at this address.
    pub async fn begin(at: SocketAddr, bytes: &[u8]) -> Self {
        let (read, mut write) = TcpStream::connect(at).await.unwrap().into_split();
        let bytes = bytes.to_vec();
        let sending = tokio::spawn(async move {
            write.write_all(&bytes).await.unwrap();
            write.shutdown().await.unwrap();
        });
        Self { read, sending, back: Vec::new() }
    }

    /// Reads until so many have come back.
    pub async fn read(&mut self, size: usize) {
        let mut piece = vec![0; 1 << 20];
        while self.back.len() < size {
            let size = self.read.read(&mut piece).await.unwrap();
            assert!(size > 0, "the end came after {} bytes", self.back.len());
            self.back.extend_from_slice(&piece[..size]);
        }
    }

    /// All that came back.
    pub async fn end(mut self) -> Vec<u8> {
        self.read.read_to_end(&mut self.back).await.unwrap();
        self.sending.await.unwrap();
        self.back
    }
}
