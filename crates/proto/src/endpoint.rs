//! The endpoint finds the connection that a datagram belongs to, and accepts and opens connections.
//! It owns no connection.

mod accept;
#[cfg(feature = "testing")]
pub(crate) mod fuzz;
mod half_open;
mod incoming;
mod offenders;
mod received_tokens;
mod token;
mod workers;

use crate::cid_generator::{cid_size, new_cid, random_cid};
use crate::config::{ClientConfig, EndpointConfig, ServerConfig, TokenKey, TransportConfig};
use crate::connection::{ConnectError, Connection, EndpointEvent, NewConnection};
use crate::ids::{ConnectionHandle, ConnectionId, MIN_UDP_PAYLOAD, Side};
use crate::path::cids::MAX_LOCAL_CIDS;
use crate::peers::Peers;
use crate::reset::{MAX_RESETS_PER_SECOND, ResetKey, ResetToken, Resets};
use crate::wire::packet::{self, DecodedPacket, HeaderRules, Invariants, PacketType};
use crate::wire::version::Version;
use half_open::{HalfOpen, MAX_HANDSHAKES_PER_ADDRESS, Network, Rank};
pub use incoming::Incoming;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use received_tokens::ReceivedTokens;
use slab::Slab;
use std::collections::{HashMap, VecDeque, hash_map};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use workers::{Common, Share};
pub use workers::{MAX_WORKERS, WorkerCountError};

/// The minimum length in bytes of the Destination Connection ID in a client's first Initial (RFC
/// 9000 section 7.2).
const MIN_INITIAL_DCID: usize = 8;
/// How often a generator is asked for an identifier until one is not in use.
const MAX_CID_ATTEMPTS: usize = 16;

/// What to do with a datagram that has arrived.
#[derive(Debug)]
pub enum DatagramEvent {
    /// The datagram belongs to no connection: drop it.
    Drop,
    /// The datagram is answered without a connection, or belongs to a connection that this endpoint does not
    /// know: send these bytes back to its sender as one datagram.
    Respond(Vec<u8>),
    /// Pass it to this connection.
    Connection(ConnectionHandle),
    /// The datagram comes from a client that asks for a connection: keep it until the client is decided
    /// about, and pass it to the connection if the client is accepted.
    NewConnection(Incoming),
    /// The datagram belongs to the endpoint with this number: give it to that one. Only one of several
    /// endpoints that share an address ([`Endpoint::workers`]) says so, and none about a datagram that another
    /// has given to it.
    Elsewhere(usize),
}

#[derive(Debug)]
struct Entry {
    cids: Vec<ConnectionId>,
    /// While a server's handshake is under way: its place among all of them.
    half_open: Option<Rank>,
    /// Whether it is a client about which the application has not decided, so that there is no
    /// connection yet.
    undecided: bool,
    /// On a client: the server's name.
    server_name: Option<String>,
    /// The token with which the peer resets the connection.
    reset: Option<ResetToken>,
}

impl Entry {
    fn new(cids: &[ConnectionId]) -> Self {
        // Besides them, the identifiers that are issued after the handshake.
        let mut all = Vec::with_capacity(MAX_LOCAL_CIDS + 1);
        all.extend_from_slice(cids);
        Self { cids: all, half_open: None, undecided: false, server_name: None, reset: None }
    }
}

/// The key of stateless resets, before the owner of the identifiers is added. Without a configured key, only
/// connections of endpoints with this very seed can be reset.
fn reset_key(config: &EndpointConfig, seed: &[u8; 32]) -> ResetKey {
    let key = config.reset_key.clone();
    key.unwrap_or_else(|| ResetKey::new(seed, b"stateless reset"))
}

/// Routes datagrams to connections.
#[derive(Debug)]
pub struct Endpoint {
    config: Arc<EndpointConfig>,
    server: Option<Arc<ServerConfig>>,
    rng: StdRng,
    connections: Slab<Entry>,
    /// All identifiers that route datagrams: ours, and the identifiers that clients chose for their first
    /// packets. Peers choose some of the keys, so the hasher is randomly keyed.
    routes: HashMap<ConnectionId, ConnectionHandle>,
    half_open: HalfOpen,
    /// Its part of the bounds.
    share: Share,
    common: Common,
    /// Connections given up to make room, of which the application has not been told.
    given_up: VecDeque<ConnectionHandle>,
    /// Whether clients are let in.
    accepting: bool,
    received_tokens: ReceivedTokens,
    resets: Resets<ConnectionHandle>,
    peers: Peers,
}

