//! LDPC-Staircase codes (RFC 5170 and RFC 6816).

use alloc::{vec, vec::Vec};
use core::ops::RangeInclusive;

use super::{
    BlockCode, BlockError, Decoded, ParameterError, ParkMiller,
    binary::{BinaryElimination, Need},
    check_decode, check_encode, make_sum,
};
use crate::kernel::Kernel;

/// An LDPC-Staircase code: repair symbol *i* is the sum of repair symbol *i* - 1 and of a few
/// source symbols, which the pseudorandom parity check matrix of RFC 5170, section 6.2, selects.
/// RFC 6816 uses the same matrix.
///
/// Encoding and most of decoding are sums over few symbols, an order of magnitude less work than a
/// [`RandomLinear`](super::RandomLinear) code of the same size. In return, recovery needs a few
/// more repair symbols than losses on average, whatever the size of the block.
///
/// Decoding is iterative at first: an equation that lacks one symbol yields it. The remaining
/// symbols are solved by Gaussian elimination ("maximum likelihood" decoding), if there are at most
/// [`MAX_ML_UNKNOWNS`](Self::MAX_ML_UNKNOWNS) of them.
#[derive(Debug, Clone)]
pub struct LdpcStaircase {
    sources: usize,
    repairs: usize,
    /// The source symbols of each row of the parity check matrix, ascending.
    rows: Lists,
    /// The rows of each source symbol, ascending.
    columns: Lists,
    kernel: Kernel,
}

/// Lists of small numbers, stored consecutively.
#[derive(Debug, Clone)]
struct Lists {
    /// Where each list starts, and where the last list ends.
    starts: Vec<u32>,
    items: Vec<u16>,
}

impl Lists {
    /// Groups pairs of a list index and an item by list, preserving their order.
    fn group(count: usize, pairs: impl Iterator<Item = (u16, u16)> + Clone) -> Self {
        let mut starts = vec![0_u32; count + 1];
        for (list, _) in pairs.clone() {
            starts[usize::from(list) + 1] += 1;
        }
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut next = starts.clone();
        let mut items = vec![0; end as usize];
        for (list, item) in pairs {
            let at = &mut next[usize::from(list)];
            items[*at as usize] = item;
            *at += 1;
        }
        Self { starts, items }
    }

    fn get(&self, list: usize) -> &[u16] {
        &self.items[self.starts[list] as usize..self.starts[list + 1] as usize]
    }
}

impl LdpcStaircase {
    /// The most source symbols.
    pub const MAX_SOURCES: usize = 1 << 14;

    /// The most repair symbols.
    pub const MAX_REPAIRS: usize = 1 << 12;

    /// The permitted values of N1, the number of rows that contain each source symbol (RFC 5170).
    pub const DEGREES: RangeInclusive<usize> = 3..=10;

    /// The most missing symbols, source and repair, that Gaussian elimination is tried for. The
    /// elimination takes at most `MAX_REPAIRS * MAX_ML_UNKNOWNS` additions of rows with as many
    /// bits. Each missing symbol then takes at most `MAX_ML_UNKNOWNS` additions of symbols, besides the
    /// additions in its own equation.
    pub const MAX_ML_UNKNOWNS: usize = 1 << 10;

    /// The code for blocks of `sources` source symbols, at least two, and `repairs` repair symbols,
    /// with the parity check matrix for N1 = `degree` and the seed `seed`.
    ///
    /// # Errors
    ///
    /// There are fewer than two source symbols or more than [`MAX_SOURCES`](Self::MAX_SOURCES),
    /// more than [`MAX_REPAIRS`](Self::MAX_REPAIRS) repair symbols, a degree that is not in
    /// [`DEGREES`](Self::DEGREES) or exceeds the number of repair symbols, or a seed that is not
    /// between 1 and 2^31 - 2. (With fewer source symbols or a higher degree the RFC's algorithm
    /// would not end.)
    pub fn new(
        sources: usize,
        repairs: usize,
        degree: usize,
        seed: u32,
    ) -> Result<Self, ParameterError> {
        if !(2..=Self::MAX_SOURCES).contains(&sources) {
            return Err(ParameterError::Sources);
        }
        if repairs > Self::MAX_REPAIRS {
            return Err(ParameterError::Repairs);
        }
        if !Self::DEGREES.contains(&degree) || degree > repairs {
            return Err(ParameterError::Degree);
        }
        let mut prng = ParkMiller::new(seed).ok_or(ParameterError::Seed)?;
        let mut entries = left_side(sources as u16, repairs as u16, degree, &mut prng);
        entries.sort_unstable();
        Ok(Self {
            sources,
            repairs,
            rows: Lists::group(repairs, entries.iter().copied()),
            columns: Lists::group(sources, entries.iter().map(|&(row, column)| (column, row))),
            kernel: Kernel::best(),
        })
    }

