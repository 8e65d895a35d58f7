//! The sender: a window of source symbols, from which repair symbols are made.

mod open;

use alloc::{collections::VecDeque, vec, vec::Vec};
use core::{fmt, ops::Range};

use crate::{
    coefficient::{Coefficients, Combination},
    kernel::Kernel,
    limits::{MAX_OPEN_REPAIRS, WindowLimits, vector},
    pool::Pool,
    slot::{self, Slot},
    symbol::{self, MAX_SYMBOL_ID, PREFIX, SymbolId},
};
use open::OpenRepairs;

pub use open::OpenRepair;

/// The window of source symbols that a sender may still protect.
///
/// Symbols are numbered from 0 as they are pushed. They stay until the owner calls
/// [`release_below`](Self::release_below), normally when the receiver has them.
#[derive(Debug)]
pub struct Encoder {
    limits: WindowLimits,
    /// The id of the first symbol in `symbols`.
    first: SymbolId,
    /// Symbols in coded form, by id; of those below `hollow` only the lengths.
    symbols: VecDeque<Slot>,
    /// The first symbol with contents, unless all symbols of the window have them.
    hollow: SymbolId,
    /// Bytes of all symbols in the window, without their length prefixes.
    bytes: usize,
    open: OpenRepairs,
    pool: Pool,
    kernel: Kernel,
}

impl Encoder {
    /// An empty window. Limits above the maxima of the code are lowered ([`WindowLimits::effective`]).
    #[must_use]
    pub fn new(limits: WindowLimits) -> Self {
        Self::with_kernel(limits, Kernel::best())
    }

    /// An empty window whose arithmetic uses `kernel`. All kernels make the same repair symbols.
    #[must_use]
    pub fn with_kernel(limits: WindowLimits, kernel: Kernel) -> Self {
        let limits = limits.effective();
        Self {
            limits,
            first: 0,
            symbols: VecDeque::new(),
            hollow: 0,
            bytes: 0,
            open: OpenRepairs::default(),
            pool: Pool::new(limits.budget()),
            kernel,
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
        self.check(bytes.len())?;
        let id = self.next_id();
        // The buffer is filled where it stays: to move it afterwards would wait for all of its bytes to reach
        // the cache.
        self.symbols.push_back(self.pool.take(PREFIX + bytes.len()));
        if let Some(coded) = self.symbols.back_mut() {
            symbol::frame(coded, bytes);
            self.open.add(id, coded, self.kernel);
        }
        // Buffers of forgotten contents are used again while they are still in the cache.
        if self.hollow <= self.first {
            self.pool.prefetch_next(bytes.len());
        }
        self.bytes += bytes.len();
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

    /// The id of the next symbol to be pushed.
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

    /// The symbol with `id`, if it is in the window with its contents.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<&[u8]> {
        self.coded(id).filter(|_| id >= self.hollow).map(symbol::content)
    }

    /// The length of the symbol with `id`, if it is in the window.
    #[must_use]
    pub fn symbol_len(&self, id: SymbolId) -> Option<usize> {
        self.coded(id).map(|coded| coded.len() - PREFIX)
    }

    fn coded(&self, id: SymbolId) -> Option<&Slot> {
        let index = usize::try_from(id.checked_sub(self.first)?).ok()?;
        self.symbols.get(index)
    }

    /// Forgets the contents of all symbols below `lower`, which stay in the window: no later repair symbol
    /// covers them. As with [`release_below`](Self::release_below), `lower` is limited to the next id.
    ///
    /// The memory of a few symbols is then used again and again, which keeps it in the cache.
    pub fn forget_contents_below(&mut self, lower: SymbolId) {
        let (from, to) = (self.hollow.max(self.first), lower.min(self.next_id()));
        if from >= to {
            return;
        }
        // Both differences are at most the length of the window.
        let range = (from - self.first) as usize..(to - self.first) as usize;
        for coded in self.symbols.range_mut(range) {
            let hollow = Slot::hollow(coded.len());
            self.pool.give(core::mem::replace(coded, hollow));
        }
        self.hollow = to;
    }

    /// Removes all symbols below `lower` from the window. Symbols that were not pushed yet are not
    /// affected: `lower` is limited to [`next_id`](Self::next_id).
    pub fn release_below(&mut self, lower: SymbolId) {
        let lower = lower.min(self.next_id());
        if lower <= self.first {
            return;
        }
        // At most the length of the window.
        let count = (lower - self.first) as usize;
        for coded in self.symbols.drain(..count) {
            self.bytes -= coded.len() - PREFIX;
            self.pool.give(coded);
        }
        self.first = lower;
    }

    /// The length of a repair symbol over `span`, in bytes: the length of its longest source symbol plus
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
    /// Use each key once: two repair symbols with the same key and span are identical. Keys need
    /// not be random; a counter will do.
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
        self.repair_with(span, Coefficients::new(key), out)
    }

