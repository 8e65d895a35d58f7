//! One QUIC connection, sans-IO: datagrams, timeouts and application calls go in; datagrams,
//! timeouts and events come out.

mod ack_frequency;
mod announced;
mod api;
mod assemble;
mod batch;
#[cfg(feature = "testing")]
mod check;
mod close;
mod connect_error;
mod crypto_stream;
mod event;
mod first_answer;
#[cfg(feature = "testing")]
mod forge;
mod handshake;
mod identity;
mod key_update;
mod liveness;
mod memory;
mod migration;
mod mtu;
mod negotiation;
mod observed;
mod opening;
mod outcome;
mod randomness;
mod receive;
mod rest;
mod silence;
mod space;
mod stats;
mod timer;
mod transmit;
mod zero_rtt;

#[cfg(test)]
mod tests;

pub use crate::egress::{MessageOptions, MessageOutcome, MessageStats, SendMessageError};
pub use api::{Datagrams, RecvStream, SendStream};
pub use connect_error::ConnectError;
pub use event::{EndpointEvent, Event, Offence};
pub use liveness::Standstill;
pub(crate) use memory::lend;
pub use memory::{CONNECTION_COST, MemoryUse};
pub(crate) use opening::Opening;
pub use stats::{ConnectionStats, TrafficStats};
#[cfg(feature = "testing")]
pub(crate) use transmit::TAG_SIZE;
pub use transmit::Transmit;

use crate::cid_generator::{ConnectionIdGenerator, new_cid};
use crate::config::{Extensions, PreferredAddresses, SocketFeatures, TransportConfig};
use crate::crypto::{
    ClientCrypto, ExportError, Keys, ServerCrypto, Session, SessionVersions, StartError,
};
use crate::ecn::EcnState;
use crate::egress::Egress;
pub use crate::egress::{
    DatagramOptions, DatagramProtection, MAX_DATAGRAM_PROTECTIONS, SendDatagramError,
};
use crate::error::{ConnectionError, TransportError};
use crate::fec::{Protection, ProtectionStats};
use crate::ids::{ConnectionId, Side, SpaceId};
use crate::ingress::Ingress;
use crate::loss_floor::LossMemory;
use crate::observe::Observation;
use crate::path::cids::LocalCids;
use crate::path::{NewPath, Path, Settled};
use crate::recovery::by_space::BySpace;
use crate::reset::{ResetKey, ResetToken};
use crate::streams::{StreamStats, Streams};
use crate::wire::packet::HeaderRules;
use crate::wire::transport_parameters::{TransportParameters, VersionInformation};
use crate::wire::version::Version;
use ack_frequency::AckFrequencyState;
use announced::Announced;
use batch::KeptDatagram;
use close::{CloseReason, CloseState};
use handshake::Handshake;
use identity::Identity;
use key_update::KeyPhases;
use migration::Migration;
use negotiation::{AwaitedHello, Negotiation};
use observed::Observed;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use randomness::Randomness;
use receive::EarlyPackets;
pub(crate) use receive::open_first;
use silence::Silence;
use space::PacketNumberSpace;
use stats::Counters;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timer::{Timer, TimerTable};
use zero_rtt::ZeroRtt;

/// The parameters that an endpoint passes to a new connection.
pub struct NewConnection {
    pub side: Side,
    pub remote: SocketAddr,
    pub transport: Arc<TransportConfig>,
    /// The destination identifier of the client's first Initial.
    pub original_dcid: ConnectionId,
    pub local_cid: ConnectionId,
    pub seed: [u8; 32],
    /// Losses that earlier connections to the peer measured.
    pub loss_memory: LossMemory,
    /// Makes the stateless reset tokens of this end's identifiers.
    pub reset_key: ResetKey,
    /// Where a server's clients are asked to send to.
    pub preferred_address: Option<PreferredAddresses>,
    /// The version of its first packets.
    pub version: Version,
    /// The versions of this end, best first.
    pub versions: Vec<Version>,
    /// Generates this end's identifiers.
    pub connection_ids: Arc<dyn ConnectionIdGenerator>,
    /// After how long they are replaced.
    pub connection_id_lifetime: Option<Duration>,
    /// How packets to this end are read.
    pub header_rules: HeaderRules,
    /// The extensions that this end offers.
    pub extensions: Extensions,
    /// The features of the socket.
    pub socket: SocketFeatures,
}

