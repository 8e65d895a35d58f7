//! What a connection costs in instructions, allocations and bytes: two ends in memory, on a virtual
//! clock, and the [rows](ROWS) of what is measured on one of them.

mod gauge;
mod pair;
mod rows;
mod web;

pub use gauge::Gauge;
pub use rows::{Kind, ROWS, Row};

/// What goes wrong.
pub type Error = Box<dyn std::error::Error>;
