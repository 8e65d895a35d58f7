//! Sans-IO QUIC v1 (RFC 9000, 9001, 9002, 9221) with erasure coding inside, whose scheduling,
//! redundancy, reaction to loss, order of resending, delivery and congestion control are policies.
//!
//! Time is an argument, randomness is injected, output is data: this crate has no socket, thread,
//! clock or async in it. An [`Endpoint`] says which [`Connection`] a datagram belongs to; a
//! connection takes datagrams, timeouts and the application's calls, and gives datagrams, timeouts
//! and [`Event`]s.
//!
//! The traits of policies are in [`policy`], those that are built in in [`registry`], and tests for
//! those that somebody else wrote in [`conformance`]. A [`TransportConfig`] holds a factory for each.
#![forbid(unsafe_code)]

mod config;
pub mod conformance;
mod congestion;
mod connection;
pub mod crypto;
mod ecn;
mod egress;
mod endpoint;
mod error;
mod fec;
mod ids;
mod loss_reaction;
mod observe;
mod path;
mod recovery;
pub mod registry;
mod streams;
mod wire;

pub use config::{
    ClientConfig, EndpointConfig, FecConfig, MAX_UDP_PAYLOAD, MIN_UDP_PAYLOAD, ServerConfig,
    TransportConfig,
};
pub use congestion::Algorithm;
pub use connection::{
    Connection, ConnectionStats, Datagrams, EndpointEvent, Event, RecvStream, SendDatagramError,
    SendStream, Standstill, TrafficStats, Transmit,
};
pub use ecn::EcnCodepoint;
pub use endpoint::{ConnectError, ConnectionHandle, DatagramEvent, Endpoint};
pub use error::{ConnectionError, TransportError, TransportErrorCode};
pub use fec::redundancy::Message;
pub use fec::{FecStats, Protection};
pub use ids::{ConnectionId, Dir, MAX_CID_SIZE, Side, SpaceId, StreamId};
pub use observe::{Metrics, Observation, Observer};
pub use streams::delivery::Chunk;
pub use streams::{ClosedStream, Outcome, Read, ReadError, StreamEvent, StreamStats, WriteError};
pub use sutura_schedule::{Priority, Scheme, Urgency};
pub use wire::code_id::{CodeId, CodeSet};

/// The seams: traits that decide, and what they decide from. The mechanisms that ask them are in
/// the core.
pub mod policy {
    pub use crate::congestion::{
        Acked, CongestionController, CongestionFactory, Lost, MAX_WINDOW, Packet, PacketState,
        PathParameters, Sent, WindowLimits,
    };
    pub use crate::fec::code::{CODES, Code, ReedSolomon, SlidingWindow};
    pub use crate::fec::redundancy::{
        Arrival, Block, Decision, Incremental, MAX_BLOCK, MAX_BURST, MAX_DELAY, PathView,
        Redundancy, RedundancyFactory, RepairPlan, Tail, Turn, View,
    };
    pub use crate::loss_reaction::{
        HoldForRepair, LossReaction, LossReactionFactory, LostData, RepairOutlook, ResendAtOnce,
        Verdict,
    };
    pub use crate::recovery::rtt::RttEstimator;
    pub use crate::streams::delivery::{
        ArrivalOrder, Delivery, DeliveryFactory, Held, StreamOrder,
    };
    pub use crate::streams::resend_order::{
        ByLoss, ByScheduler, First, FirstBy, InTurn, Precedence, ResendOrder, ResendOrderFactory,
    };
    pub use sutura_schedule::{Extension, Grant, Scheduler, SchedulerFactory, StreamKey};
}

/// Frames and transport parameters, as an [`Observer`] may want to read them.
pub mod wire_format {
    pub use crate::ids::SymbolRef;
    pub use crate::wire::frame::{
        AckFrame, AckRanges, Carrier, Close, EcnCounts, Frame, FrameInfo, FrameIter, FrameKind,
        NewConnectionId, Repair, RepairHeader, SourceSymbol, StreamFrame, StreamHeader, SymbolAck,
        SymbolRanges, SymbolWindow,
    };
    pub use crate::wire::transport_parameters::{
        FecParameters, Grease, HandshakeIds, PreferredAddress, TransportParameters,
    };
}

#[doc(hidden)]
pub mod fuzz {
    //! Entry points for fuzzers.
    pub use crate::connection::fuzz::connection;
    pub use crate::wire::fuzz::*;
}
