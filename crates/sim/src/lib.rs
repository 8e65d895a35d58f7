//! A deterministic network simulator: hosts and links on a virtual clock.
//!
//! A [`Network`] holds [`Node`]s, connected by the links of [`sutura_link`]. Its event loop jumps
//! from one event to the next without waiting, so hours of virtual time pass in seconds. A run is
//! fully determined by its configuration and a seed. A [`Host`] is a node that runs this project's
//! transport; an [`App`] runs on each of its connections.
//!
//! A [`Scenario`] is the shortcut to two hosts, a link each way and data to transfer:
//!
//! ```
//! use sutura_sim::{Scenario, Transfer};
//!
//! let path = "rate=10mbit delay=50ms loss=bern:0.02".parse()?;
//! let outcome = Scenario::new(7).link(&path, &path).transfer(Transfer::download(32_000)).run()?;
//! assert_eq!(outcome.transfers.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the feature `quinn`, quinn-proto can run beside this transport, as another kind of node.
#![forbid(unsafe_code)]

mod app;
mod app_error;
mod apps;
mod clock;
mod failure;
mod host;
mod network;
mod node;
mod pattern;
mod quic;
#[cfg(feature = "quinn")]
pub mod quinn;
mod scenario;
mod trace;

pub use app::App;
pub use app_error::AppError;
pub use apps::bulk::{BulkClient, BulkServer, Completed, Transfer};
pub use apps::datagram::{DatagramPlan, DatagramSink, DatagramSource};
pub use apps::echo::{EchoClient, EchoServer};
pub use apps::messages::{MessagePlan, MessageSink, MessageSource, TimedMessage};

pub use apps::observed::Observed;
pub use apps::stream::{Delay, StreamPlan, StreamSink, StreamSource};
pub use apps::updates::{
    Before, DeliveredMessage, Pace, Update, UpdateOrder, UpdatePlan, UpdateSink, UpdateSource,
};
pub use clock::Clock;
pub use failure::{Failure, FailureKind};
pub use host::{Accept, Finished, Host};
pub use network::Network;
pub use node::{Node, NodeId};
pub use pattern::Pattern;
pub use quic::{Piece, Quic, Received};
pub use scenario::{
    BulkOutcome, DatagramOutcome, Disturbance, Disturbances, Ends, MessagesOutcome, Progress,
    Scenario, StreamOutcome, TransferReport, UpdatesOutcome, View, Watched,
};
pub use trace::{TraceEvent, TraceLog, Tracer};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
