//! Erasure-coding sessions.

/// A source symbol: which session, which symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SymbolRef {
    /// The session's number, chosen by the sender.
    pub session: u16,
    /// The symbol's identifier, counted from 0 in each session.
    pub id: u64,
}
