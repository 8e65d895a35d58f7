//! Linear systems over GF(256) for the lost source symbols of a block.

use alloc::{vec, vec::Vec};

use super::Decoded;
use crate::{gf256, kernel::Kernel};

/// Equations over the lost source symbols, in reduced row echelon form.
///
/// Besides its coefficients, each row records the combination of accepted equations from which it was made.
pub(super) struct Elimination {
    kernel: Kernel,
    unknowns: usize,
    /// The most equations that can be accepted.
    capacity: usize,
    /// Rows of `unknowns` coefficients and `capacity` multiples of accepted equations.
    rows: Vec<u8>,
    /// The column of each row that no other row refers to; the row has a one there.
    pivots: Vec<usize>,
    /// The row being reduced.
    row: Vec<u8>,
    /// The multiples of the other rows that reduce it.
    factors: Vec<u8>,
}

impl Elimination {
    /// For `equations` equations over `unknowns` unknowns.
    pub(super) fn new(kernel: Kernel, unknowns: usize, equations: usize) -> Self {
        let capacity = unknowns.min(equations);
        Self {
            kernel,
            unknowns,
            capacity,
            rows: Vec::with_capacity(capacity * (unknowns + capacity)),
            pivots: Vec::with_capacity(capacity),
            row: Vec::with_capacity(unknowns + capacity),
            factors: Vec::with_capacity(capacity),
        }
    }

    fn stride(&self) -> usize {
        self.unknowns + self.capacity
    }

    /// Whether all unknowns are determined.
    pub(super) fn is_complete(&self) -> bool {
        self.pivots.len() == self.unknowns
    }

    /// Accepts an equation unless it depends on equations already accepted.
    pub(super) fn insert(&mut self, coefficients: impl Iterator<Item = u8>) -> bool {
        let (stride, rank) = (self.stride(), self.pivots.len());
        if rank == self.capacity {
            return false;
        }
        self.row.clear();
        self.row.extend(coefficients.take(self.unknowns));
        self.row.resize(stride, 0);
        self.row[self.unknowns + rank] = 1;

        // No row has a coefficient at another's pivot, so all multiples are known in advance.
        self.factors.clear();
        self.factors.extend(self.pivots.iter().map(|&pivot| self.row[pivot]));
        let rows = self.rows.chunks_exact(stride);
        self.kernel.dot_terms(&mut self.row, self.factors.iter().copied().zip(rows));
        let Some(pivot) = self.row[..self.unknowns].iter().position(|&c| c != 0) else {
            return false;
        };
        let scale = gf256::inv(self.row[pivot]);
        self.kernel.scale(&mut self.row, scale);
        for row in self.rows.chunks_exact_mut(stride) {
            self.kernel.mad(row, &self.row, row[pivot]);
        }
        self.rows.extend_from_slice(&self.row);
        self.pivots.push(pivot);
        true
    }

    /// The determined unknowns, ascending, followed by the multiples of the accepted equations that
    /// sum up to each of them, concatenated.
    pub(super) fn solution(&self) -> (Vec<usize>, Vec<u8>) {
        let rank = self.pivots.len();
        let rows = self.pivots.iter().copied().zip(self.rows.chunks_exact(self.stride().max(1)));
        let mut solved: Vec<(usize, &[u8])> = rows
            .map(|(pivot, row)| (pivot, row.split_at(self.unknowns)))
            .filter(|(_, (coefficients, _))| coefficients.iter().filter(|&&c| c != 0).count() == 1)
            .map(|(pivot, (_, multiples))| (pivot, &multiples[..rank]))
            .collect();
        solved.sort_unstable_by_key(|&(pivot, _)| pivot);
        let multiples = solved.iter().flat_map(|(_, multiples)| multiples.iter().copied());
        (solved.iter().map(|&(pivot, _)| pivot).collect(), multiples.collect())
    }
}

/// A code whose repair symbols are linear combinations of all source symbols.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    /// Source symbols of a block.
    pub(super) sources: usize,
    /// Repair symbols of a block.
    pub(super) repairs: usize,
    /// The coefficients: a row for each repair symbol, a column for each source symbol.
    pub(super) parity: Vec<u8>,
    pub(super) kernel: Kernel,
}

