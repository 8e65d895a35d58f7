//! Processes several repair symbols at a time.

use alloc::vec::Vec;
use core::ops::Range;

use super::{DecodeError, Decoder, RepairOutcome, known::Residual};
use crate::{coefficient::Coefficients, limits::BURST, symbol::SymbolId};

/// A received repair symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairSymbol<'a> {
    /// The source symbols that it covers.
    pub span: Range<SymbolId>,
    /// Its repair key.
    pub key: u32,
    /// Its bytes.
    pub payload: &'a [u8],
}

impl Decoder {
    /// Takes repair symbols that arrived together, and returns the outcome of each.
    ///
    /// Known symbols are read once for up to six repair symbols. In long windows this takes half as
    /// long as calling [`repair`](Self::repair) for each, and less if the window does not fit into
    /// the CPU's second-level cache. The recovered symbols are the same, as long as the limits on
    /// bytes and equations are not reached. Symbols that only several repair symbols together
    /// determine count as recovered by the last one. A symbol that one repair symbol recovers and a
    /// later one pushes below the window is forgotten before it can be popped, as with
    /// [`release_below`](Self::release_below).
    pub fn repair_burst(
        &mut self,
        burst: &[RepairSymbol<'_>],
    ) -> Vec<Result<RepairOutcome, DecodeError>> {
        let mut outcomes = Vec::with_capacity(burst.len());
        let mut rest = burst;
        while !rest.is_empty() {
            let (group, later) = rest.split_at(self.group(rest));
            rest = later;
            if let [symbol] = group {
                outcomes.push(self.repair(symbol.span.clone(), symbol.key, symbol.payload));
            } else {
                self.repair_group(group, &mut outcomes);
            }
        }
        outcomes
    }

    /// How many of these repair symbols to process together, at least one: no repair symbol of a group moves
    /// the window beyond symbols that another one covers.
    fn group(&self, burst: &[RepairSymbol<'_>]) -> usize {
        if self.reading.is_spent() {
            return 1;
        }
        let (mut start, mut end) = (SymbolId::MAX, self.upper_bound());
        let fits = |symbol: &&RepairSymbol<'_>| {
            if self.check_repair(&symbol.span, symbol.payload).is_ok() {
                end = end.max(symbol.span.end);
                if symbol.span.start >= self.lower {
                    start = start.min(symbol.span.start);
                }
            }
            end.saturating_sub(start) <= self.limits.symbols as u64
        };
        burst.iter().take(BURST).take_while(fits).count().max(1)
    }

    fn repair_group(
        &mut self,
        group: &[RepairSymbol<'_>],
        outcomes: &mut Vec<Result<RepairOutcome, DecodeError>>,
    ) {
        let before = outcomes.len();
        outcomes.extend(group.iter().map(|symbol| {
            self.check_repair(&symbol.span, symbol.payload)?;
            self.earn(symbol.payload.len());
            self.extend_to(symbol.span.end);
            Ok(RepairOutcome::Unneeded)
        }));
        let outcomes = &mut outcomes[before..];

        let (mut residuals, indexes) = self.useful(group, outcomes);
        self.subtract_known(&mut residuals);
        let mut last = None;
        for (residual, &index) in residuals.into_iter().zip(&indexes) {
            outcomes[index] = self.admit(residual);
            if matches!(outcomes[index], Ok(RepairOutcome::Innovative { .. })) {
                last = Some(index);
            }
        }
        let settled = self.settle();
        if let Some(index) = last {
            outcomes[index] = match settled {
                Ok(recovered) => Ok(RepairOutcome::Innovative { recovered }),
                Err(contradiction) => Err(contradiction.into()),
            };
        }
        let is_used =
            |&index: &usize| matches!(outcomes[index], Ok(RepairOutcome::Innovative { .. }));
        if !indexes.iter().all(is_used) {
            self.repair_dependent(group, outcomes);
        }
    }

    /// Retries repair symbols that depended only on other repair symbols that have since been refused.
    fn repair_dependent(
        &mut self,
        group: &[RepairSymbol<'_>],
        outcomes: &mut [Result<RepairOutcome, DecodeError>],
    ) {
        for (symbol, outcome) in group.iter().zip(outcomes) {
            if *outcome == Ok(RepairOutcome::Dependent) {
                *outcome = self.repair(symbol.span.clone(), symbol.key, symbol.payload);
            }
        }
    }

    /// The repair symbols that add information, with their indices. The outcomes of the others are
    /// written into `outcomes`.
    fn useful(
        &mut self,
        group: &[RepairSymbol<'_>],
        outcomes: &mut [Result<RepairOutcome, DecodeError>],
    ) -> (Vec<Residual<Coefficients>>, Vec<usize>) {
        let mut indexes = Vec::with_capacity(BURST);
        let mut equations = Vec::with_capacity(BURST);
        for (index, (symbol, outcome)) in group.iter().zip(&mut *outcomes).enumerate() {
            if outcome.is_err() {
                continue;
            }
            let columns = self.matrix.columns(&symbol.span);
            if symbol.span.start < self.lower {
                *outcome = Ok(RepairOutcome::Old);
            } else if !columns.is_empty() {
                indexes.push(index);
                equations.push((columns, Coefficients::new(symbol.key)));
            }
        }
        let independent = self.matrix.independent(&equations);
        let mut residuals = Vec::with_capacity(BURST);
        let mut number = 0;
        indexes.retain(|&index| {
            let (symbol, (_, combination)) = (&group[index], &equations[number]);
            let is_independent = independent[number];
            number += 1;
            if is_independent {
                let (span, combination) = (symbol.span.clone(), *combination);
                let payload = self.payload(symbol.payload);
                residuals.push(Residual { span, combination, payload, contradicts: false });
            } else {
                outcomes[index] = Ok(RepairOutcome::Dependent);
            }
            is_independent
        });
        (residuals, indexes)
    }

    /// Adds a repair symbol, from which the known symbols have been subtracted, as an equation.
    /// Symbols that it solves stay in the matrix.
    fn admit(&mut self, residual: Residual<Coefficients>) -> Result<RepairOutcome, DecodeError> {
        let Residual { span, combination, payload, contradicts } = residual;
        if contradicts {
            self.pool.give(payload);
            return Err(DecodeError::Contradiction);
        }
        // Since then, the matrix has changed only by repair symbols on which this one does not depend, so it
        // is not reduced to nothing.
        let columns = self.matrix.columns(&span);
        let reduced = self.matrix.reduce(columns, &combination);
        let Some(candidate) = reduced.and_then(|candidate| self.worth_keeping(candidate)) else {
            self.pool.give(payload);
            return Ok(RepairOutcome::Dropped);
        };
        self.matrix.admit(candidate, payload);
        Ok(RepairOutcome::Innovative { recovered: 0 })
    }
}