    /// Appends this combination of the symbols in `span` to `out` as a repair symbol, and returns its length,
    /// which is [`repair_size`](Self::repair_size) for any coefficients.
    ///
    /// # Errors
    ///
    /// See [`SpanError`]; `out` is unchanged then.
    #[expect(clippy::needless_pass_by_value, reason = "a decoder takes it by value as well")]
    pub fn repair_with(
        &self,
        span: Range<SymbolId>,
        combination: impl Combination,
        out: &mut Vec<u8>,
    ) -> Result<usize, SpanError> {
        let (sources, size) = self.sources(&span)?;
        let start = out.len();
        out.resize(start + slot::padded(size), 0);
        let mut coefficients = vec![0; sources.len()];
        combination.fill(span.start, &mut coefficients);
        self.kernel.dot(&mut out[start..], &coefficients, &sources);
        out.truncate(start + size);
        Ok(size)
    }

    /// Appends to each element of `out` the repair symbol over `span` with the corresponding key,
    /// and returns the length of each.
    ///
    /// The source symbols are read once for up to six repair symbols. From four on, this takes
    /// about half as long as calling [`repair`](Self::repair) for each, and a fourth if the window
    /// does not fit into the CPU's second-level cache.
    ///
    /// # Errors
    ///
    /// See [`SpanError`]; `out` is unchanged then.
    ///
    /// # Panics
    ///
    /// If the number of keys differs from the number of elements of `out`.
    pub fn repair_burst(
        &self,
        span: Range<SymbolId>,
        keys: &[u32],
        out: &mut [Vec<u8>],
    ) -> Result<usize, SpanError> {
        assert_eq!(keys.len(), out.len(), "a key for each repair symbol");
        let (sources, size) = self.sources(&span)?;
        let mut coefficients = vec![0; sources.len() * keys.len()];
        for (row, &key) in coefficients.chunks_exact_mut(sources.len()).zip(keys) {
            Coefficients::new(key).fill(span.start, row);
        }
        let starts: Vec<usize> = out.iter().map(Vec::len).collect();
        for out in &mut *out {
            out.resize(out.len() + slot::padded(size), 0);
        }
        let places = out.iter_mut().zip(&starts);
        let mut sums: Vec<&mut [u8]> = places.map(|(out, &start)| &mut out[start..]).collect();
        self.kernel.matmul(&mut sums, &coefficients, &sources);
        for (out, start) in out.iter_mut().zip(starts) {
            out.truncate(start + size);
        }
        Ok(size)
    }

    /// Opens a repair symbol with `key` that will cover all source symbols from the next one on,
    /// until it is closed. `None` if [`MAX_OPEN_REPAIRS`](crate::MAX_OPEN_REPAIRS) are open.
    ///
    /// Its work is done while symbols are pushed and are in the cache anyway, so no work is left when it is
    /// due. The symbols that it covers may be released in the meantime; a receiver still refuses it if it
    /// covers more symbols than the receiver's own window holds.
    pub fn open_repair(&mut self, key: u32) -> Option<OpenRepair> {
        let first = self.next_id();
        self.open.open(first, key, self.limits.symbol_size, &mut self.pool)
    }

    /// Closes a repair symbol, appends it to `out`, and returns its span. The result is the same as
    /// if [`repair`](Self::repair) had been called with its key and the whole span.
    ///
    /// # Errors
    ///
    /// [`SpanError::Empty`] if no symbol was pushed since it was opened; it is closed then, too.
    /// [`SpanError::OutsideWindow`] if it is not open.
    pub fn close_repair(
        &mut self,
        repair: OpenRepair,
        out: &mut Vec<u8>,
    ) -> Result<Range<SymbolId>, SpanError> {
        let closed = self.open.close(repair, self.next_id(), out, &mut self.pool);
        let span = closed.ok_or(SpanError::OutsideWindow)?;
        if span.is_empty() { Err(SpanError::Empty) } else { Ok(span) }
    }

