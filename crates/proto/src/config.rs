//! Settings of the application.

use crate::cid_generator::{ConnectionIdGenerator, RandomIds};
use crate::congestion::{Algorithm, CongestionFactory};
use crate::crypto::{ClientCrypto, ServerCrypto};
use crate::fec::FecConfig;
use crate::fec::redundancy::{Auto, RedundancyFactory};
use crate::ids::MIN_UDP_PAYLOAD;
use crate::loss_reaction::{HoldForRepair, LossReactionFactory};
use crate::path::MtuDiscovery;
use crate::reset::ResetKey;
use crate::streams::delivery::{DeliveryFactory, StreamOrder};
use crate::streams::resend_order::{ByLoss, ResendOrderFactory};
use crate::wire::version::Version;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_schedule::{SchedulerFactory, Scheme};
use zeroize::Zeroizing;

/// The settings of a connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TransportConfig {
    /// The connection is closed after being silent for this long; `None` to wait for ever.
    pub max_idle_timeout: Option<Duration>,
    /// Time without traffic after which a PING keeps the connection alive; `None` to send none. The PING is sent earlier
    /// if the peer's idle timeout asks for that.
    pub keep_alive: Option<Duration>,
    /// How many bidirectional streams the peer may have open.
    pub max_concurrent_bidi_streams: u64,
    /// How many unidirectional streams the peer may have open.
    pub max_concurrent_uni_streams: u64,
    /// How many unidirectional streams the peer may have open, if that is more, once this end receives
    /// [groups](https://docs.rs/sutura-groups), of which each message on its way is a stream. The default of
    /// 4096 allows some 450 Mbit/s of messages of a packet each with a round-trip time of 100 ms.
    pub max_concurrent_group_streams: u64,
    /// How many bytes the peer may send on a stream before the application has read any.
    pub stream_receive_window: u64,
    /// The most that auto-tuning raises a stream's window to.
    pub max_stream_receive_window: u64,
    /// How many bytes the peer may send on all streams before the application has read any.
    pub receive_window: u64,
    /// The most that auto-tuning raises the connection's window to.
    pub max_receive_window: u64,
    /// How many unacknowledged bytes of the application a stream buffers.
    ///
    /// Buffered data is not in any order yet: the scheduler decides when a packet is built, so an urgent
    /// stream overtakes the buffered data of less urgent streams.
    pub send_buffer: usize,
    /// How many unacknowledged bytes all streams together buffer. Even when this is used up, each
    /// stream may hold 64 KiB (within [`send_buffer`](Self::send_buffer)), so that a stream which
    /// becomes urgent can always write.
    pub connection_send_buffer: usize,
    /// The congestion control algorithm: an [`Algorithm`] or the application's own.
    pub congestion: Arc<dyn CongestionFactory>,
    /// Decides which stream sends next.
    pub scheduler: Arc<dyn SchedulerFactory>,
    /// How streams are protected by erasure coding, unless
    /// [`SendStream::protect`](crate::SendStream::protect) says otherwise; `None` for no
    /// protection. By default [`Auto`], which costs next to nothing where no packets are lost.
    pub redundancy: Option<Arc<dyn RedundancyFactory>>,
    /// The reaction to lost data: it is sent again, held back for repair symbols, or dropped.
    pub loss_reaction: Arc<dyn LossReactionFactory>,
    /// When data is sent again, relative to new data.
    pub resend_order: Arc<dyn ResendOrderFactory>,
    /// Whether a packet may carry data of several streams. By default it may not, so that the loss
    /// of a packet holds up only one stream (Marx 2020, section 2). Two kinds of streams always share
    /// packets: the protocol's own, of [`Urgency::CONTROL`], and streams on which at most 256 bytes have been
    /// written, such as requests.
    ///
    /// [`Urgency::CONTROL`]: sutura_schedule::Urgency::CONTROL
    pub mix_streams: bool,
    /// The order in which the bytes of streams are read, unless
    /// [`RecvStream::set_delivery`](crate::RecvStream::set_delivery) says otherwise. With an
    /// unordered delivery, streams are read by [`read_chunk`](crate::RecvStream::read_chunk) with
    /// `ordered` false. HTTP/3 always keeps stream order.
    pub delivery: Arc<dyn DeliveryFactory>,
    /// Erasure coding; `None` to not offer it.
    pub fec: Option<FecConfig>,
    /// The round-trip time assumed before the first sample.
    pub initial_rtt: Duration,
    /// The UDP payload size of datagrams that this end sends at first, at least [`MIN_UDP_PAYLOAD`]. A
    /// larger value requires a path that is known to carry it.
    pub udp_payload_size: u16,
    /// How larger sizes are looked for, if the socket does not fragment datagrams
    /// ([`SocketFeatures::unfragmented`]); `None` to stay with the first size.
    pub mtu_discovery: Option<MtuDiscovery>,
    /// How many bytes of received datagrams are kept for the application; `None` refuses DATAGRAM
    /// frames.
    pub datagram_receive_buffer: Option<usize>,
    /// How many bytes of datagrams are queued to be sent; newer ones displace older ones.
    pub datagram_send_buffer: usize,
    /// The application error code with which a message is cancelled if some of it is still to be sent when it
    /// can no longer arrive in time; `None` sends it all the same. See
    /// [`Connection::send_message`](crate::Connection::send_message).
    pub cancel_late: Option<u64>,
    /// The application error code with which this end stops a stream (STOP_SENDING) as soon as repair symbols
    /// have completed the stream, and by which it recognises the peer's STOP_SENDING of this kind. `None` to
    /// rely on acknowledgements alone, which tell the sender the same later. Both ends need the same code.
    /// The receiver's application still reads the whole stream, and the sender's is told that the stream is
    /// finished (Eghbal and Lu 2025, section 4.2).
    pub stop_recovered: Option<u64>,
    /// How long an acknowledgement may be delayed.
    pub max_ack_delay: Duration,
    /// How often the peer is asked to acknowledge packets, if it can be asked; `None` for as often as
    /// RFC 9000 says.
    pub ack_frequency: Option<AckFrequencyConfig>,
    /// Whether clients may move to another address (RFC 9000 section 9). A server that forbids it still
    /// follows a client whose port changes, as behind a NAT.
    pub migration: bool,
    /// Whether a client goes over to the address that its server prefers, if it has one (RFC 9000 section
    /// 9.6).
    pub preferred_address: bool,
    /// Whether to send reserved values, so that peers stay tolerant of unknown ones.
    pub grease: bool,
}