impl Endpoint {
    /// Creates an endpoint that takes all its randomness from `seed`, which must be unpredictable
    /// outside of simulations. It accepts connections if `server` is given.
    #[must_use]
    pub fn new(
        config: Arc<EndpointConfig>,
        server: Option<Arc<ServerConfig>>,
        seed: [u8; 32],
    ) -> Self {
        let common = Common::new(&config, seed);
        Self::with_share(config, server, seed, Share::WHOLE, common)
    }

    fn with_share(
        config: Arc<EndpointConfig>,
        server: Option<Arc<ServerConfig>>,
        seed: [u8; 32],
        share: Share,
        common: Common,
    ) -> Self {
        let key = reset_key(&config, &seed).of(config.connection_ids.owner());
        let resets = share.part(MAX_RESETS_PER_SECOND as usize) as u32;
        Self {
            resets: Resets::new(key).with_limit(resets),
            config,
            accepting: server.is_some(),
            server,
            rng: StdRng::from_seed(seed),
            connections: Slab::new(),
            routes: HashMap::new(),
            half_open: HalfOpen::default(),
            share,
            common,
            given_up: VecDeque::new(),
            received_tokens: ReceivedTokens::default(),
            peers: Peers::default(),
        }
    }

    /// Replaces the configuration for connections accepted from now on. With `None`, no more are
    /// accepted: a server then answers with CONNECTION_REFUSED (RFC 9000 section 20.1).
    pub fn set_server_config(&mut self, server: Option<Arc<ServerConfig>>) {
        self.accepting = server.is_some();
        // The old configuration still makes the keys of refusals.
        self.server = server.or(self.server.take());
    }

    /// Seals address validation tokens with `key` from now on. Earlier tokens stay good for as long as they
    /// were meant to.
    pub fn set_token_key(&mut self, now: Instant, key: TokenKey) {
        self.common.tokens().set_key(now, key);
    }

    /// How many handshakes of clients are in progress, or have failed and are not over yet.
    #[cfg(feature = "testing")]
    pub(crate) fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// How many used tokens are remembered.
    #[cfg(test)]
    pub(crate) fn used_tokens(&self) -> usize {
        self.common.tokens().used()
    }

    /// How many connections are not drained yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there are as many connections as there may be.
    fn is_full(&self) -> bool {
        self.connections.len() >= self.share.part(self.config.max_connections)
    }

