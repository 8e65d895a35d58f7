//! The receiver: takes source and repair symbols and recovers lost source symbols.

mod burst;
mod known;
mod matrix;
#[cfg(test)]
mod tests;

use alloc::{collections::VecDeque, vec::Vec};
use core::{fmt, ops::Range};

use crate::{
    allowance::Allowance,
    coefficient::{Coefficients, Combination},
    kernel::Kernel,
    limits::{DecoderLimits, vector},
    pool::Pool,
    slot::Slot,
    symbol::{self, MAX_SYMBOL_ID, PREFIX, SymbolId},
};
use matrix::{Candidate, Contradiction, Matrix};

pub use burst::RepairSymbol;

/// Recovers lost source symbols of a sliding window.
///
/// The decoder follows a window of ids, from [`lower_bound`](Self::lower_bound) to
/// [`upper_bound`](Self::upper_bound). Every id in it is either held or missing. The upper bound
/// follows the newest id that any symbol refers to. The lower bound follows
/// [`release_below`](Self::release_below), and also moves when the window would exceed a limit: the
/// oldest ids are then given up, whether held or missing, so that no loss can block the decoder
/// forever. A sender whose own window is within the decoder's limits never causes this for symbols
/// that it still protects.
///
/// A symbol is recovered as soon as it is determined, even if others are not. Equations are dropped, the
/// oldest first, beyond the limit on their number, and where reworking them would take more arithmetic than
/// the received bytes pay for: small symbols cannot make a decoder rework many long equations for ever.
#[derive(Debug)]
pub struct Decoder {
    limits: DecoderLimits,
    /// The id of the first slot.
    lower: SymbolId,
    /// The window, by id: held symbols in coded form. Slots of missing symbols, the matrix's
    /// unknowns, are empty.
    slots: VecDeque<Slot>,
    /// Bytes of all held symbols, without their length prefixes.
    bytes: usize,
    matrix: Matrix,
    /// Recovered symbols that have not been popped yet.
    recovered: VecDeque<SymbolId>,
    given_up: u64,
    pool: Pool,
    kernel: Kernel,
    /// Storage for symbols moving from the matrix to their slots.
    solved: Vec<(SymbolId, Slot)>,
    /// Bytes of known symbols subtracted from repair symbols.
    work: u64,
    /// The allowance for such work.
    reading: Allowance,
}

impl Decoder {
    /// An empty decoder. Limits above the maxima of the code are lowered ([`DecoderLimits::effective`]).
    #[must_use]
    pub fn new(limits: DecoderLimits) -> Self {
        Self::with_kernel(limits, Kernel::best())
    }

