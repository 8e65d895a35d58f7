//! The endpoint: a UDP socket with the connections that it opened and accepted, or several of them, its
//! workers. Its handles and the driver of each worker share this state.

mod api;
mod connecting;
mod driver;
mod incoming;
mod mailbox;
mod patience;
mod workers;

pub use self::api::Endpoint;
pub use self::connecting::{Connecting, ZeroRttAccepted};
pub use self::incoming::{Incoming, RetryError};
use crate::budget::MemoryBudget;
use crate::connection::{Connection, Shared};
use crate::dirty::Dirty;
use crate::held::Held;
use crate::socket::{AsyncUdpSocket, Received};
use crate::sync::{lock, wake};
use mailbox::Mailbox;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Instant;
use sutura_proto as proto;
use sutura_proto::{ConnectionError, ConnectionHandle, Observer, Side};

/// Most clients that wait for the application.
const MAX_BACKLOG: usize = 1024;
/// Answers kept for clients without a connection; beyond that, clients get none.
const MAX_REPLIES: usize = 64;

/// Makes observers for an endpoint's connections.
type MakeObserver = Arc<dyn Fn(Side) -> Option<Box<dyn Observer>> + Send + Sync>;

/// The state that the endpoint's handles and its driver share: of the whole endpoint, or of one worker.
#[derive(Debug)]
pub(crate) struct Inner {
    /// The socket that the driver uses from its next turn on.
    socket: Mutex<Arc<dyn AsyncUdpSocket>>,
    /// The runtime of the driver.
    runtime: tokio::runtime::Handle,
    /// Of all workers; none if there is one.
    mailboxes: Arc<[Mailbox]>,
    /// The number of this worker.
    number: usize,
    pub(crate) state: Mutex<EndpointState>,
    pub(crate) dirty: Arc<Dirty>,
}

/// Makes the observers of the endpoint's connections.
#[derive(Clone, Default)]
struct Observers(Option<MakeObserver>);

impl std::fmt::Debug for Observers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Observers").field(&self.0.is_some()).finish()
    }
}

/// The state under the endpoint's lock.
#[derive(Debug)]
pub(crate) struct EndpointState {
    pub(crate) proto: proto::Endpoint,
    observers: Observers,
    /// Opened or accepted by the application, not yet taken over by the driver.
    opened: Vec<Opened>,
    /// Answers to clients without a connection, not yet taken over by the driver.
    replies: Vec<(SocketAddr, Vec<u8>)>,
    /// Clients that the application has not decided about.
    backlog: VecDeque<proto::Incoming>,
    /// Datagrams of clients that the application has not decided about.
    held: HashMap<ConnectionHandle, Held>,
    /// How many clients the application has not decided about.
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
    /// The memory that the peers of new connections may make this process hold.
    pub(crate) budget: MemoryBudget,
    /// How many workers share the bounds.
    workers: usize,
    /// Whether clients may send 0-RTT, and so were promised the limits of the configuration.
    early_data: bool,
}

/// A connection that the driver does not know yet.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) shared: Arc<Shared>,
    /// On a server: the address of this end that the client sends to.
    pub(crate) local: Option<IpAddr>,
}

/// The wishes of an endpoint's handles to its driver.
#[derive(Debug)]
pub(crate) struct Wishes {
    /// Connections to take over.
    pub(crate) opened: Vec<Opened>,
    /// Whether the socket was replaced.
    pub(crate) rebound: bool,
    /// The code and reason with which all connections end, if they do.
    pub(crate) ending: Option<(u64, Vec<u8>)>,
}

impl EndpointState {
    /// How many connections there are, together with clients that the application has not decided about.
    fn connections(&self) -> usize {
        self.driven + self.opened.len() + self.undecided
    }

    /// Hands the connections to the driver that it does not know yet.
    fn take_opened(&mut self) -> Vec<Opened> {
        self.driven += self.opened.len();
        std::mem::take(&mut self.opened)
    }

    /// Whether nothing is left to do.
    fn is_idle(&self) -> bool {
        self.connections() == 0 && self.replies.is_empty()
    }

    fn wake_if_idle(&mut self) {
        if self.is_idle() {
            wake(&mut self.idle);
        }
    }

    /// Offers a client to the application, with its first datagram. Refuses it if the backlog or the
    /// memory is full.
    pub(crate) fn offer(&mut self, client: proto::Incoming, meta: &Received, datagram: &[u8]) {
        let is_full = self.backlog.len() >= MAX_BACKLOG / self.workers;
        if self.closed || is_full || !self.budget.admits(meta.remote.ip()) {
            let refusal = self.proto.refuse(client);
            return self.reply(meta.remote, refusal);
        }
        let mut held = Held::default();
        held.push(meta, datagram);
        self.held.insert(client.handle(), held);
        self.undecided += 1;
        self.backlog.push_back(client);
        wake(&mut self.accepting);
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
        if self.replies.len() < MAX_REPLIES / self.workers {
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
    /// The state of an endpoint that has just one worker and one handle, whose driver runs in `runtime`.
    fn new(
        proto: proto::Endpoint,
        socket: Arc<dyn AsyncUdpSocket>,
        runtime: tokio::runtime::Handle,
        dirty: Arc<Dirty>,
    ) -> Self {
        let state = EndpointState {
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
            workers: 1,
            early_data: false,
        };
        Self {
            socket: Mutex::new(socket),
            runtime,
            mailboxes: Arc::new([]),
            number: 0,
            state: Mutex::new(state),
            dirty,
        }
    }

    /// The same as one of several workers, with this number and the mailboxes of all.
    fn with_mailboxes(mut self, mailboxes: Arc<[Mailbox]>, number: usize) -> Self {
        lock(&self.state).workers = mailboxes.len();
        (self.mailboxes, self.number) = (mailboxes, number);
        self
    }

    /// Passes a datagram to the worker whose connection it belongs to.
    pub(crate) fn hand_over(&self, worker: usize, meta: &Received, datagram: &[u8]) {
        if let Some(mailbox) = self.mailboxes.get(worker) {
            mailbox.push(meta, datagram);
        }
    }

    /// The datagrams that other workers have passed to this one.
    pub(crate) fn handed_over(&self) -> impl Iterator<Item = (Received, Vec<u8>)> {
        self.mailboxes.get(self.number).into_iter().flat_map(Mailbox::take)
    }

    /// The socket that the driver uses from its next turn on.
    pub(crate) fn socket(&self) -> Arc<dyn AsyncUdpSocket> {
        lock(&self.socket).clone()
    }

    /// The memory that the peers of new connections may make this process hold.
    pub(crate) fn budget(&self) -> MemoryBudget {
        lock(&self.state).budget.clone()
    }

    /// What the endpoint's handles have asked for since the last call.
    pub(crate) fn take_wishes(&self) -> Wishes {
        let mut state = lock(&self.state);
        let rebound = std::mem::take(&mut state.rebound);
        Wishes { opened: state.take_opened(), rebound, ending: state.ending.clone() }
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
        // If the client was given up, another client may have its handle.
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
        lock(&self.state).take_opened()
    }

    /// The driver has `left` connections left.
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
        wake(&mut state.accepting);
        wake(&mut state.idle);
    }
}
