//! Erasure-coding sessions. Each is a coding window in one direction.
//!
//! A session is a numbered slot that streams join and leave. The numbers of its source symbols
//! never restart, so that a slot can serve one stream after another without signalling. At the
//! sender, a policy decides when repair symbols are sent ([`redundancy`]), and a code determines
//! their coefficients ([`code`]). Both ends bound the memory of all sessions of a connection. The
//! wire format is in `docs/extension.md`.

pub mod code;
mod recv;
pub mod redundancy;
mod repairs;
mod send;
mod session;
mod uncovered;

pub use recv::{MAX_SYMBOL_SIZE, ReceiveSessions};
pub use redundancy::Protection;
#[cfg(test)]
pub use send::MAX_ENCODER_BYTES;
pub use send::{LostSymbol, RepairBid, SendSessions};
pub(crate) use session::{Contents, Evicted, Kind, NewSymbol, Surroundings};
pub(crate) use uncovered::Uncovered;

/// Erasure-coding counters of one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FecStats {
    /// Whether the peer can decode what we protect.
    pub can_send: bool,
    /// Whether both ends announced a decoder.
    pub negotiated: bool,
    /// Packets sent with a source symbol, including retransmissions.
    pub source_symbols_sent: u64,
    /// Packets sent with a repair symbol.
    pub repair_symbols_sent: u64,
    /// Bytes of REPAIR and REPAIR_CODED frames sent.
    pub repair_bytes_sent: u64,
    /// Source symbols that the peer reported as recovered.
    pub recovered_by_peer: u64,
    /// Losses whose retransmission was delayed because a repair symbol was in flight.
    pub held: u64,
    /// Source symbols received.
    pub source_symbols_received: u64,
    /// Repair symbols received.
    pub repair_symbols_received: u64,
    /// Source symbols recovered from repair symbols.
    pub recovered: u64,
    /// Bytes of frames recovered from repair symbols.
    pub recovered_bytes: u64,
}
