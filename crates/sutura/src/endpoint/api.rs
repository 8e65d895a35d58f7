//! The endpoint handle.

use super::driver::Driver;
use super::{Connecting, Incoming, Inner, Observers, Opened};
use crate::budget::MemoryBudget;
use crate::config::{ClientConfig, EndpointConfig, ServerConfig, TokenKey};
use crate::connection::{Connection, Shared};
use crate::socket::AsyncUdpSocket;
use crate::sync::{enlist, lock, wake};
use crate::system_socket::SystemSocket;
use crate::udp::UdpSocket;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Instant;
use sutura_proto as proto;
use sutura_proto::crypto::StartError;
use sutura_proto::{ConnectError, ConnectionError, Observer, Side};

/// A QUIC endpoint. Cheap to clone. Its driver runs as long as a clone or a connection exists.
///
/// The I/O of all connections of an endpoint keeps one core busy at most. A server uses more with
/// [`server_workers`](Self::server_workers), a client with several endpoints.
#[derive(Debug)]
pub struct Endpoint {
    /// Of each worker that this handle is for; at least one.
    pub(super) inners: Vec<Arc<Inner>>,
    client: Option<ClientConfig>,
    /// The worker whose clients are looked at first next time, so that none has to wait for others for ever.
    turn: AtomicUsize,
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        self.for_workers(self.inners.clone())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        for inner in &self.inners {
            let mut state = lock(&inner.state);
            state.handles -= 1;
            if state.handles == 0 {
                // No handle is left that could accept these.
                let backlog = std::mem::take(&mut state.backlog);
                drop(state);
                for client in backlog {
                    drop(Incoming::new(inner.clone(), client));
                }
                inner.dirty.wake();
            }
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
        let config = config.with_socket(socket.features());
        let proto = proto::Endpoint::new(Arc::new(config), server, seed);
        let inner = Arc::new(Inner::new(proto, socket, runtime.clone(), Arc::default()));
        lock(&inner.state).early_data = early_data;
        runtime.spawn(Driver::new(inner.clone()));
        Ok(Self::of(vec![inner]))
    }

    /// The first handle of an endpoint with these workers.
    pub(super) fn of(inners: Vec<Arc<Inner>>) -> Self {
        Self { inners, client: None, turn: AtomicUsize::new(0) }
    }

    /// Another handle, for these workers.
    pub(super) fn for_workers(&self, inners: Vec<Arc<Inner>>) -> Self {
        inners.iter().for_each(|inner| lock(&inner.state).handles += 1);
        Self { inners, client: self.client.clone(), turn: AtomicUsize::new(0) }
    }

    /// The first worker, which is the only one of most endpoints.
    pub(super) fn first(&self) -> &Arc<Inner> {
        &self.inners[0]
    }

    /// Makes the peers of connections that are opened or accepted from now on share the memory of
    /// `budget`, with the peers of all other endpoints that have the same budget. Without this, the endpoint
    /// has a budget of its own, with [`MemoryBudget::DEFAULT_LIMIT`].
    ///
    /// The share of one connection or one address shrinks as the budget fills. A connection that holds its
    /// share already cannot write until its peer has taken some data ([`SendStream`](crate::SendStream)
    /// waits), and grants its peer no more data and streams than it promised. When more than half of the
    /// budget is held, connections are closed whose peers have taken hardly any data for half a minute, the
    /// largest holders first: with H3_EXCESSIVE_LOAD over HTTP/3, with INTERNAL_ERROR otherwise.
    #[expect(clippy::needless_pass_by_value, reason = "few endpoints have several workers")]
    pub fn set_memory_budget(&self, budget: MemoryBudget) {
        for inner in &self.inners {
            lock(&inner.state).budget = budget.clone();
        }
    }

    /// Sets the configuration that [`connect`](Self::connect) uses.
    pub fn set_default_client_config(&mut self, config: ClientConfig) {
        self.client = Some(config);
    }

    /// Replaces the configuration of connections accepted from now on. With `None`, new clients are
    /// told that they are refused.
    pub fn set_server_config(&self, config: Option<ServerConfig>) {
        let early_data = config.as_ref().is_some_and(ServerConfig::accepts_early_data);
        let config = config.map(|c| Arc::new(c.into_proto()));
        for inner in &self.inners {
            let mut state = lock(&inner.state);
            state.early_data = early_data;
            state.proto.set_server_config(config.clone());
        }
    }

    /// Seals address validation tokens with `key` from now on, as
    /// [`EndpointConfig::token_key`](crate::EndpointConfig::token_key) does from the start. Earlier tokens
    /// stay good for as long as they were meant to.
    pub fn set_token_key(&self, key: TokenKey) {
        // All workers have the same tokens.
        lock(&self.first().state).proto.set_token_key(Instant::now(), key);
    }

    /// Observes every connection from now on, starting with its first packet, with the observer
    /// that `make` returns for its side; see [`QlogWriter`](crate::qlog::QlogWriter). `make` is
    /// called by the tasks that do the endpoint's I/O, so it should return quickly.
    pub fn observe_with(
        &self,
        make: impl Fn(Side) -> Option<Box<dyn Observer>> + Send + Sync + 'static,
    ) {
        let observers = Observers(Some(Arc::new(make)));
        for inner in &self.inners {
            lock(&inner.state).observers = observers.clone();
        }
    }