impl TransportConfig {
    sutura_schedule::setters! {
        with_max_idle_timeout: max_idle_timeout = Option<Duration>,
        with_keep_alive: keep_alive = Option<Duration>,
        with_max_concurrent_bidi_streams: max_concurrent_bidi_streams = u64,
        with_max_concurrent_uni_streams: max_concurrent_uni_streams = u64,
        with_max_concurrent_group_streams: max_concurrent_group_streams = u64,
        with_stream_receive_window: stream_receive_window = u64,
        with_max_stream_receive_window: max_stream_receive_window = u64,
        with_receive_window: receive_window = u64,
        with_max_receive_window: max_receive_window = u64,
        with_send_buffer: send_buffer = usize,
        with_connection_send_buffer: connection_send_buffer = usize,
        with_congestion: congestion = Arc<dyn CongestionFactory>,
        with_scheduler: scheduler = Arc<dyn SchedulerFactory>,
        with_redundancy: redundancy = Option<Arc<dyn RedundancyFactory>>,
        with_loss_reaction: loss_reaction = Arc<dyn LossReactionFactory>,
        with_resend_order: resend_order = Arc<dyn ResendOrderFactory>,
        with_mix_streams: mix_streams = bool,
        with_delivery: delivery = Arc<dyn DeliveryFactory>,
        with_fec: fec = Option<FecConfig>,
        with_initial_rtt: initial_rtt = Duration,
        with_udp_payload_size: udp_payload_size = u16,
        with_mtu_discovery: mtu_discovery = Option<MtuDiscovery>,
        with_datagram_receive_buffer: datagram_receive_buffer = Option<usize>,
        with_datagram_send_buffer: datagram_send_buffer = usize,
        with_cancel_late: cancel_late = Option<u64>,
        with_stop_recovered: stop_recovered = Option<u64>,
        with_max_ack_delay: max_ack_delay = Duration,
        with_ack_frequency: ack_frequency = Option<AckFrequencyConfig>,
        with_migration: migration = bool,
        with_preferred_address: preferred_address = bool,
        with_grease: grease = bool,
    }
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            max_idle_timeout: Some(Duration::from_secs(30)),
            keep_alive: None,
            max_concurrent_bidi_streams: 100,
            max_concurrent_uni_streams: 100,
            max_concurrent_group_streams: 4096,
            stream_receive_window: 1 << 20,
            max_stream_receive_window: 8 << 20,
            receive_window: 3 << 19,
            max_receive_window: 16 << 20,
            send_buffer: 1 << 20,
            connection_send_buffer: 16 << 20,
            congestion: Arc::new(Algorithm::BBR),
            scheduler: Arc::new(Scheme::EPS),
            redundancy: Some(Arc::new(Auto::default())),
            loss_reaction: Arc::new(HoldForRepair),
            resend_order: Arc::new(ByLoss),
            mix_streams: false,
            delivery: Arc::new(StreamOrder),
            fec: Some(FecConfig::default()),
            initial_rtt: crate::rtt::INITIAL_RTT,
            udp_payload_size: MIN_UDP_PAYLOAD,
            mtu_discovery: Some(MtuDiscovery::default()),
            datagram_receive_buffer: Some(1 << 20),
            datagram_send_buffer: 1 << 20,
            cancel_late: None,
            stop_recovered: None,
            max_ack_delay: Duration::from_millis(25),
            ack_frequency: None,
            migration: true,
            preferred_address: true,
            grease: true,
        }
    }
}