    /// The same code using another kernel.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// The source symbols that are part of repair symbol `repair`, ascending. The previous repair
    /// symbol is the only other part. They are the positions of the ones in a row of the left side of the
    /// parity check matrix.
    ///
    /// # Panics
    ///
    /// If there is no such repair symbol.
    #[must_use]
    pub fn row(&self, repair: usize) -> &[u16] {
        self.rows.get(repair)
    }

    /// All symbols of the equation in a row of the parity check matrix; their sum is zero.
    fn equation(&self, row: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        let repair = self.sources + row;
        let previous = (row > 0).then(|| repair - 1);
        self.row(row).iter().map(|&source| usize::from(source)).chain(previous).chain([repair])
    }

    /// The equations that contain a symbol.
    fn equations_of(&self, symbol: usize) -> impl Iterator<Item = usize> + '_ {
        let (rows, repair) = match symbol.checked_sub(self.sources) {
            None => (self.columns.get(symbol), 0..0),
            Some(repair) => (&[][..], repair..self.repairs.min(repair + 2)),
        };
        rows.iter().map(|&row| usize::from(row)).chain(repair)
    }
}

/// The left side of the parity check matrix: row and column of each one. This is the algorithm of
/// RFC 5170, section 6.2. The matrix depends on all draws from the generator and on their order.
fn left_side(sources: u16, repairs: u16, degree: usize, prng: &mut ParkMiller) -> Vec<(u16, u16)> {
    // The rows to choose from, so that all rows get about the same number of ones.
    let mut choices: Vec<u16> = (0..repairs).cycle().take(degree * usize::from(sources)).collect();
    let mut next = 0;
    let mut entries: Vec<(u16, u16)> = Vec::with_capacity(choices.len() + 2 * usize::from(repairs));
    let mut ones = vec![0_u32; usize::from(repairs)];
    for column in 0..sources {
        let first = entries.len();
        for _ in 0..degree {
            let taken = |row| entries[first..].contains(&(row, column));
            let row = if choices[next..].iter().all(|&row| taken(row)) {
                draw(prng, repairs, |row| !taken(row))
            } else {
                let left = choices.len() - next;
                let index = loop {
                    let index = next + prng.below(left as u32) as usize;
                    if !taken(choices[index]) {
                        break index;
                    }
                };
                let row = choices[index];
                choices[index] = choices[next];
                next += 1;
                row
            };
            entries.push((row, column));
            ones[usize::from(row)] += 1;
        }
    }
    // Rows with fewer than two ones, which occur at low code rates, get more.
    for (row, ones) in (0..repairs).zip(ones) {
        let mut only = None;
        if ones == 0 {
            only = Some(draw(prng, sources, |_| true));
            entries.extend(only.map(|column| (row, column)));
        }
        if ones < 2 {
            let only = only.or_else(|| {
                entries.iter().find(|&&(other, _)| other == row).map(|&(_, column)| column)
            });
            entries.push((row, draw(prng, sources, |column| Some(column) != only)));
        }
    }
    entries
}

/// The first number below `end` that is accepted; one must exist.
fn draw(prng: &mut ParkMiller, end: u16, accept: impl Fn(u16) -> bool) -> u16 {
    loop {
        let number = prng.below(u32::from(end)) as u16;
        if accept(number) {
            return number;
        }
    }
}

impl BlockCode for LdpcStaircase {
    fn sources(&self) -> usize {
        self.sources
    }

    fn repairs(&self) -> usize {
        self.repairs
    }

    fn encode(&self, sources: &[&[u8]], repairs: &mut [&mut [u8]]) -> Result<(), BlockError> {
        check_encode(self, sources, repairs)?;
        let mut terms: Vec<&[u8]> = Vec::new();
        let mut previous: Option<&mut [u8]> = None;
        for (row, repair) in repairs.iter_mut().enumerate() {
            match previous {
                Some(previous) => repair.copy_from_slice(previous),
                None => repair.fill(0),
            }
            terms.clear();
            terms.extend(self.row(row).iter().map(|&source| sources[usize::from(source)]));
            self.kernel.sum(repair, &terms);
            previous = Some(repair);
        }
        Ok(())
    }

    fn decode(
        &self,
        symbols: &mut [&mut [u8]],
        present: &mut [bool],
    ) -> Result<Decoded, BlockError> {
        let missing = check_decode(self, symbols, present)?;
        let mut block = Block { code: self, symbols, present, missing };
        if missing > 0 {
            block.peel();
        }
        if block.missing > 0 {
            block.eliminate();
        }
        let missing_now = block.missing;
        Ok(Decoded { recovered: missing - missing_now, missing: missing_now })
    }
}

