//! The endpoint: a UDP socket with the connections that it opened and accepted.

use crate::budget::MemoryBudget;
use crate::config::{ClientConfig, EndpointConfig, ServerConfig, TokenKey};
use crate::connection::{Connection, Shared, enlist, lock};
use crate::driver::{Dirty, Driver};
use crate::incoming::{Held, Incoming};
use crate::socket::{AsyncUdpSocket, Received, SystemSocket};
use crate::udp::UdpSocket;
use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use sutura_proto as proto;
use sutura_proto::crypto::StartError;
use sutura_proto::{ConnectError, ConnectionError, ConnectionHandle, Observer, Side};

/// Most accepted connections that wait for the application.
const MAX_BACKLOG: usize = 1024;
/// Answers kept for clients without a connection; beyond that, clients get none.
const MAX_REPLIES: usize = 64;

/// Makes observers for an endpoint's connections.
type MakeObserver = Arc<dyn Fn(Side) -> Option<Box<dyn Observer>> + Send + Sync>;

/// The state that the endpoint's handles and its driver share.
#[derive(Debug)]
pub(crate) struct Inner {
    sockets: Mutex<Sockets>,
    pub(crate) state: Mutex<State>,
    pub(crate) dirty: Arc<Dirty>,
}

/// The endpoint's socket, and the one before it until something has arrived at the new one: the peers
/// send to the old address until they know the new one.
#[derive(Debug, Clone)]
pub(crate) struct Sockets {
    pub(crate) present: Arc<dyn AsyncUdpSocket>,
    pub(crate) previous: Option<Arc<dyn AsyncUdpSocket>>,
}

/// Makes the observers of the endpoint's connections.
#[derive(Default)]
struct Observers(Option<MakeObserver>);

impl std::fmt::Debug for Observers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Observers").field(&self.0.is_some()).finish()
    }
}

/// The state under the endpoint's lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) proto: proto::Endpoint,
    observers: Observers,
    /// Opened or accepted by the application, not yet taken over by the driver.
    opened: Vec<Opened>,
    /// Answers to clients without a connection, not yet taken over by the driver.
    replies: Vec<(SocketAddr, Vec<u8>)>,
    /// Clients that the application has not decided about.
    backlog: VecDeque<proto::Incoming>,
    /// What came from clients that the application has not decided about.
    held: HashMap<ConnectionHandle, Held>,
    /// How many these are.
    undecided: usize,
    accepting: Vec<Waker>,
    idle: Vec<Waker>,
    /// How many connections the driver has.
    driven: usize,
    handles: usize,
    closed: bool,
    /// The code and reason with which all connections end.
    ending: Option<(u64, Vec<u8>)>,
    shut_down: bool,
    /// Whether connections must be told that the socket was replaced.
    rebound: bool,
    /// What the peers of new connections may make this process hold.
    pub(crate) budget: MemoryBudget,
    /// Whether clients may send 0-RTT, and so were promised what the configuration says.
    early_data: bool,
}

/// A connection that the driver does not know yet.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) shared: Arc<Shared>,
    /// On a server: the address of this end that the client sends to.
    pub(crate) local: Option<IpAddr>,
}

impl State {
    /// How many connections there are, with those that may come to be.
    fn connections(&self) -> usize {
        self.driven + self.opened.len() + self.undecided
    }

    /// Whether nothing is left to do.
    fn is_idle(&self) -> bool {
        self.connections() == 0 && self.replies.is_empty()
    }

    fn wake_if_idle(&mut self) {
        if self.is_idle() {
            self.idle.drain(..).for_each(Waker::wake);
        }
    }

    /// Offers a client to the application, with its first datagram. Refuses it if the backlog or the
    /// memory is full.
    pub(crate) fn offer(&mut self, client: proto::Incoming, meta: &Received, datagram: &[u8]) {
        if self.closed || self.backlog.len() >= MAX_BACKLOG || !self.budget.admits(meta.remote.ip())
        {
            let refusal = self.proto.refuse(client);
            return self.reply(meta.remote, refusal);
        }
        let mut held = Held::default();
        held.push(meta, datagram);
        self.held.insert(client.handle(), held);
        self.undecided += 1;
        self.backlog.push_back(client);
        self.accepting.drain(..).for_each(Waker::wake);
    }

