//! Two-dimensional parity: sums over the rows and the columns of a block.

use alloc::{vec, vec::Vec};

use super::{
    BlockCode, BlockError, Decoded, ParameterError, add_all, check_decode, check_encode, make_sum,
};
use crate::kernel::Kernel;

/// Two-dimensional parity, the scheme of RFC 8627, section 1.1.4: the source symbols are arranged
/// in rows, and each row and each column has a repair symbol, which is its sum.
///
/// Source symbol *j* is in row *j* / columns and column *j* mod columns; the last row need not be
/// full. The repair symbols of the rows come first, then the repair symbols of the columns.
///
/// The columns recover a burst no longer than a row, and the rows recover single losses. Decoding
/// continues with recovered symbols until no row or column lacks just one symbol. Each symbol still missing
/// then shares its row and its column with other missing symbols, such as the corners of a rectangle, and is
/// usually not determined at all.
#[derive(Debug, Clone)]
pub struct Xor2d {
    sources: usize,
    columns: usize,
    kernel: Kernel,
}

impl Xor2d {
    /// The most source symbols.
    pub const MAX_SOURCES: usize = 1 << 15;

    /// The code for blocks of `sources` source symbols, at least one, in rows of `columns`.
    ///
    /// # Errors
    ///
    /// There is no source symbol or there are more than [`MAX_SOURCES`](Self::MAX_SOURCES), or
    /// there is no column or there are more columns than source symbols.
    pub fn new(sources: usize, columns: usize) -> Result<Self, ParameterError> {
        if sources == 0 || sources > Self::MAX_SOURCES {
            return Err(ParameterError::Sources);
        }
        if columns == 0 || columns > sources {
            return Err(ParameterError::Columns);
        }
        Ok(Self { sources, columns, kernel: Kernel::best() })
    }

    /// The same code using another kernel.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// The number of rows of a block.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.sources.div_ceil(self.columns)
    }

    /// The number of columns of a block.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The source symbols of a line: a row, or, numbered after the rows, a column.
    fn line(&self, line: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        match line.checked_sub(self.rows()) {
            None => {
                let first = line * self.columns;
                (first..(first + self.columns).min(self.sources)).step_by(1)
            }
            Some(column) => (column..self.sources).step_by(self.columns),
        }
    }

    /// The row and the column of a source symbol, as line numbers.
    fn lines_of(&self, source: usize) -> [usize; 2] {
        [source / self.columns, self.rows() + source % self.columns]
    }
}

impl BlockCode for Xor2d {
    fn sources(&self) -> usize {
        self.sources
    }

    fn repairs(&self) -> usize {
        self.rows() + self.columns
    }

    fn encode(&self, sources: &[&[u8]], repairs: &mut [&mut [u8]]) -> Result<(), BlockError> {
        check_encode(self, sources, repairs)?;
        for repair in repairs.iter_mut() {
            repair.fill(0);
        }
        let (rows, columns) = repairs.split_at_mut(self.rows());
        for (repair, row) in rows.iter_mut().zip(sources.chunks(self.columns)) {
            self.kernel.sum(repair, row);
        }
        for (first, repair) in columns.iter_mut().enumerate() {
            let column = sources[first..].iter().step_by(self.columns);
            add_all(self.kernel, repair, column.copied());
        }
        Ok(())
    }

    fn decode(
        &self,
        symbols: &mut [&mut [u8]],
        present: &mut [bool],
    ) -> Result<Decoded, BlockError> {
        let missing = check_decode(self, symbols, present)?;
        let mut decoded = Decoded { recovered: 0, missing };
        if missing == 0 {
            return Ok(decoded);
        }
        // The number of source symbols that each line lacks. No other line contains a line's repair
        // symbol, so a line without it is of no help.
        let mut lacking = vec![0_u32; self.repairs()];
        for source in (0..self.sources).filter(|&source| !present[source]) {
            for line in self.lines_of(source) {
                lacking[line] += 1;
            }
        }
        let lines = 0..self.repairs();
        let mut ready: Vec<usize> = lines.filter(|&line| lacking[line] == 1).collect();
        while let Some(line) = ready.pop() {
            let repair = self.sources + line;
            let lost = self.line(line).find(|&source| !present[source]);
            let (Some(lost), true) = (lost, present[repair]) else {
                continue;
            };
            let others = self.line(line).filter(|&source| source != lost);
            make_sum(self.kernel, symbols, lost, true, others.chain([repair]));
            present[lost] = true;
            decoded = Decoded { recovered: decoded.recovered + 1, missing: decoded.missing - 1 };
            for line in self.lines_of(lost) {
                lacking[line] -= 1;
                if lacking[line] == 1 {
                    ready.push(line);
                }
            }
        }
        Ok(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cover_every_source_symbol_twice() {
        for sources in 1..30 {
            for columns in 1..=sources {
                let code = Xor2d::new(sources, columns).unwrap();
                let mut seen = vec![Vec::new(); sources];
                for line in 0..code.repairs() {
                    assert!(code.line(line).next().is_some(), "no line is empty");
                    for source in code.line(line) {
                        seen[source].push(line);
                    }
                }
                for (source, lines) in seen.into_iter().enumerate() {
                    assert_eq!(lines, code.lines_of(source));
                }
            }
        }
    }
}
