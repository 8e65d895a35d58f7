//! Sans-IO QUIC v1 (RFC 9000, 9001, 9002, 9221) with built-in erasure coding. Scheduling,
//! redundancy, loss reaction, resend order, delivery and congestion control are pluggable policies.
//!
//! Time is an argument, randomness is injected, output is data: this crate uses no sockets,
//! threads, clocks or async. An [`Endpoint`] decides which [`Connection`] a datagram belongs to. A
//! connection takes datagrams, timeouts and calls of the application, and produces datagrams,
//! timeouts and [`Event`]s.
//!
//! The traits of policies are in [`policy`], the built-in policies in [`registry`], and test kits
//! for your own policies in `conformance`, with the feature of that name. A [`TransportConfig`] holds a
//! factory for each policy.
//!
//! # Example
//!
//! A client and a server exchange datagrams in memory. A driver does the same with sockets, and
//! calls [`Connection::handle_timeout`] when [`Connection::poll_timeout`] is due.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::{Duration, Instant};
//! use sutura_proto::crypto::null::{NullClientConfig, NullServerConfig};
//! use sutura_proto::{
//!     ClientConfig, Connection, DatagramEvent, Dir, Endpoint, Event, Protection, Read, ServerConfig,
//!     TransportConfig,
//! };
//!
//! /// Moves datagrams until neither end has one to send.
//! fn exchange(
//!     now: Instant,
//!     client: &mut Connection,
//!     endpoint: &mut Endpoint,
//!     server: &mut Option<Box<Connection>>,
//! ) {
//!     let (at_client, at_server) = (([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 443).into());
//!     loop {
//!         let (mut up, mut down) = (Vec::new(), Vec::new());
//!         if client.poll_transmit(now, 1, &mut up).is_some() {
//!             // The first packet of a client makes a connection.
//!             let event = endpoint.handle(now, at_client, &up);
//!             if let DatagramEvent::NewConnection(incoming) = event {
//!                 *server = endpoint.accept(now, incoming);
//!             }
//!             if let Some(server) = server {
//!                 server.handle_datagram(now, at_client, None, &mut up);
//!             }
//!         } else if let Some(server) = server
//!             && server.poll_transmit(now, 1, &mut down).is_some()
//!         {
//!             client.handle_datagram(now, at_server, None, &mut down);
//!         } else {
//!             return;
//!         }
//!     }
//! }
//!
//! // The null cryptography protects nothing; `crypto::rustls` is TLS 1.3.
//! let transport = Arc::new(TransportConfig::default());
//! let crypto = Arc::new(NullServerConfig::new(vec![b"example".to_vec()]));
//! let config = Arc::new(ServerConfig::new(crypto, transport.clone()));
//! let mut endpoint = Endpoint::new(Arc::default(), Some(config), [1; 32]);
//! let crypto = Arc::new(NullClientConfig::new(vec![b"example".to_vec()]));
//!
//! let now = Instant::now();
//! let (_, mut client) = Endpoint::new(Arc::default(), None, [2; 32]).connect(
//!     now,
//!     ClientConfig::new(crypto, transport),
//!     ([192, 0, 2, 2], 443).into(),
//!     "example.org",
//! )?;
//! let mut server = None;
//! exchange(now, &mut client, &mut endpoint, &mut server);
//! assert!(std::iter::from_fn(|| client.poll_event()).any(|event| event == Event::Connected));
//!
//! let stream = client.open(Dir::Bi).ok_or("the server allows no stream")?;
//! client.send_stream(stream).protect(Some(Protection::tail(2, Duration::ZERO)))?;
//! client.send_stream(stream).write(b"hello")?;
//! client.send_stream(stream).finish()?;
//! exchange(now, &mut client, &mut endpoint, &mut server);
//!
//! let mut server = server.ok_or("the server has no connection")?;
//! assert_eq!(server.accept(Dir::Bi), Some(stream));
//! let mut buffer = [0; 16];
//! assert_eq!(server.recv_stream(stream).read(&mut buffer)?, Read::Data(5));
//! assert_eq!(&buffer[..5], b"hello");
//! assert_eq!(server.recv_stream(stream).read(&mut buffer)?, Read::Fin);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

// AWS-LC has the interface of ring.
#[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
extern crate aws_lc_rs as primitives;
#[cfg(feature = "ring")]
extern crate ring as primitives;

mod config;
#[cfg(feature = "conformance")]
pub mod conformance;
mod connection;
pub mod crypto;
mod datagram_queue;
mod ecn;
mod egress;
mod endpoint;
mod error;
mod fec;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzz;
mod ids;
mod ingress;
#[cfg(feature = "testing")]
mod invariant;
mod loss_reaction;
mod observe;
mod path;
mod peers;
mod rare;
mod recovery;
pub mod registry;
mod streams;
mod version;
mod wire;
#[doc(hidden)]
pub mod work;

// Modules that are crates of their own.
use sutura_cid::{generator as cid_generator, reset};
use sutura_congestion::{self as congestion, loss_floor, rtt};

