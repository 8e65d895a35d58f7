//! The receiving side of erasure coding: one decoder per session of the peer, and reports to the
//! peer.

#[cfg(test)]
mod tests;

use super::code;
use super::config::FecConfig;
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::SymbolRef;
use crate::wire::frame::{RepairHeader, encode_symbol_ack};
use crate::wire::range_set::RangeSet;
use crate::work;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};
use sutura_erasure::{Arrival, Decoder, DecoderLimits};

/// The longest source symbol that this end accepts: the largest UDP datagram has room for it.
pub const MAX_SYMBOL_SIZE: usize = 1472;
/// Number of repair symbols that a session keeps until they can be used.
pub const MAX_PENDING_REPAIRS: usize = 64;
/// Maximum number of bytes that the decoders of all sessions of a connection hold. The peer controls how much
/// the decoders hold, and flow control does not count it. The limit is enough for one window of the default
/// [`FecConfig`] and for every equation that its session keeps, and for all 16 while each holds no more than
/// 256 symbols.
pub const MAX_DECODER_BYTES: usize = 8 << 20;
/// A decoder that was not used for this long plus three probe timeouts releases its memory. By then the peer
/// knows the fate of all symbols that it sent, and is unlikely to send repair symbols for them.
pub const IDLE_PERIOD: Duration = Duration::from_secs(1);
/// Number of ranges of held symbols that are remembered for reports; the oldest are forgotten. A loss of 1 %
/// at 500 Mbit/s and 300 ms leaves fewer ranges in flight.
const MAX_HELD_RANGES: usize = 512;
/// Number of ranges in a report: ranges with symbols recovered last, and the newest ranges.
const MAX_REPORTED_RANGES: usize = 32;
/// Number of recovered symbols that wait to be reported; the oldest are left out.
const MAX_FRESH: usize = 256;
/// Number of additional ranges that are remembered when a decoder releases its memory, so that
/// their symbols still count as duplicates; the oldest are forgotten.
const MAX_FORGOTTEN_RANGES: usize = 256;
/// Number of ACK-bearing packets that report a recovery. Any such packet may be lost, and none is
/// acknowledged.
const REPORTS: u8 = 3;

/// A recovered source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// The identifier of the symbol.
    pub symbol: SymbolRef,
    /// The size of the symbol in bytes.
    pub size: usize,
}

#[derive(Debug)]
struct ReceiveSession {
    decoder: Decoder,
    /// Bytes that the decoder held when last counted.
    allocated: usize,
    /// When the last symbol arrived.
    used: Instant,
    /// Symbols received or recovered; the oldest ranges are forgotten.
    held: RangeSet,
    /// Symbols that the decoder held when it released its memory, unless they are in `held`.
    forgotten: RangeSet,
    /// The lower bound of SYMBOL_ACK: all symbols below are held or no longer wanted.
    lower: u64,
    /// Recovered symbols, with how many more times to report each. The symbols of the last report are last.
    fresh: VecDeque<(u64, u8)>,
    /// How many of the first symbols in `fresh` the packet being built reports.
    reporting: usize,
}

impl ReceiveSession {
    fn new(now: Instant, config: &FecConfig) -> Self {
        let decoder = Decoder::new(DecoderLimits {
            symbols: config.max_window_symbols as usize,
            bytes: config.max_window_bytes as usize,
            symbol_size: MAX_SYMBOL_SIZE,
            repairs: MAX_PENDING_REPAIRS,
        });
        Self {
            decoder,
            allocated: 0,
            used: now,
            held: RangeSet::with_cap(MAX_HELD_RANGES),
            forgotten: RangeSet::with_cap(MAX_FORGOTTEN_RANGES),
            lower: 0,
            fresh: VecDeque::new(),
            reporting: 0,
        }
    }

    /// Releases the decoder's memory. The decoder gives up its missing symbols, and repair symbols over
    /// symbols of its window become useless. Reports already sent to the peer stay true.
    fn release(&mut self) {
        self.release_below(self.decoder.upper_bound());
    }

    /// Releases the memory of the oldest quarter of the window.
    fn shed(&mut self) {
        let (lower, upper) = (self.decoder.lower_bound(), self.decoder.upper_bound());
        self.release_below(lower + (upper - lower).div_ceil(4));
    }

