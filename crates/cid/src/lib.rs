//! Connection identifiers of QUIC (RFC 9000 section 5.1), apart from any connection: how an endpoint makes
//! them ([`generator`]), also such that load balancers find the server ([`QuicLb`]) and its workers find each
//! other's connections ([`WorkerIds`]), and the stateless resets whose tokens belong to them ([`mod@reset`]).
//!
//! Randomness and time are arguments. `sutura-proto` is built on this crate.
#![forbid(unsafe_code)]

#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
compile_error!("one of the features `ring` and `aws-lc-rs` must be there");
// AWS-LC has the interface of ring.
#[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
extern crate aws_lc_rs as primitives;
#[cfg(feature = "ring")]
extern crate ring as primitives;

pub mod generator;
mod id;
mod quic_lb;
pub mod reset;
mod workers;

pub use id::{ConnectionId, MAX_CID_SIZE};
pub use quic_lb::{QuicLb, QuicLbConfig, QuicLbError};
pub use workers::WorkerIds;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
