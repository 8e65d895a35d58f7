//! A client and a server on a link in memory, in virtual time.

use crate::Error;
use crate::gauge::Meter;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_proto::crypto::null::{NullClientConfig, NullServerConfig};
use sutura_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ServerConfig, Side, SocketFeatures, Transmit, TransportConfig,
};
use sutura_random::Rng;

/// How long a datagram takes, unless a scene says otherwise.
const LATENCY: Duration = Duration::from_millis(10);
/// How many datagrams are built at a time, as the async layer does with GSO.
const BATCH: usize = 10;
const PROTOCOL: &[u8] = sutura_h3::ALPN;
/// After this long, a handshake or a transfer is completely over.
pub const REST: Duration = Duration::from_secs(5);

/// One end.
#[derive(Debug)]
pub struct End {
    pub endpoint: Endpoint,
    address: SocketAddr,
    handle: Option<ConnectionHandle>,
    pub connection: Option<Box<Connection>>,
    /// Events of the connection that were not looked at yet.
    events: VecDeque<Event>,
    /// The buffer in which datagrams are built.
    buffer: Vec<u8>,
    /// Datagrams sent.
    pub sent: u64,
    /// How often a timer was due.
    pub expired: u64,
}

impl End {
    fn new(
        address: SocketAddr,
        config: Arc<EndpointConfig>,
        server: Option<Arc<ServerConfig>>,
        seed: [u8; 32],
    ) -> Self {
        Self {
            endpoint: Endpoint::new(config, server, seed),
            address,
            handle: None,
            connection: None,
            // Room for all events of one step, so that the guard's own memory is not counted.
            events: VecDeque::with_capacity(1 << 15),
            buffer: Vec::with_capacity(1 << 16),
            sent: 0,
            expired: 0,
        }
    }

    /// The connection.
    ///
    /// # Errors
    /// There is no connection.
    pub fn connection(&mut self) -> Result<&mut Connection, Error> {
        self.connection.as_deref_mut().ok_or_else(|| "there is no connection".into())
    }

    /// The next event of the connection.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Builds the next datagrams.
    fn transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.buffer.clear();
        self.connection.as_mut()?.poll_transmit(now, BATCH, &mut self.buffer)
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, flying: &mut Flying) {
        let Flying { ecn, datagram, .. } = flying;
        if let DatagramEvent::NewConnection(incoming) = self.endpoint.handle(now, from, datagram) {
            self.handle = Some(incoming.handle());
            self.connection = self.endpoint.accept(now, incoming);
        }
        if let Some(connection) = &mut self.connection {
            connection.handle_datagram(now, from, *ecn, datagram);
        }
        self.settle();
    }

    /// Fires the timers that are due.
    fn expire(&mut self, now: Instant) {
        self.expired += 1;
        if let Some(connection) = &mut self.connection {
            connection.handle_timeout(now);
        }
        self.settle();
    }

    fn settle(&mut self) {
        let (Some(connection), Some(handle)) = (&mut self.connection, self.handle) else { return };
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(handle, event);
        }
        while let Some(event) = connection.poll_event() {
            self.events.push_back(event);
        }
    }

    fn timeout(&self) -> Option<Instant> {
        self.connection.as_ref()?.poll_timeout()
    }
}

/// The other side.
fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

/// A datagram on its way.
#[derive(Debug)]
struct Flying {
    to: Side,
    arrives: Instant,
    ecn: Option<EcnCodepoint>,
    datagram: Vec<u8>,
}

/// Random losses.
#[derive(Debug)]
pub struct Losses {
    rng: Rng,
    share: f64,
}

impl Losses {
    /// Loses this share, 0 to 1, of datagrams, the same with each seed.
    pub fn new(seed: u64, share: f64) -> Self {
        Self { rng: Rng::new(seed), share }
    }
}

/// Both ends and the link between them.
#[derive(Debug)]
pub struct Pair {
    pub client: End,
    pub server: End,
    pub now: Instant,
    pub meter: Meter,
    /// Datagrams in the order of arrival, since all take equally long.
    wire: VecDeque<Flying>,
    /// How long a datagram takes.
    pub latency: Duration,
    /// What is lost of the datagrams to the server.
    pub losses: Option<Losses>,
    /// Whether datagrams that are sent from now on will arrive.
    pub connected: bool,
}

impl Pair {
    /// A client that has begun to connect. All pairs behave the same, except for the time.
    ///
    /// # Errors
    /// The client cannot connect.
    pub fn new(transport: &TransportConfig, meter: Meter) -> Result<Self, Error> {
        Self::with_sockets(SocketFeatures::default(), transport, meter)
    }

    /// The same with sockets of these abilities.
    ///
    /// # Errors
    /// The client cannot connect.
    pub fn with_sockets(
        socket: SocketFeatures,
        transport: &TransportConfig,
        meter: Meter,
    ) -> Result<Self, Error> {
        let address = ([192, 0, 2, 1], 40_000).into();
        Self::of([1; 32], address, Instant::now(), socket, transport, meter)
    }

