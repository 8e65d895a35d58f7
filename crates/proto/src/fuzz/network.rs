//! Two endpoints on a network that a fuzzer controls: it loses, delays, copies, damages and cuts
//! datagrams, sends old ones again from other addresses, and makes the client move.
//!
//! An attacker without keys must not get further than that. So no end may ever find fault with its peer,
//! received data must equal the sent data, and once the network is honest again all data arrives, unless the
//! connection is over.

use super::connection::{Input, fire, transmit};
use crate::crypto::null::{NullClientConfig, NullServerConfig};
use crate::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, FecConfig, Protection, Read, ServerConfig, Side, StreamId,
    TransportConfig,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps while the fuzzer has input.
const MAX_HOSTILE_STEPS: usize = 1_500;
/// After the fuzzer's input, the time within which all data must have arrived or the connection be over. An
/// idle timeout is 30 seconds.
const PATIENCE: Duration = Duration::from_secs(200);
const LATENCY: Duration = Duration::from_millis(10);
/// Bytes that each end sends.
const LENGTH: u64 = 30_000;
/// How many old datagrams the fuzzer can send again.
const MAX_KEPT: usize = 32;

/// Byte `offset` of the stream of `sender`.
fn byte(sender: Side, offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9) >> 13) as u8 ^ sender as u8
}

/// A connection with the transfers of its application.
struct Peer {
    connection: Box<Connection>,
    ours: Option<StreamId>,
    written: u64,
    theirs: Option<StreamId>,
    read: u64,
    complete: bool,
    over: bool,
}

impl Peer {
    fn new(connection: Box<Connection>) -> Self {
        let (written, read, complete, over) = (0, 0, false, false);
        Self { connection, ours: None, written, theirs: None, read, complete, over }
    }

    /// Writes and reads as much as possible.
    fn act(&mut self) {
        let side = self.connection.side();
        while let Some(event) = self.connection.poll_event() {
            if let Event::ConnectionLost(error) = event {
                self.over = true;
                let blames = matches!(error, ConnectionError::Transport(_));
                assert!(!blames, "{side:?} finds fault with its peer: {error}");
            }
        }
        self.ours = self.ours.or_else(|| self.connection.open(Dir::Uni));
        if let Some(id) = self.ours.filter(|_| self.written < LENGTH) {
            let end = LENGTH.min(self.written + 3_000);
            let bytes: Vec<u8> = (self.written..end).map(|offset| byte(side, offset)).collect();
            if let Ok(n) = self.connection.send_stream(id).write(&bytes) {
                self.written += n as u64;
                if self.written == LENGTH {
                    let _ = self.connection.send_stream(id).finish();
                }
            }
        }
        self.theirs = self.theirs.or_else(|| self.connection.accept(Dir::Uni));
        let Some(id) = self.theirs else { return };
        let mut buffer = [0; 1000];
        loop {
            match self.connection.recv_stream(id).read(&mut buffer) {
                Ok(Read::Data(n)) => {
                    for (offset, got) in (self.read..).zip(&buffer[..n]) {
                        assert_eq!(*got, byte(side.peer(), offset), "{side:?} at {offset}");
                    }
                    self.read += n as u64;
                }
                Ok(Read::Fin) => {
                    assert_eq!(self.read, LENGTH);
                    self.complete = true;
                    return;
                }
                Err(_) => return,
            }
        }
    }

    fn is_done(&self) -> bool {
        self.over || (self.complete && self.written == LENGTH)
    }
}

struct NetworkEnd {
    endpoint: Endpoint,
    peers: BTreeMap<ConnectionHandle, Peer>,
    address: SocketAddr,
}