/// The first transport parameters of an end, and the identifiers that it has then.
struct Introduction {
    parameters: TransportParameters,
    local_cids: LocalCids,
    endpoint_events: VecDeque<EndpointEvent>,
}

impl NewConnection {
    fn introduction(&self, retry_source: Option<ConnectionId>, rng: &mut StdRng) -> Introduction {
        let Self { side, local_cid, original_dcid, extensions, version, .. } = *self;
        let mut local = handshake::local_parameters(
            &self.transport,
            side,
            local_cid,
            original_dcid,
            retry_source,
            rng,
        );
        local.grease_quic_bit = extensions.grease_quic_bit;
        local.reset_stream_at = extensions.reset_stream_at;
        local.version_information = extensions
            .version_information
            .then(|| VersionInformation::new(version, &self.versions));
        local.min_ack_delay = ack_frequency::min_ack_delay(extensions, local.max_ack_delay);
        local.stateless_reset_token = side.is_server().then(|| self.reset_key.token(&local_cid).0);
        let mut endpoint_events = VecDeque::new();
        let mut local_cids = LocalCids::new(local_cid);
        if let Some(addresses) = self.preferred_address.filter(|_| side.is_server()) {
            let cid = new_cid(&*self.connection_ids, rng);
            let token = self.reset_key.token(&cid);
            local_cids.add_preferred(cid, token);
            endpoint_events.push_back(EndpointEvent::AddCid(cid));
            local.preferred_address = Some(Box::new(migration::offer(addresses, cid, token)));
        }
        Introduction { parameters: local, local_cids, endpoint_events }
    }

    /// The path to the peer, whose identifier is `remote_cid`.
    fn path(&self, remote_cid: ConnectionId, seed: u64) -> Path {
        let config = &self.transport;
        Path::new(NewPath {
            side: self.side,
            remote: self.remote,
            mtu: mtu::of_new_path(config, self.socket, &TransportParameters::default()),
            remote_cid,
            initial_rtt: config.initial_rtt,
            ecn: self.socket.ecn,
            loss_memory: self.loss_memory,
            congestion: config.congestion.clone(),
            seed,
        })
    }
}

/// The stage of the connection's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LifeStage {
    Handshaking,
    Established,
    /// This end closed, and tells the peer so again if it keeps sending.
    Closing,
    /// The peer closed. Nothing is sent any more.
    Draining,
    Drained,
}

/// A QUIC connection.
pub struct Connection {
    side: Side,
    config: Arc<TransportConfig>,
    rng: Randomness,
    state: LifeStage,
    handshake: Handshake,
    spaces: BySpace<PacketNumberSpace>,
    path: Path,
    migration: Migration,
    identity: Identity,
    version: Version,
    versions: Vec<Version>,
    negotiation: Negotiation,
    header_rules: HeaderRules,
    extensions: Extensions,
    socket: SocketFeatures,
    /// The token that the endpoint knows.
    reset_token: Option<ResetToken>,
    peer: TransportParameters,
    streams: Streams,
    egress: Egress,
    ingress: Ingress,
    ack_frequency: AckFrequencyState,
    early: EarlyPackets,
    zero_rtt: ZeroRtt,
    key_phases: KeyPhases,
    timers: TimerTable,
    close: CloseState,
    events: VecDeque<Event>,
    endpoint_events: VecDeque<EndpointEvent>,
    observed: Option<Box<Observed>>,
    stats: Counters,
    silence: Silence,
    /// A buffer for what an acknowledgement settles, used again for each.
    settled: Option<Box<Settled>>,
    /// Whether the memory that the handshake needed was given back.
    rested: bool,
    /// Whether datagrams are padded that are little shorter than the others of the batch that is being built.
    pads_segments: bool,
    /// A datagram that did not fit in the last batch.
    kept: Option<Box<KeptDatagram>>,
}

