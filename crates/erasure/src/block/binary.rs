//! Gaussian elimination over GF(2) in two phases: first on bits, then on symbols.
//!
//! The bits determine which unknowns can be solved, and from which equations. Only the steps needed for these
//! unknowns are then repeated on symbols.

use alloc::{vec, vec::Vec};

/// Bits per word.
const WORD: usize = u64::BITS as usize;

/// The indices of a row's set bits, ascending.
fn ones(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(at, &word)| {
        let mut rest = word;
        core::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(at * WORD + bit)
        })
    })
}

fn is_set(row: &[u64], bit: usize) -> bool {
    row[bit / WORD] >> (bit % WORD) & 1 == 1
}

fn flip(row: &mut [u64], bit: usize) {
    row[bit / WORD] ^= 1 << (bit % WORD);
}

/// Equations over GF(2), as bits.
pub(super) struct BinaryElimination {
    unknowns: usize,
    /// Words per row.
    words: usize,
    /// The accepted equations, as bits of the unknowns. Each row has had the earlier rows added
    /// that its first part of `steps` names, and contains none of their pivots.
    rows: Vec<u64>,
    /// Which rows were or will be added to each row: to row *i*, first the earlier rows in the
    /// state they are in then, and after that, starting from the last row, the later rows in their
    /// state then.
    steps: Vec<u64>,
    /// The lowest unknown of each row before later rows are added.
    pivots: Vec<usize>,
    /// The caller's number for the equation of each row.
    equations: Vec<usize>,
}

/// The work needed on a row's symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// Add the earlier rows.
    Earlier,
    /// Add the earlier and then the later rows.
    Both,
}

impl BinaryElimination {
    pub(super) fn new(unknowns: usize) -> Self {
        let words = unknowns.div_ceil(WORD);
        let (rows, steps, pivots, equations) = (vec![], vec![], vec![], vec![]);
        Self { unknowns, words, rows, steps, pivots, equations }
    }

    /// The number of accepted equations.
    pub(super) fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// Whether all unknowns are determined.
    pub(super) fn is_complete(&self) -> bool {
        self.rank() == self.unknowns
    }

    fn row(&self, index: usize) -> &[u64] {
        &self.rows[index * self.words..][..self.words]
    }

    fn steps(&self, index: usize) -> &[u64] {
        &self.steps[index * self.words..][..self.words]
    }

    /// The unknown that the row solves.
    pub(super) fn pivot(&self, row: usize) -> usize {
        self.pivots[row]
    }

    /// The equation that the row was made of.
    pub(super) fn equation(&self, row: usize) -> usize {
        self.equations[row]
    }

    /// The earlier rows that are added to the row.
    pub(super) fn earlier(&self, row: usize) -> impl Iterator<Item = usize> {
        ones(self.steps(row)).take_while(move |&other| other < row)
    }

    /// The later rows that are added to the row.
    pub(super) fn later(&self, row: usize) -> impl Iterator<Item = usize> {
        ones(self.steps(row)).skip_while(move |&other| other < row)
    }

    /// Accepts the equation over these unknowns, unless it depends on equations already accepted.
    pub(super) fn insert(&mut self, equation: usize, unknowns: impl Iterator<Item = usize>) {
        if self.is_complete() {
            return;
        }
        let (start, words) = (self.rows.len(), self.words);
        self.rows.resize(start + words, 0);
        self.steps.resize(start + words, 0);
        let (rows, row) = self.rows.split_at_mut(start);
        let steps = &mut self.steps[start..];
        for unknown in unknowns {
            flip(row, unknown);
        }
        for (index, &pivot) in self.pivots.iter().enumerate() {
            if is_set(row, pivot) {
                add(row, &rows[index * words..][..words]);
                flip(steps, index);
            }
        }
        let lowest = ones(row).next();
        if let Some(pivot) = lowest {
            self.pivots.push(pivot);
            self.equations.push(equation);
        } else {
            self.rows.truncate(start);
            self.steps.truncate(start);
        }
    }

    /// Adds later rows to earlier ones, so that no row contains the pivot of another. Nothing may
    /// be inserted afterwards.
    pub(super) fn reduce(&mut self) {
        let words = self.words;
        for index in (0..self.rank()).rev() {
            let (rows, later) = self.rows.split_at_mut((index + 1) * words);
            let row = &mut rows[index * words..];
            let steps = &mut self.steps[index * words..][..words];
            let pivots = self.pivots.iter().enumerate().skip(index + 1);
            for ((other, &pivot), later) in pivots.zip(later.chunks_exact(words)) {
                if is_set(row, pivot) {
                    add(row, later);
                    flip(steps, other);
                }
            }
        }
    }