    /// An empty decoder whose arithmetic uses `kernel`.
    #[must_use]
    pub fn with_kernel(limits: DecoderLimits, kernel: Kernel) -> Self {
        let limits = limits.effective();
        Self {
            limits,
            lower: 0,
            slots: VecDeque::new(),
            bytes: 0,
            matrix: Matrix::new(kernel),
            recovered: VecDeque::new(),
            given_up: 0,
            pool: Pool::new(limits.window().budget()),
            kernel,
            solved: Vec::new(),
            work: 0,
            reading: Allowance::for_known(&limits),
        }
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> DecoderLimits {
        self.limits
    }

    /// Takes a source symbol.
    ///
    /// A symbol whose id was [`missing`](Self::missing) may complete other symbols: see
    /// [`pop_recovered`](Self::pop_recovered).
    ///
    /// # Errors
    ///
    /// [`DecodeError::SymbolId`] and [`DecodeError::SymbolSize`] leave the decoder unchanged.
    /// With [`DecodeError::Contradiction`] the symbol has been taken in, and symbols may have been
    /// recovered.
    pub fn source(&mut self, id: SymbolId, bytes: &[u8]) -> Result<Arrival, DecodeError> {
        if id > MAX_SYMBOL_ID {
            return Err(DecodeError::SymbolId);
        }
        if bytes.is_empty() || bytes.len() > self.limits.symbol_size {
            return Err(DecodeError::SymbolSize);
        }
        if id >= self.upper_bound() {
            self.earn(bytes.len());
            self.hold_newest(id, bytes);
            return Ok(Arrival::New);
        }
        if id < self.lower {
            return Ok(Arrival::Old);
        }
        if self.symbol(id).is_some() {
            return Ok(Arrival::Duplicate);
        }
        self.earn(bytes.len());
        let mut coded = self.pool.take(PREFIX + bytes.len());
        symbol::frame(&mut coded, bytes);
        let learned = self.matrix.learn(id, &coded, &mut self.pool);
        self.hold(id, coded);
        let collected = self.collect_solved();
        learned.and(collected.map(|_| ()))?;
        Ok(Arrival::New)
    }

    /// Extends the window by a source symbol above all others.
    fn hold_newest(&mut self, id: SymbolId, bytes: &[u8]) {
        self.extend_to(id);
        self.make_room_for_newest();
        // At most the upper bound, which is the identifier.
        self.give_up_below(self.lower_with_room_for(bytes.len()));
        // The buffer is filled where it stays: to move it afterwards would wait for all of its bytes to reach
        // the cache.
        self.slots.push_back(self.pool.take(PREFIX + bytes.len()));
        if let Some(coded) = self.slots.back_mut() {
            symbol::frame(coded, bytes);
            self.bytes += bytes.len();
        }
        // That buffer was last used long ago, with the oldest symbol.
        self.pool.prefetch_next(bytes.len());
    }

    /// Takes the repair symbol with `key` over the source symbols in `span`.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Span`] and [`DecodeError::RepairSize`] leave the decoder unchanged. After
    /// [`DecodeError::Contradiction`] the decoder continues without the symbols concerned, as far as they can
    /// be identified; other symbols may have been recovered.
    pub fn repair(
        &mut self,
        span: Range<SymbolId>,
        key: u32,
        payload: &[u8],
    ) -> Result<RepairOutcome, DecodeError> {
        self.repair_with(span, Coefficients::new(key), payload)
    }

    /// Takes a repair symbol that is this combination of the source symbols in `span`. Symbols of different
    /// codes may be mixed freely: to the decoder they are all equations.
    ///
    /// The coefficients are computed as needed: at first only the coefficients of missing symbols.
    ///
    /// # Errors
    ///
    /// As for [`repair`](Self::repair).
    pub fn repair_with(
        &mut self,
        span: Range<SymbolId>,
        combination: impl Combination,
        payload: &[u8],
    ) -> Result<RepairOutcome, DecodeError> {
        self.check_repair(&span, payload)?;
        self.earn(payload.len());
        self.extend_to(span.end);
        if span.start < self.lower {
            return Ok(RepairOutcome::Old);
        }
        let columns = self.matrix.columns(&span);
        if columns.is_empty() {
            return Ok(RepairOutcome::Unneeded);
        }
        let Some(candidate) = self.matrix.reduce(columns, &combination) else {
            return Ok(RepairOutcome::Dependent);
        };
        let Some(candidate) = self.worth_keeping(candidate) else {
            return Ok(RepairOutcome::Dropped);
        };
        match self.residual(span, combination, payload) {
            Ok(residual) => self.matrix.admit(candidate, residual),
            Err(contradiction) => {
                self.matrix.dismiss(candidate);
                return Err(contradiction.into());
            }
        }
        let recovered = self.settle()?;
        Ok(RepairOutcome::Innovative { recovered })
    }

    /// A symbol of `len` bytes arrived, which pays for some work.
    fn earn(&mut self, len: usize) {
        self.matrix.earn(len);
        self.reading.earn(len);
    }

    /// `None` if the limit on equations would remove this candidate again, or if it would be more work than
    /// the received symbols have earned.
    fn worth_keeping(&mut self, candidate: Candidate) -> Option<Candidate> {
        let full = self.matrix.rows() >= self.limits.repairs;
        let useless = full && self.matrix.is_oldest_and_unsolved(&candidate);
        if useless || self.reading.is_spent() || !self.matrix.pay_for(&candidate) {
            self.matrix.dismiss(candidate);
            return None;
        }
        Some(candidate)
    }

    /// Collects the symbols that the new equations solved, and enforces the limit on the remaining equations.
    fn settle(&mut self) -> Result<usize, Contradiction> {
        let collected = self.collect_solved();
        while self.matrix.rows() > self.limits.repairs {
            self.matrix.drop_oldest_row(&mut self.pool);
        }
        collected
    }

    fn check_repair(&self, span: &Range<SymbolId>, payload: &[u8]) -> Result<(), DecodeError> {
        let symbols = self.limits.symbols as u64;
        if span.is_empty() || span.end > MAX_SYMBOL_ID + 1 || span.end - span.start > symbols {
            return Err(DecodeError::Span);
        }
        if payload.len() <= PREFIX || payload.len() > PREFIX + self.limits.symbol_size {
            return Err(DecodeError::RepairSize);
        }
        Ok(())
    }

    /// Moves every solved row into its slot, and returns their number.
    fn collect_solved(&mut self) -> Result<usize, Contradiction> {
        let mut solved = core::mem::take(&mut self.solved);
        let result = self.matrix.take_solved(&mut solved, &mut self.pool);
        let mut recovered = 0;
        for (id, mut coded) in solved.drain(..) {
            self.pool.settle(&mut coded);
            if self.hold(id, coded) {
                self.recovered.push_back(id);
                recovered += 1;
            }
        }
        self.solved = solved;
        result.map(|()| recovered)
    }

    /// Stores a symbol in its slot, if the slot is still in the window after making room for its
    /// bytes.
    fn hold(&mut self, id: SymbolId, coded: Slot) -> bool {
        let len = symbol::content(&coded).len();
        self.give_up_below(self.lower_with_room_for(len).min(id + 1));
        let index = id.checked_sub(self.lower).and_then(|index| usize::try_from(index).ok());
        let Some(slot) = index.and_then(|index| self.slots.get_mut(index)) else {
            self.pool.give(coded);
            return false;
        };
        debug_assert!(slot.is_empty(), "a symbol is held once");
        *slot = coded;
        self.bytes += len;
        true
    }

    /// The lower bound of the window at which `len` more bytes fit.
    fn lower_with_room_for(&self, len: usize) -> SymbolId {
        let mut excess = (self.bytes + len).saturating_sub(self.limits.bytes);
        let mut lower = self.lower;
        if excess == 0 {
            return lower;
        }
        for slot in &self.slots {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(symbol::content(slot).len());
            lower += 1;
        }
        lower
    }

    /// Extends the window up to `upper` with missing symbols.
    fn extend_to(&mut self, upper: SymbolId) {
        if upper <= self.upper_bound() {
            return;
        }
        self.give_up_below(upper.saturating_sub(self.limits.symbols as u64));
        for id in self.upper_bound()..upper {
            self.slots.push_back(Slot::default());
            self.matrix.push_unknown(id);
        }
    }

    /// Makes room for one more id in the window.
    fn make_room_for_newest(&mut self) {
        if self.slots.len() >= self.limits.symbols {
            self.give_up_below(self.lower + 1);
        }
    }

    /// The next recovered symbol, in the order of recovery. [`symbol`](Self::symbol) returns its
    /// bytes.
    pub fn pop_recovered(&mut self) -> Option<SymbolId> {
        self.recovered.pop_front()
    }

    /// Whether symbols were recovered that were not [popped](Self::pop_recovered) yet.
    #[must_use]
    pub fn has_recovered(&self) -> bool {
        !self.recovered.is_empty()
    }

    /// The symbol with `id`, if it was received or recovered and is still in the window.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<&[u8]> {
        let index = usize::try_from(id.checked_sub(self.lower)?).ok()?;
        self.slots.get(index).filter(|slot| !slot.is_empty()).map(symbol::content)
    }

