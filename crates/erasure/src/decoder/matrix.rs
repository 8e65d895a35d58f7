//! The decoder's linear system over the missing symbols.
//!
//! The unknowns are the missing symbols; the equations ("rows") are repair symbols from which all
//! known symbols have been subtracted. The rows are always in reduced row echelon form: each has a
//! *pivot*, its lowest unknown, with coefficient 1, and no other row refers to that unknown. The
//! rest of the decoder relies on three consequences:
//!
//! * A symbol is determined exactly if a row refers to it alone.
//! * The coefficients of a new row at the pivots tell, all at once, the multiples that must be added to
//!   bring it into this form. A row that adds no information is therefore recognised before any bytes are
//!   read.
//! * The rows with pivots at or above some id contain all information of the system about the unknowns from
//!   there on. Giving up the oldest unknowns therefore loses no other information.

use alloc::{
    collections::{VecDeque, vec_deque},
    vec::Vec,
};
use core::ops::Range;

use crate::{
    allowance::Allowance,
    coefficient::{Coefficients, Combination},
    gf256,
    kernel::{self, Kernel},
    limits::{BURST, vector},
    pool::Pool,
    slot::Slot,
    symbol::{self, SymbolId},
};

/// An equation: the linear combination of the unknowns equals the payload.
#[derive(Debug)]
struct Row {
    /// The column of the lowest unknown; its coefficient is 1.
    pivot: usize,
    /// The number of unknowns with a coefficient other than 0.
    weight: usize,
    /// A coefficient for each column from the first; coefficients past the end are 0.
    coefficients: Vec<u8>,
    /// Bytes past the end are 0.
    payload: Slot,
}

impl Row {
    fn coefficient(&self, column: usize) -> u8 {
        self.coefficients.get(column).copied().unwrap_or(0)
    }
}

/// Adds `c` times `src` to `dst`, which grows if it is shorter.
fn add_coefficients(kernel: Kernel, dst: &mut Vec<u8>, src: &[u8], c: u8) {
    if dst.len() < src.len() {
        dst.resize(src.len(), 0);
    }
    kernel.mad(dst, src, c);
}

/// Adds `c` times `src` to `dst`, which grows if it is shorter.
fn add_payload(kernel: Kernel, dst: &mut Slot, src: &Slot, c: u8) {
    if dst.len() < src.len() {
        dst.resize(src.len());
    }
    kernel.mad(dst.padded_mut(), src.padded(), c);
}

/// Scales coefficients so that the first nonzero one becomes 1, and returns the factor. `None` if
/// all are 0.
fn normalise(kernel: Kernel, coefficients: &mut [u8]) -> Option<u8> {
    let first = coefficients.iter().find(|&&c| c != 0)?;
    let scale = gf256::inv(*first);
    kernel.scale(coefficients, scale);
    Some(scale)
}

/// Removes the bytes at some ascending indices, moving the bytes between them as blocks.
fn remove_each(bytes: &mut Vec<u8>, indexes: &[usize]) {
    let within = &indexes[..indexes.partition_point(|&index| index < bytes.len())];
    let Some(&(mut kept)) = within.first() else { return };
    let ends = within.iter().skip(1).copied().chain([bytes.len()]);
    for (&index, end) in within.iter().zip(ends) {
        bytes.copy_within(index + 1..end, kept);
        kept += end - index - 1;
    }
    bytes.truncate(kept);
}

/// A row that adds information, without its payload yet.
#[derive(Debug, Default)]
pub(super) struct Candidate {
    pivot: usize,
    weight: usize,
    /// Reduced, and scaled so that the pivot's coefficient is 1.
    coefficients: Vec<u8>,
    /// The scaling factor, applied after the additions.
    scale: u8,
    /// The index and the multiple of each row that the reduction adds.
    additions: Vec<(usize, u8)>,
}

/// The bound on the memory of a matrix's containers, without the rows' coefficients.
pub(super) const fn containers(symbols: usize, equations: usize) -> usize {
    vector::<SymbolId>(symbols)
        + vector::<Row>(equations)
        + vector::<Vec<u8>>(equations)
        + vector::<(usize, u8)>(equations)
        + vector::<usize>(equations)
}