    /// Keeps a datagram of a client that the application has not decided about. Returns whether it
    /// is of one.
    pub(crate) fn hold(
        &mut self,
        handle: ConnectionHandle,
        meta: &Received,
        datagram: &[u8],
    ) -> bool {
        let held = self.held.get_mut(&handle);
        let is_undecided = held.is_some();
        held.into_iter().for_each(|held| held.push(meta, datagram));
        is_undecided
    }

    /// Forgets a client that made room for another, if the application has not decided about it.
    /// Returns whether that was so.
    pub(crate) fn forget_client(&mut self, handle: ConnectionHandle) -> bool {
        let is_undecided = self.held.remove(&handle).is_some();
        let waiting = self.backlog.len();
        self.backlog.retain(|client| client.handle() != handle);
        self.undecided -= waiting - self.backlog.len();
        self.wake_if_idle();
        is_undecided
    }

    /// Answers a client without a connection, if there is an answer.
    pub(crate) fn reply(&mut self, to: SocketAddr, reply: Option<Vec<u8>>) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.extend(reply.map(|reply| (to, reply)));
        }
    }

    /// Takes an answer to send.
    pub(crate) fn take_reply(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let reply = self.replies.pop();
        if reply.is_none() {
            self.wake_if_idle();
        }
        reply
    }
}

impl Inner {
    /// The socket to send on.
    pub(crate) fn socket(&self) -> Arc<dyn AsyncUdpSocket> {
        lock(&self.sockets).present.clone()
    }

    /// The sockets to receive from.
    pub(crate) fn sockets(&self) -> Sockets {
        lock(&self.sockets).clone()
    }

    /// Closes the previous socket.
    pub(crate) fn drop_previous_socket(&self) {
        lock(&self.sockets).previous = None;
    }

    /// What the peers of new connections may make this process hold.
    pub(crate) fn budget(&self) -> MemoryBudget {
        lock(&self.state).budget.clone()
    }

    /// Whether the socket was replaced since the last call.
    pub(crate) fn take_rebound(&self) -> bool {
        std::mem::take(&mut lock(&self.state).rebound)
    }

    /// The code and reason with which all connections end, if they do.
    pub(crate) fn ending(&self) -> Option<(u64, Vec<u8>)> {
        lock(&self.state).ending.clone()
    }

    /// Makes the connection of a client that the application accepts, and starts its handshake.
    pub(crate) fn accept(
        &self,
        now: Instant,
        client: proto::Incoming,
    ) -> Result<Connection, ConnectionError> {
        let handle = client.handle();
        let mut state = lock(&self.state);
        state.undecided -= 1;
        let allowance = state.budget.allowance_of_new();
        let allowance = (!state.early_data).then_some(allowance);
        let Some(quic) = state.proto.accept_within(now, client, allowance) else {
            state.wake_if_idle();
            return Err(ConnectionError::TimedOut);
        };
        let held = state.held.remove(&handle).unwrap_or_default();
        let shared = Shared::new(handle, quic, self.dirty.clone());
        let connection = Connection::new(shared.clone());
        // The driver waits for this lock until the connection has its observer and its first datagram.
        let mut connecting = shared.lock();
        if state.shut_down {
            connecting.abandon(ConnectionError::LocallyClosed);
            return Err(ConnectionError::LocallyClosed);
        }
        state.opened.push(Opened { shared: shared.clone(), local: held.local });
        drop(state);
        self.observe(now, &mut connecting.quic);
        connecting.start(now, held);
        drop(connecting);
        self.dirty.wake();
        Ok(connection)
    }

