//! Two endpoints connected by a wire, in virtual time.

use crate::Standstill;
use crate::connection::space::PacketNumberSpace;
use crate::crypto::null::{NullClientConfig, NullServerConfig};
use crate::crypto::{ClientCrypto, ServerCrypto};
use crate::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionStats, DatagramEvent,
    Dir, EcnCodepoint, Endpoint, EndpointConfig, EndpointEvent, Event, Extensions, FecConfig, Read,
    ReadError, ServerConfig, Side, SocketFeatures, SpaceId, StreamId, TransportConfig,
    TransportError, TransportErrorCode, WriteError,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// One end: an endpoint with at most one connection.
pub(super) struct End {
    pub(super) endpoint: Endpoint,
    pub(super) connection: Option<Box<Connection>>,
    handle: Option<ConnectionHandle>,
    /// The end's address. Datagrams to another address are lost.
    pub(super) address: SocketAddr,
    /// Another address at which it receives.
    pub(super) alias: Option<SocketAddr>,
    /// The address that the newest datagram was sent to: the end's own datagrams come from there.
    reached_at: SocketAddr,
    pub(super) events: Vec<Event>,
}

impl End {
    pub(super) fn new(endpoint: Endpoint, address: SocketAddr) -> Self {
        let (connection, handle, alias, events) = (None, None, None, Vec::new());
        Self { endpoint, connection, handle, address, alias, reached_at: address, events }
    }

    pub(super) fn conn(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("no connection yet")
    }

    pub(super) fn stats(&self) -> ConnectionStats {
        self.connection.as_ref().expect("no connection yet").stats()
    }

    /// The space of 1-RTT packets.
    pub(super) fn space(&mut self) -> &mut PacketNumberSpace {
        &mut self.conn().spaces[SpaceId::Data]
    }

    /// Why the connection was lost.
    pub(super) fn loss(&self) -> Option<ConnectionError> {
        self.events.iter().find_map(|event| match event {
            Event::ConnectionLost(error) => Some(error.clone()),
            _ => None,
        })
    }

    /// Opens a connection, the only one of the end.
    pub(super) fn connect(&mut self, now: Instant, config: ClientConfig, remote: SocketAddr) {
        let (handle, connection) = self.endpoint.connect(now, config, remote, "localhost").unwrap();
        (self.handle, self.connection) = (Some(handle), Some(connection));
        self.events.clear();
    }

    pub(super) fn settle(&mut self) {
        let (Some(connection), Some(handle)) = (&mut self.connection, self.handle) else { return };
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(handle, event);
        }
        while let Some(event) = connection.poll_event() {
            self.events.push(event);
        }
    }
}

type Filter = Box<dyn FnMut(Side, &mut Vec<u8>) -> bool>;
/// Takes a sender and the number of its datagram; returns the extra delay of each copy.
type Copies = Box<dyn FnMut(Side, usize) -> Vec<Duration>>;

type Mark = Option<EcnCodepoint>;
type Remark = Box<dyn FnMut(Mark) -> Option<Mark>>;

/// A datagram on its way.
struct Flying {
    to: Side,
    from: SocketAddr,
    /// The address that it was sent to.
    at: SocketAddr,
    mark: Mark,
    bytes: Vec<u8>,
}

/// A client, a server and a virtual clock.
pub(super) struct Pair {
    pub(super) client: End,
    pub(super) server: End,
    pub(super) now: Instant,
    pub(super) latency: Duration,
    /// Is passed each datagram with its sender, may change it, and returns whether it arrives.
    pub(super) filter: Filter,
    pub(super) copies: Copies,
    /// Is passed the ECN mark with which a datagram is sent, and returns the mark with which it arrives, if
    /// it has any then.
    pub(super) remark: Remark,
    /// Datagrams on the wire, by arrival time and order.
    wire: BTreeMap<(Instant, u64), Flying>,
    /// Where each datagram was sent to, and its size.
    pub(super) destinations: Vec<(SocketAddr, usize)>,
    sent: u64,
    /// Sizes of the datagrams that each side sent.
    pub(super) datagrams: [Vec<usize>; 2],
    config: ClientConfig,
    server_crypto: ServerCrypto,
}

fn end(config: EndpointConfig, server: Option<Arc<ServerConfig>>, port: u16, seed: u8) -> End {
    let endpoint = Endpoint::new(Arc::new(config), server, [seed; 32]);
    End::new(endpoint, ([127, 0, 0, 1], port).into())
}

/// The cryptography of a server that speaks the clients' protocol.
pub(super) fn null_server() -> NullServerConfig {
    NullServerConfig::new(vec![b"test".to_vec()])
}