    /// The address that the endpoint is bound to.
    ///
    /// # Errors
    /// The socket does not report its address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.first().socket().local_addr()
    }

    /// Moves the endpoint and its connections to another socket, such as one on another network (RFC
    /// 9000 section 9). Client connections go on from there with fresh connection identifiers and forget the
    /// measurements of the path; connections whose handshake is not confirmed yet, or whose server forbids
    /// migration, may end. Clients of a server endpoint do not learn of its new address.
    ///
    /// # Errors
    /// The socket cannot be used, or is of another address family, or the endpoint has [several
    /// workers](Self::server_workers), or this was called outside of a tokio runtime. Nothing changes then.
    pub fn rebind(&self, socket: std::net::UdpSocket) -> io::Result<()> {
        tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        self.rebind_abstract(Arc::new(SystemSocket::new(UdpSocket::from_std(socket)?)))
    }

    /// Does the same as [`rebind`](Self::rebind) with a socket of the application's own making, which must
    /// have the features of the previous socket.
    ///
    /// # Errors
    /// The socket is of another address family, or the endpoint has [several
    /// workers](Self::server_workers). Nothing changes then.
    pub fn rebind_abstract(&self, present: Arc<dyn AsyncUdpSocket>) -> io::Result<()> {
        if present.local_addr()?.is_ipv4() != self.local_addr()?.is_ipv4() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "another address family"));
        }
        let inner = self.first();
        if !inner.mailboxes.is_empty() {
            let problem = "an endpoint of several workers stays at its address";
            return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
        }
        *lock(&inner.socket) = present;
        lock(&inner.state).rebound = true;
        inner.dirty.wake();
        Ok(())
    }

    /// Opens a connection to `server_name` at `address`, with the default configuration.
    ///
    /// # Errors
    /// There is no default configuration, or the name or the address cannot be used, or the endpoint has
    /// [several workers](Self::server_workers).
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
    /// The name, the address or the configuration cannot be used, or the endpoint has [several
    /// workers](Self::server_workers).
    pub fn connect_with(
        &self,
        config: ClientConfig,
        address: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let (now, inner) = (Instant::now(), self.first());
        let address = inner.reachable(address);
        let mut state = lock(&inner.state);
        let (handle, mut connection) =
            state.proto.connect(now, config.into_proto(), address, server_name)?;
        drop(state);
        inner.observe(now, &mut connection);
        let mut state = lock(&inner.state);
        let shared = Shared::new(handle, connection, inner.dirty.clone());
        let connecting = Connecting::new(Ok(Connection::new(shared.clone())));
        if state.shut_down {
            shared.lock().abandon(ConnectionError::LocallyClosed);
        } else {
            state.opened.push(Opened { shared, local: None });
        }
        drop(state);
        inner.dirty.wake();
        Ok(connecting)
    }

    /// Waits for the next client that asks for a connection. `None` if the endpoint was closed.
    pub async fn accept(&self) -> Option<Incoming> {
        poll_fn(|cx| {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.inners.len();
            let (later, first) = self.inners.split_at(turn);
            let mut closed = true;
            for inner in first.iter().chain(later) {
                let mut state = lock(&inner.state);
                if let Some(client) = state.backlog.pop_front() {
                    drop(state);
                    return Poll::Ready(Some(Incoming::new(inner.clone(), client)));
                }
                closed &= state.closed;
                enlist(&mut state.accepting, cx);
            }
            if closed { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    /// Accepts no more connections. Existing ones continue; new clients are told that they are
    /// refused.
    pub fn stop_accepting(&self) {
        for inner in &self.inners {
            let mut state = lock(&inner.state);
            state.closed = true;
            state.proto.set_server_config(None);
            wake(&mut state.accepting);
        }
    }

    /// Closes all connections at once, with this code and reason of the application, and accepts no more.
    /// Data that peers have not received may be lost. Connections that are opened afterwards fail with
    /// [`ConnectionError::LocallyClosed`]. [`wait_idle`](Self::wait_idle) waits until the peers have been
    /// told.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.stop_accepting();
        for inner in &self.inners {
            let mut state = lock(&inner.state);
            state.ending.get_or_insert_with(|| (code, reason.to_vec()));
            let backlog = std::mem::take(&mut state.backlog);
            drop(state);
            for client in backlog {
                drop(Incoming::new(inner.clone(), client));
            }
            inner.dirty.wake();
        }
    }

    /// The number of connections that are not fully closed yet.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.inners.iter().map(|inner| lock(&inner.state).connections()).sum()
    }

    /// Waits until every connection has ended and the peers have had time to learn of it.
    pub async fn wait_idle(&self) {
        poll_fn(|cx| {
            let mut all = Poll::Ready(());
            for inner in &self.inners {
                let mut state = lock(&inner.state);
                if !state.is_idle() {
                    enlist(&mut state.idle, cx);
                    all = Poll::Pending;
                }
            }
            all
        })
        .await;
    }
}