    /// Forgets a client, with the answer that `make` returns.
    pub(crate) fn decline(
        &self,
        client: proto::Incoming,
        make: impl FnOnce(&mut proto::Endpoint, proto::Incoming) -> Option<Vec<u8>>,
    ) {
        let (handle, remote) = (client.handle(), client.remote_address());
        let mut state = lock(&self.state);
        state.undecided -= 1;
        // If it was given up, another may have its handle.
        if state.proto.is_pending(&client) {
            state.held.remove(&handle);
        }
        let reply = make(&mut state.proto, client);
        state.reply(remote, reply);
        state.wake_if_idle();
        drop(state);
        self.dirty.wake();
    }

    /// Sets the observer of a new connection, if it gets one.
    pub(crate) fn observe(&self, now: Instant, connection: &mut proto::Connection) {
        let make = lock(&self.state).observers.0.clone();
        if let Some(observer) = make.and_then(|make| make(connection.side())) {
            connection.set_observer(now, observer);
        }
    }

    /// Takes over the connections that the driver does not know yet.
    pub(crate) fn take_opened(&self) -> Vec<Opened> {
        let mut state = lock(&self.state);
        state.driven += state.opened.len();
        std::mem::take(&mut state.opened)
    }

    /// The driver has so many connections left.
    pub(crate) fn connection_gone(&self, left: usize) {
        let mut state = lock(&self.state);
        state.driven = left;
        state.wake_if_idle();
    }

    /// The address as the socket needs it: IPv4-mapped if the socket is dual-stack.
    fn reachable(&self, address: SocketAddr) -> SocketAddr {
        match (self.socket().local_addr(), address) {
            (Ok(SocketAddr::V6(_)), SocketAddr::V4(v4)) => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            _ => address,
        }
    }

    /// Whether the last handle of the endpoint has been dropped.
    pub(crate) fn is_abandoned(&self) -> bool {
        let state = lock(&self.state);
        state.handles == 0 && state.is_idle()
    }

    /// Called when the driver ends.
    pub(crate) fn shut_down(&self) {
        let mut state = lock(&self.state);
        state.shut_down = true;
        state.closed = true;
        state.driven = 0;
        let backlog = std::mem::take(&mut state.backlog);
        state.undecided -= backlog.len();
        state.held.clear();
        for opened in std::mem::take(&mut state.opened) {
            opened.shared.lock().abandon(ConnectionError::LocallyClosed);
        }
        let State { accepting, idle, .. } = &mut *state;
        accepting.drain(..).chain(idle.drain(..)).for_each(Waker::wake);
    }
}

/// A QUIC endpoint. Cheap to clone. Its driver runs as long as a clone or a connection exists.
#[derive(Debug)]
pub struct Endpoint {
    inner: Arc<Inner>,
    client: Option<ClientConfig>,
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        lock(&self.inner.state).handles += 1;
        Self { inner: self.inner.clone(), client: self.client.clone() }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let mut state = lock(&self.inner.state);
        state.handles -= 1;
        if state.handles == 0 {
            // No handle is left that could accept these.
            let backlog = std::mem::take(&mut state.backlog);
            drop(state);
            for client in backlog {
                drop(Incoming::new(self.inner.clone(), client));
            }
            self.inner.dirty.wake();
        }
    }
}

impl Endpoint {
    /// An endpoint that only opens connections.
    ///
    /// # Errors
    /// The address cannot be bound. Must be called within a tokio runtime.
    pub fn client(address: SocketAddr) -> io::Result<Self> {
        Self::bind(EndpointConfig::default(), None, address)
    }

    /// An endpoint that accepts connections and can open them too.
    ///
    /// # Errors
    /// The address cannot be bound. Must be called within a tokio runtime.
    pub fn server(config: ServerConfig, address: SocketAddr) -> io::Result<Self> {
        Self::bind(EndpointConfig::default(), Some(config), address)
    }

    /// An endpoint with custom limits.
    ///
    /// # Errors
    /// The address cannot be bound. Must be called within a tokio runtime.
    pub fn bind(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        address: SocketAddr,
    ) -> io::Result<Self> {
        tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let socket = SystemSocket::new(UdpSocket::bind(address)?);
        Self::with_abstract_socket(config, server, Arc::new(socket))
    }

