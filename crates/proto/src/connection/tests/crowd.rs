//! A server and many clients, some of which never answer, in virtual time.

use super::pair::End;
use super::*;
use crate::{ClientConfig, ConnectionHandle};
use std::collections::BTreeMap;

/// How finely time passes.
const TICK: Duration = Duration::from_millis(5);
/// How long a datagram takes.
pub(super) const LATENCY: Duration = Duration::from_millis(50);

pub(super) fn server_config() -> Arc<ServerConfig> {
    let crypto = Arc::new(null_server());
    Arc::new(ServerConfig { crypto, transport: Arc::default() })
}

pub(super) fn client_config() -> ClientConfig {
    client_of(b"test")
}

/// A client of another protocol is refused by TLS.
pub(super) fn client_of(protocol: &[u8]) -> ClientConfig {
    let crypto = Arc::new(NullClientConfig::new(vec![protocol.to_vec()]));
    ClientConfig { crypto, transport: Arc::default() }
}

/// A client with one connection at a time.
pub(super) struct Client {
    pub(super) end: End,
    config: ClientConfig,
}

impl Client {
    pub(super) fn is_connected(&self) -> bool {
        self.end.events.contains(&Event::Connected)
    }

    /// The code with which the server ended the connection.
    pub(super) fn refusal(&self) -> Option<TransportErrorCode> {
        match self.end.loss() {
            Some(ConnectionError::ClosedByPeer(error)) => Some(error.code),
            _ => None,
        }
    }
}

struct Flying {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

pub(super) struct Crowd {
    pub(super) server: Endpoint,
    pub(super) address: SocketAddr,
    pub(super) connections: BTreeMap<ConnectionHandle, Box<Connection>>,
    pub(super) clients: Vec<Client>,
    pub(super) now: Instant,
    wire: BTreeMap<(Instant, u64), Flying>,
    sent: u64,
    /// The datagrams that the server received: sender and bytes.
    pub(super) received: Vec<(SocketAddr, Vec<u8>)>,
    /// The most handshakes under way at a time.
    pub(super) peak: usize,
    /// How many clients the server's connections found fault with.
    pub(super) refused: usize,
}

impl Crowd {
    pub(super) fn new(config: EndpointConfig) -> Self {
        Self {
            server: Endpoint::new(Arc::new(config), Some(server_config()), [9; 32]),
            address: ([192, 0, 2, 1], 443).into(),
            connections: BTreeMap::new(),
            clients: Vec::new(),
            now: Instant::now(),
            wire: BTreeMap::new(),
            sent: 0,
            received: Vec::new(),
            peak: 0,
            refused: 0,
        }
    }

    /// A client at this address opens a connection.
    pub(super) fn client(&mut self, address: &str) -> usize {
        self.client_with(address, client_config())
    }

    pub(super) fn client_with(&mut self, address: &str, config: ClientConfig) -> usize {
        let mut seed = [3; 32];
        seed[..8].copy_from_slice(&(self.clients.len() as u64).to_be_bytes());
        let endpoint = Endpoint::new(Arc::default(), None, seed);
        let end = End::new(endpoint, address.parse().unwrap());
        self.clients.push(Client { end, config });
        let index = self.clients.len() - 1;
        self.reconnect(index);
        index
    }

    /// A client opens its next connection.
    pub(super) fn reconnect(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.end.connect(self.now, client.config.clone(), self.address);
    }

    /// A client closes its connection, and nothing is left of it.
    pub(super) fn close(&mut self, client: usize) {
        let now = self.now;
        self.clients[client].end.conn().close(now, 0, b"");
        self.run_for(Duration::from_secs(5));
    }

    /// A proper first Initial of nobody.
    pub(super) fn initial(&mut self) -> Vec<u8> {
        self.initial_with(client_config())
    }

    pub(super) fn initial_with(&mut self, config: ClientConfig) -> Vec<u8> {
        self.sent += 1;
        let mut seed = [4; 32];
        seed[..8].copy_from_slice(&self.sent.to_be_bytes());
        let mut endpoint = Endpoint::new(Arc::default(), None, seed);
        let (_, mut connection) =
            endpoint.connect(self.now, config, self.address, "localhost").unwrap();
        let mut bytes = Vec::new();
        connection.poll_transmit(self.now, 1, &mut bytes).unwrap();
        bytes
    }