/// How often a peer is asked to acknowledge packets (draft-ietf-quic-ack-frequency-11): less often the
/// larger the congestion window is, which saves packets, and work at both ends. Losses and congestion
/// are still reported as early as they count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckFrequencyConfig {
    /// How many acknowledgements to get for each congestion window, as long as that is not more than
    /// usual. By default 16.
    pub acks_per_window: u32,
    /// How many packets may arrive without an acknowledgement at most. By default 32.
    pub max_packets: u32,
}

impl AckFrequencyConfig {
    sutura_schedule::setters! {
        with_acks_per_window: acks_per_window = u32,
        with_max_packets: max_packets = u32,
    }
}

impl Default for AckFrequencyConfig {
    fn default() -> Self {
        Self { acks_per_window: 16, max_packets: 32 }
    }
}

/// The abilities of an endpoint's sockets beyond sending and receiving datagrams. None by default, which is
/// always safe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketFeatures {
    /// The sockets set the ECN marks that [`Transmit::ecn`](crate::Transmit::ecn) asks for, and report the
    /// marks of received datagrams.
    pub ecn: bool,
    /// Datagrams that are too long for the path are dropped, not fragmented. The search for the size that the
    /// path carries requires this (RFC 9000 section 14).
    pub unfragmented: bool,
}

impl SocketFeatures {
    sutura_schedule::setters! {
        with_ecn: ecn = bool,
        with_unfragmented: unfragmented = bool,
    }
}

/// Extensions of QUIC, each used with peers that have it, too. All are on by default. Extensions with
/// settings of their own, such as erasure coding and datagrams, are part of [`TransportConfig`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extensions {
    /// The fixed bit of packets has any value, so that nothing on the way relies on it (RFC 9287).
    pub grease_quic_bit: bool,
    /// Streams may be reset after a number of bytes that are delivered nevertheless
    /// (draft-ietf-quic-reliable-stream-reset-07).
    pub reset_stream_at: bool,
    /// The ends tell each other which versions they support, so that they can go over to the best, and
    /// nobody on the path can make them use another (RFC 9368).
    pub version_information: bool,
    /// Peers may say how often they want acknowledgements (draft-ietf-quic-ack-frequency-11).
    /// [`TransportConfig::ack_frequency`] sets the rate that this end asks for.
    pub ack_frequency: bool,
}