    /// An endpoint on a UDP socket that is bound already.
    ///
    /// # Errors
    /// The socket cannot be used. Must be called within a tokio runtime.
    pub fn with_socket(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        socket: std::net::UdpSocket,
    ) -> io::Result<Self> {
        tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let socket = SystemSocket::new(UdpSocket::from_std(socket)?);
        Self::with_abstract_socket(config, server, Arc::new(socket))
    }

    /// An endpoint on a socket of the application's own making.
    ///
    /// # Errors
    /// There is no randomness. Must be called within a tokio runtime.
    pub fn with_abstract_socket(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        socket: Arc<dyn AsyncUdpSocket>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let seed = crate::config::random_seed()?;
        let early_data = server.as_ref().is_some_and(ServerConfig::accepts_early_data);
        let server = server.map(|s| Arc::new(s.into_proto()));
        let config = EndpointConfig { socket: socket.features(), ..config };
        let proto = proto::Endpoint::new(Arc::new(config), server, seed);
        let inner = Arc::new(Inner {
            sockets: Mutex::new(Sockets { present: socket, previous: None }),
            state: Mutex::new(State {
                proto,
                observers: Observers::default(),
                opened: Vec::new(),
                replies: Vec::new(),
                backlog: VecDeque::new(),
                accepting: Vec::new(),
                idle: Vec::new(),
                held: HashMap::new(),
                undecided: 0,
                driven: 0,
                handles: 1,
                closed: false,
                ending: None,
                shut_down: false,
                rebound: false,
                budget: MemoryBudget::default(),
                early_data,
            }),
            dirty: Arc::default(),
        });
        runtime.spawn(Driver::new(inner.clone()));
        Ok(Self { inner, client: None })
    }

    /// Makes the peers of connections that are opened or accepted from now on share the memory of
    /// `budget`, with those of all other endpoints that have the same one. Without this, the endpoint has
    /// one of its own, with [`MemoryBudget::DEFAULT_LIMIT`].
    ///
    /// What one connection or one address may hold shrinks as the whole fills. Whoever holds that much
    /// already cannot write until its peer has taken some of it ([`SendStream`](crate::SendStream) waits),
    /// and gets no more data and streams from its peer than it was promised. When more than half is held,
    /// connections are closed whose peers have taken hardly anything of it for half a minute, those that hold
    /// most first: with H3_EXCESSIVE_LOAD over HTTP/3, with INTERNAL_ERROR otherwise.
    pub fn set_memory_budget(&self, budget: MemoryBudget) {
        lock(&self.inner.state).budget = budget;
    }

    /// Sets the configuration that [`connect`](Self::connect) uses.
    pub fn set_default_client_config(&mut self, config: ClientConfig) {
        self.client = Some(config);
    }

    /// Replaces the configuration of connections accepted from now on. With `None`, new clients are
    /// told that they are refused.
    pub fn set_server_config(&self, config: Option<ServerConfig>) {
        lock(&self.inner.state).early_data =
            config.as_ref().is_some_and(ServerConfig::accepts_early_data);
        let config = config.map(|c| Arc::new(c.into_proto()));
        lock(&self.inner.state).proto.set_server_config(config);
    }

    /// Seals address validation tokens with `key` from now on, as
    /// [`EndpointConfig::token_key`](crate::EndpointConfig::token_key) does from the start. Those that
    /// were sealed before stay good for as long as they were meant to.
    pub fn set_token_key(&self, key: TokenKey) {
        lock(&self.inner.state).proto.set_token_key(Instant::now(), key);
    }

    /// Observes every connection from now on, starting with its first packet, with the observer
    /// that `make` returns for its side; see [`QlogWriter`](crate::qlog::QlogWriter). `make` is
    /// called by the task that does the endpoint's I/O, so it should return quickly.
    pub fn observe_with(
        &self,
        make: impl Fn(Side) -> Option<Box<dyn Observer>> + Send + Sync + 'static,
    ) {
        lock(&self.inner.state).observers = Observers(Some(Arc::new(make)));
    }

