//! Entry points for fuzzers and measurements.

mod admission;
mod connection;
mod network;
mod target;

pub use crate::endpoint::fuzz::tokens;
pub use crate::wire::fuzz::*;
pub use admission::admission;
pub use connection::connection;
pub use network::endpoints;
pub use target::Target;
// The functions that a client in another crate needs to build packets and to read them.
pub use crate::wire::frame::{encode_ack, encode_symbol_ack};
pub use crate::wire::{coding, packet, range_set};