    /// Releases the memory of all symbols below `end`, which is in the window.
    fn release_below(&mut self, end: u64) {
        // Recovered symbols that were not fetched have not had their frames processed.
        let mut unseen = RangeSet::default();
        while let Some(id) = self.decoder.pop_recovered() {
            unseen.insert(id..id + 1);
        }
        // From the lowest range of `held` on, `held` contains all processed symbols.
        let remembered = self.held.first().map_or(end, |range| range.start.min(end));
        for id in self.decoder.lower_bound()..remembered {
            if self.decoder.symbol(id).is_some() && !unseen.contains(id) {
                self.forgotten.insert(id..id + 1);
            }
        }
        self.decoder.release_below(end);
        self.decoder.shrink();
    }

    /// A symbol arrives. Returns whether the decoder holds as many bytes as were last counted.
    fn use_at(&mut self, now: Instant) -> bool {
        self.used = now;
        self.allocated == self.decoder.allocated()
    }

    /// No later repair symbol will cover a symbol below `lower`.
    fn give_up_below(&mut self, lower: u64) {
        self.lower = self.lower.max(lower);
        self.advance();
    }

    /// Notes that the frames of a symbol are processed. Returns whether this is the first time, as far as this
    /// end remembers.
    fn hold(&mut self, id: u64) -> bool {
        // Mostly symbols come in order, and the newest one is the first that was not there.
        if id == self.lower && self.held.append(&(id..id + 1)) {
            self.lower += 1;
            return !self.forgotten.contains(id);
        }
        let is_new = self.held.insert(id..id + 1) > 0;
        self.advance();
        is_new && !self.forgotten.contains(id)
    }

    /// Notes that a recovered symbol is to be reported.
    fn recover(&mut self, id: u64) {
        self.hold(id);
        if self.fresh.len() >= MAX_FRESH {
            self.fresh.pop_front();
        }
        self.fresh.push_back((id, REPORTS));
    }

    /// Chooses the ranges of the next report: the ranges of the recovered symbols whose turn it is, and if
    /// there is room the newest other ranges. Recovered symbols come first because only reports tell the peer
    /// of them; among thousands of symbols in flight, they are seldom in the newest ranges.
    fn report(&mut self) -> RangeSet {
        let mut ranges = RangeSet::default();
        self.reporting = 0;
        for &(id, _) in &self.fresh {
            if ranges.len() == MAX_REPORTED_RANGES && !ranges.contains(id) {
                break;
            }
            ranges.insert(self.held.range_of(id).unwrap_or(id..id + 1));
            self.reporting += 1;
        }
        let room = MAX_REPORTED_RANGES - ranges.len();
        let others = self.held.iter().rev().filter(|range| !ranges.contains(range.start));
        let others: SmallVec<[Range<u64>; 4]> = others.take(room).collect();
        for range in others {
            ranges.insert(range);
        }
        ranges
    }

    /// The packet that contains the report is being sent.
    fn on_reported(&mut self) {
        for _ in 0..std::mem::take(&mut self.reporting) {
            let Some((id, times)) = self.fresh.pop_front() else { return };
            if times > 1 {
                self.fresh.push_back((id, times - 1));
            }
        }
    }

    /// Advances the lower bound past held symbols.
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
    /// Sessions whose decoders hold memory, least recently used first.
    recent: Vec<u16>,
    /// Number of the first sessions in `recent` that hold no memory for reuse.
    lean: usize,
    /// Number of bytes that all decoders hold.
    allocated: usize,
    /// Number of bytes that the decoders may hold.
    allowance: usize,
    /// No decoder becomes idle before this time.
    awake_until: Option<Instant>,
    source_symbols: u64,
    repair_symbols: u64,
    recovered: u64,
    recovered_bytes: u64,
}