    /// Sends a proper first Initial from an address at which nobody answers.
    pub(super) fn spoof(&mut self, from: SocketAddr) {
        let bytes = self.initial();
        self.put(from, self.address, bytes);
    }

    pub(super) fn put(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.sent += 1;
        self.wire.insert((self.now + LATENCY, self.sent), Flying { from, to, bytes });
    }

    /// Lets time pass.
    pub(super) fn run_for(&mut self, duration: Duration) {
        let until = self.now + duration;
        while self.now < until {
            self.send();
            self.now += TICK;
            self.fire();
            while let Some(entry) = self.wire.first_entry().filter(|e| e.key().0 <= self.now) {
                let flying = entry.remove();
                self.deliver(flying);
            }
            self.peak = self.peak.max(self.server.half_open());
        }
    }

    fn fire(&mut self) {
        let now = self.now;
        let clients = self.clients.iter_mut().filter_map(|client| client.end.connection.as_mut());
        for connection in clients.chain(self.connections.values_mut()) {
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
        }
    }

    fn send(&mut self) {
        let (now, mut out) = (self.now, Vec::new());
        for Client { end, .. } in &mut self.clients {
            let Some(connection) = &mut end.connection else { continue };
            transmit(now, connection, end.address, &mut out);
            end.settle();
            if end.conn().is_drained() {
                end.connection = None;
            }
        }
        for (handle, connection) in &mut self.connections {
            while let Some(event) = connection.poll_event() {
                let is_fault =
                    matches!(event, Event::ConnectionLost(ConnectionError::Transport(_)));
                self.refused += usize::from(is_fault);
            }
            transmit(now, connection, self.address, &mut out);
            while let Some(event) = connection.poll_endpoint_event() {
                self.server.handle_event(*handle, event);
            }
        }
        self.connections.retain(|_, connection| !connection.is_drained());
        // A handshake counts until it is complete, or nothing is left of it.
        let incomplete = self.connections.values().filter(|c| !c.handshake.complete).count();
        assert_eq!(self.server.half_open(), incomplete);
        assert_eq!(self.server.len(), self.connections.len());
        for (from, to, bytes) in out {
            self.put(from, to, bytes);
        }
    }

    fn deliver(&mut self, Flying { from, to, mut bytes }: Flying) {
        let now = self.now;
        if to != self.address {
            let found = self.clients.iter_mut().find(|client| client.end.address == to);
            if let Some(connection) = found.and_then(|client| client.end.connection.as_mut()) {
                connection.handle_datagram(now, from, None, &mut bytes);
            }
            return;
        }
        self.received.push((from, bytes.clone()));
        let event = self.server.handle(now, from, &bytes);
        while let Some(given_up) = self.server.poll_given_up() {
            let mut connection = self.connections.remove(&given_up).unwrap();
            connection.discard(now);
            while let Some(event) = connection.poll_endpoint_event() {
                self.server.handle_event(given_up, event);
            }
        }
        let handle = match event {
            DatagramEvent::Drop | DatagramEvent::Elsewhere(_) => return,
            DatagramEvent::Respond(answer) => {
                assert!(answer.len() < bytes.len(), "no amplification");
                return self.put(to, from, answer);
            }
            DatagramEvent::Connection(handle) => handle,
            DatagramEvent::NewConnection(incoming) => {
                let handle = incoming.handle();
                let connection = self.server.accept(now, incoming).unwrap();
                assert!(self.connections.insert(handle, connection).is_none());
                handle
            }
        };
        if let Some(connection) = self.connections.get_mut(&handle) {
            connection.handle_datagram(now, from, None, &mut bytes);
        }
    }
}

fn transmit(
    now: Instant,
    connection: &mut Connection,
    from: SocketAddr,
    out: &mut Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
) {
    let mut bytes = Vec::new();
    while let Some(transmit) = connection.poll_transmit(now, 10, &mut bytes) {
        let segment = transmit.segment_size.unwrap_or(transmit.size);
        out.extend(bytes.chunks(segment).map(|c| (from, transmit.destination, c.to_vec())));
        bytes.clear();
    }
}
