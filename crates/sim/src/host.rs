//! A node that runs this project's transport: an endpoint, its connections and their applications.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use sutura_proto::{
    ClientConfig, ConnectError, Connection, ConnectionError, ConnectionHandle, ConnectionStats,
    DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, Event, Extensions, ResetKey,
    ServerConfig, SocketFeatures, Standstill, Transmit,
};

use crate::{App, AppError, Node};

/// The largest number of datagrams in a batch.
const MAX_BATCH: usize = 10;

/// Creates the application of an accepted connection.
pub type Accept = Box<dyn FnMut() -> Box<dyn App<Connection>>>;

struct Guest {
    connection: Box<Connection>,
    app: Box<dyn App<Connection>>,
    /// When the application asked to be polled.
    wake_at: Option<Instant>,
    connected: bool,
    lost: Option<ConnectionError>,
    failed: Option<AppError>,
    /// Whether the connection is checked for contradictions.
    checked: bool,
}

/// A connection that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The handle of the connection, which the endpoint may since have given to another one.
    pub handle: ConnectionHandle,
    /// Whether it was ever established.
    pub connected: bool,
    /// Why it ended.
    pub lost: Option<ConnectionError>,
    /// Its statistics.
    pub stats: ConnectionStats,
}

/// An endpoint and its connections, each with an [`App`].
pub struct Host {
    endpoint: Endpoint,
    config: Arc<EndpointConfig>,
    server: Option<Arc<ServerConfig>>,
    seeds: sutura_random::Rng,
    /// The endpoint's answers to datagrams of no connection, with their destinations; `None` if it does not
    /// answer them.
    replies: Option<VecDeque<(SocketAddr, Vec<u8>)>>,
    accept: Option<Accept>,
    guests: BTreeMap<ConnectionHandle, Guest>,
    /// The connection whose turn it is to send.
    next: Option<ConnectionHandle>,
    finished: Vec<Finished>,
    checked: bool,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("connections", &self.guests.keys())
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// A host that only opens connections.
    #[must_use]
    pub fn client(seed: u64) -> Self {
        Self::new(SocketFeatures::default(), None, None, seed)
    }

    /// A host that also accepts connections and runs on each the application that `accept` creates.
    #[must_use]
    pub fn server(config: Arc<ServerConfig>, accept: Accept, seed: u64) -> Self {
        Self::new(SocketFeatures::default(), Some(config), Some(accept), seed)
    }

    /// A client or server like the ones above, with sockets that do more than send and receive.
    #[must_use]
    pub fn with_sockets(
        sockets: SocketFeatures,
        server: Option<(Arc<ServerConfig>, Accept)>,
        seed: u64,
    ) -> Self {
        let (config, accept) = server.unzip();
        Self::new(sockets, config, accept, seed)
    }

    fn new(
        socket: SocketFeatures,
        server: Option<Arc<ServerConfig>>,
        accept: Option<Accept>,
        seed: u64,
    ) -> Self {
        let mut seeds = sutura_random::Rng::new(seed);
        // No simulated client comes back for a second connection.
        let config = EndpointConfig::default()
            .with_new_tokens(false)
            // Extensions would change the packets that are recorded.
            .with_extensions(Extensions::NONE)
            .with_socket(socket);
        let config = Arc::new(config);
        Self {
            endpoint: Endpoint::new(config.clone(), server.clone(), next_seed(&mut seeds)),
            config,
            server,
            seeds,
            replies: None,
            accept,
            guests: BTreeMap::new(),
            next: None,
            finished: Vec::new(),
            checked: false,
        }
    }

    /// Checks all connections for contradictions ([`Connection::check`]) whenever they have nothing to
    /// send, which debug builds do in any case.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }

    /// Offers these extensions to QUIC, of which hosts offer none otherwise.
    #[must_use]
    pub fn offering(mut self, extensions: Extensions) -> Self {
        self.config = Arc::new((*self.config).clone().with_extensions(extensions));
        self.forget();
        self
    }

    /// Lets the endpoint answer datagrams that belong to no connection, above all by stateless resets with
    /// this key. Hosts do not do so by default: they speak the same version and keep the state of
    /// connections, so no peer waits for a version negotiation packet or a reset.
    #[must_use]
    pub fn answering(mut self, key: ResetKey) -> Self {
        self.config = Arc::new((*self.config).clone().with_reset_key(Some(key)));
        self.replies = Some(VecDeque::new());
        self.forget();
        self
    }

