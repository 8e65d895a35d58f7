//! QUIC and HTTP/3 that repair their own losses: an async API on tokio.
//!
//! The API is modelled on quinn's: an [`Endpoint`] opens and accepts [`Connection`]s, which open
//! and accept streams. In addition, a [`SendStream`] can ask for erasure coding with
//! [`protect`](SendStream::protect), and [`Connection::stats`] shows its effect. HTTP/3 is in
//! [`http`], messages in a partial order in [`groups`]. A server uses several cores with
//! [`Endpoint::server_workers`].
//!
//! ```no_run
//! # async fn run(roots: rustls::RootCertStore) -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use sutura::{ClientConfig, Endpoint, Protection};
//!
//! let mut endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
//! endpoint.set_default_client_config(ClientConfig::with_root_certificates(roots, &[b"echo"])?);
//! let connection = endpoint.connect("192.0.2.1:4433".parse()?, "example.org")?.await?;
//! let (mut send, mut recv) = connection.open_bi().await?;
//! // Two repair symbols whenever there is nothing more to send for now.
//! send.protect(Some(Protection::tail(2, Duration::ZERO)))?;
//! send.write_all(b"hello").await?;
//! send.finish()?;
//! let answer = recv.read_to_end(1024).await?;
//! println!("{} bytes, {:?}", answer.len(), connection.stats().fec);
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

// AWS-LC has the interface of ring.
#[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
extern crate aws_lc_rs as primitives;
#[cfg(feature = "ring")]
extern crate ring as primitives;

mod budget;
mod config;
mod connection;
mod dirty;
mod endpoint;
pub mod groups;
mod held;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "qlog")]
pub mod qlog;
mod socket;
mod sync;
mod system_socket;
mod tenure;
mod tickets;
mod trust;
mod udp;

pub use budget::{MemoryAccount, MemoryBudget};
pub use config::{
    AckFrequencyConfig, ClientConfig, ConfigError, EndpointConfig, Extensions, ServerConfig,
    TokenKey, TransportConfig,
};
pub use connection::{
    Connection, HandshakeData, ReadError, ReadExactError, ReadToEndError, RecvStream, ResetError,
    SendStream, StoppedError, WriteError,
};
pub use endpoint::{Connecting, Endpoint, Incoming, RetryError, ZeroRttAccepted};
pub use socket::{AsyncUdpSocket, Received, Transmit};
// Whole, because it has a kit for each seam of `policy`.
#[cfg(feature = "conformance")]
pub use sutura_proto::conformance;
pub use sutura_proto::crypto::{ExportError, StartError};
// Whole, because a policy of one's own takes the trait, the factory and the view of its seam.
pub use sutura_proto::policy;
// Whole, because each seam has a registry of its own.
pub use sutura_proto::registry;
pub use sutura_proto::{
    Algorithm, Chunk, Class, CodeId, CodeSet, CodingCounts, ConnectError, ConnectionError,
    ConnectionId, ConnectionIdGenerator, ConnectionStats, DatagramOptions, DatagramProtection, Dir,
    EcnCodepoint, EcnState, FecConfig, FecStats, MAX_DATAGRAM_PROTECTIONS, MAX_UDP_PAYLOAD,
    MAX_WINDOW_BYTES, MAX_WINDOW_SYMBOLS, MIN_UDP_PAYLOAD, MemoryUse, Message, MessageId,
    MessageOptions, MessageOutcome, MessageStats, Metrics, MtuDiscovery, Observation, Observer,
    PreferredAddresses, Priority, Protection, ProtectionStats, QuicLb, QuicLbConfig, QuicLbError,
    RandomIds, Reason, ResetAtError, ResetKey, Scheme, SendDatagramError, SendMessageError, Side,
    SocketFeatures, SpaceId, StreamId, StreamStats, TrafficStats, TransportError,
    TransportErrorCode, Urgency, Version, Weight,
};
pub use tickets::TicketKey;
pub use trust::{
    Everybody, ServerTrust, ShownIdentity, certificate_fingerprint, certificate_verifier,
};

/// Frames and transport parameters as an [`Observer`] sees them.
pub mod wire_format {
    pub use sutura_proto::wire_format::{
        AckFrame, AckFrequency, AckRanges, Carrier, Close, EcnCounts, FecParameters, Frame,
        FrameInfo, FrameIter, FrameKind, Grease, NewConnectionId, PreferredAddress, Repair,
        RepairHeader, SourceSymbol, StreamFrame, SymbolAck, SymbolRanges, SymbolRef, SymbolWindow,
        TransportParameters, VersionInformation,
    };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

// The pages about the library are of the repository, and no part of the package.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-quinn.md")]
mod from_quinn {}
#[cfg(doctest)]
#[doc = include_str!("../../../docs/own-policies.md")]
mod own_policies {}
#[cfg(doctest)]
#[doc = include_str!("../../../docs/start-library.md")]
mod start {}
