//! The sender's side: a window of source symbols and repair symbols made of it.

use alloc::{collections::VecDeque, vec::Vec};
use core::{fmt, ops::Range};

use crate::{
    coefficient::Coefficients,
    kernel::Kernel,
    limits::WindowLimits,
    pool::Pool,
    symbol::{self, MAX_SYMBOL_ID, PREFIX, SymbolId},
};

/// The window of source symbols that a sender may still protect.
///
/// Symbols are numbered from 0 as they are pushed. They stay until
/// [`release_below`](Self::release_below), which is up to the owner: normally when the receiver
/// holds them.
#[derive(Debug)]
pub struct Encoder {
    limits: WindowLimits,
    /// The id of the first symbol in `symbols`.
    first: SymbolId,
    /// Symbols in coded form, by id.
    symbols: VecDeque<Vec<u8>>,
    /// Bytes of all symbols in the window, without their length prefixes.
    bytes: usize,
    pool: Pool,
}

impl Encoder {
    /// An empty window. Limits beyond those of the code are lowered
    /// ([`WindowLimits::effective`]).
    #[must_use]
    pub fn new(limits: WindowLimits) -> Self {
        let limits = limits.effective();
        Self {
            limits,
            first: 0,
            symbols: VecDeque::new(),
            bytes: 0,
            pool: Pool::new(limits.budget()),
        }
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> WindowLimits {
        self.limits
    }

    /// Adds a source symbol to the window and returns its id.
    ///
    /// # Errors
    ///
    /// See [`PushError`]; the window is unchanged then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<SymbolId, PushError> {
        self.push_with(bytes.len(), |buffer| buffer.extend_from_slice(bytes))
    }

    /// Adds a source symbol that `fill` appends to the vector it is given.
    ///
    /// What stands in the vector already belongs to the encoder and must stay. About `len_hint`
    /// bytes are expected; more is allowed, but a hint that is too small may cost an allocation.
    ///
    /// # Errors
    ///
    /// See [`PushError`]; the window is unchanged then. `fill` is not called if it is clear from
    /// the hint that there is no room.
    pub fn push_with(
        &mut self,
        len_hint: usize,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<SymbolId, PushError> {
        self.check(len_hint.max(1))?;
        let mut buffer = self.pool.take(PREFIX + len_hint);
        let capacity = buffer.capacity();
        buffer.extend_from_slice(&[0; PREFIX]);
        fill(&mut buffer);
        self.pool.settle(&mut buffer, capacity);
        let len = buffer.len().saturating_sub(PREFIX);
        if let Err(error) = self.check(len) {
            self.pool.give(buffer);
            return Err(error);
        }
        buffer[..PREFIX].copy_from_slice(&symbol::length(len).to_be_bytes());
        let id = self.next_id();
        self.symbols.push_back(buffer);
        self.bytes += len;
        Ok(id)
    }

    /// Whether a symbol of `len` bytes can be pushed now.
    fn check(&self, len: usize) -> Result<(), PushError> {
        if len == 0 {
            return Err(PushError::Empty);
        }
        if len > self.limits.symbol_size {
            return Err(PushError::TooLong);
        }
        let full = self.symbols.len() >= self.limits.symbols
            || len > self.limits.bytes - self.bytes
            || self.next_id() > MAX_SYMBOL_ID;
        if full { Err(PushError::Full) } else { Ok(()) }
    }

    /// The id that the next symbol gets.
    #[must_use]
    pub fn next_id(&self) -> SymbolId {
        self.first + self.symbols.len() as u64
    }

    /// The ids of the symbols in the window.
    #[must_use]
    pub fn window(&self) -> Range<SymbolId> {
        self.first..self.next_id()
    }

    /// Bytes of the symbols in the window.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The symbol with `id`, if it is in the window.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<&[u8]> {
        let index = usize::try_from(id.checked_sub(self.first)?).ok()?;
        self.symbols.get(index).map(|coded| symbol::content(coded))
    }