    /// Forgets all connections without a word, as a process does that is killed and started again.
    pub fn restart(&mut self) {
        self.guests.clear();
        self.next = None;
        self.forget();
    }

    /// Starts with a new endpoint.
    fn forget(&mut self) {
        let seed = next_seed(&mut self.seeds);
        self.endpoint = Endpoint::new(self.config.clone(), self.server.clone(), seed);
    }

    /// Opens a connection and runs `app` on it.
    ///
    /// # Errors
    /// The endpoint cannot open the connection.
    pub fn connect(
        &mut self,
        now: Instant,
        config: ClientConfig,
        remote: SocketAddr,
        server_name: &str,
        app: impl App<Connection>,
    ) -> Result<ConnectionHandle, ConnectError> {
        let (handle, connection) = self.endpoint.connect(now, config, remote, server_name)?;
        self.admit(handle, connection, Box::new(app));
        Ok(handle)
    }

    /// The connections that have not ended.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionHandle, &Connection)> {
        self.guests.iter().map(|(handle, guest)| (*handle, &*guest.connection))
    }

    /// A connection that has not ended, to change settings such as its observer.
    pub fn connection_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.guests.get_mut(&handle).map(|guest| &mut *guest.connection)
    }

    /// The application of a connection that has not ended; `None` if it is not a `T`.
    #[must_use]
    pub fn app<T: App<Connection>>(&self, handle: ConnectionHandle) -> Option<&T> {
        let app: &dyn Any = &*self.guests.get(&handle)?.app;
        app.downcast_ref()
    }

    /// The connections that have ended, in the order in which they did.
    #[must_use]
    pub fn finished(&self) -> &[Finished] {
        &self.finished
    }

    /// The number of connections that the endpoint still tracks.
    #[must_use]
    pub fn endpoint_len(&self) -> usize {
        self.endpoint.len()
    }

    /// The error of a lost connection that this end did not close, if there is one. On a server,
    /// connections that were never established do not count: damaged packets and late duplicates
    /// can create such connections.
    #[must_use]
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        let counts = |connected| connected || self.accept.is_none();
        let present = self.guests.values().filter(|guest| counts(guest.connected));
        let past = self.finished.iter().filter(|finished| counts(finished.connected));
        let present = present.filter_map(|guest| guest.lost.as_ref());
        let past = past.filter_map(|finished| finished.lost.as_ref());
        present.chain(past).find(|error| **error != ConnectionError::LocallyClosed)
    }

    /// The error of an application that gave up, if there is one.
    #[must_use]
    pub fn app_error(&self) -> Option<&AppError> {
        self.guests.values().find_map(|guest| guest.failed.as_ref())
    }

    /// Closes a connection. The close is sent when the network next asks for datagrams.
    pub fn close(&mut self, now: Instant, handle: ConnectionHandle, code: u64, reason: &[u8]) {
        if let Some(guest) = self.guests.get_mut(&handle) {
            guest.connection.close(now, code, reason);
            self.service(now, handle);
        }
    }

    fn admit(
        &mut self,
        handle: ConnectionHandle,
        connection: Box<Connection>,
        app: Box<dyn App<Connection>>,
    ) {
        let guest = Guest {
            connection,
            app,
            wake_at: None,
            connected: false,
            lost: None,
            failed: None,
            checked: self.checked,
        };
        self.guests.insert(handle, guest);
    }

    /// Runs the application, forwards the connection's events to the endpoint and removes the
    /// connection once it is drained.
    fn service(&mut self, now: Instant, handle: ConnectionHandle) {
        let Some(guest) = self.guests.get_mut(&handle) else { return };
        guest.run(now);
        while let Some(event) = guest.connection.poll_endpoint_event() {
            self.endpoint.handle_event(handle, event);
        }
        if guest.connection.is_drained()
            && let Some(guest) = self.guests.remove(&handle)
        {
            let stats = guest.connection.stats();
            let Guest { connected, lost, .. } = guest;
            self.finished.push(Finished { handle, connected, lost, stats });
        }
    }
}

fn next_seed(seeds: &mut sutura_random::Rng) -> [u8; 32] {
    let mut seed = [0; 32];
    seeds.fill(&mut seed);
    seed
}