/// Lost source symbols as linear combinations of repair symbols, from which the received symbols
/// have been subtracted.
#[derive(Default)]
pub(super) struct Solution {
    /// The lost source symbols that are determined, ascending.
    pub(super) targets: Vec<usize>,
    /// The repair symbols used, at most as many as there are lost source symbols.
    pub(super) used: Vec<usize>,
    /// For each target, the multiples of the used repair symbols whose sum contains no lost symbol
    /// but the target.
    pub(super) multiples: Vec<u8>,
}

impl Linear {
    /// The coefficients of a repair symbol.
    pub(super) fn row(&self, repair: usize) -> &[u8] {
        &self.parity[repair * self.sources..][..self.sources]
    }

    pub(super) fn encode(&self, sources: &[&[u8]], repairs: &mut [&mut [u8]]) {
        multiply(self.kernel, repairs, &self.parity, sources);
    }

    /// Recovers the symbols that are determined according to `solve`, which gets the lost source symbols and
    /// the received repair symbols, both ascending.
    pub(super) fn decode(
        &self,
        symbols: &mut [&mut [u8]],
        present: &mut [bool],
        solve: impl FnOnce(&[usize], &[usize]) -> Solution,
    ) -> Decoded {
        let (sources, repairs) = present.split_at_mut(self.sources);
        let lost: Vec<usize> = (0..self.sources).filter(|&j| !sources[j]).collect();
        let arrived: Vec<usize> = (0..self.repairs).filter(|&i| repairs[i]).collect();
        let solution = if lost.is_empty() { Solution::default() } else { solve(&lost, &arrived) };
        self.recover(symbols, &lost, &solution);
        let recovered = solution.targets.len();
        for target in solution.targets {
            sources[target] = true;
        }
        Decoded { recovered, missing: lost.len() - recovered }
    }

    /// Computes the targets of a solution.
    ///
    /// Instead of subtracting received symbols from the repair symbols and combining the results,
    /// this combines the rows of coefficients, which are shorter than symbols, and then reads every
    /// symbol once.
    fn recover(&self, symbols: &mut [&mut [u8]], lost: &[usize], solution: &Solution) {
        let Some(&first) = solution.used.first() else {
            return;
        };
        let coefficients = self.combine(lost, solution);
        let (sources, repairs) = symbols.split_at_mut(self.sources);
        let mut lost = lost.iter().copied().peekable();
        let mut targets = solution.targets.iter().copied().peekable();
        let mut used = solution.used.iter().copied();
        let mut operands: Vec<&[u8]> = Vec::with_capacity(self.sources);
        let mut dsts: Vec<&mut [u8]> = Vec::with_capacity(solution.targets.len());
        for (j, symbol) in sources.iter_mut().enumerate() {
            if lost.next_if_eq(&j).is_none() {
                operands.push(symbol);
                continue;
            }
            // If none is left, any repair symbol will do, as its coefficients are 0.
            operands.push(&*repairs[used.next().unwrap_or(first)]);
            if targets.next_if_eq(&j).is_some() {
                dsts.push(symbol);
            }
        }
        multiply(self.kernel, &mut dsts, &coefficients, &operands);
    }

    /// For each target, its coefficients over all source symbols. The places of lost source symbols hold the
    /// coefficients of the repair symbols instead, in order, and 0 when there are no more.
    fn combine(&self, lost: &[usize], solution: &Solution) -> Vec<u8> {
        let Solution { targets, used, multiples } = solution;
        let mut coefficients = vec![0; targets.len() * self.sources];
        let mut rows: Vec<&mut [u8]> = coefficients.chunks_exact_mut(self.sources).collect();
        let parity: Vec<&[u8]> = used.iter().map(|&i| self.row(i)).collect();
        self.kernel.matmul(&mut rows, multiples, &parity);
        for (row, multiples) in rows.into_iter().zip(multiples.chunks_exact(used.len())) {
            let multiples = multiples.iter().copied().chain(core::iter::repeat(0));
            for (&place, multiple) in lost.iter().zip(multiples) {
                row[place] = multiple;
            }
        }
        coefficients
    }
}

/// Sets each destination to the linear combination of the sources with its row of coefficients.
fn multiply(kernel: Kernel, dsts: &mut [&mut [u8]], coefficients: &[u8], sources: &[&[u8]]) {
    for dst in dsts.iter_mut() {
        dst.fill(0);
    }
    kernel.matmul(dsts, coefficients, sources);
}