/// A block during decoding.
struct Block<'a, 'b> {
    code: &'a LdpcStaircase,
    symbols: &'a mut [&'b mut [u8]],
    present: &'a mut [bool],
    /// The number of missing source symbols.
    missing: usize,
}

impl Block<'_, '_> {
    fn found(&mut self, symbol: usize) {
        self.present[symbol] = true;
        if symbol < self.code.sources {
            self.missing -= 1;
        }
    }

    /// Solves equations that lack one symbol, until there are none.
    fn peel(&mut self) {
        let code = self.code;
        let mut lacking = vec![0_u32; code.repairs];
        for symbol in (0..self.present.len()).filter(|&symbol| !self.present[symbol]) {
            for row in code.equations_of(symbol) {
                lacking[row] += 1;
            }
        }
        let mut ready: Vec<usize> = (0..code.repairs).filter(|&row| lacking[row] == 1).collect();
        while let Some(row) = ready.pop() {
            let Some(lost) = code.equation(row).find(|&symbol| !self.present[symbol]) else {
                continue;
            };
            let others = code.equation(row).filter(|&symbol| symbol != lost);
            make_sum(code.kernel, self.symbols, lost, true, others);
            self.found(lost);
            if self.missing == 0 {
                break;
            }
            for row in code.equations_of(lost) {
                lacking[row] -= 1;
                if lacking[row] == 1 {
                    ready.push(row);
                }
            }
        }
    }

    /// Solves the remaining equations by Gaussian elimination.
    ///
    /// The symbol of each row of the system is computed in the place of the missing symbol that it
    /// solves.
    fn eliminate(&mut self) {
        let code = self.code;
        let symbols = 0..self.present.len();
        let unknowns: Vec<usize> = symbols.filter(|&symbol| !self.present[symbol]).collect();
        if unknowns.len() > LdpcStaircase::MAX_ML_UNKNOWNS {
            return;
        }
        let mut system = BinaryElimination::new(unknowns.len());
        for row in 0..code.repairs {
            let lost = code.equation(row).filter(|&symbol| !self.present[symbol]);
            system.insert(row, lost.filter_map(|symbol| unknowns.binary_search(&symbol).ok()));
        }
        system.reduce();
        let place = |row: usize| unknowns[system.pivot(row)];
        let wanted = |&row: &usize| place(row) < code.sources && system.is_determined(row);
        let needs = system.needs((0..system.rank()).filter(wanted));

        for row in (0..needs.len()).filter(|&row| needs[row] != Need::Nothing) {
            let equation = code.equation(system.equation(row));
            let known = equation.filter(|&symbol| self.present[symbol]);
            let others = known.chain(system.earlier(row).map(place));
            make_sum(code.kernel, self.symbols, place(row), true, others);
        }
        for row in (0..needs.len()).rev().filter(|&row| needs[row] == Need::Both) {
            let others = system.later(row).map(place);
            make_sum(code.kernel, self.symbols, place(row), false, others);
        }
        for row in (0..needs.len()).filter(|&row| needs[row] == Need::Both) {
            if system.is_determined(row) {
                self.found(place(row));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_symbol_has_its_degree_and_every_row_two() {
        for (sources, repairs, degree) in
            [(2, 3, 3), (10, 10, 10), (7, 30, 3), (30, 7, 5), (100, 6, 5), (1000, 50, 7)]
        {
            for seed in 1..20 {
                let code = LdpcStaircase::new(sources, repairs, degree, seed).unwrap();
                let mut total = 0;
                for repair in 0..repairs {
                    let row = code.row(repair);
                    assert!(row.len() >= 2 && row.is_sorted_by(|a, b| a < b));
                    total += row.len();
                    for &source in row {
                        let rows: Vec<usize> = code.equations_of(usize::from(source)).collect();
                        assert!(rows.contains(&repair) && rows.len() >= degree);
                    }
                }
                assert!(total >= degree * sources);
                if degree * sources >= 4 * repairs {
                    assert_eq!(total, degree * sources, "no row needs more");
                }
            }
        }
    }

    #[test]
    fn a_repair_symbol_is_in_its_equation_and_in_the_next() {
        let code = LdpcStaircase::new(5, 4, 3, 1).unwrap();
        let rows = |repair: usize| code.equations_of(5 + repair).collect::<Vec<_>>();
        assert_eq!((rows(0), rows(2), rows(3)), (vec![0, 1], vec![2, 3], vec![3]));
        for row in 0..4 {
            for symbol in code.equation(row) {
                assert!(code.equations_of(symbol).any(|other| other == row));
            }
        }
    }
}
