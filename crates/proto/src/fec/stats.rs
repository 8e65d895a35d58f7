//! Counters of erasure coding.

use super::redundancy::{Protection, Reason};
use std::time::Duration;

/// Symbols sent in coding sessions, and their success as far as this end knows it.
///
/// Each symbol that the peer reports as recovered took one repair symbol. That repair symbol is *useful*; it
/// is taken to be the oldest that covers the recovered symbol and has not recovered another symbol, where
/// repair symbols that arrived precede repair symbols in flight. All other repair symbols are *wasted*, even
/// if their fate is still open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodingCounts {
    /// Packets sent with a source symbol, including retransmissions.
    pub source_symbols: u64,
    /// Source symbols that had been sent before.
    pub resent_symbols: u64,
    /// Bytes of these source symbols, without the headers of their SOURCE_SYMBOL frames.
    pub source_bytes: u64,
    /// Packets sent with a repair symbol.
    pub repair_symbols: u64,
    /// Bytes of REPAIR and REPAIR_CODED frames sent.
    pub repair_bytes: u64,
    /// Repair symbols with which the peer recovered a source symbol.
    pub useful_symbols: u64,
    /// Bytes of the frames of the useful repair symbols.
    pub useful_bytes: u64,
    /// Source symbols that the peer reported as recovered.
    pub recovered: u64,
    /// How much earlier the peer had the recovered source symbols than retransmission would have
    /// brought them, added up.
    ///
    /// A retransmission is taken to be sent when the loss of the symbol was first detected, or, if the
    /// recovery is known before, 9/8 of a round trip after the symbol was first sent, and to arrive half a
    /// round trip later. The recovery is taken to happen half a round trip before its report arrives. A
    /// symbol that is recovered later than the retransmission would arrive saves no time.
    pub time_saved: Duration,
}

impl CodingCounts {
    /// Adds the counts of `other`.
    pub(super) fn add(&mut self, other: &Self) {
        self.source_symbols += other.source_symbols;
        self.resent_symbols += other.resent_symbols;
        self.source_bytes += other.source_bytes;
        self.repair_symbols += other.repair_symbols;
        self.repair_bytes += other.repair_bytes;
        self.useful_symbols += other.useful_symbols;
        self.useful_bytes += other.useful_bytes;
        self.recovered += other.recovered;
        self.time_saved += other.time_saved;
    }

    /// Source and repair symbols for each source symbol, not counting symbols sent again: the n/k that was
    /// reached. `None` without source symbols.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        rate(self.source_symbols, self.resent_symbols, self.repair_symbols)
    }

    /// Repair symbols that recovered no symbol, as far as known.
    #[must_use]
    pub fn wasted_symbols(&self) -> u64 {
        self.repair_symbols.saturating_sub(self.useful_symbols)
    }

    /// Bytes of the frames of the wasted repair symbols.
    #[must_use]
    pub fn wasted_bytes(&self) -> u64 {
        self.repair_bytes.saturating_sub(self.useful_bytes)
    }
}

fn rate(sources: u64, resent: u64, repairs: u64) -> Option<f64> {
    let sources = sources.checked_sub(resent).filter(|sources| *sources > 0)?;
    Some((sources as f64 + repairs as f64) / sources as f64)
}

/// The protection of one session, with its reason and its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtectionStats {
    /// The session. `None` if no session is needed, because the policy sleeps
    /// ([`RedundancyFactory::sleeps`](crate::policy::RedundancyFactory::sleeps)).
    pub session: Option<u16>,
    /// The policy and its parameters.
    pub protection: Protection,
    /// Why the policy sends redundancy at present, or none, if the policy says so.
    pub reason: Option<Reason>,
    /// Counts since the session has this protection.
    pub counts: CodingCounts,
}

/// Erasure-coding counters of one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FecStats {
    /// Whether the peer can decode our repair symbols.
    pub can_send: bool,
    /// Whether both ends announced a decoder.
    pub negotiated: bool,
    /// See [`CodingCounts::source_symbols`].
    pub source_symbols_sent: u64,
    /// See [`CodingCounts::resent_symbols`].
    pub source_symbols_resent: u64,
    /// See [`CodingCounts::source_bytes`].
    pub source_bytes_sent: u64,
    /// See [`CodingCounts::repair_symbols`].
    pub repair_symbols_sent: u64,
    /// See [`CodingCounts::repair_bytes`].
    pub repair_bytes_sent: u64,
    /// See [`CodingCounts::useful_symbols`].
    pub repair_symbols_useful: u64,
    /// See [`CodingCounts::useful_bytes`].
    pub repair_bytes_useful: u64,
    /// See [`CodingCounts::wasted_symbols`].
    pub repair_symbols_wasted: u64,
    /// See [`CodingCounts::wasted_bytes`].
    pub repair_bytes_wasted: u64,
    /// See [`CodingCounts::recovered`].
    pub recovered_by_peer: u64,
    /// See [`CodingCounts::time_saved`].
    pub time_saved: Duration,
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

impl FecStats {
    /// See [`CodingCounts::rate`].
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        rate(self.source_symbols_sent, self.source_symbols_resent, self.repair_symbols_sent)
    }

    /// Adds the counters of symbols that this end has sent.
    pub(super) fn add_sent(&mut self, sent: &CodingCounts) {
        self.source_symbols_sent += sent.source_symbols;
        self.source_symbols_resent += sent.resent_symbols;
        self.source_bytes_sent += sent.source_bytes;
        self.repair_symbols_sent += sent.repair_symbols;
        self.repair_bytes_sent += sent.repair_bytes;
        self.repair_symbols_useful += sent.useful_symbols;
        self.repair_bytes_useful += sent.useful_bytes;
        self.repair_symbols_wasted += sent.wasted_symbols();
        self.repair_bytes_wasted += sent.wasted_bytes();
        self.recovered_by_peer += sent.recovered;
        self.time_saved += sent.time_saved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_of_what_was_sent_first() {
        let counts = |source_symbols, resent_symbols, repair_symbols| CodingCounts {
            source_symbols,
            resent_symbols,
            repair_symbols,
            ..CodingCounts::default()
        };
        assert_eq!(counts(103, 3, 5).rate(), Some(1.05));
        assert_eq!((counts(3, 3, 5).rate(), counts(0, 0, 5).rate()), (None, None));
        let mut stats = FecStats::default();
        stats.add_sent(&counts(103, 3, 5));
        stats.add_sent(&counts(20, 0, 1));
        assert_eq!(stats.rate(), Some(1.05));
    }
}