    /// Moves the lower bound of the window up to `lower`: all symbols below it are forgotten, and missing
    /// symbols are no longer waited for. Later repair symbols that cover any of them are useless.
    ///
    /// Recovered symbols that have not been popped are forgotten too.
    pub fn release_below(&mut self, lower: SymbolId) {
        self.give_up_below(lower.min(MAX_SYMBOL_ID + 1));
    }

    fn give_up_below(&mut self, lower: SymbolId) {
        if lower <= self.lower {
            return;
        }
        let missing = self.matrix.give_up_below(lower, &mut self.pool);
        let count = usize::try_from(lower - self.lower).unwrap_or(usize::MAX).min(self.slots.len());
        for coded in self.slots.drain(..count).filter(|coded| !coded.is_empty()) {
            self.bytes -= coded.len() - PREFIX;
            self.pool.give(coded);
        }
        let unseen = lower - self.lower - count as u64;
        self.given_up += unseen + missing as u64;
        self.lower = lower;
        if !self.recovered.is_empty() {
            self.recovered.retain(|&id| id >= lower);
        }
    }

    /// The missing symbols, ascending: ids in the window that were neither received nor recovered.
    pub fn missing(&self) -> impl DoubleEndedIterator<Item = SymbolId> + ExactSizeIterator + '_ {
        self.matrix.unknowns().copied()
    }

    /// The lowest id in the window. Symbols below it are no longer needed, whether they arrived or
    /// not; see [`given_up`](Self::given_up).
    #[must_use]
    pub fn lower_bound(&self) -> SymbolId {
        self.lower
    }

    /// One more than the highest id in the window, which is the highest id that any symbol referred to.
    #[must_use]
    pub fn upper_bound(&self) -> SymbolId {
        self.lower + self.slots.len() as u64
    }

    /// How many ids left the window while missing.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Bytes of held source symbols.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of unsolved equations.
    #[must_use]
    pub fn repairs(&self) -> usize {
        self.matrix.rows()
    }

    /// Bytes that arithmetic has read so far, as a measure of the cost. Each symbol given to the
    /// decoder adds at most [`DecoderLimits::work`], and nothing while no symbol is missing.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work + self.matrix.work()
    }

    /// Bytes of memory allocated, in use or kept for reuse; at most [`DecoderLimits::memory`].
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.pool.allocated()
            + self.matrix.allocated()
            + self.slots.capacity() * size_of::<Slot>()
            + self.recovered.capacity() * size_of::<SymbolId>()
            + self.solved.capacity() * size_of::<(SymbolId, Slot)>()
    }

    /// Frees memory that is only kept for reuse. A decoder with an empty window, as after calling
    /// [`release_below`](Self::release_below) with its [`upper_bound`](Self::upper_bound), then
    /// holds none, and continues with the symbols that follow.
    pub fn shrink(&mut self) {
        self.slots.shrink_to_fit();
        self.recovered.shrink_to_fit();
        self.solved = Vec::new();
        self.matrix.shrink();
        self.pool.shrink();
    }
}

