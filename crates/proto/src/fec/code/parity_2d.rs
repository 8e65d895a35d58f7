//! Code 2: sums of the rows and the columns of blocks.

use super::Code;
use crate::wire::code_id::CodeId;
use std::ops::Range;

/// Two-dimensional parity (RFC 8627, section 1.1.4). The span is the block. Its symbols are written
/// into rows; the last row need not be full. The repair symbol is the sum of a line: a row or a column.
///
/// The key is 256 * c + i, where c is the length of a row, and i the number of the line: the rows from 0,
/// then the columns. With c = 0, the block is the smallest square that has room for all symbols, and a row is
/// as long as the square is wide.
///
/// A block of 25 symbols is a square of five by five with ten repair symbols. The code takes only additions,
/// and the columns recover a burst no longer than a row. But it may fail at several losses in a line that
/// another code with as many repair symbols recovers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parity2d;

impl Parity2d {
    /// The most symbols of a block: a square of sixteen by sixteen.
    pub const MAX_SYMBOLS: u64 = 256;
    /// The most lines of a block.
    pub const MAX_LINES: u64 = 256;

    /// Number of repair symbols of a block of `symbols` in a square: rows and columns.
    #[must_use]
    pub const fn lines(symbols: u64) -> u64 {
        Self::lines_in(symbols, 0)
    }

    /// Number of repair symbols of a block of `symbols` in rows of `columns`; 0 `columns` means a square.
    /// Columns without symbols do not count.
    #[must_use]
    pub const fn lines_in(symbols: u64, columns: u64) -> u64 {
        if symbols == 0 {
            return 0;
        }
        let columns = Self::width(symbols, columns);
        symbols.div_ceil(columns) + columns
    }

    /// The key of line `line` of a block of `symbols` in rows of `columns`; `None` if the block has no such
    /// line.
    #[must_use]
    pub fn key(symbols: u64, columns: u32, line: u32) -> Option<u32> {
        let columns = u64::from(columns).min(symbols);
        let fits = symbols <= Self::MAX_SYMBOLS
            && u64::from(line) < Self::lines_in(symbols, columns).min(Self::MAX_LINES);
        let columns = u32::try_from(columns).ok().filter(|_| fits)?;
        Some(columns << 8 | line)
    }

    /// The length of a row of at most `columns` symbols, or of a row of the square if `columns` is 0.
    const fn width(symbols: u64, columns: u64) -> u64 {
        if columns > 0 {
            return if columns < symbols { columns } else { symbols };
        }
        let root = symbols.isqrt();
        if root * root < symbols { root + 1 } else { root }
    }
}

impl Code for Parity2d {
    fn id(&self) -> CodeId {
        CodeId::PARITY_2D
    }

    fn name(&self) -> &'static str {
        "parity-2d"
    }

    fn summary(&self) -> &'static str {
        "sums of the rows and columns of blocks, by additions alone"
    }

    fn admits(&self, span: &Range<u64>, key: u32) -> bool {
        let symbols = span.end.saturating_sub(span.start);
        symbols > 0 && Self::key(symbols, key >> 8, key & 0xff) == Some(key)
    }

    fn coefficient(&self, span: &Range<u64>, key: u32, id: u64) -> u8 {
        let symbols = span.end.saturating_sub(span.start).max(1);
        let columns = Self::width(symbols, u64::from(key >> 8));
        let rows = symbols.div_ceil(columns);
        let place = id.saturating_sub(span.start);
        let line = u64::from(key & 0xff);
        u8::from(match line.checked_sub(rows) {
            None => place / columns == line,
            Some(column) => place % columns == column,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_erasure::block::{BlockCode, Xor2d};

    #[test]
    fn blocks_are_near_squares() {
        let lines: Vec<_> = (0..=10).map(Parity2d::lines).collect();
        assert_eq!(lines, [0, 2, 3, 4, 4, 5, 5, 6, 6, 6, 7]);
        assert_eq!((Parity2d::lines(25), Parity2d::lines(256)), (10, 32));
        let admits = |symbols: u64, key| Parity2d.admits(&(9..9 + symbols), key);
        assert!(admits(1, 1) && admits(25, 9) && admits(256, 31));
        assert!(!admits(0, 0) && !admits(25, 10) && !admits(257, 0) && !admits(1, u32::MAX));
        assert!(!admits(1 << 40, 0) && !Parity2d.admits(&Range { start: 5, end: 3 }, 0));
    }

    #[test]
    fn rows_may_be_as_long_as_the_sender_says() {
        assert_eq!(
            [1, 4, 5, 6, 10, 11, 25].map(|k| Parity2d::lines_in(k, 5)),
            [2, 5, 6, 7, 7, 8, 10]
        );
        assert_eq!(Parity2d::lines_in(125, 25), 30);
        assert_eq!(Parity2d::key(125, 25, 29), Some(25 << 8 | 29));
        assert_eq!((Parity2d::key(125, 25, 30), Parity2d::key(257, 25, 0)), (None, None));
        // No row is longer than the block, and no two keys stand for the same repair symbol.
        assert_eq!(Parity2d::key(3, 5, 3), Some(3 << 8 | 3));
        let admits = |symbols: u64, key| Parity2d.admits(&(9..9 + symbols), key);
        assert!(admits(3, 3 << 8) && !admits(3, 5 << 8));
        assert!(admits(256, 1 << 8 | 255) && !admits(256, 257 << 8) && !admits(0, 1 << 8));
    }

    /// The repair symbols equal the repair symbols of the block code of the same shape.
    #[test]
    fn lines_are_those_of_the_block_code() {
        for symbols in [1_usize, 2, 5, 12, 24, 25, 26, 256] {
            let square = (1..).find(|width| width * width >= symbols).unwrap();
            for (columns, width) in [(0, square), (1, 1), (7, 7), (25, 25), (60, 60)] {
                let width = width.min(symbols);
                if symbols.div_ceil(width) + width <= 256 {
                    compare(symbols, columns, &Xor2d::new(symbols, width).unwrap());
                }
            }
        }
    }

    fn compare(symbols: usize, columns: u32, block: &Xor2d) {
        let lines = Parity2d::lines_in(symbols as u64, columns.into());
        assert_eq!(block.repairs() as u64, lines);
        let span = 1000..1000 + symbols as u64;
        for place in 0..symbols {
            // If only one symbol of a block is not zero, the repair symbols are the coefficients of that
            // symbol.
            let sources: Vec<_> = (0..symbols).map(|n| [u8::from(n == place)]).collect();
            let sources: Vec<&[u8]> = sources.iter().map(|symbol| &symbol[..]).collect();
            let mut repairs = vec![[0]; block.repairs()];
            let mut slots: Vec<&mut [u8]> = repairs.iter_mut().map(|r| &mut r[..]).collect();
            block.encode(&sources, &mut slots).unwrap();
            for (line, [expected]) in (0..).zip(&repairs) {
                let key = Parity2d::key(symbols as u64, columns, line).unwrap();
                let coefficient = Parity2d.coefficient(&span, key, span.start + place as u64);
                assert_eq!(coefficient, *expected, "{symbols} {place} {key}");
            }
        }
    }
}
