//! The receiving side of erasure coding: a decoder per session of the peer, and what to report.

use super::SymbolRef;
use crate::config::FecConfig;
use crate::error::{TransportError, TransportErrorCode};
use crate::wire::frame::encode_symbol_ack;
use crate::wire::range_set::RangeSet;
use std::ops::Range;
use sutura_erasure::{Arrival, Decoder, DecoderLimits};

/// The longest source symbol that this end takes: what fits in the largest datagram.
pub const MAX_SYMBOL_SIZE: usize = 1472;
/// Repair symbols that a session keeps while they cannot be used yet.
pub const MAX_PENDING_REPAIRS: usize = 64;
/// Ranges of held symbols that are remembered for reports; the oldest are forgotten.
const MAX_REPORTED_RANGES: usize = 32;
/// In how many ACK-bearing packets a recovery is reported: any of them may be lost, and none is
/// acknowledged.
const REPORTS: u8 = 3;

/// A source symbol that was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// Which.
    pub symbol: SymbolRef,
    /// Its bytes.
    pub size: usize,
}

#[derive(Debug)]
struct ReceiveSession {
    decoder: Decoder,
    /// Symbols received or recovered; the oldest ranges are forgotten.
    held: RangeSet,
    /// Symbols below are no longer wanted, or all held: what SYMBOL_ACK calls the lower bound.
    lower: u64,
    /// How many more times to report what is held.
    reports: u8,
    /// Whether a report stands in the packet that is being built.
    reporting: bool,
}

impl ReceiveSession {
    fn new(config: &FecConfig) -> Self {
        let decoder = Decoder::new(DecoderLimits {
            symbols: config.max_window_symbols as usize,
            bytes: config.max_window_bytes as usize,
            symbol_size: MAX_SYMBOL_SIZE,
            repairs: MAX_PENDING_REPAIRS,
        });
        let held = RangeSet::with_cap(MAX_REPORTED_RANGES);
        Self { decoder, held, lower: 0, reports: 0, reporting: false }
    }

    /// No repair symbol will cover a symbol below `lower` any more.
    fn give_up_below(&mut self, lower: u64) {
        self.lower = self.lower.max(lower);
        self.advance();
    }

    fn hold(&mut self, id: u64) {
        self.held.insert(id..id + 1);
        self.advance();
    }

    /// Moves the lower bound over what is held.
    fn advance(&mut self) {
        if let Some(range) = self.held.range_of(self.lower) {
            self.lower = range.end;
        }
    }
}

/// All sessions in which the peer protects data.
#[derive(Debug)]
pub struct ReceiveSessions {
    config: Option<FecConfig>,
    sessions: Vec<Option<Box<ReceiveSession>>>,
    /// Session whose decoder may have recovered something.
    fruitful: Option<u16>,
    source_symbols: u64,
    repair_symbols: u64,
    recovered: u64,
    recovered_bytes: u64,
}

fn violation(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason)
}

impl ReceiveSessions {
    /// Sessions as announced by `config`; `None` if no decoder was announced.
    pub fn new(config: Option<FecConfig>) -> Self {
        Self {
            config,
            sessions: Vec::new(),
            fruitful: None,
            source_symbols: 0,
            repair_symbols: 0,
            recovered: 0,
            recovered_bytes: 0,
        }
    }

    fn session(&mut self, session: u16) -> Result<&mut ReceiveSession, TransportError> {
        let config = self.config.ok_or_else(|| violation("erasure coding was not negotiated"))?;
        if session >= config.max_sessions {
            return Err(violation("more coding sessions than announced"));
        }
        let index = usize::from(session);
        if self.sessions.len() <= index {
            self.sessions.resize_with(index + 1, || None);
        }
        Ok(self.sessions[index].get_or_insert_with(|| Box::new(ReceiveSession::new(&config))))
    }

    /// A source symbol came. Returns whether its frames are to be processed: those of a duplicate
    /// were already.
    ///
    /// # Errors
    /// The session or the symbol breaks what was announced.
    pub fn on_source(
        &mut self,
        session: u16,
        id: u64,
        frames: &[u8],
    ) -> Result<bool, TransportError> {
        let s = self.session(session)?;
        let arrival =
            s.decoder.source(id, frames).map_err(|_| violation("source symbol out of bounds"))?;
        let known = arrival == Arrival::Duplicate || s.held.contains(id);
        s.hold(id);
        self.source_symbols += 1;
        self.fruitful = Some(session);
        Ok(!known)
    }

    /// A repair symbol came.
    ///
    /// # Errors
    /// The session, the span or the size breaks what was announced.
    pub fn on_repair(
        &mut self,
        session: u16,
        span: Range<u64>,
        key: u32,
        payload: &[u8],
    ) -> Result<(), TransportError> {
        let s = self.session(session)?;
        let first = span.start;
        s.decoder
            .repair(span, key, payload)
            .map_err(|_| violation("repair symbol out of bounds"))?;
        s.give_up_below(first);
        self.repair_symbols += 1;
        self.fruitful = Some(session);
        Ok(())
    }

    /// The peer will not refer to symbols below `lower_bound` any more.
    ///
    /// # Errors
    /// The session breaks what was announced.
    pub fn on_window(&mut self, session: u16, lower_bound: u64) -> Result<(), TransportError> {
        let s = self.session(session)?;
        s.decoder.release_below(lower_bound);
        s.give_up_below(lower_bound);
        Ok(())
    }

    /// The next recovered symbol; its frames replace the contents of `frames`. To be called until
    /// it returns `None` after each source or repair symbol.
    pub fn pop_recovered(&mut self, frames: &mut Vec<u8>) -> Option<Recovered> {
        let session = self.fruitful?;
        let s = self.sessions.get_mut(usize::from(session))?.as_mut()?;
        while let Some(id) = s.decoder.pop_recovered() {
            let Some(bytes) = s.decoder.symbol(id) else { continue };
            frames.clear();
            frames.extend_from_slice(bytes);
            s.hold(id);
            s.reports = REPORTS;
            self.recovered += 1;
            self.recovered_bytes += frames.len() as u64;
            return Some(Recovered { symbol: SymbolRef { session, id }, size: frames.len() });
        }
        self.fruitful = None;
        None
    }

    /// Appends a SYMBOL_ACK for each session with news.
    pub fn write_symbol_acks(&mut self, out: &mut Vec<u8>, room: usize) {
        let start = out.len();
        for (session, s) in (0u16..).zip(&mut self.sessions) {
            let Some(s) = s.as_mut().filter(|s| s.reports > 0) else { continue };
            let room = room.saturating_sub(out.len() - start);
            s.reporting = encode_symbol_ack(session, s.lower, &s.held, room, out).is_some();
        }
    }

    /// The packet that the reports were written into is being sent.
    pub fn on_symbol_acks_sent(&mut self) {
        for s in self.sessions.iter_mut().flatten() {
            s.reports -= u8::from(std::mem::take(&mut s.reporting) && s.reports > 0);
        }
    }

    /// Bytes of buffers that the decoders hold.
    #[cfg(test)]
    pub fn allocated(&self) -> usize {
        self.sessions.iter().flatten().map(|s| s.decoder.allocated()).sum()
    }

    /// Adds what was received to `stats`.
    pub fn add_stats(&self, stats: &mut super::FecStats) {
        stats.source_symbols_received = self.source_symbols;
        stats.repair_symbols_received = self.repair_symbols;
        stats.recovered = self.recovered;
        stats.recovered_bytes = self.recovered_bytes;
    }
}