    /// After [`reduce`](Self::reduce): whether the row's unknown is determined, that is, whether it
    /// is the only one left in the row.
    pub(super) fn is_determined(&self, row: usize) -> bool {
        ones(self.row(row)).nth(1).is_none()
    }

    /// The work needed to solve the unknowns of these rows.
    pub(super) fn needs(&self, wanted: impl Iterator<Item = usize>) -> Vec<Need> {
        let mut needs = vec![Need::Nothing; self.rank()];
        for row in wanted {
            needs[row] = Need::Both;
        }
        for row in 0..needs.len() {
            if needs[row] == Need::Both {
                for later in self.later(row) {
                    needs[later] = Need::Both;
                }
            }
        }
        for row in (0..needs.len()).rev() {
            if needs[row] != Need::Nothing {
                for earlier in self.earlier(row) {
                    needs[earlier] = needs[earlier].max(Need::Earlier);
                }
            }
        }
        needs
    }
}

fn add(row: &mut [u64], other: &[u64]) {
    for (word, other) in row.iter_mut().zip(other) {
        *word ^= other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies the steps to numbers instead of symbols: the equations are bits of unknowns, whose
    /// values are the bits of `values`.
    fn solve(unknowns: usize, values: u64, equations: &[u64]) -> Vec<usize> {
        let mut system = BinaryElimination::new(unknowns);
        for (number, &equation) in equations.iter().enumerate() {
            system.insert(number, ones(&[equation]));
        }
        system.reduce();
        let determined = (0..system.rank()).filter(|&row| system.is_determined(row));
        let determined: Vec<usize> = determined.collect();
        let needs = system.needs(determined.iter().copied());
        let mut symbols: Vec<Option<u32>> = (0..system.rank())
            .map(|row| {
                let symbol = (equations[system.equation(row)] & values).count_ones() % 2;
                (needs[row] != Need::Nothing).then_some(symbol)
            })
            .collect();
        let add = |symbols: &mut Vec<Option<u32>>, row: usize, others: Vec<usize>| {
            for other in others {
                symbols[row] = Some(symbols[row].unwrap() ^ symbols[other].unwrap());
            }
        };
        for row in (0..system.rank()).filter(|&row| needs[row] != Need::Nothing) {
            add(&mut symbols, row, system.earlier(row).collect());
        }
        for row in (0..system.rank()).rev().filter(|&row| needs[row] == Need::Both) {
            add(&mut symbols, row, system.later(row).collect());
        }
        for &row in &determined {
            let value = (values >> system.pivot(row) & 1) as u32;
            assert_eq!(symbols[row], Some(value), "{equations:?}");
        }
        let mut found: Vec<usize> = determined.iter().map(|&row| system.pivot(row)).collect();
        found.sort_unstable();
        found
    }

    /// The unknowns whose unit vectors are sums of equations, found by trying all sums.
    fn determined(unknowns: usize, equations: &[u64]) -> Vec<usize> {
        let sums: Vec<u64> = (0..1_u32 << equations.len())
            .map(|choice| {
                let chosen = (0..equations.len()).filter(|&i| choice >> i & 1 == 1);
                chosen.fold(0, |sum, i| sum ^ equations[i])
            })
            .collect();
        (0..unknowns).filter(|&unknown| sums.contains(&(1 << unknown))).collect()
    }

    #[test]
    fn all_that_is_determined_is_found_and_right() {
        let mut state = 1_u64;
        for round in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
            let (unknowns, count) = (1 + (state >> 60) as usize % 10, (state >> 50) as usize % 10);
            let equations: Vec<u64> = (0..count)
                .map(|at| state.rotate_left(7 * at as u32 + 3) % (1 << unknowns))
                .collect();
            assert_eq!(solve(unknowns, state >> 20, &equations), determined(unknowns, &equations));
        }
    }

    #[test]
    fn rows_may_be_longer_than_a_word() {
        // Sums of neighbours, and the last unknown alone: each unknown determines the one before it.
        for unknowns in [63, 64, 65, 200] {
            let mut system = BinaryElimination::new(unknowns);
            for row in 0..unknowns - 1 {
                system.insert(row, [row, row + 1].into_iter());
            }
            assert!(!system.is_complete());
            system.insert(unknowns, [0, unknowns - 1].into_iter());
            assert!(!system.is_complete(), "it is the sum of all others");
            system.insert(unknowns, [unknowns - 1].into_iter());
            assert!(system.is_complete());
            system.reduce();
            assert!((0..unknowns).all(|row| system.is_determined(row)));
            assert!(system.later(0).eq(1..unknowns) || system.later(0).eq([1]));
            assert_eq!(system.earlier(0).count(), 0);
        }
    }
}