/// A datagram on its way or kept.
#[derive(Clone)]
struct Flying {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

struct NetworkWorld {
    ends: [NetworkEnd; 2],
    now: Instant,
    wire: BTreeMap<(Instant, u64), Flying>,
    sent: u64,
    kept: VecDeque<Flying>,
    moves: u16,
    /// Whether a server's connection has received everything.
    served: bool,
}

/// Runs two endpoints on a network that `data` controls.
///
/// # Panics
/// A promise in the description of this module is broken, a timer spins, or a connection never
/// stops sending.
pub fn endpoints(data: &[u8]) {
    let mut input = Input(data);
    let Some(mut world) = NetworkWorld::new(&mut input) else { return };
    let mut steps = 0;
    let mut honest_since = None;
    loop {
        for side in [Side::Client, Side::Server] {
            world.ends[side as usize].peers.values_mut().for_each(Peer::act);
            world.transmit(side, &mut input);
        }
        world.served |= world.ends[1].peers.values().any(|peer| peer.complete);
        steps += 1;
        if input.is_empty() || steps > MAX_HOSTILE_STEPS {
            input = Input(&[]);
            let since = *honest_since.get_or_insert(world.now);
            if world.is_done() {
                return;
            }
            assert!(world.now < since + PATIENCE, "what was sent never arrives");
        } else {
            world.meddle(&mut input);
        }
        if !world.advance() {
            break;
        }
    }
    assert!(world.is_done(), "nothing happens any more");
}

impl NetworkWorld {
    fn new(input: &mut Input<'_>) -> Option<Self> {
        let alpn = vec![b"fuzz".to_vec()];
        let crypto = Arc::new(NullServerConfig::new(alpn.clone()));
        let fec = Some(FecConfig::default());
        let transport = Arc::new(TransportConfig { fec, ..TransportConfig::default() });
        let server = Arc::new(ServerConfig { crypto, transport: transport.clone() });
        let (seed, kind) = (input.byte(), input.byte());
        let retry_above = Some(if kind & 1 > 0 { 0 } else { 500 });
        let config = EndpointConfig { retry_above, ..EndpointConfig::default() };
        let end = |server, port, seed| NetworkEnd {
            endpoint: Endpoint::new(Arc::new(config.clone()), server, [seed; 32]),
            peers: BTreeMap::new(),
            address: ([192, 0, 2, 1], port).into(),
        };
        let mut ends = [end(None, 1, seed), end(Some(server), 2, !seed)];
        let now = Instant::now();
        let config = ClientConfig { crypto: Arc::new(NullClientConfig::new(alpn)), transport };
        let remote = ends[1].address;
        let opened = ends[0].endpoint.connect(now, config, remote, "localhost");
        let (handle, connection) = opened.ok()?;
        ends[0].peers.insert(handle, Peer::new(connection));
        let (wire, kept) = (BTreeMap::new(), VecDeque::new());
        Some(Self { ends, now, wire, sent: 0, kept, moves: 0, served: false })
    }

    /// Whether the client's connection is over, or both ends have all of the other's data.
    fn is_done(&self) -> bool {
        let client = self.ends[0].peers.values().next();
        client.is_none_or(|client| client.over || (client.is_done() && self.served))
    }

    /// Disturbs the network between two steps.
    fn meddle(&mut self, input: &mut Input<'_>) {
        let [client, _] = &mut self.ends;
        match input.byte() % 32 {
            // A NAT gives the client another port, or the client goes to another host.
            0 => {
                self.moves += 1;
                client.address.set_port(1000 + self.moves);
            }
            1 => {
                self.moves += 1;
                client.address = ([198, 51, 100, self.moves as u8], 1).into();
                let now = self.now;
                client.peers.values_mut().for_each(|p| p.connection.local_address_changed(now));
            }
            // The application changes how its stream is protected, and renews keys.
            kind @ 5..=7 => {
                let protection = match kind {
                    5 => None,
                    6 => Some(Protection::tail(1, Duration::ZERO)),
                    _ => Some(Protection::incremental(3, Duration::from_millis(20))),
                };
                for peer in self.ends.iter_mut().flat_map(|end| end.peers.values_mut()) {
                    if let Some(id) = peer.ours {
                        let _ = peer.connection.send_stream(id).protect(protection.clone());
                    }
                    peer.connection.update_keys();
                }
            }
            // An old datagram comes again, from where it came or from elsewhere.
            kind @ 2..=4 => {
                let index = input.index(self.kept.len());
                let Some(mut old) = self.kept.get(index).cloned() else { return };
                if kind == 2 {
                    old.from = ([203, 0, 113, input.byte()], 7).into();
                }
                damage(&mut old.bytes, input);
                self.put(old, Duration::ZERO);
            }
            _ => {}
        }
    }