impl Guest {
    /// Lets the connection send. It is an error if the connection has data to send, nothing holds it back,
    /// and still no timer will make it send, or if its state is inconsistent.
    fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.connection.poll_transmit(now, MAX_BATCH, out);
        if transmit.is_some() {
            return transmit;
        }
        if self.connection.standstill(now) == Standstill::Stuck {
            self.failed.get_or_insert_with(|| AppError("the connection is stuck".to_owned()));
        }
        if (self.checked || cfg!(debug_assertions))
            && let Err(wrong) = self.connection.check()
        {
            self.failed.get_or_insert_with(|| AppError(format!("a contradiction: {wrong}")));
        }
        None
    }

    fn run(&mut self, now: Instant) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = self.try_run(now) {
            self.failed = Some(error);
            self.wake_at = None;
        }
    }

    fn try_run(&mut self, now: Instant) -> Result<(), AppError> {
        loop {
            let mut told = false;
            while let Some(event) = self.connection.poll_event() {
                told = true;
                match &event {
                    Event::Connected => self.connected = true,
                    Event::ConnectionLost(error) => self.lost = Some(error.clone()),
                    _ => {}
                }
                self.app.on_event(now, &mut self.connection, event)?;
            }
            if self.connection.is_closed() {
                self.wake_at = None;
                return Ok(());
            }
            self.wake_at = self.app.poll(now, &mut self.connection)?;
            if !told {
                return Ok(());
            }
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        [self.connection.poll_timeout(), self.wake_at].into_iter().flatten().min()
    }
}

impl Node for Host {
    fn receive(
        &mut self,
        now: Instant,
        from: SocketAddr,
        ecn: Option<EcnCodepoint>,
        payload: &mut [u8],
    ) {
        let event = self.endpoint.handle(now, from, payload);
        while let Some(given_up) = self.endpoint.poll_given_up() {
            if let Some(guest) = self.guests.get_mut(&given_up) {
                guest.connection.discard(now);
            }
            self.service(now, given_up);
        }
        let handle = match event {
            DatagramEvent::Connection(handle) => handle,
            DatagramEvent::NewConnection(incoming) => {
                let Some(accept) = &mut self.accept else { return self.endpoint.ignore(incoming) };
                let app = accept();
                let handle = incoming.handle();
                let Some(connection) = self.endpoint.accept(now, incoming) else { return };
                self.admit(handle, connection, app);
                handle
            }
            DatagramEvent::Respond(reply) => {
                if let Some(replies) = &mut self.replies {
                    replies.push_back((from, reply));
                }
                return;
            }
            DatagramEvent::Drop | DatagramEvent::Elsewhere(_) => return,
        };
        if let Some(guest) = self.guests.get_mut(&handle) {
            guest.connection.handle_datagram(now, from, ecn, payload);
            self.service(now, handle);
        }
    }

    fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let reply = self.replies.as_mut().and_then(VecDeque::pop_front);
        if let Some((destination, reply)) = reply {
            out.extend_from_slice(&reply);
            return Some(Transmit::new(destination, reply.len()));
        }
        let first = self.next.unwrap_or(ConnectionHandle(0));
        let turn = self.guests.range_mut(first..).map(|(handle, guest)| (*handle, guest));
        let (handle, transmit) = turn
            .filter_map(|(h, guest)| Some((h, guest.transmit(now, out)?)))
            .next()
            .or_else(|| {
                let turn = self.guests.range_mut(..first);
                turn.filter_map(|(handle, guest)| Some((*handle, guest.transmit(now, out)?))).next()
            })?;
        self.next = Some(ConnectionHandle(handle.0 + 1));
        // Sending may retire or issue connection IDs.
        if let Some(guest) = self.guests.get_mut(&handle) {
            while let Some(event) = guest.connection.poll_endpoint_event() {
                self.endpoint.handle_event(handle, event);
            }
        }
        Some(transmit)
    }

    fn timeout(&mut self, now: Instant) {
        let due: Vec<ConnectionHandle> = self
            .guests
            .iter()
            .filter(|(_, guest)| guest.next_timeout().is_some_and(|at| at <= now))
            .map(|(handle, _)| *handle)
            .collect();
        for handle in due {
            if let Some(guest) = self.guests.get_mut(&handle) {
                guest.connection.handle_timeout(now);
                self.service(now, handle);
            }
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.guests.values().filter_map(Guest::next_timeout).min()
    }
}