    /// Takes all symbols below `lower` out of the window. Symbols that were not pushed yet stay to
    /// come: `lower` counts as at most [`next_id`](Self::next_id).
    pub fn release_below(&mut self, lower: SymbolId) {
        while self.first < lower
            && let Some(coded) = self.symbols.pop_front()
        {
            self.first += 1;
            self.bytes -= symbol::content(&coded).len();
            self.pool.give(coded);
        }
    }

    /// The length of a repair symbol over `span`, in bytes: that of its longest source symbol and
    /// [`PREFIX`].
    ///
    /// # Errors
    ///
    /// See [`SpanError`].
    pub fn repair_size(&self, span: Range<SymbolId>) -> Result<usize, SpanError> {
        let symbols = self.covered(&span)?;
        Ok(symbols.map(|coded| coded.len()).max().unwrap_or(PREFIX))
    }

    /// Appends to `out` the repair symbol with `key` over `span`, and returns its length.
    ///
    /// Use a key once: two repair symbols with one key over one span are the same. Keys need not
    /// be random, a counter will do.
    ///
    /// # Errors
    ///
    /// See [`SpanError`]; `out` is unchanged then.
    pub fn repair(
        &self,
        span: Range<SymbolId>,
        key: u32,
        out: &mut Vec<u8>,
    ) -> Result<usize, SpanError> {
        let size = self.repair_size(span.clone())?;
        let symbols = self.covered(&span)?;
        let start = out.len();
        out.resize(start + size, 0);
        let coefficients = Coefficients::new(key).from(span.start);
        Kernel::best().dot_terms(&mut out[start..], coefficients.zip(symbols));
        Ok(size)
    }

    /// The symbols of a span, in coded form.
    fn covered(&self, span: &Range<SymbolId>) -> Result<impl Iterator<Item = &[u8]>, SpanError> {
        if span.is_empty() {
            return Err(SpanError::Empty);
        }
        if span.start < self.first || span.end > self.next_id() {
            return Err(SpanError::OutsideWindow);
        }
        // Both differences are at most the length of the window.
        let from = (span.start - self.first) as usize;
        let to = (span.end - self.first) as usize;
        Ok(self.symbols.range(from..to).map(|coded| &coded[..]))
    }

    /// Bytes of buffers held, in use or kept for reuse. They do not exceed three times the limit
    /// on symbol bytes and a few symbols.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.pool.held()
    }
}

/// Why a symbol did not enter the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError {
    /// The window has as many symbols or bytes as it may hold.
    Full,
    /// The symbol is longer than the limit for one symbol.
    TooLong,
    /// The symbol has no bytes.
    Empty,
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the coding window is full",
            Self::TooLong => "the source symbol is too long",
            Self::Empty => "the source symbol is empty",
        })
    }
}

impl core::error::Error for PushError {}

/// Why there is no repair symbol over a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanError {
    /// The span has no symbols.
    Empty,
    /// Not all symbols of the span are in the window.
    OutsideWindow,
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the span of the repair symbol is empty",
            Self::OutsideWindow => "the span of the repair symbol is not in the coding window",
        })
    }
}