impl Extensions {
    sutura_schedule::setters! {
        with_grease_quic_bit: grease_quic_bit = bool,
        with_reset_stream_at: reset_stream_at = bool,
        with_version_information: version_information = bool,
        with_ack_frequency: ack_frequency = bool,
    }

    /// No extension.
    pub const NONE: Self = Self {
        grease_quic_bit: false,
        reset_stream_at: false,
        version_information: false,
        ack_frequency: false,
    };
}

impl Default for Extensions {
    fn default() -> Self {
        Self {
            grease_quic_bit: true,
            reset_stream_at: true,
            version_information: true,
            ack_frequency: true,
        }
    }
}

/// Addresses at which a server prefers its clients to send to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreferredAddresses {
    /// For clients that connect over IPv4.
    pub ipv4: Option<SocketAddrV4>,
    /// For clients that connect over IPv6.
    pub ipv6: Option<SocketAddrV6>,
}

impl PreferredAddresses {
    sutura_schedule::setters! {
        with_ipv4: ipv4 = Option<SocketAddrV4>,
        with_ipv6: ipv6 = Option<SocketAddrV6>,
    }
}

/// The settings of an endpoint.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EndpointConfig {
    /// How many incoming handshakes may be in progress at once. When there are as many, the oldest handshake
    /// of a client that has not shown that it receives packets at its address makes room for another. At most
    /// 256 may be in progress with clients of one IPv4 address or IPv6 /64.
    pub max_handshakes: usize,
    /// With how many unvalidated handshakes in progress a server starts to answer new clients with
    /// a Retry (RFC 9000 section 8.1.2): it then keeps no state until a client has shown that it receives
    /// packets at its address, which takes the client a round trip. 0 to always send a Retry; `None` for
    /// never, even if handshakes must be given up for others.
    pub retry_above: Option<usize>,
    /// How many connections may exist at once; clients beyond that are refused.
    pub max_connections: usize,
    /// Whether a server gives clients a token, with which their next connection from the same
    /// address is validated at once (RFC 9000 section 8.1.3).
    pub new_tokens: bool,
    /// The key that seals tokens; `None` for a key of the endpoint's own, which it replaces every day.
    pub token_key: Option<TokenKey>,
    /// The key of stateless resets (RFC 9000 section 10.3): an endpoint that was restarted tells its
    /// peers that it has forgotten their connections if it has the same key as before. `None` for a
    /// random one.
    pub reset_key: Option<ResetKey>,
    /// The versions of QUIC that connections may use, best first.
    ///
    /// A client begins with the first one, or with [`original_version`](Self::original_version). It begins
    /// anew with another version if the server does not support that one, and goes over to another version if
    /// the server does. A server accepts each of these versions from its client. Within the handshake it goes
    /// over to a newer version if that comes earlier in this list and the client offers it (RFC 9368 section
    /// 2.3); in the default order, none does. Without [`Extensions::version_information`], neither end goes
    /// over.
    pub versions: Vec<Version>,
    /// The version that a client begins with (the Original Version of RFC 9368), if that is not the best:
    /// a version that every server is likely to know. The server may then go over to a better version without
    /// a round trip.
    pub original_version: Option<Version>,
    /// The address to which a server asks its clients to send after the handshake (RFC 9000 section 9.6), if
    /// it differs from the address to which they connect. The server must receive at that address with the
    /// same socket.
    pub preferred_address: Option<PreferredAddresses>,
    /// Generates the identifiers that peers address this endpoint's connections by.
    pub connection_ids: Arc<dyn ConnectionIdGenerator>,
    /// After how long each connection in use replaces its identifiers, all at once, and asks its peer to
    /// retire the old ones (RFC 9000 section 5.1.1); `None` for never. An identifier that the peer retires,
    /// for example because it moves to another address, is replaced in any case.
    pub connection_id_lifetime: Option<Duration>,
    /// The extensions of QUIC that connections use with peers that have them, too.
    pub extensions: Extensions,
    /// The abilities of the sockets. `sutura` sets this by itself.
    pub socket: SocketFeatures,
}

