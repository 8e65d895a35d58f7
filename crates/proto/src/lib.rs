//! Sans-IO QUIC v1 (RFC 9000, 9001, 9002, 9221) whose loss recovery, stream scheduling,
//! retransmission and congestion control are policies, with erasure coding inside.
//!
//! Time is an argument, randomness is injected, output is data: this crate has no socket, thread,
//! clock or async in it.
#![forbid(unsafe_code)]

mod congestion;
mod connection;
mod crypto;
mod error;
mod fec;
mod ids;
mod recovery;
mod streams;
mod wire;

pub use error::{ConnectionError, TransportError, TransportErrorCode};
pub use ids::{ConnectionId, Dir, MAX_CID_SIZE, Side, SpaceId, StreamId};