impl core::error::Error for SpanError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{coefficient::coefficient, gf256};

    fn small() -> Encoder {
        Encoder::new(WindowLimits { symbols: 4, bytes: 100, symbol_size: 60 })
    }

    #[test]
    fn a_repair_symbol_is_the_sum_of_padded_products() {
        let mut encoder = small();
        let symbols: [&[u8]; 3] = [b"first", b"second symbol", b"3"];
        for (id, bytes) in (0..).zip(symbols) {
            assert_eq!(encoder.push(bytes), Ok(id));
        }
        let mut out = alloc::vec![9, 9];
        assert_eq!(encoder.repair(0..3, 5, &mut out), Ok(15));
        assert_eq!(out.len(), 17);
        assert_eq!(out[..2], [9, 9]);
        for (at, byte) in out[2..].iter().enumerate() {
            let sum = (0..).zip(symbols).fold(0, |sum, (id, symbol)| {
                let source = match at {
                    0 => 0,
                    1 => symbol.len() as u8,
                    _ => symbol.get(at - 2).copied().unwrap_or(0),
                };
                sum ^ gf256::mul(coefficient(5, id), source)
            });
            assert_eq!(*byte, sum);
        }
    }

    #[test]
    fn a_repair_symbol_is_as_long_as_its_own_span_needs() {
        let mut encoder = small();
        for len in [10, 40, 7] {
            encoder.push(&alloc::vec![1; len]).unwrap();
        }
        assert_eq!(encoder.repair_size(0..1), Ok(12));
        assert_eq!(encoder.repair_size(0..3), Ok(42));
        assert_eq!(encoder.repair_size(2..3), Ok(9));
        assert_eq!(encoder.repair(2..3, 0, &mut Vec::new()), Ok(9));
    }

    #[test]
    fn a_full_window_takes_symbols_again_when_some_are_released() {
        let mut encoder = small();
        for _ in 0..4 {
            encoder.push(b"x").unwrap();
        }
        assert_eq!(encoder.push(b"x"), Err(PushError::Full));
        encoder.release_below(2);
        assert_eq!((encoder.window(), encoder.bytes()), (2..4, 2));
        assert_eq!(encoder.symbol(1), None);
        assert_eq!(encoder.push(&[7; 60]), Ok(4));
        assert_eq!(encoder.push(&[7; 60]), Err(PushError::Full));
        assert_eq!(encoder.push(&[7; 38]), Ok(5));
        assert_eq!(encoder.symbol(5), Some(&[7; 38][..]));
        encoder.release_below(u64::MAX);
        assert_eq!((encoder.window(), encoder.bytes()), (6..6, 0));
        encoder.release_below(0);
        assert_eq!(encoder.push(b"y"), Ok(6));
    }

    #[test]
    fn symbols_that_break_a_limit_leave_no_trace() {
        let mut encoder = small();
        assert_eq!(encoder.push(b""), Err(PushError::Empty));
        assert_eq!(encoder.push(&[0; 61]), Err(PushError::TooLong));
        let filled = encoder.push_with(5, |buffer| buffer.resize(buffer.len() + 61, 3));
        assert_eq!(filled, Err(PushError::TooLong));
        assert_eq!(encoder.push_with(5, |_| ()), Err(PushError::Empty));
        assert_eq!(encoder.push_with(5, Vec::clear), Err(PushError::Empty));
        assert_eq!((encoder.next_id(), encoder.bytes()), (0, 0));
        let filled = encoder.push_with(1, |buffer| buffer.extend_from_slice(b"longer"));
        assert_eq!(filled, Ok(0));
        assert_eq!(encoder.symbol(0), Some(&b"longer"[..]));
    }

    #[test]
    fn spans_outside_the_window_are_refused() {
        let mut encoder = small();
        for _ in 0..4 {
            encoder.push(b"x").unwrap();
        }
        encoder.release_below(1);
        let mut out = Vec::new();
        for span in [0..2, 1..5, 9..10, 0..u64::MAX] {
            assert_eq!(encoder.repair(span.clone(), 0, &mut out), Err(SpanError::OutsideWindow));
            assert_eq!(encoder.repair_size(span), Err(SpanError::OutsideWindow));
        }
        let reversed = Range { start: 3, end: 2 };
        for span in [2..2, reversed, u64::MAX..u64::MAX] {
            assert_eq!(encoder.repair(span, 0, &mut out), Err(SpanError::Empty));
        }
        assert!(out.is_empty());
    }

    #[test]
    fn a_sliding_window_of_mixed_sizes_stays_within_its_memory() {
        let limits = WindowLimits { symbols: 100, bytes: 20_000, symbol_size: 1500 };
        let mut encoder = Encoder::new(limits);
        for round in 0..20_000u64 {
            let len = if (round / 137) % 2 == 0 { 1500 } else { 20 };
            while encoder.push_with(len, |b| b.resize(b.len() + len, 1)).is_err() {
                encoder.release_below(encoder.window().start + 1);
            }
            assert!(encoder.bytes() <= limits.bytes);
            assert!(encoder.window().count() <= limits.symbols);
            assert!(encoder.allocated() <= limits.budget() + limits.bytes + 2 * limits.symbols);
        }
    }
}
