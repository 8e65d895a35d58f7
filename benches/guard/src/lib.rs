//! The costs of a connection in instructions, allocations and bytes: two ends in memory, on a virtual clock,
//! the [rows](ROWS) that are measured at one end, and the [curves](CURVES) by which costs grow.

mod bulk;
mod curves;
mod exchange;
mod gauge;
mod load;
mod loopback;
mod pair;
mod rows;
mod sockets;
mod web;

pub use curves::{CURVES, Curve, SEED, Series};
pub use gauge::Gauge;
pub use rows::{Kind, ROWS, Row};

/// Any error; the guard only reports it.
pub type Error = Box<dyn std::error::Error>;