/// The streams of a connection on which nothing was said yet.
fn new_streams(config: &TransportConfig, side: Side) -> Streams {
    let scheduler = || config.scheduler.build();
    let order = config.resend_order.build(&scheduler);
    let streams = Streams::new(side, handshake::stream_limits(config), scheduler(), order);
    let protection = config.redundancy.clone().map(Protection::new);
    let streams = streams.with_delivery(config.delivery.clone()).with_protection(protection);
    streams.with_stop_recovered(config.stop_recovered)
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side)
            .field("state", &self.state)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Creates a client's connection, with its first flight ready to be sent.
    pub(crate) fn client(
        now: Instant,
        new: NewConnection,
        crypto: ClientCrypto,
        server_name: &str,
    ) -> Result<Box<Self>, ConnectError> {
        let remote_cid = new.original_dcid;
        let keys = crypto.initial_keys(new.version.number(), &new.original_dcid)?;
        let negotiation = Negotiation::client(new.version, &new.versions, new.extensions);
        let versions = negotiation.session_versions();
        let mut connection = Self::new(new, negotiation, remote_cid, None, keys, |params| {
            crypto.start_session(versions, server_name, params)
        })?;
        connection.handshake.retry.crypto = Some(crypto);
        connection.handshake.retry.server_name = server_name.to_owned();
        connection.drive_handshake(now).map_err(ConnectError::Handshake)?;
        Ok(connection)
    }

    /// Creates a server's connection to the client that `opening` describes.
    pub(crate) fn server(
        now: Instant,
        new: NewConnection,
        crypto: &ServerCrypto,
        opening: Opening,
    ) -> Result<Box<Self>, ConnectError> {
        let Opening { remote_cid, initial_dcid, retry_source, validated, new_token } = opening;
        let version = new.version.number();
        let keys = crypto.initial_keys(version, &initial_dcid)?;
        let hello = AwaitedHello::new(crypto.clone(), initial_dcid);
        let negotiation = Negotiation::server(new.version, &new.versions, new.extensions, hello);
        let start = |params| crypto.start_session(SessionVersions::fixed(version), params);
        let mut connection = Self::new(new, negotiation, remote_cid, retry_source, keys, start)?;
        connection.admitted(now, validated, new_token);
        Ok(connection)
    }

    /// The connection is boxed here, because it is some kilobytes long, and is handed on several times.
    fn new(
        new: NewConnection,
        negotiation: Negotiation,
        remote_cid: ConnectionId,
        retry_source: Option<ConnectionId>,
        initial_keys: Keys,
        start: impl FnOnce(Vec<u8>) -> Result<Box<dyn Session>, StartError>,
    ) -> Result<Box<Self>, ConnectError> {
        let mut rng = StdRng::from_seed(new.seed);
        let Introduction { parameters: local, local_cids, endpoint_events } =
            new.introduction(retry_source, &mut rng);
        let mut parameters = Vec::new();
        local.encode(new.side, &mut parameters);
        let announced = Announced::new(&parameters);
        let session = start(parameters)?;
        let path = new.path(remote_cid, rng.random());
        let NewConnection { side, transport: config, original_dcid, local_cid, .. } = new;
        let NewConnection { reset_key, version, versions, header_rules, .. } = new;
        let NewConnection { connection_ids, connection_id_lifetime, extensions, socket, .. } = new;
        let data = PacketNumberSpace::new(SpaceId::Data, config.max_ack_delay);
        let mut spaces = BySpace::new(data);
        spaces[SpaceId::Initial].keys = Some(initial_keys);
        let streams = new_streams(&config, side);
        let reaction = config.loss_reaction.build();
        let buffer = config.datagram_send_buffer;
        Ok(Box::new(Self {
            side,
            state: LifeStage::Handshaking,
            handshake: Handshake::new(session, announced, local_cid, original_dcid),
            spaces,
            path,
            migration: Migration::default(),
            identity: Identity::new(local_cids, reset_key, connection_ids, connection_id_lifetime),
            reset_token: None,
            version,
            versions,
            negotiation,
            header_rules,
            extensions,
            socket,
            peer: TransportParameters::default(),
            streams,
            egress: Egress::new(reaction, buffer, config.mix_streams),
            ingress: Ingress::new(config.fec, config.datagram_receive_buffer),
            ack_frequency: AckFrequencyState::default(),
            early: EarlyPackets::default(),
            zero_rtt: ZeroRtt::default(),
            key_phases: KeyPhases::default(),
            timers: TimerTable::default(),
            close: CloseState::default(),
            events: VecDeque::new(),
            endpoint_events,
            observed: None,
            stats: Counters::default(),
            silence: Silence::default(),
            settled: None,
            rested: false,
            pads_segments: false,
            kept: None,
            rng: Randomness::new(rng),
            config,
        }))
    }

    /// Which end this is.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// Whether the handshake is still under way.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.state == LifeStage::Handshaking
    }

    /// Whether the connection is over, though the peer may not know yet.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state >= LifeStage::Closing
    }

    /// Whether the connection has nothing left to do and may be dropped.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.state == LifeStage::Drained
    }

    /// The version of QUIC that the connection uses. It may change until the server has answered.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The peer's address.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        self.path.remote
    }

    /// The negotiated application protocol.
    #[must_use]
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.handshake.session.alpn().map(<[u8]>::to_vec)
    }

    /// The peer's certificate chain in DER, with its own certificate first.
    #[must_use]
    pub fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        let chain = self.handshake.session.peer_certificates()?;
        Some(chain.iter().map(|der| der.as_ref().to_vec()).collect())
    }

    /// The server name that the client asked for.
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        self.handshake.session.server_name().map(str::to_owned)
    }

    /// Fills `output` with keying material that both ends of this connection can compute, and nobody
    /// else (RFC 5705, RFC 8446 section 7.5). `label` names the purpose and `context` is further data that
    /// the material is bound to; both ends must agree on them.
    ///
    /// # Errors
    /// The handshake is not complete, the length of `output` is zero or too large, or this is a server whose
    /// configuration does not ask for [exports](crate::crypto::rustls::RustlsServerConfig::with_exporter).
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        if !self.handshake.complete {
            return Err(ExportError::Unavailable);
        }
        self.handshake.session.export_keying_material(output, label, context)
    }

    /// The peer's transport parameters, as far as known. A client that sends 0-RTT packets goes by the
    /// parameters that it remembers.
    #[must_use]
    pub fn peer_parameters(&self) -> &TransportParameters {
        &self.peer
    }

    /// The smoothed round-trip time (RFC 9002 section 5.3); the initial estimate until there is a sample.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Duration {
        self.path.recovery.rtt().smoothed()
    }

    /// Counters and gauges. Visits every stream, so do not call it for every packet.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        let mut stats = self.stats.report();
        stats.loss_estimate = self.path.loss_estimate();
        stats.loss_floor = self.path.loss_floor();
        stats.udp_payload_size = self.path.mtu.size();
        stats.ecn_capable = self.path.ecn_state() == EcnState::Capable;
        stats.rtt = self.smoothed_rtt();
        stats.min_rtt = self.path.recovery.rtt().min();
        stats.probe_timeout = self.path.recovery.pto_with_backoff(SpaceId::Data);
        stats.congestion_window = self.path.congestion.window();
        stats.bytes_in_flight = self.path.recovery.bytes_in_flight();
        stats.datagrams_dropped_in = self.ingress.datagrams_dropped();
        stats.datagrams_dropped_out = self.egress.datagrams_dropped();
        stats.messages = self.egress.message_stats();
        stats.stream_bytes_retransmitted = self.egress.resent_bytes();
        stats.streams = self.streams.stats();
        stats.fec = self.egress.fec_stats();
        stats.fec.negotiated = self.config.fec.is_some() && self.peer.fec.is_some();
        self.ingress.decoders.add_stats(&mut stats.fec);
        stats
    }

    /// The protections in force: one entry for each coding session, in the order of their numbers. A session
    /// in which nothing is protected any more is listed with its last protection. The last entry is the
    /// protection of new streams, if it sleeps at present.
    #[must_use]
    pub fn protections(&self) -> Vec<ProtectionStats> {
        self.egress.protections(&self.streams, &self.path.timeless_view())
    }

    /// Sums over the streams. Visits every stream, so do not call it for every packet.
    #[must_use]
    pub fn stream_stats(&self) -> StreamStats {
        self.streams.stats()
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            if event == Event::DatagramReceived {
                self.ingress.on_told();
            }
            return Some(event);
        }
        if self.egress.take_news_of_outcomes() {
            return Some(Event::MessageOutcomes);
        }
        if self.egress.take_messages_writable() {
            return Some(Event::MessagesWritable);
        }
        if self.egress.take_datagrams_writable() {
            return Some(Event::DatagramsWritable);
        }
        self.streams.poll_event().map(Event::Stream)
    }

    /// Returns the next event for the endpoint.
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        let token = self.path.remote_cids.active_token().filter(|_| !self.is_closed());
        if token != self.reset_token {
            self.reset_token = token;
            return Some(EndpointEvent::ResetToken(token));
        }
        self.endpoint_events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        // The memory of idle coding sessions is only worth a wakeup if no other is due soon.
        if self.path.recovery.bytes_in_flight() > 0 || self.is_closed() {
            return self.timers.next();
        }
        let all = [
            self.timers.next(),
            self.ingress.decoders.timeout(self.pto()),
            self.egress.idle_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Fires the timers that are due at `now`. Calling it early is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.release_idle_memory(now);
        for timer in Timer::ALL {
            if self.timers.take_expired(timer, now) {
                self.on_timer(now, timer);
            }
        }
    }

    fn on_timer(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::Close => self.drained(now),
            Timer::Idle => {
                self.lost(now, ConnectionError::TimedOut);
                self.drained(now);
            }
            Timer::LossDetection => self.on_loss_timer(now),
            Timer::KeepAlive => {
                self.silence.on_ping();
                self.spaces[SpaceId::Data].ping = true;
            }
            Timer::OldKeys => self.key_phases.forget_previous(),
            Timer::ZeroRttKeys => self.zero_rtt.forget_keys(),
            Timer::PathValidation => self.on_path_timer(now),
            Timer::Identifiers => self.rotate_cids(now),
            Timer::PreferredAddress => self.on_preferred_address_timer(now),
            Timer::Redundancy => {
                self.egress.release_overdue(&mut self.streams, now);
                self.tend_messages(now);
                self.update_loss_timer(now);
            }
            // Both only allow the next call of `poll_transmit` to send.
            Timer::AckDelay | Timer::Pacing => {}
        }
    }

    /// Ends the connection with `error` and tells the application, once.
    fn lost(&mut self, now: Instant, error: ConnectionError) {
        if self.close.announced {
            return;
        }
        self.close.announced = true;
        let reason = error.to_string();
        self.observe(now, &Observation::Closed { reason: &reason });
        self.events.push_back(Event::ConnectionLost(error));
    }

    /// Closes the connection because of an error of the peer, or because of a state that this end cannot
    /// handle.
    fn fail(&mut self, now: Instant, error: TransportError) {
        if self.is_closed() {
            return;
        }
        self.lost(now, ConnectionError::Transport(error.clone()));
        self.start_closing(now, CloseReason::Transport(error));
    }

    /// The probe timeout of 1-RTT packets without backoff. The closing, idle and hold periods are
    /// derived from it.
    fn pto(&self) -> Duration {
        self.path.recovery.pto(SpaceId::Data)
    }

    /// Releases the memory of coding sessions that have been idle for a while.
    fn release_idle_memory(&mut self, now: Instant) {
        let pto = self.pto();
        self.ingress.decoders.on_timeout(now, pto);
        self.egress.release_idle(now);
    }
}