/// The cryptography of a client that speaks the servers' protocol, and resumes sessions if they permit.
pub(super) fn honest() -> ClientCrypto {
    Arc::new(NullClientConfig::new(vec![b"test".to_vec()]).with_early_data())
}

fn changed(change: impl FnOnce(&mut TransportConfig)) -> TransportConfig {
    let mut config = TransportConfig::default();
    change(&mut config);
    config
}

/// The limits of the coding of a default configuration.
pub(super) fn fec(config: &mut TransportConfig) -> &mut FecConfig {
    config.fec.as_mut().unwrap()
}

impl Pair {
    pub(super) fn new() -> Self {
        Self::with(TransportConfig::default(), TransportConfig::default())
    }

    pub(super) fn with(client: TransportConfig, server: TransportConfig) -> Self {
        Self::with_crypto(client, server, null_server())
    }

    /// A pair whose handshake is confirmed, after `change` of the server's default configuration.
    pub(super) fn with_server(change: impl FnOnce(&mut TransportConfig)) -> Self {
        Self::with(TransportConfig::default(), changed(change)).ready()
    }

    /// A pair whose handshake is confirmed, after `change` of the client's default configuration.
    pub(super) fn with_client(change: impl FnOnce(&mut TransportConfig)) -> Self {
        Self::with(changed(change), TransportConfig::default()).ready()
    }

    /// A pair whose handshake is confirmed, after `change` of both ends' default configuration.
    pub(super) fn with_both(change: impl FnOnce(&mut TransportConfig)) -> Self {
        let config = changed(change);
        Self::with(config.clone(), config).ready()
    }

    pub(super) fn with_crypto(
        client: TransportConfig,
        server: TransportConfig,
        crypto: NullServerConfig,
    ) -> Self {
        let endpoints = [EndpointConfig::default(), EndpointConfig::default()];
        Self::build([client, server], honest(), Arc::new(crypto), endpoints)
    }

    /// A pair with the default configuration and this cryptography.
    pub(super) fn with_cryptos(client: ClientCrypto, server: ServerCrypto) -> Self {
        let endpoints = [EndpointConfig::default(), EndpointConfig::default()];
        Self::build(Default::default(), client, server, endpoints)
    }

    /// A pair with the default configuration whose sockets do more than send and receive.
    pub(super) fn with_sockets(socket: SocketFeatures) -> Self {
        let config = EndpointConfig { socket, ..EndpointConfig::default() };
        Self::with_endpoints([config.clone(), config])
    }

    /// A pair of ends, the client first, that offer these extensions.
    pub(super) fn with_extensions(extensions: [Extensions; 2]) -> Self {
        let config = |extensions| EndpointConfig { extensions, ..EndpointConfig::default() };
        Self::with_endpoints(extensions.map(config))
    }

    /// A pair whose endpoints, the client's first, have these settings.
    pub(super) fn with_endpoints(endpoints: [EndpointConfig; 2]) -> Self {
        let crypto = null_server();
        Self::build(Default::default(), honest(), Arc::new(crypto), endpoints)
    }

    pub(super) fn build(
        [client, server]: [TransportConfig; 2],
        client_crypto: ClientCrypto,
        crypto: ServerCrypto,
        endpoints: [EndpointConfig; 2],
    ) -> Self {
        let [client_endpoint, server_endpoint] = endpoints;
        let server_crypto = crypto.clone();
        let server = Arc::new(ServerConfig { crypto, transport: Arc::new(server) });
        let config = ClientConfig { crypto: client_crypto, transport: Arc::new(client) };
        let mut pair = Self {
            client: end(client_endpoint, None, 1, 1),
            server: end(server_endpoint, Some(server), 2, 2),
            now: Instant::now(),
            latency: Duration::from_millis(50),
            filter: Box::new(|_, _| true),
            copies: Box::new(|_, _| vec![Duration::ZERO]),
            remark: Box::new(Some),
            wire: BTreeMap::new(),
            destinations: Vec::new(),
            sent: 0,
            datagrams: [Vec::new(), Vec::new()],
            config,
            server_crypto,
        };
        pair.connect();
        pair
    }

    fn connect(&mut self) {
        let (config, remote) = (self.config.clone(), self.server.address);
        self.client.connect(self.now, config, remote);
    }

    /// The configuration of a server like the present one.
    pub(super) fn server_config(&self) -> Arc<ServerConfig> {
        let crypto = self.server_crypto.clone();
        Arc::new(ServerConfig { crypto, transport: Arc::default() })
    }

