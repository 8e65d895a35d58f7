//! Erasure-coding sessions. Each session is a coding window in one direction.
//!
//! A session is a numbered slot that streams join and leave. The numbers of its source symbols
//! never restart, so that a slot can serve one stream after another without signalling. At the
//! sender, a policy decides when repair symbols are sent ([`redundancy`]), and a code determines
//! their coefficients ([`code`]). Both ends bound the memory of all sessions of a connection. The
//! wire format is in `docs/extension.md`.

mod beyond;
mod carried;
pub mod code;
mod config;
mod horizon;
mod lost_symbols;
mod recv;
pub mod redundancy;
mod repairs;
mod send;
mod session;
mod stats;
mod surroundings;
mod symbol;
mod uncovered;

#[cfg(test)]
pub use beyond::MAX_BEYOND_SYMBOLS;
pub use config::{FecConfig, MAX_WINDOW_BYTES, MAX_WINDOW_SYMBOLS};
pub(crate) use horizon::Horizon;
pub use recv::{MAX_SYMBOL_SIZE, ReceiveSessions};
pub use redundancy::Protection;
#[cfg(test)]
pub use send::MAX_ENCODER_BYTES;
#[cfg(test)]
pub use send::MAX_SEND_SESSIONS;
pub use send::{LostSymbol, RepairBid, SendSessions, SymbolFit};
pub(crate) use session::DataKind;
pub use stats::{CodingCounts, FecStats, ProtectionStats};
pub(crate) use surroundings::Surroundings;
pub(crate) use symbol::{Contents, Evicted, Frames, NewSymbol};
#[cfg(feature = "conformance")]
pub(crate) use uncovered::Uncovered;