    /// The address that the endpoint is bound to.
    ///
    /// # Errors
    /// The socket does not report its address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.socket().local_addr()
    }

    /// Moves the endpoint and its connections to another socket, such as one on another network (RFC
    /// 9000 section 9). The clients among them go on from there with fresh connection identifiers and
    /// what they know about the path forgotten; those whose handshake is not confirmed yet, or whose
    /// server forbids migration, may end. Clients of a server endpoint do not learn of its new
    /// address.
    ///
    /// # Errors
    /// The socket cannot be used, or is of another address family. Must be called within a tokio
    /// runtime. Nothing changes then.
    pub fn rebind(&self, socket: std::net::UdpSocket) -> io::Result<()> {
        tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        self.rebind_abstract(Arc::new(SystemSocket::new(UdpSocket::from_std(socket)?)))
    }

    /// Does the same as [`rebind`](Self::rebind) with a socket of the application's own making, which
    /// must have the features of the one before.
    ///
    /// # Errors
    /// The socket is of another address family. Nothing changes then.
    pub fn rebind_abstract(&self, present: Arc<dyn AsyncUdpSocket>) -> io::Result<()> {
        if present.local_addr()?.is_ipv4() != self.local_addr()?.is_ipv4() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "another address family"));
        }
        let mut sockets = lock(&self.inner.sockets);
        sockets.previous = Some(std::mem::replace(&mut sockets.present, present));
        drop(sockets);
        lock(&self.inner.state).rebound = true;
        self.inner.dirty.wake();
        Ok(())
    }

    /// Opens a connection to `server_name` at `address`, with the default configuration.
    ///
    /// # Errors
    /// There is no default configuration, or the name or the address cannot be used.
    pub fn connect(
        &self,
        address: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let config = self.client.clone().ok_or_else(|| {
            ConnectError::Start(StartError::Tls("no client configuration was set".into()))
        })?;
        self.connect_with(config, address, server_name)
    }

    /// Opens a connection with its own configuration.
    ///
    /// # Errors
    /// The name, the address or the configuration cannot be used.
    pub fn connect_with(
        &self,
        config: ClientConfig,
        address: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let now = Instant::now();
        let address = self.inner.reachable(address);
        let mut state = lock(&self.inner.state);
        let (handle, mut connection) =
            state.proto.connect(now, config.into_proto(), address, server_name)?;
        drop(state);
        self.inner.observe(now, &mut connection);
        let mut state = lock(&self.inner.state);
        let shared = Shared::new(handle, connection, self.inner.dirty.clone());
        let connecting = Connecting(Ok(Connection::new(shared.clone())));
        if state.shut_down {
            shared.lock().abandon(ConnectionError::LocallyClosed);
        } else {
            state.opened.push(Opened { shared, local: None });
        }
        drop(state);
        self.inner.dirty.wake();
        Ok(connecting)
    }

    /// Waits for the next client that asks for a connection. `None` if the endpoint was closed.
    pub async fn accept(&self) -> Option<Incoming> {
        poll_fn(|cx| {
            let mut state = lock(&self.inner.state);
            if let Some(client) = state.backlog.pop_front() {
                drop(state);
                return Poll::Ready(Some(Incoming::new(self.inner.clone(), client)));
            }
            if state.closed {
                return Poll::Ready(None);
            }
            enlist(&mut state.accepting, cx);
            Poll::Pending
        })
        .await
    }

    /// Accepts no more connections. Existing ones continue; new clients are told that they are
    /// refused.
    pub fn stop_accepting(&self) {
        let mut state = lock(&self.inner.state);
        state.closed = true;
        state.proto.set_server_config(None);
        state.accepting.drain(..).for_each(Waker::wake);
    }

    /// Closes all connections at once, with this code and reason of the application, and accepts no more.
    /// Data that peers have not received may be lost. Connections that are opened afterwards fail with
    /// [`ConnectionError::LocallyClosed`]. [`wait_idle`](Self::wait_idle) waits until the peers have been
    /// told.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.stop_accepting();
        let mut state = lock(&self.inner.state);
        state.ending.get_or_insert_with(|| (code, reason.to_vec()));
        let backlog = std::mem::take(&mut state.backlog);
        drop(state);
        for client in backlog {
            drop(Incoming::new(self.inner.clone(), client));
        }
        self.inner.dirty.wake();
    }

    /// The number of connections that are not fully closed yet.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        lock(&self.inner.state).connections()
    }

    /// Waits until every connection has ended and the peers have had time to learn of it.
    pub async fn wait_idle(&self) {
        poll_fn(|cx| {
            let mut state = lock(&self.inner.state);
            if state.is_idle() {
                return Poll::Ready(());
            }
            enlist(&mut state.idle, cx);
            Poll::Pending
        })
        .await;
    }
}

