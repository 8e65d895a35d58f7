//! A server and many clients that a fuzzer controls: some connect, some are refused, some close or fall
//! silent, some are forged. The fuzzer also decides for the server's application.
//!
//! Whatever they do, each handshake counts until it is complete or nothing is left of it, the limits hold,
//! an answer without a connection is shorter than the datagram that it answers, and once all clients are
//! silent nothing is left and a further client gets through.

use super::connection::{Input, transmit};
use crate::crypto::null::{NullClientConfig, NullServerConfig};
use crate::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event,
    Incoming, ServerConfig,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MAX_STEPS: usize = 600;
const MAX_CLIENTS: usize = 40;
/// How many old datagrams the fuzzer can send again.
const MAX_KEPT: usize = 32;
const MAX_CONNECTIONS: usize = 24;
const MAX_HANDSHAKES: usize = 12;
const PROTOCOL: &[u8] = b"fuzz";
const UNKNOWN: &[u8] = b"none";
/// Idle connections are over after 30 seconds, and a closing period lasts a few.
const SILENCE: Duration = Duration::from_secs(60);

struct Client {
    connection: Box<Connection>,
    address: SocketAddr,
}

/// A connection of the server, and whether its handshake was completed.
struct Served {
    connection: Box<Connection>,
    connected: bool,
}

struct AdmissionWorld {
    server: Endpoint,
    address: SocketAddr,
    served: BTreeMap<ConnectionHandle, Served>,
    undecided: Vec<(Incoming, Vec<u8>)>,
    clients: Vec<Client>,
    opened: u64,
    kept: Vec<(SocketAddr, Vec<u8>)>,
    now: Instant,
}

/// Runs a server whose clients and whose application `data` controls.
///
/// # Panics
/// A promise in the description of this module is broken.
pub fn admission(data: &[u8]) {
    let mut input = Input(data);
    let mut world = AdmissionWorld::new(&mut input);
    for _ in 0..MAX_STEPS {
        if input.is_empty() {
            break;
        }
        world.act(&mut input);
        world.settle();
    }
    world.clients.clear();
    for (client, _) in std::mem::take(&mut world.undecided) {
        world.server.ignore(client);
    }
    for _ in 0..4 {
        world.pass(SILENCE);
    }
    assert!(world.server.is_empty(), "something is left");
    world.open(PROTOCOL, 0);
    for _ in 0..20 {
        world.settle();
        world.decide(0);
        world.settle();
        world.pass(Duration::from_millis(100));
    }
    assert!(world.served.values().any(|served| served.connected), "a client is kept out");
}

impl AdmissionWorld {
    fn new(input: &mut Input<'_>) -> Self {
        let kind = input.byte();
        let retry_above = match kind % 3 {
            0 => None,
            1 => Some(0),
            _ => Some(5),
        };
        let config = EndpointConfig {
            retry_above,
            max_connections: MAX_CONNECTIONS,
            max_handshakes: MAX_HANDSHAKES,
            ..EndpointConfig::default()
        };
        let crypto = Arc::new(NullServerConfig::new(vec![PROTOCOL.to_vec()]));
        let server = ServerConfig { crypto, transport: Arc::default() };
        Self {
            server: Endpoint::new(Arc::new(config), Some(Arc::new(server)), [1; 32]),
            address: ([192, 0, 2, 1], 443).into(),
            served: BTreeMap::new(),
            undecided: Vec::new(),
            clients: Vec::new(),
            opened: 0,
            kept: Vec::new(),
            now: Instant::now(),
        }
    }

    /// Opens a connection of a client that offers this protocol, from one of a few addresses.
    fn open(&mut self, protocol: &[u8], from: u8) {
        if self.clients.len() >= MAX_CLIENTS {
            return;
        }
        self.opened += 1;
        let mut seed = [2; 32];
        if let Some(start) = seed.first_chunk_mut() {
            *start = self.opened.to_be_bytes();
        }
        let crypto = Arc::new(NullClientConfig::new(vec![protocol.to_vec()]));
        let config = ClientConfig { crypto, transport: Arc::default() };
        let mut endpoint = Endpoint::new(Arc::default(), None, seed);
        let opened = endpoint.connect(self.now, config, self.address, "localhost");
        let Ok((_, connection)) = opened else { return };
        let port = 1024 + self.opened as u16;
        let address = SocketAddr::new([203, 0, 113, from % 4].into(), port);
        self.clients.push(Client { connection, address });
    }

    /// Does the action that the fuzzer chooses.
    fn act(&mut self, input: &mut Input<'_>) {
        let (action, value) = (input.byte(), input.byte());
        let client = usize::from(value).checked_rem(self.clients.len());
        let client = client.and_then(|at| self.clients.get_mut(at));
        match action % 10 {
            0 => self.open(PROTOCOL, value),
            1 => self.open(UNKNOWN, value),
            2 => {
                // A client that is gone before it hears anything.
                self.open(if value & 16 > 0 { UNKNOWN } else { PROTOCOL }, value);
                self.settle_clients();
                self.clients.pop();
            }
            3 => {
                if let Some(client) = client {
                    client.connection.close(self.now, 7, b"");
                }
            }
            4 => {
                let at = usize::from(value).checked_rem(self.clients.len());
                at.into_iter().for_each(|at| drop(self.clients.swap_remove(at)));
            }
            5 => self.send_again(input),
            6 => {
                let at = usize::from(value).checked_rem(self.served.len());
                let served = at.and_then(|at| self.served.values_mut().nth(at));
                if let Some(served) = served {
                    served.connection.close(self.now, 7, b"");
                }
            }
            7 => self.pass(Duration::from_millis(20 * u64::from(value))),
            8 => self.pass(Duration::from_millis(1)),
            _ => self.decide(value),
        }
    }