    /// The padded symbols of a span, and the length of the longest without padding.
    fn sources(&self, span: &Range<SymbolId>) -> Result<(Vec<&[u8]>, usize), SpanError> {
        let covered = self.covered(span)?;
        let mut longest = 0;
        let sources = covered.map(|coded| {
            longest = coded.len().max(longest);
            coded.padded()
        });
        Ok((sources.collect(), longest))
    }

    /// The symbols of a span, in coded form.
    fn covered(&self, span: &Range<SymbolId>) -> Result<impl Iterator<Item = &Slot>, SpanError> {
        if span.is_empty() {
            return Err(SpanError::Empty);
        }
        if span.start < self.first.max(self.hollow) || span.end > self.next_id() {
            return Err(SpanError::OutsideWindow);
        }
        // Both differences are at most the length of the window.
        let from = (span.start - self.first) as usize;
        let to = (span.end - self.first) as usize;
        Ok(self.symbols.range(from..to))
    }

    /// Bytes of memory allocated, in use or kept for reuse; at most [`WindowLimits::memory`].
    #[must_use]
    pub fn allocated(&self) -> usize {
        let symbols = self.symbols.capacity() * size_of::<Slot>();
        self.pool.allocated() + self.open.allocated() + symbols
    }

    /// Frees memory that is only kept for reuse. An encoder with an empty window and no open repair
    /// symbol then holds none.
    pub fn shrink(&mut self) {
        self.symbols.shrink_to_fit();
        self.open.shrink();
        self.pool.shrink();
    }
}

impl WindowLimits {
    /// The bound on the memory that an encoder holds for symbols and for open repair symbols, in
    /// bytes. [`Encoder::allocated`](crate::Encoder::allocated) is the current amount.
    #[must_use]
    pub fn memory(self) -> usize {
        let limits = self.effective();
        limits.budget()
            + limits.known()
            + MAX_OPEN_REPAIRS * limits.longest()
            + containers(limits.symbols)
    }
}

/// The bound on the memory of an encoder's containers, without the contents of its buffers.
pub(crate) const fn containers(symbols: usize) -> usize {
    vector::<Slot>(symbols) + vector::<Slot>(symbols + MAX_OPEN_REPAIRS) + open::CONTAINER
}

/// Why a symbol was not added to the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError {
    /// The window holds as many symbols or bytes as it may.
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