    /// Whether there are no connections.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Opens a connection to `server_name` at `remote`.
    ///
    /// # Errors
    /// The name, the address or the configuration is invalid, there are too many connections, or the endpoint
    /// shares its address with others.
    pub fn connect(
        &mut self,
        now: Instant,
        config: ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<(ConnectionHandle, Box<Connection>), ConnectError> {
        if remote.port() == 0 || remote.ip().is_unspecified() {
            return Err(ConnectError::InvalidRemoteAddress(remote));
        }
        if self.share.is_part() {
            return Err(ConnectError::SharedAddress);
        }
        if self.is_full() {
            return Err(ConnectError::TooManyConnections);
        }
        let original_dcid = random_cid(&mut self.rng, MIN_INITIAL_DCID);
        let local_cid = self.fresh_cid().ok_or(ConnectError::NoConnectionId)?;
        let seed = self.random_seed();
        let ClientConfig { crypto, transport } = config;
        let new = self.describe(Side::Client, remote, transport, original_dcid, local_cid, seed);
        let mut connection = Connection::client(now, new, crypto, server_name)?;
        if let Some(token) = self.received_tokens.take(server_name) {
            connection.set_token(token);
        }
        let mut entry = Entry::new(&[local_cid]);
        entry.server_name = Some(server_name.to_owned());
        Ok((self.register(entry), connection))
    }

    fn describe(
        &self,
        side: Side,
        remote: SocketAddr,
        transport: Arc<TransportConfig>,
        original_dcid: ConnectionId,
        local_cid: ConnectionId,
        seed: [u8; 32],
    ) -> NewConnection {
        let loss_memory = self.peers.recall(remote.ip());
        NewConnection {
            side,
            remote,
            transport,
            original_dcid,
            local_cid,
            seed,
            loss_memory,
            reset_key: self.resets.key().clone(),
            version: self.config.first_version(),
            versions: self.config.versions.clone(),
            preferred_address: self.config.preferred_address,
            connection_ids: self.config.connection_ids.clone(),
            connection_id_lifetime: self.config.connection_id_lifetime,
            header_rules: self.header_rules(),
            extensions: self.config.extensions,
            socket: self.config.socket,
        }
    }

    /// How packets to this endpoint are read.
    fn header_rules(&self) -> HeaderRules {
        HeaderRules {
            local_cid_len: cid_size(&*self.config.connection_ids),
            greased: self.config.extensions.grease_quic_bit,
        }
    }

    /// Decides where a datagram received from `remote` goes. Call
    /// [`poll_given_up`](Self::poll_given_up) next.
    pub fn handle(&mut self, now: Instant, remote: SocketAddr, datagram: &[u8]) -> DatagramEvent {
        let Ok(invariants) = packet::parse_invariants(datagram, self.header_rules().local_cid_len)
        else {
            return DatagramEvent::Drop;
        };
        // Identifiers of other versions may be longer than ours.
        let dcid = ConnectionId::new(invariants.dcid);
        if let Some(&handle) = dcid.and_then(|dcid| self.routes.get(&dcid)) {
            return DatagramEvent::Connection(handle);
        }
        if !invariants.is_long() {
            return self.on_unknown(now, dcid, datagram);
        }
        if let Some(other) = dcid.and_then(|dcid| self.elsewhere_in_handshake(&dcid, datagram)) {
            return DatagramEvent::Elsewhere(other);
        }
        if datagram.len() < usize::from(MIN_UDP_PAYLOAD) {
            return DatagramEvent::Drop;
        }
        let version = invariants.version.and_then(Version::from_number);
        let supported = version.is_some_and(|version| self.config.versions.contains(&version));
        if !supported && invariants.version != Some(0) {
            return self.negotiate_version(&invariants);
        }
        match packet::parse(datagram, 0, self.header_rules()) {
            Ok(DecodedPacket::Protected(packet)) if packet.ty == PacketType::Initial => {
                self.on_initial(now, remote, &packet, datagram)
            }
            _ => DatagramEvent::Drop,
        }
    }

    /// Handles a packet with a short header to an identifier that is not known: a stateless reset, or of
    /// a connection that was forgotten (RFC 9000 section 10.3).
    fn on_unknown(
        &mut self,
        now: Instant,
        dcid: Option<ConnectionId>,
        datagram: &[u8],
    ) -> DatagramEvent {
        if let Some(handle) = self.resets.find(datagram) {
            return DatagramEvent::Connection(handle);
        }
        // Only an endpoint whose identifier it is knows that it has forgotten the connection.
        if let Some(other) = dcid.and_then(|dcid| self.config.connection_ids.elsewhere(&dcid)) {
            return DatagramEvent::Elsewhere(other);
        }
        let (resets, rng) = (&mut self.resets, &mut self.rng);
        let answer = dcid.and_then(|dcid| resets.answer(now, &dcid, datagram.len(), rng));
        answer.map_or(DatagramEvent::Drop, DatagramEvent::Respond)
    }

    /// The endpoint that a Handshake packet belongs to, if it is another: the server has chosen its identifier.
    /// Clients choose those of other packets with a long header, which show nothing.
    fn elsewhere_in_handshake(&self, dcid: &ConnectionId, datagram: &[u8]) -> Option<usize> {
        let other = self.config.connection_ids.elsewhere(dcid)?;
        match packet::parse(datagram, 0, self.header_rules()) {
            Ok(DecodedPacket::Protected(packet)) => {
                (packet.ty == PacketType::Handshake).then_some(other)
            }
            _ => None,
        }
    }

    /// Tells a client which versions this server supports (RFC 9000 section 6.1). The response is
    /// much shorter than the client's datagram, so it cannot be used for amplification.
    fn negotiate_version(&mut self, client: &Invariants<'_>) -> DatagramEvent {
        if self.server.is_none() {
            return DatagramEvent::Drop;
        }
        // A reserved version keeps clients tolerant of future versions (RFC 9000 section 6.3).
        let reserved = self.rng.next_u32() & 0xf0f0_f0f0 | 0x0a0a_0a0a;
        let mut out = Vec::new();
        let versions = self.config.versions.iter().map(|version| version.number());
        let versions: Vec<u32> = std::iter::once(reserved).chain(versions).collect();
        packet::encode_version_negotiation(client.scid, client.dcid, &versions, &mut out);
        DatagramEvent::Respond(out)
    }

    fn register(&mut self, entry: Entry) -> ConnectionHandle {
        let handle = ConnectionHandle(self.connections.vacant_key());
        self.routes.extend(entry.cids.iter().map(|cid| (*cid, handle)));
        self.connections.insert(entry);
        handle
    }

    /// Gives up a handshake to make room for another.
    fn give_up(&mut self, rank: Rank) {
        let Some(handle) = self.half_open.remove(rank) else { return };
        let Some(entry) = self.connections.get_mut(handle.0) else { return };
        entry.half_open = None;
        if entry.undecided {
            self.remove(handle);
        }
        self.given_up.push_back(handle);
    }

    /// The next client that is given up to make room for others: it has not shown in time that it
    /// exists. [`Discard`](Connection::discard) its connection. If the client was not accepted yet, there is
    /// no connection, and its handle may be in use again already: call this before you use the result of
    /// [`handle`](Self::handle).
    pub fn poll_given_up(&mut self) -> Option<ConnectionHandle> {
        self.given_up.pop_front()
    }

    /// Handles an event of a connection.
    pub fn handle_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) {
        let Some(entry) = self.connections.get_mut(handle.0) else { return };
        match event {
            EndpointEvent::AddCid(cid) => {
                // An identifier that is generated twice stays with its first owner.
                if let hash_map::Entry::Vacant(vacant) = self.routes.entry(cid) {
                    vacant.insert(handle);
                    entry.cids.push(cid);
                }
            }
            EndpointEvent::RemoveCid(cid) => {
                entry.cids.retain(|c| *c != cid);
                self.routes.remove(&cid);
            }
            EndpointEvent::AddressValidated => {
                entry.half_open = entry.half_open.map(|rank| self.half_open.validate(rank));
            }
            EndpointEvent::ResetToken(token) => {
                self.resets.replace(handle, entry.reset, token);
                entry.reset = token;
            }
            EndpointEvent::HandshakeDone => {
                if let Some(rank) = entry.half_open.take() {
                    self.half_open.remove(rank);
                }
            }
            EndpointEvent::HandshakeFailed => {
                entry.half_open = entry.half_open.map(|rank| self.half_open.fail(rank));
            }
            EndpointEvent::NewToken(token) => {
                if let Some(server_name) = &entry.server_name {
                    self.received_tokens.insert(server_name, token);
                }
            }
            EndpointEvent::Blamed(address, now, offence) => {
                self.common.offenders().blame(now, Network::from(address), offence);
            }
            EndpointEvent::Learned(address, losses) => self.peers.learn(address, *losses),
            EndpointEvent::Drained => {
                self.given_up.retain(|given_up| *given_up != handle);
                self.remove(handle);
            }
        }
    }

    /// Forgets everything about a connection or a client.
    fn remove(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self.connections.try_remove(handle.0) else { return };
        if let Some(rank) = entry.half_open {
            self.half_open.remove(rank);
        }
        self.resets.replace(handle, entry.reset, None);
        for cid in entry.cids {
            self.routes.remove(&cid);
        }
    }

    fn random_seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.rng.fill_bytes(&mut seed);
        seed
    }

    /// Generates an identifier.
    fn new_cid(&mut self) -> ConnectionId {
        new_cid(&*self.config.connection_ids, &mut self.rng)
    }

    /// Generates an identifier that no connection uses; `None` if the generator knows none.
    fn fresh_cid(&mut self) -> Option<ConnectionId> {
        for _ in 0..MAX_CID_ATTEMPTS {
            let cid = self.new_cid();
            if !self.routes.contains_key(&cid) {
                return Some(cid);
            }
        }
        None
    }
}