    /// Sends a copy of an old datagram, changed or from another address.
    fn send_again(&mut self, input: &mut Input<'_>) {
        let at = input.index(self.kept.len());
        let Some((mut from, mut bytes)) = self.kept.get(at).cloned() else { return };
        match input.byte() {
            0..=99 => {}
            100..=179 => from.set_port(from.port() ^ 1),
            _ => {
                let at = input.index(bytes.len());
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 0x55);
            }
        }
        self.arrive(from, bytes);
    }

    /// Decides about the client that has waited longest.
    fn decide(&mut self, decision: u8) {
        if self.undecided.is_empty() {
            return;
        }
        let (client, mut first) = self.undecided.remove(0);
        let (handle, remote) = (client.handle(), client.remote_address());
        let answer = match decision % 8 {
            0..=4 => {
                let accepted = self.server.accept(self.now, client);
                if let Some(mut connection) = accepted {
                    connection.handle_datagram(self.now, remote, None, &mut first);
                    let before =
                        self.served.insert(handle, Served { connection, connected: false });
                    assert!(before.is_none(), "a handle is used twice");
                }
                None
            }
            5 => self.server.refuse(client),
            6 => self.server.retry(self.now, client).unwrap_or_else(|client| {
                self.server.ignore(*client);
                None
            }),
            _ => {
                self.server.ignore(client);
                None
            }
        };
        self.answer(remote, first.len(), answer);
    }

    fn answer(&mut self, to: SocketAddr, asked: usize, answer: Option<Vec<u8>>) {
        let Some(mut answer) = answer else { return };
        assert!(answer.len() < asked, "amplification");
        let address = self.address;
        if let Some(client) = self.clients.iter_mut().find(|client| client.address == to) {
            client.connection.handle_datagram(self.now, address, None, &mut answer);
        }
    }

    /// Lets all ends send until none has anything to send.
    fn settle(&mut self) {
        for _ in 0..20 {
            if !self.settle_clients() & !self.settle_server() {
                break;
            }
        }
        self.check();
    }

    fn settle_clients(&mut self) -> bool {
        let mut sent = Vec::new();
        for Client { connection, address } in &mut self.clients {
            while connection.poll_event().is_some() {}
            transmit(connection, self.now, |_, _, datagram| {
                sent.push((*address, datagram.to_vec()));
            });
        }
        self.clients.retain(|client| !client.connection.is_drained());
        let any = !sent.is_empty();
        for (from, bytes) in sent {
            if self.kept.len() == MAX_KEPT {
                self.kept.remove(0);
            }
            self.kept.push((from, bytes.clone()));
            self.arrive(from, bytes);
        }
        any
    }

    fn settle_server(&mut self) -> bool {
        let mut sent = Vec::new();
        for (handle, Served { connection, connected }) in &mut self.served {
            while let Some(event) = connection.poll_event() {
                *connected |= event == Event::Connected;
            }
            let to = connection.remote_address();
            transmit(connection, self.now, |_, _, datagram| sent.push((to, datagram.to_vec())));
            while let Some(event) = connection.poll_endpoint_event() {
                self.server.handle_event(*handle, event);
            }
        }
        self.served.retain(|_, served| !served.connection.is_drained());
        let any = !sent.is_empty();
        for (to, mut bytes) in sent {
            let address = self.address;
            if let Some(client) = self.clients.iter_mut().find(|client| client.address == to) {
                client.connection.handle_datagram(self.now, address, None, &mut bytes);
            }
        }
        any
    }

    /// A datagram reaches the server.
    fn arrive(&mut self, from: SocketAddr, mut bytes: Vec<u8>) {
        let event = self.server.handle(self.now, from, &bytes);
        while let Some(handle) = self.server.poll_given_up() {
            self.undecided.retain(|(client, _)| client.handle() != handle);
            if let Some(mut given_up) = self.served.remove(&handle) {
                given_up.connection.discard(self.now);
                while let Some(event) = given_up.connection.poll_endpoint_event() {
                    self.server.handle_event(handle, event);
                }
            }
        }
        match event {
            DatagramEvent::Drop | DatagramEvent::Elsewhere(_) => {}
            DatagramEvent::Respond(answer) => self.answer(from, bytes.len(), Some(answer)),
            DatagramEvent::Connection(handle) => {
                if let Some(served) = self.served.get_mut(&handle) {
                    served.connection.handle_datagram(self.now, from, None, &mut bytes);
                }
            }
            DatagramEvent::NewConnection(client) => self.undecided.push((client, bytes)),
        }
    }

    /// Lets time pass.
    fn pass(&mut self, time: Duration) {
        self.settle();
        self.now += time;
        let clients = self.clients.iter_mut().map(|client| &mut client.connection);
        let served = self.served.values_mut().map(|served| &mut served.connection);
        for connection in clients.chain(served) {
            if connection.poll_timeout().is_some_and(|at| at <= self.now) {
                connection.handle_timeout(self.now);
            }
        }
        self.settle();
    }

    fn check(&self) {
        let incomplete = self.served.values().filter(|served| !served.connected).count();
        let under_way = incomplete + self.undecided.len();
        assert_eq!(self.server.half_open(), under_way, "handshakes that count");
        assert_eq!(self.server.len(), self.served.len() + self.undecided.len(), "connections");
        assert!(under_way <= MAX_HANDSHAKES && self.server.len() <= MAX_CONNECTIONS);
    }
}