impl EndpointConfig {
    sutura_schedule::setters! {
        with_max_handshakes: max_handshakes = usize,
        with_retry_above: retry_above = Option<usize>,
        with_max_connections: max_connections = usize,
        with_new_tokens: new_tokens = bool,
        with_token_key: token_key = Option<TokenKey>,
        with_reset_key: reset_key = Option<ResetKey>,
        with_versions: versions = Vec<Version>,
        with_original_version: original_version = Option<Version>,
        with_preferred_address: preferred_address = Option<PreferredAddresses>,
        with_connection_ids: connection_ids = Arc<dyn ConnectionIdGenerator>,
        with_connection_id_lifetime: connection_id_lifetime = Option<Duration>,
        with_extensions: extensions = Extensions,
        with_socket: socket = SocketFeatures,
    }

    /// The version of a client's first packet.
    pub(crate) fn first_version(&self) -> Version {
        let best = self.versions.first().copied();
        self.original_version.or(best).unwrap_or(Version::V1)
    }
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            max_handshakes: 1000,
            retry_above: Some(500),
            max_connections: 100_000,
            new_tokens: true,
            token_key: None,
            reset_key: None,
            versions: vec![Version::V1, Version::V2],
            original_version: None,
            preferred_address: None,
            connection_ids: Arc::new(RandomIds),
            connection_id_lifetime: None,
            extensions: Extensions::default(),
            socket: SocketFeatures::default(),
        }
    }
}

/// A secret that is wiped from memory when it is dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// A key that seals address validation tokens. Servers that share a key accept each other's tokens, as does a
/// server that is started again. Each server remembers used tokens only by itself.
///
/// Keys should be replaced from time to time. [`Endpoint::set_token_key`](crate::Endpoint::set_token_key)
/// does so while an endpoint runs. Where several servers share a key, first tell all of them to
/// [open](Self::also_opens) the tokens of the new key, then to seal with it. Secrets are wiped from memory
/// when the last copy of the key is dropped.
#[derive(Clone)]
pub struct TokenKey {
    secret: Secret,
    /// The secrets of other tokens that are good.
    others: Vec<Secret>,
    /// A moment, and how long after the UNIX epoch it was.
    clock: (Instant, Duration),
}

impl TokenKey {
    /// A key made from `secret`, which must be unpredictable. `now` is `since_epoch` after the UNIX
    /// epoch; the age of tokens is counted from there.
    #[must_use]
    pub fn new(secret: [u8; 32], now: Instant, since_epoch: Duration) -> Self {
        Self { secret: Secret::new(secret), others: Vec::new(), clock: (now, since_epoch) }
    }

    /// Also accepts the tokens of a key with this secret: the previous key, or the next one, which other
    /// servers may use already. May be called several times; each call makes a forged token dearer to refuse.
    #[must_use]
    pub fn also_opens(mut self, secret: [u8; 32]) -> Self {
        self.others.push(Secret::new(secret));
        self
    }

    pub(crate) const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The secrets of other tokens that are good.
    pub(crate) fn others(&self) -> &[Secret] {
        &self.others
    }

    /// How long after the UNIX epoch `now` is.
    pub(crate) fn since_epoch(&self, now: Instant) -> Duration {
        self.clock.1 + now.saturating_duration_since(self.clock.0)
    }
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenKey").finish_non_exhaustive()
    }
}

/// How to accept connections.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Certificates, keys and application protocols.
    pub crypto: ServerCrypto,
    /// The settings of every accepted connection.
    pub transport: Arc<TransportConfig>,
}

impl ServerConfig {
    /// Accepts connections with this cryptography and these settings.
    #[must_use]
    pub const fn new(crypto: ServerCrypto, transport: Arc<TransportConfig>) -> Self {
        Self { crypto, transport }
    }
}

/// How to open a connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Trusted roots and application protocols.
    pub crypto: ClientCrypto,
    /// The settings of the connection.
    pub transport: Arc<TransportConfig>,
}

impl ClientConfig {
    /// Opens a connection with this cryptography and these settings.
    #[must_use]
    pub const fn new(crypto: ClientCrypto, transport: Arc<TransportConfig>) -> Self {
        Self { crypto, transport }
    }
}
