//! The decoder's linear system over the symbols that are missing.
//!
//! The unknowns are the missing symbols; the equations ("rows") are repair symbols from which all
//! known symbols have been subtracted. The rows are always in reduced row echelon form: each has a
//! *pivot*, its lowest unknown, with coefficient 1, and no other row refers to that unknown. Three
//! things follow, and the rest of the decoder rests on them:
//!
//! * A symbol is determined by what was received exactly if a row refers to it and to nothing else.
//! * What has to be added to a new row to bring it into this form can be read off its coefficients
//!   at the pivots, all at once. So a row that says nothing new is known before bytes are touched.
//! * The rows with pivots at or above some id hold everything that the system says about the
//!   unknowns from there on. So giving up the oldest unknowns costs nothing else.

use alloc::{
    collections::{VecDeque, vec_deque},
    vec::Vec,
};
use core::ops::Range;

use crate::{
    coefficient::Coefficients,
    gf256, kernel,
    pool::Pool,
    symbol::{self, SymbolId},
};

/// An equation: the sum of coefficients times unknowns is the payload.
#[derive(Debug)]
struct Row {
    /// The column of the lowest unknown; its coefficient is 1.
    pivot: usize,
    /// How many unknowns the row refers to.
    weight: usize,
    /// One for each column from the first; columns beyond the end have coefficient 0.
    coefficients: Vec<u8>,
    /// Bytes beyond the end are 0.
    payload: Vec<u8>,
}

impl Row {
    fn coefficient(&self, column: usize) -> u8 {
        self.coefficients.get(column).copied().unwrap_or(0)
    }

    fn add(&mut self, other: &Self, c: u8) {
        mad_extending(&mut self.coefficients, &other.coefficients, c);
        mad_extending(&mut self.payload, &other.payload, c);
        self.weight = kernel::weight(&self.coefficients);
    }

    fn scale(&mut self, c: u8) {
        kernel::Kernel::best().scale(&mut self.coefficients, c);
        kernel::Kernel::best().scale(&mut self.payload, c);
    }
}

/// Adds `c` times `src` to `dst`, which grows if it is shorter.
fn mad_extending(dst: &mut Vec<u8>, src: &[u8], c: u8) {
    if dst.len() < src.len() {
        dst.resize(src.len(), 0);
    }
    kernel::Kernel::best().mad(dst, src, c);
}

/// A row that says something new, as yet without its payload.
#[derive(Debug, Default)]
pub(super) struct Candidate {
    pivot: usize,
    weight: usize,
    /// Reduced and scaled so that the pivot's coefficient is 1.
    coefficients: Vec<u8>,
    /// What the scaling multiplied the coefficients by.
    scale: u8,
    /// The rows, by index, whose multiples the reduction added after scaling.
    additions: Vec<(usize, u8)>,
}

impl Candidate {
    /// What the payload has to be multiplied by before it is given to [`Matrix::admit`].
    pub(super) fn scale(&self) -> u8 {
        self.scale
    }
}

/// Two symbols or rows contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contradiction;

/// Missing symbols and what is known about them.
#[derive(Debug, Default)]
pub(super) struct Matrix {
    /// The columns: ids of the missing symbols, ascending.
    unknowns: VecDeque<SymbolId>,
    /// In reduced row echelon form, by pivot.
    rows: Vec<Row>,
    /// Storage for the coefficients of later rows.
    spare: Vec<Vec<u8>>,
    /// Storage for the additions of the next candidate.
    additions: Vec<(usize, u8)>,
}

impl Matrix {
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Bytes held for coefficients.
    pub(super) fn allocated(&self) -> usize {
        let used = self.rows.iter().map(|row| row.coefficients.capacity());
        used.chain(self.spare.iter().map(Vec::capacity)).sum()
    }