    /// Replaces the transport configuration of the server's later connections.
    pub(super) fn replace_server_transport(&mut self, transport: TransportConfig) {
        let (crypto, transport) = (self.server_crypto.clone(), Arc::new(transport));
        self.server.endpoint.set_server_config(Some(Arc::new(ServerConfig { crypto, transport })));
    }

    /// Both ends forget their connection.
    pub(super) fn forget(&mut self) {
        for end in [&mut self.client, &mut self.server] {
            end.connection = None;
            if let Some(handle) = end.handle.take() {
                end.endpoint.handle_event(handle, EndpointEvent::Drained);
            }
            end.events.clear();
        }
        self.wire.clear();
        self.datagrams = [Vec::new(), Vec::new()];
    }

    /// Both ends forget their connection, and the client opens another one.
    pub(super) fn reconnect(&mut self) {
        self.forget();
        self.connect();
    }

    /// A pair whose handshake is confirmed.
    pub(super) fn connected() -> Self {
        Self::new().ready()
    }

    /// The pair once its handshake is confirmed.
    pub(super) fn ready(mut self) -> Self {
        self.handshake();
        self
    }

    pub(super) fn handshake(&mut self) {
        self.run_for(SECOND);
        assert!(self.client.events.contains(&Event::Connected), "{:?}", self.client.events);
        assert!(self.server.events.contains(&Event::Connected), "{:?}", self.server.events);
        assert!(self.client.conn().handshake.confirmed);
        self.client.events.clear();
        self.server.events.clear();
    }