/// Why no repair symbol can be made over a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanError {
    /// The span has no symbols.
    Empty,
    /// Not all symbols of the span are in the window with their contents.
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
    use crate::gf256;

    fn small() -> Encoder {
        Encoder::new(WindowLimits { symbols: 4, bytes: 100, symbol_size: 60 })
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
        assert_eq!((encoder.next_id(), encoder.bytes()), (0, 0));
        assert_eq!(encoder.push(b"short"), Ok(0));
        assert_eq!(encoder.symbol(0), Some(&b"short"[..]));
    }

    /// Symbols of all lengths from 1 to 60, some of which have left the window.
    fn long() -> Encoder {
        let mut encoder =
            Encoder::new(WindowLimits { symbols: 400, bytes: 1 << 20, symbol_size: 60 });
        for id in 0..300usize {
            encoder.push(&alloc::vec![id as u8; 1 + id * 7 % 60]).unwrap();
        }
        encoder.release_below(3);
        encoder
    }

    #[test]
    fn a_burst_is_what_one_at_a_time_gives() {
        let encoder = long();
        for (span, keys) in [(3..300, 0..9), (10..11, 5..7), (100..229, 0..1), (5..9, 0..0)] {
            let keys: Vec<u32> = keys.collect();
            let mut burst = alloc::vec![alloc::vec![7]; keys.len()];
            let size = encoder.repair_burst(span.clone(), &keys, &mut burst).unwrap();
            for (key, burst) in keys.iter().zip(&burst) {
                let mut single = alloc::vec![7];
                assert_eq!(encoder.repair(span.clone(), *key, &mut single), Ok(size));
                assert_eq!(*burst, single);
            }
        }
        let mut out = [Vec::new()];
        assert_eq!(encoder.repair_burst(2..9, &[1], &mut out), Err(SpanError::OutsideWindow));
        assert_eq!(out, [Vec::new()]);
    }

    #[test]
    fn open_repair_symbols_are_bounded_and_need_a_symbol() {
        let mut encoder = small();
        let first = encoder.open_repair(0).unwrap();
        for key in 1..MAX_OPEN_REPAIRS as u32 {
            assert!(encoder.open_repair(key).is_some());
        }
        assert_eq!(encoder.open_repair(99), None);
        let mut out = Vec::new();
        assert_eq!(encoder.close_repair(first, &mut out), Err(SpanError::Empty));
        assert_eq!(encoder.close_repair(first, &mut out), Err(SpanError::OutsideWindow));
        assert!(encoder.open_repair(99).is_some());
        assert!(out.is_empty());
    }

    #[test]
    fn any_coefficients_may_be_given_and_zeros_too() {
        let encoder = long();
        for coefficient in [|id| (id % 3) as u8, |id| u8::from(id == 50), |_| 0] {
            let mut out = alloc::vec![9];
            let size = encoder.repair_with(40..70, coefficient, &mut out).unwrap();
            assert_eq!(Ok(size), encoder.repair_size(40..70));
            let mut expected = alloc::vec![0; size];
            for id in 40..70u64 {
                let mut coded = Slot::default();
                symbol::frame(&mut coded, encoder.symbol(id).unwrap());
                for (sum, byte) in expected.iter_mut().zip(coded.bytes()) {
                    *sum ^= gf256::mul(coefficient(id), *byte);
                }
            }
            assert_eq!((out[0], &out[1..]), (9, &expected[..]));
        }
    }

    #[test]
    fn memory_comes_back_when_it_is_not_needed() {
        let mut encoder = long();
        let open = encoder.open_repair(1).unwrap();
        encoder.shrink();
        let full = encoder.allocated();
        encoder.release_below(200);
        assert!(encoder.allocated() >= full, "kept for reuse");
        encoder.shrink();
        assert!(encoder.allocated() < full / 2, "{} of {full}", encoder.allocated());
        assert_eq!(encoder.symbol(200), Some(&alloc::vec![200; 1 + 200 * 7 % 60][..]));

        encoder.release_below(300);
        encoder.push(b"one more").unwrap();
        encoder.release_below(301);
        encoder.close_repair(open, &mut Vec::new()).unwrap();
        encoder.shrink();
        assert_eq!(encoder.allocated(), 0);
        assert_eq!(encoder.push(b"and another"), Ok(301));
    }

    #[test]
    fn symbols_without_contents_stay_in_the_window_and_are_not_covered() {
        let mut encoder = small();
        for len in [10, 20, 30] {
            encoder.push(&alloc::vec![5; len]).unwrap();
        }
        encoder.forget_contents_below(2);
        encoder.forget_contents_below(1);
        assert_eq!((encoder.window(), encoder.bytes()), (0..3, 60));
        assert_eq!((encoder.symbol(1), encoder.symbol_len(1)), (None, Some(20)));
        assert_eq!(encoder.symbol(2), Some(&[5; 30][..]));
        let mut out = Vec::new();
        assert_eq!(encoder.repair(1..3, 0, &mut out), Err(SpanError::OutsideWindow));
        assert_eq!(encoder.repair_size(1..3), Err(SpanError::OutsideWindow));
        assert_eq!(encoder.repair(2..3, 0, &mut out), Ok(32));
        // They count as before.
        assert_eq!(encoder.push(&[7; 41]), Err(PushError::Full));
        encoder.release_below(1);
        assert_eq!((encoder.window(), encoder.bytes()), (1..3, 50));
        // Symbols that were not pushed yet are not affected.
        encoder.forget_contents_below(u64::MAX);
        assert_eq!(encoder.push(&[9; 3]), Ok(3));
        assert_eq!((encoder.symbol(2), encoder.symbol(3)), (None, Some(&[9; 3][..])));
        encoder.release_below(3);
        encoder.shrink();
        assert_eq!(encoder.bytes(), 3);
        assert!(encoder.allocated() < 1000, "{}", encoder.allocated());
        assert_eq!(encoder.repair(3..4, 0, &mut out), Ok(5));
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
}
