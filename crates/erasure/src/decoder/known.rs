//! Subtracts known symbols from repair symbols, which is nearly all of the work of decoding.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Decoder, matrix::Contradiction};
use crate::{
    coefficient::Combination,
    slot::Slot,
    symbol::{PREFIX, SymbolId},
};

/// A repair symbol from which known symbols are subtracted.
pub(super) struct Residual<C> {
    pub(super) span: Range<SymbolId>,
    pub(super) combination: C,
    pub(super) payload: Slot,
    /// Whether it is shorter than a symbol that it covers.
    pub(super) contradicts: bool,
}

impl<C: Combination> Residual<C> {
    /// Appends the coefficients of consecutive symbols to `row`; 0 outside the span.
    fn coefficients(&self, ids: &Range<SymbolId>, row: &mut Vec<u8>) {
        let start = row.len();
        row.resize(start + (ids.end - ids.start) as usize, 0);
        let covered = ids.start.max(self.span.start)..ids.end.min(self.span.end);
        if !covered.is_empty() {
            let from = start + (covered.start - ids.start) as usize;
            let to = start + (covered.end - ids.start) as usize;
            self.combination.fill(covered.start, &mut row[from..to]);
        }
    }

    /// Whether any of the symbols from `first` on is covered and longer than this repair symbol.
    fn is_too_short<'a>(&self, symbols: impl Iterator<Item = &'a Slot>, first: SymbolId) -> bool {
        let covered = (first..).zip(symbols).filter(|(id, _)| self.span.contains(id));
        covered.map(|(_, coded)| coded.len()).max().is_some_and(|len| len > self.payload.len())
    }
}

impl Decoder {
    /// A buffer with the payload of a repair symbol, and room for the longest row that may be added
    /// to it, so that it never has to be reallocated.
    pub(super) fn payload(&mut self, payload: &[u8]) -> Slot {
        let mut slot = self.pool.take(PREFIX + self.limits.symbol_size);
        slot.extend_from_slice(payload);
        slot
    }

    /// The payload minus all known symbols of the span.
    pub(super) fn residual(
        &mut self,
        span: Range<SymbolId>,
        combination: impl Combination,
        payload: &[u8],
    ) -> Result<Slot, Contradiction> {
        let payload = self.payload(payload);
        let mut residual = Residual { span, combination, payload, contradicts: false };
        self.subtract_known(core::slice::from_mut(&mut residual));
        if residual.contradicts {
            self.pool.give(residual.payload);
            return Err(Contradiction);
        }
        Ok(residual.payload)
    }

    /// Subtracts from each repair symbol the known symbols that it covers, reading these once for
    /// all of them. All spans must be inside the window.
    pub(super) fn subtract_known<C: Combination>(&mut self, residuals: &mut [Residual<C>]) {
        let start = residuals.iter().map(|r| r.span.start).min().unwrap_or(self.lower);
        let end = residuals.iter().map(|r| r.span.end).max().unwrap_or(start);
        let runs = runs(start..end, self.matrix.missing(&(start..end)));
        // Differences of ids are at most the length of the window.
        let index = |id: SymbolId| (id - self.lower) as usize;

        let count = (end - start) as usize;
        let mut known = Vec::with_capacity(count);
        let mut longest = 0;
        for run in runs.clone() {
            known.extend(self.slots.range(index(run.start)..index(run.end)).map(|coded| {
                longest = coded.len().max(longest);
                coded.padded()
            }));
        }
        let mut coefficients = Vec::with_capacity(known.len() * residuals.len());
        for residual in &mut *residuals {
            for run in runs.clone() {
                residual.coefficients(&run, &mut coefficients);
            }
            let symbols = || self.slots.range(index(start)..index(end));
            residual.contradicts =
                longest > residual.payload.len() && residual.is_too_short(symbols(), start);
        }
        let bytes: usize = known.iter().map(|coded| coded.len()).sum();
        let read = (bytes * residuals.len()) as u64;
        self.work += read;
        self.reading.charge(read);
        let mut payloads: Vec<_> = residuals.iter_mut().map(|r| r.payload.padded_mut()).collect();
        self.kernel.matmul(&mut payloads, &coefficients, &known);
    }
}

/// The parts of a range between some ids, which are ascending.
fn runs(
    range: Range<SymbolId>,
    without: impl Iterator<Item = SymbolId> + Clone,
) -> impl Iterator<Item = Range<SymbolId>> + Clone {
    let mut start = range.start;
    without.chain([range.end]).filter_map(move |id| {
        let run = start..id;
        start = id + 1;
        (!run.is_empty()).then_some(run)
    })
}
