//! Two endpoints and a wire between them, in virtual time.

use crate::crypto::null::{NullClientConfig, NullServerConfig};
use crate::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, Read, ReadError, ServerConfig, Side, StreamId, TransportConfig, WriteError,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One end: its endpoint and at most one connection.
pub(super) struct End {
    pub(super) endpoint: Endpoint,
    pub(super) connection: Option<Box<Connection>>,
    handle: Option<ConnectionHandle>,
    address: SocketAddr,
    pub(super) events: Vec<Event>,
}

impl End {
    pub(super) fn conn(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("no connection yet")
    }

    fn settle(&mut self) {
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

/// A client, a server and the time.
pub(super) struct Pair {
    pub(super) client: End,
    pub(super) server: End,
    pub(super) now: Instant,
    pub(super) latency: Duration,
    /// Sees each datagram with its sender, may change it, and says whether it arrives.
    pub(super) filter: Filter,
    /// Datagrams on the wire by arrival and order: receiver and bytes.
    wire: BTreeMap<(Instant, u64), (Side, Vec<u8>)>,
    sent: u64,
    /// Datagrams that each side put on the wire.
    pub(super) datagrams: [Vec<usize>; 2],
}

pub(super) fn end(server: Option<Arc<ServerConfig>>, port: u16, seed: u8) -> End {
    End {
        endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), server, [seed; 32]),
        connection: None,
        handle: None,
        address: ([127, 0, 0, 1], port).into(),
        events: Vec::new(),
    }
}

impl Pair {
    pub(super) fn new() -> Self {
        Self::with(TransportConfig::default(), TransportConfig::default())
    }

    pub(super) fn with(client: TransportConfig, server: TransportConfig) -> Self {
        let alpn = vec![b"test".to_vec()];
        let server = Arc::new(ServerConfig {
            crypto: Arc::new(NullServerConfig::new(alpn.clone())),
            transport: Arc::new(server),
        });
        let mut pair = Self {
            client: end(None, 1, 1),
            server: end(Some(server), 2, 2),
            now: Instant::now(),
            latency: Duration::from_millis(50),
            filter: Box::new(|_, _| true),
            wire: BTreeMap::new(),
            sent: 0,
            datagrams: [Vec::new(), Vec::new()],
        };
        let config = ClientConfig {
            crypto: Arc::new(NullClientConfig::new(alpn)),
            transport: Arc::new(client),
        };
        let remote = pair.server.address;
        let (handle, connection) =
            pair.client.endpoint.connect(pair.now, config, remote, "localhost").unwrap();
        pair.client.handle = Some(handle);
        pair.client.connection = Some(connection);
        pair
    }

    /// A pair whose handshake is confirmed.
    pub(super) fn connected() -> Self {
        let mut pair = Self::new();
        pair.handshake();
        pair
    }

    pub(super) fn handshake(&mut self) {
        self.run_for(Duration::from_secs(1));
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

    /// Lets one side send what it has.
    pub(super) fn flush(&mut self, side: Side) {
        let now = self.now;
        loop {
            let mut out = Vec::new();
            let end = self.end(side);
            end.settle();
            let Some(connection) = &mut end.connection else { return };
            let Some(transmit) = connection.poll_transmit(now, 10, &mut out) else { break };
            assert_eq!(transmit.size, out.len());
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in out.chunks(segment) {
                self.put(side, datagram.to_vec());
            }
        }
        self.end(side).settle();
    }

    fn put(&mut self, from: Side, mut datagram: Vec<u8>) {
        self.datagrams[from as usize].push(datagram.len());
        if (self.filter)(from, &mut datagram) {
            self.deliver_later(from, datagram);
        }
    }

    /// Puts a datagram on the wire as if `from` had sent it.
    pub(super) fn deliver_later(&mut self, from: Side, datagram: Vec<u8>) {
        self.sent += 1;
        self.wire.insert((self.now + self.latency, self.sent), (from.peer(), datagram));
    }

    pub(super) fn receive(&mut self, side: Side, mut datagram: Vec<u8>) {
        let now = self.now;
        let from = self.end(side.peer()).address;
        let end = self.end(side);
        match end.endpoint.handle(from, &datagram) {
            DatagramEvent::Drop | DatagramEvent::Respond(_) => return,
            DatagramEvent::Connection(_) => {}
            DatagramEvent::NewConnection(handle, connection) => {
                if end.connection.is_none() {
                    end.handle = Some(handle);
                    end.connection = Some(connection);
                }
            }
        }
        if let Some(connection) = &mut end.connection {
            connection.handle_datagram(now, from, None, &mut datagram);
        }
        end.settle();
    }

    /// Goes to the next thing that happens; false if nothing ever will.
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
            let (side, datagram) = entry.remove();
            self.receive(side, datagram);
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

    /// Opens a stream, sends `data` on it and ends it.
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

/// Bytes that differ from place to place.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}