/// Two symbols or rows contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contradiction;

/// The missing symbols and the equations about them.
#[derive(Debug)]
pub(super) struct Matrix {
    kernel: Kernel,
    /// The columns: ids of the missing symbols, ascending.
    unknowns: VecDeque<SymbolId>,
    /// In reduced row echelon form, by pivot.
    rows: Vec<Row>,
    /// Storage for the coefficients of future rows.
    spare: Vec<Vec<u8>>,
    /// Storage for the additions of the next candidate.
    additions: Vec<(usize, u8)>,
    /// Columns that [`take_solved`](Self::take_solved) removes.
    removed: Vec<usize>,
    /// Bytes that arithmetic has read here.
    work: u64,
    /// The allowance for changing rows because of small symbols.
    allowance: Allowance,
}

impl Matrix {
    pub(super) fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            unknowns: VecDeque::new(),
            rows: Vec::new(),
            spare: Vec::new(),
            additions: Vec::new(),
            removed: Vec::new(),
            work: 0,
            allowance: Allowance::for_equations(),
        }
    }

    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// A symbol of `len` bytes arrived, which pays for some work.
    pub(super) fn earn(&mut self, len: usize) {
        self.allowance.earn(len);
    }

    /// Pays for admitting a candidate, if the received symbols have earned that much work.
    pub(super) fn pay_for(&mut self, candidate: &Candidate) -> bool {
        let additions = candidate.additions.iter().filter_map(|&(index, _)| self.rows.get(index));
        let read: usize = additions.map(|row| row.payload.padded().len()).sum();
        let longest = self.rows.iter().map(|row| row.payload.padded().len()).max();
        let row = candidate.coefficients.len() + longest.unwrap_or_default();
        let work = read + self.users_of(candidate.pivot) * row;
        self.allowance.spend(work)
    }

    /// Number of rows that refer to a column.
    fn users_of(&self, column: usize) -> usize {
        self.rows.iter().filter(|row| row.coefficient(column) != 0).count()
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Allocated bytes, except for the payloads, which belong to the pool.
    pub(super) fn allocated(&self) -> usize {
        let used = self.rows.iter().map(|row| row.coefficients.capacity());
        let coefficients: usize = used.chain(self.spare.iter().map(Vec::capacity)).sum();
        coefficients
            + self.unknowns.capacity() * size_of::<SymbolId>()
            + self.rows.capacity() * size_of::<Row>()
            + self.spare.capacity() * size_of::<Vec<u8>>()
            + self.additions.capacity() * size_of::<(usize, u8)>()
            + self.removed.capacity() * size_of::<usize>()
    }

    /// Frees memory that is only kept for reuse.
    pub(super) fn shrink(&mut self) {
        self.unknowns.shrink_to_fit();
        self.rows.shrink_to_fit();
        self.spare = Vec::new();
        self.additions = Vec::new();
        self.removed = Vec::new();
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

    /// The missing symbols in `span`, ascending.
    pub(super) fn missing(
        &self,
        span: &Range<SymbolId>,
    ) -> impl Iterator<Item = SymbolId> + Clone + '_ {
        self.unknowns.range(self.columns(span)).copied()
    }

    /// The columns of the missing symbols in `span`.
    pub(super) fn columns(&self, span: &Range<SymbolId>) -> Range<usize> {
        let from = self.unknowns.partition_point(|&id| id < span.start);
        from..self.unknowns.partition_point(|&id| id < span.end)
    }

    /// Forgets unknowns below `lower` and every row that refers to one. Returns the number of
    /// forgotten unknowns.
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

    /// Forgets the row with the lowest pivot, which by itself says nothing about later unknowns.
    pub(super) fn drop_oldest_row(&mut self, pool: &mut Pool) {
        if !self.rows.is_empty() {
            let row = self.rows.remove(0);
            self.recycle(row, pool);
        }
    }

    /// Whether this candidate would be the row that [`drop_oldest_row`](Self::drop_oldest_row)
    /// removes, and has solved no symbol.
    pub(super) fn is_oldest_and_unsolved(&self, candidate: &Candidate) -> bool {
        let lowest = self.rows.first().map_or(usize::MAX, |row| row.pivot);
        candidate.pivot < lowest && candidate.weight > 1
    }

    /// Reduces the coefficients of a repair symbol over `columns`. `None` if nothing is left, that
    /// is, if the symbol is a combination of the existing rows.
    pub(super) fn reduce(
        &mut self,
        columns: Range<usize>,
        combination: &impl Combination,
    ) -> Option<Candidate> {
        let mut coefficients = self.spare.pop().unwrap_or_default();
        coefficients.clear();
        coefficients.resize(columns.start, 0);
        let ids = self.unknowns.range(columns.clone());
        coefficients.extend(ids.map(|&id| combination.coefficient(id)));

        let mut additions = core::mem::take(&mut self.additions);
        additions.clear();
        let first = self.rows.partition_point(|row| row.pivot < columns.start);
        for (index, row) in self.rows.iter().enumerate().skip(first) {
            if row.pivot >= columns.end {
                break;
            }
            // No row has a coefficient at another row's pivot, so this coefficient is unchanged so far.
            let c = coefficients[row.pivot];
            self.work += row.coefficients.len() as u64;
            add_coefficients(self.kernel, &mut coefficients, &row.coefficients, c);
            additions.push((index, c));
        }

        let Some(scale) = normalise(self.kernel, &mut coefficients) else {
            self.spare.push(coefficients);
            self.additions = additions;
            return None;
        };
        let pivot = coefficients.iter().position(|&c| c != 0).unwrap_or(0);
        let weight = kernel::weight(&coefficients);
        Some(Candidate { pivot, weight, coefficients, scale, additions })
    }

    /// Determines which of several repair symbols, given by columns and coefficients, add
    /// information beyond the rows and the repair symbols before them.
    pub(super) fn independent(
        &mut self,
        symbols: &[(Range<usize>, Coefficients)],
    ) -> [bool; BURST] {
        let mut independent = [false; BURST];
        let mut accepted: Vec<Candidate> = Vec::with_capacity(BURST);
        for ((columns, combination), is_independent) in symbols.iter().zip(&mut independent) {
            let Some(mut candidate) = self.reduce(columns.clone(), combination) else { continue };
            let coefficients = &mut candidate.coefficients;
            for other in &accepted {
                let c = coefficients.get(other.pivot).copied().unwrap_or(0);
                self.work += other.coefficients.len() as u64;
                add_coefficients(self.kernel, coefficients, &other.coefficients, c);
            }
            if normalise(self.kernel, coefficients).is_some() {
                candidate.pivot = coefficients.iter().position(|&c| c != 0).unwrap_or(0);
                *is_independent = true;
                accepted.push(candidate);
            } else {
                self.dismiss(candidate);
            }
        }
        for candidate in accepted {
            self.dismiss(candidate);
        }
        independent
    }

    /// Recycles a candidate that will not be admitted.
    pub(super) fn dismiss(&mut self, candidate: Candidate) {
        self.spare.push(candidate.coefficients);
        self.additions = candidate.additions;
    }

    /// Turns a candidate into a row. `payload` is the payload of the repair symbol minus all known symbols.
    /// The matrix must not have changed since [`reduce`](Self::reduce).
    pub(super) fn admit(&mut self, candidate: Candidate, mut payload: Slot) {
        let additions = candidate.additions.iter();
        let longest = additions.map(|&(index, _)| self.rows[index].payload.len()).max();
        if longest.is_some_and(|longest| longest > payload.len()) {
            payload.resize(longest.unwrap_or_default());
        }
        let rows = &self.rows;
        let terms = candidate.additions.iter().map(|&(index, c)| {
            let addition = rows[index].payload.padded();
            self.work += addition.len() as u64;
            (c, addition)
        });
        self.kernel.dot_terms(payload.padded_mut(), terms);
        self.kernel.scale(payload.padded_mut(), candidate.scale);
        self.additions = candidate.additions;
        self.place(Row {
            pivot: candidate.pivot,
            weight: candidate.weight,
            coefficients: candidate.coefficients,
            payload,
        });
    }

    /// Subtracts a missing symbol that has arrived, in coded form, from all rows and forgets the
    /// unknown.
    ///
    /// # Errors
    ///
    /// The symbol contradicts a row, which is dropped.
    pub(super) fn learn(
        &mut self,
        id: SymbolId,
        coded: &Slot,
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
                // A row is never shorter than a symbol that it contains.
                let row = self.rows.remove(index);
                self.recycle(row, pool);
                result = Err(Contradiction);
                continue;
            }
            self.work += coded.padded().len() as u64;
            self.kernel.mad(row.payload.padded_mut(), coded.padded(), c);
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

    /// Puts back a row whose pivot became known. Drops the row if this would be more work than the received
    /// symbols have earned.
    fn pivot_again(&mut self, mut row: Row, pool: &mut Pool) -> Result<(), Contradiction> {
        let Some(scale) = normalise(self.kernel, &mut row.coefficients) else {
            let contradicts = !kernel::is_zero(row.payload.bytes());
            self.recycle(row, pool);
            return if contradicts { Err(Contradiction) } else { Ok(()) };
        };
        row.pivot = row.coefficients.iter().position(|&c| c != 0).unwrap_or(0);
        let length = row.coefficients.len() + row.payload.padded().len();
        if !self.allowance.spend(self.users_of(row.pivot) * length) {
            self.recycle(row, pool);
            return Ok(());
        }
        self.kernel.scale(row.payload.padded_mut(), scale);
        self.place(row);
        Ok(())
    }

    /// Inserts a reduced row and reduces the other rows by it.
    fn place(&mut self, row: Row) {
        for other in &mut self.rows {
            let c = other.coefficient(row.pivot);
            if c != 0 {
                self.work += (row.coefficients.len() + row.payload.padded().len()) as u64;
                add_coefficients(self.kernel, &mut other.coefficients, &row.coefficients, c);
                add_payload(self.kernel, &mut other.payload, &row.payload, c);
                other.weight = kernel::weight(&other.coefficients);
            }
        }
        let index = self.rows.partition_point(|other| other.pivot < row.pivot);
        self.rows.insert(index, row);
    }

    /// Moves all symbols that are now determined to `solved`, in coded form, sorted by id.
    ///
    /// # Errors
    ///
    /// Some rows do not contain valid symbols. They are dropped, and their symbols stay missing.
    pub(super) fn take_solved(
        &mut self,
        solved: &mut Vec<(SymbolId, Slot)>,
        pool: &mut Pool,
    ) -> Result<(), Contradiction> {
        let mut result = Ok(());
        self.removed.clear();
        for mut row in self.rows.extract_if(.., |row| row.weight == 1) {
            self.spare.push(row.coefficients);
            if symbol::trim(&mut row.payload) {
                solved.push((self.unknowns[row.pivot], row.payload));
                self.removed.push(row.pivot);
            } else {
                pool.give(row.payload);
                result = Err(Contradiction);
            }
        }
        self.remove_columns();
        result
    }

    /// Removes the columns in `removed`, to which no row refers.
    fn remove_columns(&mut self) {
        let removed = &self.removed;
        if removed.is_empty() {
            return;
        }
        let mut column = 0;
        let mut next = removed.iter().peekable();
        self.unknowns.retain(|_| {
            column += 1;
            next.next_if(|&&removed| removed == column - 1).is_none()
        });
        for row in &mut self.rows {
            remove_each(&mut row.coefficients, removed);
            row.pivot -= removed.partition_point(|&removed| removed < row.pivot);
        }
    }

    /// Removes a column that no row refers to.
    fn remove_column(&mut self, column: usize) {
        self.unknowns.remove(column);
        for row in &mut self.rows {
            if column < row.coefficients.len() {
                row.coefficients.remove(column);
            }
            row.pivot -= usize::from(column < row.pivot);
        }
    }

    fn recycle(&mut self, row: Row, pool: &mut Pool) {
        self.spare.push(row.coefficients);
        pool.give(row.payload);
    }

    /// Whether the rows are in reduced row echelon form and their bookkeeping is consistent.
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