    /// The missing symbols, ascending.
    pub(super) fn unknowns(&self) -> vec_deque::Iter<'_, SymbolId> {
        self.unknowns.iter()
    }

    /// Adds an unknown above all others.
    pub(super) fn push_unknown(&mut self, id: SymbolId) {
        debug_assert!(self.unknowns.back().is_none_or(|&last| last < id));
        self.unknowns.push_back(id);
    }

    /// The columns of the missing symbols in `span`.
    pub(super) fn columns(&self, span: &Range<SymbolId>) -> Range<usize> {
        let from = self.unknowns.partition_point(|&id| id < span.start);
        from..self.unknowns.partition_point(|&id| id < span.end)
    }

    /// Forgets unknowns below `lower` and every row that refers to one, and returns how many
    /// unknowns that were.
    pub(super) fn give_up_below(&mut self, lower: SymbolId, pool: &mut Pool) -> usize {
        let columns = self.unknowns.partition_point(|&id| id < lower);
        if columns == 0 {
            return 0;
        }
        // Rows with higher pivots do not refer to lower columns.
        let rows = self.rows.partition_point(|row| row.pivot < columns);
        for row in self.rows.drain(..rows) {
            self.spare.push(row.coefficients);
            pool.give(row.payload);
        }
        for row in &mut self.rows {
            row.coefficients.drain(..columns);
            row.pivot -= columns;
        }
        self.unknowns.drain(..columns);
        columns
    }

    /// Forgets the row with the lowest pivot, which says nothing about later unknowns alone.
    pub(super) fn drop_oldest_row(&mut self, pool: &mut Pool) {
        if !self.rows.is_empty() {
            let row = self.rows.remove(0);
            self.recycle(row, pool);
        }
    }

    /// Whether this candidate would be the row that [`drop_oldest_row`](Self::drop_oldest_row)
    /// takes, unused.
    pub(super) fn is_oldest_and_unsolved(&self, candidate: &Candidate) -> bool {
        let lowest = self.rows.first().map_or(usize::MAX, |row| row.pivot);
        candidate.pivot < lowest && candidate.weight > 1
    }

    /// Brings the coefficients of a repair symbol over `columns` into reduced form. `None` if
    /// nothing is left, which is when the symbol is a combination of the rows already here.
    pub(super) fn reduce(
        &mut self,
        columns: Range<usize>,
        generator: Coefficients,
    ) -> Option<Candidate> {
        let mut coefficients = self.spare.pop().unwrap_or_default();
        coefficients.clear();
        coefficients.resize(columns.start, 0);
        let ids = self.unknowns.range(columns.clone());
        coefficients.extend(ids.map(|&id| generator.at(id)));

        let mut additions = core::mem::take(&mut self.additions);
        additions.clear();
        let first = self.rows.partition_point(|row| row.pivot < columns.start);
        for (index, row) in self.rows.iter().enumerate().skip(first) {
            if row.pivot >= columns.end {
                break;
            }
            // No row has a coefficient at another's pivot, so this one is still the generator's.
            let c = coefficients[row.pivot];
            mad_extending(&mut coefficients, &row.coefficients, c);
            additions.push((index, c));
        }

        let Some(pivot) = coefficients.iter().position(|&c| c != 0) else {
            self.spare.push(coefficients);
            self.additions = additions;
            return None;
        };
        let scale = gf256::inv(coefficients[pivot]);
        kernel::Kernel::best().scale(&mut coefficients, scale);
        for (_, c) in &mut additions {
            *c = gf256::mul(*c, scale);
        }
        Some(Candidate {
            pivot,
            weight: kernel::weight(&coefficients),
            coefficients,
            scale,
            additions,
        })
    }

    /// Takes back a candidate that will not be admitted.
    pub(super) fn dismiss(&mut self, candidate: Candidate) {
        self.spare.push(candidate.coefficients);
        self.additions = candidate.additions;
    }

    /// Makes a candidate a row. `payload` is that of the repair symbol, times the candidate's
    /// scale, less all known symbols. Nothing may have happened to the matrix since
    /// [`reduce`](Self::reduce).
    pub(super) fn admit(&mut self, candidate: Candidate, mut payload: Vec<u8>) {
        for &(index, c) in &candidate.additions {
            mad_extending(&mut payload, &self.rows[index].payload, c);
        }
        self.additions = candidate.additions;
        self.place(Row {
            pivot: candidate.pivot,
            weight: candidate.weight,
            coefficients: candidate.coefficients,
            payload,
        });
    }

    /// Subtracts from all rows a missing symbol that has arrived, in coded form, and forgets the
    /// unknown.
    ///
    /// # Errors
    ///
    /// The symbol contradicts a row, which is dropped.
    pub(super) fn learn(
        &mut self,
        id: SymbolId,
        coded: &[u8],
        pool: &mut Pool,
    ) -> Result<(), Contradiction> {
        let Ok(column) = self.unknowns.binary_search(&id) else {
            return Ok(());
        };
        let mut result = Ok(());
        let mut without_pivot = None;
        let mut index = 0;
        while let Some(row) = self.rows.get_mut(index) {
            let c = row.coefficient(column);
            if c == 0 {
                index += 1;
                continue;
            }
            if row.payload.len() < coded.len() {
                // No row is shorter than a symbol that went into it.
                let row = self.rows.remove(index);
                self.recycle(row, pool);
                result = Err(Contradiction);
                continue;
            }
            kernel::Kernel::best().mad(&mut row.payload, coded, c);
            row.coefficients[column] = 0;
            row.weight -= 1;
            if row.pivot == column {
                without_pivot = Some(self.rows.remove(index));
            } else {
                index += 1;
            }
        }
        self.remove_column(column);
        if let Some(mut row) = without_pivot {
            row.coefficients.remove(column);
            result = result.and(self.pivot_again(row, pool));
        }
        result
    }

    /// Puts back a row whose pivot became known.
    fn pivot_again(&mut self, mut row: Row, pool: &mut Pool) -> Result<(), Contradiction> {
        let Some(pivot) = row.coefficients.iter().position(|&c| c != 0) else {
            let result = if kernel::is_zero(&row.payload) { Ok(()) } else { Err(Contradiction) };
            self.recycle(row, pool);
            return result;
        };
        row.scale(gf256::inv(row.coefficients[pivot]));
        row.pivot = pivot;
        self.place(row);
        Ok(())
    }

    /// Inserts a row that is reduced itself and reduces the others by it.
    fn place(&mut self, row: Row) {
        for other in &mut self.rows {
            let c = other.coefficient(row.pivot);
            if c != 0 {
                other.add(&row, c);
            }
        }
        let index = self.rows.partition_point(|other| other.pivot < row.pivot);
        self.rows.insert(index, row);
    }

    /// Takes out the lowest symbol that is determined now, in coded form.
    ///
    /// # Errors
    ///
    /// What was found is no symbol. The row is dropped, its symbol stays missing.
    pub(super) fn pop_solved(
        &mut self,
        pool: &mut Pool,
    ) -> Option<Result<(SymbolId, Vec<u8>), Contradiction>> {
        let index = self.rows.iter().position(|row| row.weight == 1)?;
        let mut row = self.rows.remove(index);
        if !symbol::trim(&mut row.payload) {
            self.recycle(row, pool);
            return Some(Err(Contradiction));
        }
        let id = self.unknowns[row.pivot];
        self.spare.push(row.coefficients);
        self.remove_column(row.pivot);
        Some(Ok((id, row.payload)))
    }

    /// Removes a column that no row refers to.
    fn remove_column(&mut self, column: usize) {
        self.unknowns.remove(column);
        for row in &mut self.rows {
            if column < row.coefficients.len() {
                row.coefficients.remove(column);
            }
            if row.pivot > column {
                row.pivot -= 1;
            }
        }
    }

    fn recycle(&mut self, row: Row, pool: &mut Pool) {
        self.spare.push(row.coefficients);
        pool.give(row.payload);
    }

    /// Whether the rows are in reduced row echelon form and agree with their own books.
    #[cfg(test)]
    pub(super) fn is_reduced(&self) -> bool {
        let ascending = self.rows.is_sorted_by(|a, b| a.pivot < b.pivot);
        let each = self.rows.iter().enumerate().all(|(index, row)| {
            row.pivot < self.unknowns.len()
                && row.coefficients.len() <= self.unknowns.len()
                && row.coefficient(row.pivot) == 1
                && kernel::is_zero(&row.coefficients[..row.pivot])
                && row.weight == kernel::weight(&row.coefficients)
                && (self.rows.iter().enumerate())
                    .all(|(other, r)| other == index || r.coefficient(row.pivot) == 0)
        });
        ascending && each
    }
}