/// Counts the arithmetic that a decoder has done since it had read `before` bytes: a step stands for the 64
/// bytes that a vector instruction reads.
fn count_work(decoder: &Decoder, before: u64) {
    work::steps(usize::try_from((decoder.work() - before) / 64).unwrap_or(usize::MAX));
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
            recent: Vec::new(),
            lean: 0,
            allocated: 0,
            allowance: MAX_DECODER_BYTES,
            awake_until: None,
            source_symbols: 0,
            repair_symbols: 0,
            recovered: 0,
            recovered_bytes: 0,
        }
    }

    fn session(
        &mut self,
        now: Instant,
        session: u16,
    ) -> Result<&mut ReceiveSession, TransportError> {
        let config = self.config.ok_or_else(|| violation("erasure coding was not negotiated"))?;
        if session >= config.max_sessions {
            return Err(violation("more coding sessions than announced"));
        }
        let index = usize::from(session);
        if self.sessions.len() <= index {
            self.sessions.resize_with(index + 1, || None);
        }
        let new = || Box::new(ReceiveSession::new(now, &config));
        Ok(self.sessions[index].get_or_insert_with(new))
    }

    /// Processes a received source symbol. Returns whether its frames should be processed: false for a
    /// duplicate.
    ///
    /// # Errors
    /// The session or the symbol exceeds the announced limits.
    pub fn on_source(
        &mut self,
        now: Instant,
        symbol: SymbolRef,
        frames: &[u8],
    ) -> Result<bool, TransportError> {
        let SymbolRef { session, id } = symbol;
        let s = self.session(now, session)?;
        let before = s.decoder.work();
        let arrival =
            s.decoder.source(id, frames).map_err(|_| violation("source symbol out of bounds"))?;
        count_work(&s.decoder, before);
        let is_new = s.hold(id) && arrival != Arrival::Duplicate;
        let is_counted = s.use_at(now);
        self.source_symbols += 1;
        self.used(session, is_counted);
        Ok(is_new)
    }

    /// Processes a received repair symbol.
    ///
    /// # Errors
    /// The session, the code, the span or the size exceeds the announced limits.
    pub fn on_repair(
        &mut self,
        now: Instant,
        header: &RepairHeader,
        payload: &[u8],
    ) -> Result<(), TransportError> {
        let (session, span) = (header.session, header.span());
        let taken = self.config.filter(|config| config.codes.contains(header.code));
        let s = self.session(now, session)?;
        let code = taken.and_then(|_| code::find(header.code));
        let code =
            code.ok_or_else(|| violation("repair symbol of a code that was not announced"))?;
        if !code.admits(&span, header.key) {
            return Err(violation("repair symbol that its code does not have"));
        }
        let before = s.decoder.work();
        code.decode(&mut s.decoder, span, header.key, payload)
            .map_err(|_| violation("repair symbol out of bounds"))?;
        count_work(&s.decoder, before);
        let is_counted = s.use_at(now);
        self.repair_symbols += 1;
        self.used(session, is_counted);
        Ok(())
    }

    /// The peer will no longer refer to symbols below `lower_bound`.
    ///
    /// # Errors
    /// The session exceeds the announced limits.
    pub fn on_window(
        &mut self,
        now: Instant,
        session: u16,
        lower_bound: u64,
    ) -> Result<(), TransportError> {
        let s = self.session(now, session)?;
        s.decoder.release_below(lower_bound);
        s.give_up_below(lower_bound);
        self.keep_within_bound(session);
        Ok(())
    }

    /// Records that a decoder was used, and whether the bytes that it holds now are counted.
    fn used(&mut self, session: u16, is_counted: bool) {
        if self.recent.last() != Some(&session) {
            if let Some(place) = self.recent.iter().position(|other| *other == session) {
                self.recent.remove(place);
                self.lean -= usize::from(place < self.lean);
            }
            self.recent.push(session);
        } else if self.lean == self.recent.len() {
            self.lean -= 1;
        }
        if !is_counted || self.allocated > self.allowance {
            self.keep_within_bound(session);
        }
    }

    /// Updates the count of a session's decoder, and makes decoders release memory while they hold
    /// too much.
    fn keep_within_bound(&mut self, session: u16) {
        self.count(session);
        while self.allocated > self.allowance && !self.recent.is_empty() {
            self.give_back();
        }
    }

    /// Releases memory of a decoder: first the memory that a decoder keeps only for reuse; if no decoder has
    /// such memory, all memory of the least recently used decoder, if it has been idle; and otherwise the
    /// oldest quarter of the largest decoder, so that decoders in use share the memory.
    fn give_back(&mut self) {
        if let Some(&session) = self.recent.get(self.lean) {
            self.lean += 1;
            if let Some(s) = self.get_mut(session) {
                s.decoder.shrink();
            }
            self.count(session);
        } else if self.first_is_idle() || !self.shed_largest() {
            self.release_first();
        }
    }

    /// Whether the least recently used decoder has not been used for [`IDLE_PERIOD`].
    fn first_is_idle(&self) -> bool {
        let used = |session: &u16| Some(self.sessions.get(usize::from(*session))?.as_ref()?.used);
        let first = self.recent.first().and_then(used);
        let last = self.recent.last().and_then(used);
        first.zip(last).is_none_or(|(first, last)| first + IDLE_PERIOD <= last)
    }

    /// Releases the oldest quarter of the largest decoder. Returns whether any memory was freed.
    fn shed_largest(&mut self) -> bool {
        work::steps(self.recent.len());
        let size = |session: &u16| {
            let s = self.sessions.get(usize::from(*session))?.as_ref()?;
            Some(s.allocated)
        };
        let Some(session) = self.recent.iter().copied().max_by_key(size) else { return false };
        let before = self.allocated;
        if let Some(s) = self.get_mut(session) {
            s.shed();
        }
        self.count(session);
        self.allocated < before
    }

    /// Releases all memory of the least recently used decoder.
    fn release_first(&mut self) {
        let session = self.recent.remove(0);
        self.lean = self.lean.saturating_sub(1);
        if let Some(s) = self.get_mut(session) {
            s.release();
        }
        self.count(session);
    }

    fn get_mut(&mut self, session: u16) -> Option<&mut ReceiveSession> {
        self.sessions.get_mut(usize::from(session))?.as_deref_mut()
    }

    /// Updates the count of the bytes that a decoder holds.
    fn count(&mut self, session: u16) {
        let Some(s) = self.get_mut(session) else { return };
        let before = std::mem::replace(&mut s.allocated, s.decoder.allocated());
        let after = s.allocated;
        self.allocated = self.allocated - before + after;
    }

    /// When to call [`on_timeout`](Self::on_timeout): the time at which a decoder that holds memory
    /// becomes idle. `pto` is the probe timeout.
    pub fn timeout(&self, pto: Duration) -> Option<Instant> {
        let first = usize::from(*self.recent.first()?);
        let used = self.sessions.get(first)?.as_ref()?.used;
        Some(used + IDLE_PERIOD + 3 * pto)
    }

    /// Releases the memory of idle decoders.
    pub fn on_timeout(&mut self, now: Instant, pto: Duration) {
        // Decoders that are used become idle later, which takes no look at them to tell.
        if self.awake_until.is_some_and(|at| now < at) {
            return;
        }
        while self.timeout(pto).is_some_and(|at| at <= now) {
            self.release_first();
        }
        self.awake_until = self.timeout(Duration::ZERO);
    }

    /// Whether [`pop_recovered`](Self::pop_recovered) would return a symbol of the session.
    pub fn has_recovered(&self, session: u16) -> bool {
        let session = self.sessions.get(usize::from(session)).and_then(Option::as_ref);
        session.is_some_and(|s| s.decoder.has_recovered())
    }

    /// Takes the next recovered symbol of a session; its frames replace the contents of `frames`. Call this
    /// after each source or repair symbol of the session until it returns `None`.
    pub fn pop_recovered(&mut self, session: u16, frames: &mut Vec<u8>) -> Option<Recovered> {
        let s = self.sessions.get_mut(usize::from(session))?.as_mut()?;
        while let Some(id) = s.decoder.pop_recovered() {
            let Some(bytes) = s.decoder.symbol(id) else { continue };
            frames.clear();
            frames.extend_from_slice(bytes);
            s.recover(id);
            self.recovered += 1;
            self.recovered_bytes += frames.len() as u64;
            return Some(Recovered { symbol: SymbolRef { session, id }, size: frames.len() });
        }
        None
    }

    /// Appends a SYMBOL_ACK for each session with news.
    pub fn write_symbol_acks(&mut self, out: &mut Vec<u8>, room: usize) {
        let start = out.len();
        for (session, s) in (0u16..).zip(&mut self.sessions) {
            let Some(s) = s.as_mut().filter(|s| !s.fresh.is_empty()) else { continue };
            let room = room.saturating_sub(out.len() - start);
            let ranges = s.report();
            if encode_symbol_ack(session, s.lower, &ranges, room, out).is_none() {
                s.reporting = 0;
            }
        }
    }

    /// The packet that contains the reports is being sent.
    pub fn on_symbol_acks_sent(&mut self) {
        self.sessions.iter_mut().flatten().for_each(|s| s.on_reported());
    }

    /// Number of bytes that the decoders hold, at most [`MAX_DECODER_BYTES`].
    pub fn allocated(&self) -> usize {
        self.allocated
    }

    /// Sets how many bytes the decoders may hold, [`MAX_DECODER_BYTES`] at most, and releases the excess.
    pub fn set_allowance(&mut self, bytes: usize) {
        self.allowance = bytes.min(MAX_DECODER_BYTES);
        while self.allocated > self.allowance && !self.recent.is_empty() {
            self.give_back();
        }
    }

    /// Adds the receive counters to `stats`.
    pub fn add_stats(&self, stats: &mut super::FecStats) {
        stats.source_symbols_received = self.source_symbols;
        stats.repair_symbols_received = self.repair_symbols;
        stats.recovered = self.recovered;
        stats.recovered_bytes = self.recovered_bytes;
    }
}