    fn put(&mut self, datagram: Flying, late: Duration) {
        self.sent += 1;
        self.wire.insert((self.now + LATENCY + late, self.sent), datagram);
    }

    /// Lets one end send; the fuzzer decides which datagrams arrive.
    fn transmit(&mut self, side: Side, input: &mut Input<'_>) {
        let (now, from) = (self.now, self.ends[side as usize].address);
        let mut datagrams = Vec::new();
        let end = &mut self.ends[side as usize];
        for (handle, peer) in &mut end.peers {
            let connection = &mut peer.connection;
            transmit(connection, now, |_, to, datagram| {
                datagrams.push(Flying { from, to, bytes: datagram.to_vec() });
            });
            while let Some(event) = connection.poll_endpoint_event() {
                end.endpoint.handle_event(*handle, event);
            }
        }
        for datagram in datagrams {
            self.send(datagram, input);
        }
    }

    /// Puts copies of a datagram on the wire as the fuzzer wants.
    fn send(&mut self, mut datagram: Flying, input: &mut Input<'_>) {
        let action = input.byte();
        if !input.is_empty() {
            if self.kept.len() == MAX_KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back(datagram.clone());
        }
        let late = match action {
            0..=160 => Duration::ZERO,
            161..=190 => return,
            191..=210 => {
                self.put(datagram.clone(), Duration::ZERO);
                Duration::from_millis(input.byte().into())
            }
            211..=230 => Duration::from_millis(input.byte().into()),
            _ => {
                damage(&mut datagram.bytes, input);
                Duration::ZERO
            }
        };
        self.put(datagram, late);
    }

    /// Advances to the next event; returns false if nothing will ever happen.
    fn advance(&mut self) -> bool {
        let peers = self.ends.iter().flat_map(|end| end.peers.values());
        let timer = peers.filter_map(|peer| peer.connection.poll_timeout()).min();
        let arrival = self.wire.keys().next().map(|(at, _)| *at);
        let Some(next) = timer.into_iter().chain(arrival).min() else { return false };
        self.now = self.now.max(next);
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let datagram = entry.remove();
            self.arrive(datagram);
        }
        for peer in self.ends.iter_mut().flat_map(|end| end.peers.values_mut()) {
            fire(&mut peer.connection, self.now);
        }
        true
    }

    fn arrive(&mut self, Flying { from, to, mut bytes }: Flying) {
        let Some(end) = self.ends.iter_mut().find(|end| end.address == to) else { return };
        let event = end.endpoint.handle(self.now, from, &bytes);
        while let Some(given_up) = end.endpoint.poll_given_up() {
            end.peers.remove(&given_up);
        }
        let handle = match event {
            DatagramEvent::Drop | DatagramEvent::Elsewhere(_) => return,
            DatagramEvent::Respond(bytes) => {
                let answer = Flying { from: to, to: from, bytes };
                return self.put(answer, Duration::ZERO);
            }
            DatagramEvent::NewConnection(incoming) => {
                let handle = incoming.handle();
                let Some(connection) = end.endpoint.accept(self.now, incoming) else { return };
                end.peers.insert(handle, Peer::new(connection));
                handle
            }
            DatagramEvent::Connection(handle) => handle,
        };
        if let Some(peer) = end.peers.get_mut(&handle) {
            peer.connection.handle_datagram(self.now, from, None, &mut bytes);
        }
    }
}

/// Changes, cuts or lengthens a datagram, or leaves it as it is.
fn damage(bytes: &mut Vec<u8>, input: &mut Input<'_>) {
    match input.byte() % 6 {
        0 => {}
        1 => {
            let len = input.index(bytes.len() + 1);
            bytes.truncate(len);
        }
        2 => bytes.extend_from_slice(input.bytes(200)),
        3 => {
            let at = input.index(bytes.len());
            let end = bytes.len().min(at + 40);
            if let Some(copied) = bytes.get(at..end).map(<[u8]>::to_vec) {
                bytes.extend(copied);
            }
        }
        _ => {
            let at = input.index(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << (input.byte() % 8);
            }
        }
    }
}