    /// A client of its own seed and address that has begun to connect at `now`.
    ///
    /// # Errors
    /// The client cannot connect.
    pub fn of(
        seed: [u8; 32],
        address: SocketAddr,
        now: Instant,
        socket: SocketFeatures,
        transport: &TransportConfig,
        meter: Meter,
    ) -> Result<Self, Error> {
        let endpoint = Arc::new(EndpointConfig::default().with_socket(socket));
        let transport = Arc::new(transport.clone());
        let crypto = Arc::new(NullServerConfig::new(vec![PROTOCOL.to_vec()]));
        let config = Arc::new(ServerConfig::new(crypto, transport.clone()));
        let crypto = Arc::new(NullClientConfig::new(vec![PROTOCOL.to_vec()]));
        let config_of_client = ClientConfig::new(crypto, transport);
        let mut client = End::new(address, endpoint.clone(), None, seed);
        let server = End::new(([192, 0, 2, 2], 443).into(), endpoint, Some(config), [2; 32]);
        let to = server.address;
        let made = meter.run(Side::Client, || {
            Some(client.endpoint.connect(now, config_of_client, to, "example.org"))
        });
        let (handle, connection) = made.ok_or("the client was not started")??;
        (client.handle, client.connection) = (Some(handle), Some(connection));
        let (wire, latency) = (VecDeque::new(), LATENCY);
        Ok(Self { client, server, now, meter, wire, latency, losses: None, connected: true })
    }

    /// A pair after its handshake, with the meter switched off.
    ///
    /// # Errors
    /// The client cannot connect.
    pub fn connected(transport: &TransportConfig, mut meter: Meter) -> Result<Self, Error> {
        meter.switch(false);
        let mut pair = Self::new(transport, meter)?;
        pair.pass(REST);
        Ok(pair)
    }

    /// The end of a side.
    pub fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Does work on the connection of a side.
    ///
    /// # Errors
    /// There is no connection, or the work fails.
    pub fn work<R>(
        &mut self,
        side: Side,
        work: impl FnOnce(&mut Connection) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let meter = self.meter;
        let connection = self.end(side).connection()?;
        meter.run(side, || Some(work(connection))).ok_or("no work was done")?
    }

    /// Has a side send all data that it may send now.
    pub fn transmit(&mut self, side: Side) {
        let (now, meter, connected) = (self.now, self.meter, self.connected);
        let mut more = true;
        while more {
            let end = self.end(side);
            let Some(transmit) = meter.run(side, || end.transmit(now)) else { return };
            more = transmit.more;
            let size = transmit.segment_size.unwrap_or(transmit.size);
            let datagrams: Vec<Vec<u8>> = end.buffer.chunks(size).map(<[u8]>::to_vec).collect();
            end.sent += datagrams.len() as u64;
            if connected {
                let (to, arrives) = (other(side), now + self.latency);
                let losses = self.losses.as_mut().filter(|_| to == Side::Server);
                let mut lost = losses.map(|losses| move || losses.rng.chance(losses.share));
                let arriving =
                    datagrams.into_iter().filter(|_| !lost.as_mut().is_some_and(|lost| lost()));
                let ecn = transmit.ecn;
                self.wire.extend(arriving.map(|datagram| Flying { to, arrives, ecn, datagram }));
            }
        }
    }

    /// When the next datagram arrives or the next timer is due.
    pub fn next(&self) -> Option<Instant> {
        let arrival = self.wire.front().map(|flying| flying.arrives);
        [arrival, self.client.timeout(), self.server.timeout()].into_iter().flatten().min()
    }

    /// Has both ends send all data that they may send, and then goes on to the next arrival or timer, if that
    /// is not after `end`. Returns whether there was one.
    pub fn step(&mut self, end: Instant) -> bool {
        self.transmit(Side::Client);
        self.transmit(Side::Server);
        let Some(now) = self.next().filter(|next| *next <= end) else { return false };
        self.now = self.now.max(now);
        let (now, meter) = (self.now, self.meter);
        while let Some(mut flying) = self.wire.pop_front_if(|flying| flying.arrives <= now) {
            let from = self.end(other(flying.to)).address;
            let end = self.end(flying.to);
            meter.run(flying.to, || end.receive(now, from, &mut flying));
        }
        for side in [Side::Client, Side::Server] {
            let end = self.end(side);
            if end.timeout().is_some_and(|at| at <= now) {
                meter.run(side, || end.expire(now));
            }
        }
        true
    }

    /// Has a side send data into a link that is cut, and measures the timers that are due, with the probes that
    /// they send. Returns how many there were.
    ///
    /// # Errors
    /// No timer is set.
    pub fn probe(&mut self, side: Side) -> Result<u64, Error> {
        const PROBES: u64 = 20;
        let connection = self.end(side).connection()?;
        let stream = connection.open(Dir::Uni).ok_or("no stream may be opened")?;
        connection.send_stream(stream).write(&[7; 5000])?;
        self.transmit(side);
        self.connected = false;
        self.meter.switch(true);
        let before = self.end(side).expired;
        while self.end(side).expired < before + PROBES {
            if !self.step(self.now + 100 * REST) {
                return Err("no timer is set".into());
            }
        }
        Ok(PROBES)
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }
}