    pub(super) fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Makes datagrams arrive late, up to three times, or damaged: every fifth, in one bit.
    pub(super) fn disturb(&mut self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        self.copies = Box::new(move |_, _| {
            let late = |rng: &mut StdRng| Duration::from_millis(rng.random_range(0..80));
            (0..rng.random_range(1..4)).map(|_| late(&mut rng)).collect()
        });
        let mut rng = StdRng::seed_from_u64(seed + 1000);
        self.filter = Box::new(move |_, bytes| {
            if rng.random_ratio(1, 5) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] ^= 1 << rng.random_range(0..8);
            }
            true
        });
    }

    /// Lets one side send everything it has.
    pub(super) fn flush(&mut self, side: Side) {
        let now = self.now;
        let mut more = true;
        loop {
            let mut out = Vec::new();
            let end = self.end(side);
            end.settle();
            let Some(connection) = &mut end.connection else { return };
            let Some(transmit) = connection.poll_transmit(now, 10, &mut out) else {
                assert_ne!(connection.standstill(now), Standstill::Stuck);
                assert_eq!(connection.check(), Ok(()));
                break;
            };
            assert!(more, "there is more to send after all");
            more = transmit.more;
            assert_eq!(transmit.size, out.len());
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in out.chunks(segment) {
                self.destinations.push((transmit.destination, datagram.len()));
                self.put(side, transmit.destination, transmit.ecn, datagram.to_vec());
            }
        }
        self.end(side).settle();
    }

    fn put(&mut self, from: Side, to: SocketAddr, mark: Mark, mut datagram: Vec<u8>) {
        self.datagrams[from as usize].push(datagram.len());
        let end = self.end(from);
        let source = if end.alias.is_some() { end.reached_at } else { end.address };
        let peer = self.end(from.peer());
        if to != peer.address && Some(to) != peer.alias {
            return;
        }
        let Some(mark) = (self.remark)(mark) else { return };
        if (self.filter)(from, &mut datagram) {
            for late in (self.copies)(from, self.datagrams[from as usize].len() - 1) {
                self.sent += 1;
                let arrival = (self.now + self.latency + late, self.sent);
                let bytes = datagram.clone();
                let flying = Flying { to: from.peer(), from: source, at: to, mark, bytes };
                self.wire.insert(arrival, flying);
            }
        }
    }

    /// Delivers a datagram to an end at once.
    pub(super) fn receive(&mut self, side: Side, datagram: Vec<u8>) {
        let from = self.end(side.peer()).address;
        self.receive_from(side, from, datagram);
    }

    /// Delivers a datagram from this address to an end at once.
    pub(super) fn receive_from(&mut self, side: Side, from: SocketAddr, datagram: Vec<u8>) {
        let at = self.end(side).address;
        self.arrive(Flying { to: side, from, at, mark: None, bytes: datagram });
    }

    fn arrive(&mut self, datagram: Flying) {
        let Flying { to: side, from, at, mark, bytes: mut datagram } = datagram;
        let now = self.now;
        let end = self.end(side);
        end.reached_at = at;
        match end.endpoint.handle(now, from, &datagram) {
            DatagramEvent::Drop | DatagramEvent::Elsewhere(_) => return,
            DatagramEvent::Respond(answer) => {
                self.put(side, from, None, answer);
                return;
            }
            DatagramEvent::Connection(_) => {}
            DatagramEvent::NewConnection(incoming) if end.connection.is_none() => {
                end.handle = Some(incoming.handle());
                end.connection = end.endpoint.accept(now, incoming);
            }
            DatagramEvent::NewConnection(incoming) => end.endpoint.ignore(incoming),
        }
        if let Some(connection) = &mut end.connection {
            connection.handle_datagram(now, from, mark, &mut datagram);
        }
        end.settle();
    }

    /// Advances to the next event; returns false if there is none.
    pub(super) fn step(&mut self, until: Instant) -> bool {
        self.flush(Side::Client);
        self.flush(Side::Server);
        let arrival = self.wire.keys().next().map(|(at, _)| *at);
        let timers = [&self.client, &self.server]
            .into_iter()
            .filter_map(|end| end.connection.as_ref()?.poll_timeout());
        let Some(next) = arrival.into_iter().chain(timers).min().filter(|at| *at <= until) else {
            return false;
        };
        self.now = self.now.max(next);
        for side in [Side::Client, Side::Server] {
            let now = self.now;
            if let Some(connection) = &mut self.end(side).connection
                && connection.poll_timeout().is_some_and(|at| at <= now)
            {
                connection.handle_timeout(now);
            }
        }
        while let Some(entry) = self.wire.first_entry().filter(|e| e.key().0 <= self.now) {
            let datagram = entry.remove();
            self.arrive(datagram);
        }
        true
    }

    /// Lets time pass.
    pub(super) fn run_for(&mut self, duration: Duration) {
        let until = self.now + duration;
        let mut steps = 0u32;
        while self.step(until) {
            steps += 1;
            assert!(steps < 1_000_000, "the pair never comes to rest");
        }
        self.now = until;
    }

    /// Opens a stream, sends `data` on it and finishes it.
    pub(super) fn send(&mut self, side: Side, dir: Dir, data: &[u8]) -> StreamId {
        let id = self.end(side).conn().open(dir).unwrap();
        self.write_all(side, id, data);
        self.end(side).conn().send_stream(id).finish().unwrap();
        id
    }

    fn write_all(&mut self, side: Side, id: StreamId, mut data: &[u8]) {
        while !data.is_empty() {
            match self.end(side).conn().send_stream(id).write(data) {
                Ok(n) => data = &data[n..],
                Err(WriteError::Blocked) => {
                    let until = self.now + Duration::from_secs(10);
                    assert!(self.step(until), "blocked for ever");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Reads a stream to its end, letting time pass for at most `patience`.
    pub(super) fn read_to_end(&mut self, side: Side, id: StreamId, patience: Duration) -> Vec<u8> {
        let until = self.now + patience;
        let mut all = Vec::new();
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.end(side).conn().recv_stream(id).read(&mut buffer) {
                Ok(Read::Data(n)) => all.extend_from_slice(&buffer[..n]),
                Ok(Read::Fin) => return all,
                Err(ReadError::Blocked) => {
                    assert!(self.step(until), "stalled after {} bytes", all.len());
                }
                Err(error) => panic!("{error} after {} bytes", all.len()),
            }
        }
    }

    /// Reads a stream that the peer has just opened.
    pub(super) fn accept_and_read(&mut self, side: Side, dir: Dir) -> Vec<u8> {
        let until = self.now + Duration::from_secs(60);
        let id = loop {
            if let Some(connection) = &mut self.end(side).connection
                && let Some(id) = connection.accept(dir)
            {
                break id;
            }
            assert!(self.step(until), "no stream came");
        };
        self.read_to_end(side, id, Duration::from_secs(120))
    }
}

impl Pair {
    /// Why an end's connection was lost.
    pub(super) fn loss(&mut self, side: Side) -> Option<ConnectionError> {
        self.end(side).loss()
    }

    /// The code of the error that an end detected in its peer's behaviour.
    pub(super) fn error(&mut self, side: Side) -> Option<TransportErrorCode> {
        match self.loss(side)? {
            ConnectionError::Transport(error) => Some(error.code),
            other => panic!("{other}"),
        }
    }

    /// The error that an end's peer detected, as it told the end.
    pub(super) fn refusal(&mut self, side: Side) -> Option<TransportError> {
        match self.loss(side)? {
            ConnectionError::ClosedByPeer(error) => Some(error),
            other => panic!("{other}"),
        }
    }

    /// How many bytes of UDP payload an end has sent.
    pub(super) fn bytes_sent(&self, side: Side) -> usize {
        self.datagrams[side as usize].iter().sum()
    }
}

/// Bytes that differ from position to position.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}
