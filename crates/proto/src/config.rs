//! What an application may set.

use crate::congestion::{Algorithm, CongestionFactory};
use crate::crypto::{ClientCrypto, ServerCrypto};
use crate::fec::redundancy::RedundancyFactory;
use crate::loss_reaction::{HoldForRepair, LossReactionFactory};
use crate::streams::delivery::{DeliveryFactory, StreamOrder};
use crate::streams::resend_order::{ByLoss, ResendOrderFactory};
use crate::wire::code_id::CodeSet;
use std::sync::Arc;
use std::time::Duration;
use sutura_schedule::{SchedulerFactory, Scheme};

/// The smallest UDP payload that a QUIC path must carry (RFC 9000 section 14).
pub const MIN_UDP_PAYLOAD: u16 = 1200;
/// The largest that this implementation builds.
pub const MAX_UDP_PAYLOAD: u16 = 9000;

/// What this endpoint's decoder can hold, as announced to the peer.
///
/// Whatever is announced, all sessions of a connection together hold at most 8 MiB. Beyond that,
/// the session used least recently forgets what it holds, and can no longer use it to recover
/// losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FecConfig {
    /// Coding windows that the peer may use at a time.
    pub max_sessions: u16,
    /// Source symbols that each may hold.
    pub max_window_symbols: u32,
    /// Bytes that they may sum up to.
    pub max_window_bytes: u32,
    /// The codes that the peer may use. Codes that this implementation does not have are left out.
    pub codes: CodeSet,
}

impl Default for FecConfig {
    fn default() -> Self {
        Self {
            max_sessions: 16,
            max_window_symbols: 256,
            max_window_bytes: 384 * 1024,
            codes: CodeSet::default(),
        }
    }
}

/// The parameters of a connection.
#[derive(Debug, Clone)]
pub struct TransportConfig {
    /// Silence after which the connection is given up; `None` to wait for ever.
    pub max_idle_timeout: Option<Duration>,
    /// After this long without traffic a PING keeps the connection alive; `None` to let it go.
    pub keep_alive: Option<Duration>,
    /// Bidirectional streams that the peer may have open.
    pub max_concurrent_bidi_streams: u64,
    /// Unidirectional streams that the peer may have open.
    pub max_concurrent_uni_streams: u64,
    /// Bytes that the peer may send on a stream before the application read any.
    pub stream_receive_window: u64,
    /// What auto-tuning may raise a stream's window to.
    pub max_stream_receive_window: u64,
    /// Bytes that the peer may send on all streams before the application read any.
    pub receive_window: u64,
    /// What auto-tuning may raise the connection's window to.
    pub max_receive_window: u64,
    /// Bytes that a stream takes from the application before they are acknowledged.
    ///
    /// What is buffered is not yet in any order: the scheduler chooses when a packet is built, so
    /// that an urgent stream overtakes whatever less urgent ones have buffered.
    pub send_buffer: usize,
    /// Bytes that all streams together take before they are acknowledged. Each may hold 64 KiB
    /// (within [`send_buffer`](Self::send_buffer)) though this is used up, so that a stream which
    /// becomes urgent can always write.
    pub connection_send_buffer: usize,
    /// The congestion control algorithm: one of [`Algorithm`], or one of the application's own.
    pub congestion: Arc<dyn CongestionFactory>,
    /// Which stream sends next.
    pub scheduler: Arc<dyn SchedulerFactory>,
    /// How streams are protected by erasure coding unless
    /// [`SendStream::protect`](crate::SendStream::protect) says otherwise; `None` not to protect
    /// them.
    pub redundancy: Option<Arc<dyn RedundancyFactory>>,
    /// What becomes of lost data: sent again, held back for repair symbols, or given up.
    pub loss_reaction: Arc<dyn LossReactionFactory>,
    /// When data that is sent again goes, relative to new data.
    pub resend_order: Arc<dyn ResendOrderFactory>,
    /// Whether a packet may carry bytes of several streams. By default it may not, so that the loss
    /// of a packet holds up only one stream (Marx 2020, section 2). Two kinds of streams always
    /// share packets: the protocol's own, of [`Urgency::CONTROL`], and those on which at most 256
    /// bytes have been written, such as requests.
    ///
    /// [`Urgency::CONTROL`]: sutura_schedule::Urgency::CONTROL
    pub mix_streams: bool,
    /// In which order the bytes of streams are read, unless
    /// [`RecvStream::set_delivery`](crate::RecvStream::set_delivery) says otherwise. A delivery
    /// that is not ordered is read with [`read_chunk`](crate::RecvStream::read_chunk) and `ordered`
    /// false. HTTP/3 always keeps stream order.
    pub delivery: Arc<dyn DeliveryFactory>,
    /// Erasure coding; `None` not to offer it.
    pub fec: Option<FecConfig>,
    /// The round-trip time assumed before the first sample.
    pub initial_rtt: Duration,
    /// Bytes of UDP payload that this end sends per datagram, [`MIN_UDP_PAYLOAD`] at least. The
    /// path must be known to carry more.
    pub udp_payload_size: u16,
    /// Bytes of received datagrams kept for the application; `None` refuses DATAGRAM frames.
    pub datagram_receive_buffer: Option<usize>,
    /// Bytes of datagrams kept to be sent; older ones make room for newer ones.
    pub datagram_send_buffer: usize,
    /// How long an acknowledgement may be delayed.
    pub max_ack_delay: Duration,
    /// Whether to send reserved values, so that peers stay tolerant of what they do not know.
    pub grease: bool,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            max_idle_timeout: Some(Duration::from_secs(30)),
            keep_alive: None,
            max_concurrent_bidi_streams: 100,
            max_concurrent_uni_streams: 100,
            stream_receive_window: 1 << 20,
            max_stream_receive_window: 8 << 20,
            receive_window: 3 << 19,
            max_receive_window: 16 << 20,
            send_buffer: 1 << 20,
            connection_send_buffer: 16 << 20,
            congestion: Arc::new(Algorithm::CUBIC),
            scheduler: Arc::new(Scheme::EPS),
            redundancy: None,
            loss_reaction: Arc::new(HoldForRepair),
            resend_order: Arc::new(ByLoss),
            mix_streams: false,
            delivery: Arc::new(StreamOrder),
            fec: Some(FecConfig::default()),
            initial_rtt: crate::recovery::rtt::INITIAL_RTT,
            udp_payload_size: MIN_UDP_PAYLOAD,
            datagram_receive_buffer: Some(1 << 20),
            datagram_send_buffer: 1 << 20,
            max_ack_delay: Duration::from_millis(25),
            grease: true,
        }
    }
}

/// The parameters of an endpoint.
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// Handshakes that may be under way at a time as a server; further ones are ignored.
    pub max_handshakes: usize,
    /// Connections that may exist at a time.
    pub max_connections: usize,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self { max_handshakes: 1000, max_connections: 100_000 }
    }
}

/// How to accept connections.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Certificates, keys and application protocols.
    pub crypto: ServerCrypto,
    /// Parameters of every accepted connection.
    pub transport: Arc<TransportConfig>,
}

/// How to open a connection.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Trusted roots and application protocols.
    pub crypto: ClientCrypto,
    /// Parameters of the connection.
    pub transport: Arc<TransportConfig>,
}