/// A connection whose handshake is under way.
#[derive(Debug)]
pub struct Connecting(Result<Connection, ConnectionError>);

impl Connecting {
    pub(crate) fn new(connection: Result<Connection, ConnectionError>) -> Self {
        Self(connection)
    }

    /// The connection, for setting an observer before the handshake is complete.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        self.0.as_ref().ok()
    }

    /// The connection at once, before the handshake is complete.
    ///
    /// On a client this is 0-RTT (RFC 9001 section 4.6): what is sent until the handshake is complete
    /// needs no round trip, but has weaker properties. An attacker may send the server copies of it on
    /// other connections, so it should change nothing there, and whoever learns the secret of the
    /// session later can read it. The server may not accept it: streams that
    /// were opened then fail with `ZeroRttRejected`, messages and datagrams are given up, and the
    /// application says again what it wants to. It is possible if the configuration allows it
    /// ([`ClientConfig::early_data`](crate::ClientConfig::early_data)) and an earlier connection of
    /// the same configuration left a ticket of a server that accepts it. Nothing sent in it is
    /// protected by erasure coding.
    ///
    /// On a server it is always possible. What the client sent in 0-RTT can then be read and answered
    /// before the handshake is complete: see [`RecvStream::is_0rtt`](crate::RecvStream::is_0rtt). It is
    /// not certain yet that the client exists. An application that awaits the connection never sees
    /// what an attacker has copied.
    ///
    /// ```no_run
    /// # async fn run(endpoint: sutura::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// let connecting = endpoint.connect("192.0.2.1:4433".parse()?, "example.org")?;
    /// let connection = match connecting.into_0rtt() {
    ///     Ok((connection, accepted)) => {
    ///         connection.open_uni().await?.write_all(b"whatever may be repeated").await?;
    ///         if !accepted.await {
    ///             connection.open_uni().await?.write_all(b"the same once more").await?;
    ///         }
    ///         connection
    ///     }
    ///     Err(connecting) => connecting.await?,
    /// };
    /// # drop(connection);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// It is not possible; wait for the handshake instead.
    pub fn into_0rtt(self) -> Result<(Connection, ZeroRttAccepted), Self> {
        let connection = self.0.map_err(|error| Self(Err(error)))?;
        let mut state = connection.0.lock();
        let possible = state.quic.side().is_server() || state.quic.start_0rtt(Instant::now());
        drop(state);
        if !possible {
            return Err(Self(Ok(connection)));
        }
        connection.0.touch();
        let accepted = ZeroRttAccepted(connection.0.clone());
        Ok((connection, accepted))
    }
}

/// Whether 0-RTT is accepted, which is known when the handshake is complete. False if the connection
/// ends before.
#[derive(Debug)]
pub struct ZeroRttAccepted(Arc<Shared>);

impl Future for ZeroRttAccepted {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.0.lock();
        if !state.connected && state.error.is_none() {
            state.wait_connected(cx);
            return Poll::Pending;
        }
        Poll::Ready(state.connected && state.quic.zero_rtt_accepted() == Some(true))
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let connection = match &self.0 {
            Ok(connection) => connection,
            Err(error) => return Poll::Ready(Err(error.clone())),
        };
        let mut state = connection.0.lock();
        if !state.connected {
            if let Err(error) = state.check() {
                return Poll::Ready(Err(error));
            }
            state.wait_connected(cx);
            return Poll::Pending;
        }
        drop(state);
        Poll::Ready(std::mem::replace(&mut self.0, Err(ConnectionError::LocallyClosed)))
    }
}