impl DecoderLimits {
    /// The bound on the memory that a decoder holds for symbols and equations, in bytes.
    /// [`Decoder::allocated`](crate::Decoder::allocated) is the current amount.
    #[must_use]
    pub fn memory(self) -> usize {
        let limits = self.effective();
        let window = limits.window();
        let equation = window.longest() + vector::<u8>(limits.symbols);
        window.budget()
            + window.known()
            + limits.equations() * equation
            + containers(limits.symbols, limits.equations())
    }
}

/// The bound on the memory of a decoder's containers, without the contents of buffers and rows.
pub(crate) const fn containers(symbols: usize, equations: usize) -> usize {
    // A new symbol is stored before the oldest one is dropped.
    vector::<Slot>(symbols)
        + vector::<Slot>(symbols + 1 + equations)
        + vector::<SymbolId>(symbols)
        + vector::<(SymbolId, Slot)>(equations)
        + matrix::containers(symbols, equations)
}

/// How a source symbol was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The source symbol was not known before.
    New,
    /// The source symbol was received or recovered before.
    Duplicate,
    /// The source symbol is below the window.
    Old,
}

/// How a repair symbol was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairOutcome {
    /// The repair symbol added information about the missing symbols, which determined this many of them.
    Innovative {
        /// Symbols recovered immediately.
        recovered: usize,
    },
    /// None of the symbols that the repair symbol covers is missing.
    Unneeded,
    /// The repair symbol adds nothing to earlier repair symbols.
    Dependent,
    /// The repair symbol covers symbols below the window.
    Old,
    /// The repair symbol covers the oldest missing symbols, and the limit on equations has been reached; or
    /// it would take more arithmetic than received symbols as small as these have earned.
    Dropped,
}

/// Why a decoder refused a symbol. A sender that follows the code never causes any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The symbol id is above [`MAX_SYMBOL_ID`].
    SymbolId,
    /// The source symbol is empty or longer than the limit.
    SymbolSize,
    /// The repair symbol's span is empty, extends beyond [`MAX_SYMBOL_ID`], or covers more symbols
    /// than the limit.
    Span,
    /// The repair symbol is too short to cover any source symbol, or longer than the longest source
    /// symbol permits.
    RepairSize,
    /// Symbols contradict each other: they cannot all come from one encoder.
    Contradiction,
}

impl From<Contradiction> for DecodeError {
    fn from(_: Contradiction) -> Self {
        Self::Contradiction
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SymbolId => "the symbol id is too large",
            Self::SymbolSize => "the source symbol is empty or too long",
            Self::Span => "the repair symbol covers no symbols or too many",
            Self::RepairSize => "the repair symbol is too short or too long",
            Self::Contradiction => "source and repair symbols contradict each other",
        })
    }
}

impl core::error::Error for DecodeError {}