pub use cid_generator::{ConnectionIdGenerator, MIN_SERVER_CID_SIZE, RandomIds};
pub use config::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, Extensions, PreferredAddresses, ServerConfig,
    SocketFeatures, TokenKey, TransportConfig,
};
pub use congestion::Algorithm;
pub use connection::{
    CONNECTION_COST, ConnectError, Connection, ConnectionStats, DatagramOptions,
    DatagramProtection, Datagrams, EndpointEvent, Event, MAX_DATAGRAM_PROTECTIONS, MemoryUse,
    MessageOptions, MessageOutcome, MessageStats, Offence, RecvStream, SendDatagramError,
    SendMessageError, SendStream, Standstill, TrafficStats, Transmit,
};
pub use ecn::{EcnCodepoint, EcnState};
pub use endpoint::{DatagramEvent, Endpoint, Incoming, MAX_WORKERS, WorkerCountError};
pub use error::{ConnectionError, TransportError, TransportErrorCode};
pub use fec::redundancy::{Message, Reason};
pub use fec::{
    CodingCounts, FecConfig, FecStats, MAX_WINDOW_BYTES, MAX_WINDOW_SYMBOLS, Protection,
    ProtectionStats,
};
pub use ids::{
    ConnectionHandle, ConnectionId, Dir, MAX_CID_SIZE, MAX_UDP_PAYLOAD, MIN_UDP_PAYLOAD, MessageId,
    Side, SpaceId, StreamId,
};
pub use observe::{Metrics, Observation, Observer};
pub use path::MtuDiscovery;
pub use recovery::pto::MAX_PROBE_TIMEOUT;
pub use reset::{ResetKey, ResetToken};
pub use streams::delivery::Chunk;
pub use streams::{
    ClosedStream, Outcome, Read, ReadError, ResetAtError, StreamEvent, StreamStats, Uptake,
    WriteError,
};
pub use sutura_cid::{QuicLb, QuicLbConfig, QuicLbError};
#[doc(hidden)]
pub use sutura_schedule::setters;
pub use sutura_schedule::{Class, Priority, Scheme, Urgency, Weight};
pub use wire::code_id::{CodeId, CodeSet};
pub use wire::version::Version;

/// The interfaces of policies: traits that make decisions, and the types that they decide from. The
/// core implements the mechanisms that consult them.
///
/// A policy is a type that implements one of these traits, along with a factory that builds it:
///
/// ```
/// use std::ops::Range;
/// use std::sync::Arc;
/// use sutura_proto::policy::{Delivery, DeliveryFactory, Held};
/// use sutura_proto::{TransportConfig, conformance};
///
/// /// Gives the application the bytes that stand last in the stream first.
/// #[derive(Debug)]
/// struct NewestFirst;
///
/// impl Delivery for NewestFirst {
///     fn next(&self, held: &Held<'_>) -> Option<Range<u64>> {
///         held.ranges().last()
///     }
/// }
///
/// impl DeliveryFactory for NewestFirst {
///     fn name(&self) -> &str {
///         "newest-first"
///     }
///
///     fn build(&self) -> Box<dyn Delivery> {
///         Box::new(NewestFirst)
///     }
/// }
///
/// conformance::delivery(&NewestFirst);
/// let config = TransportConfig::default().with_delivery(Arc::new(NewestFirst));
/// # assert_eq!(config.delivery.name(), "newest-first");
/// ```
pub mod policy {
    pub use crate::congestion::{
        Acked, CongestionController, CongestionFactory, FixedRate, Lost, MAX_WINDOW, Packet,
        PacketState, PathParameters, Sent, WindowLimits,
    };
    pub use crate::fec::code::{CODES, Code, LdpcStaircase, Parity2d, ReedSolomon, SlidingWindow};
    pub use crate::fec::redundancy::{
        Arrival, Auto, Block, BlockRate, Decision, FLUSH_LINGER, Incremental, MAX_BLOCK, MAX_BURST,
        MAX_DELAY, PathView, Reason, Redundancy, RedundancyFactory, RepairPlan, Stage, Tail, Terms,
        Turn, View,
    };
    pub use crate::loss_floor::{Experiments, LossFloor, LossMemory, Regime};
    pub use crate::loss_reaction::{
        HoldForRepair, LossReaction, LossReactionFactory, LostData, RepairOutlook, ResendAtOnce,
        Verdict,
    };
    pub use crate::rtt::RttEstimator;
    pub use crate::streams::delivery::{
        ArrivalOrder, Delivery, DeliveryFactory, Held, StreamOrder,
    };
    pub use crate::streams::resend_order::{
        ByLoss, ByScheduler, First, FirstBy, InTurn, Precedence, ResendOrder, ResendOrderFactory,
    };
    pub use sutura_schedule::{Extension, Grant, Scheduler, SchedulerFactory, StreamKey};
}

/// Variable-length integers (RFC 9000 section 16), for protocols above a connection.
pub mod coding {
    pub use crate::wire::coding::{Reader, UnexpectedEnd, VARINT_MAX, put_varint, varint_size};
}

/// Frames and transport parameters, for use by an [`Observer`].
pub mod wire_format {
    pub use crate::ids::SymbolRef;
    pub use crate::wire::frame::{
        AckFrame, AckFrequency, AckRanges, Carrier, Close, EcnCounts, Frame, FrameInfo, FrameIter,
        FrameKind, NewConnectionId, Repair, RepairHeader, SourceSymbol, StreamFrame, StreamHeader,
        SymbolAck, SymbolRanges, SymbolWindow,
    };
    pub use crate::wire::transport_parameters::{
        FecParameters, Grease, HandshakeIds, PreferredAddress, TransportParameters,
        VersionInformation,
    };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
