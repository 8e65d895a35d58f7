//! Code 2: sums of the rows and the columns of blocks.

use super::Code;
use crate::wire::code_id::CodeId;
use std::ops::Range;

/// Two-dimensional parity (RFC 8627, section 1.1.4). The span is the block. Its symbols are written
/// into rows, as many in each as the smallest square that has room for all of them is wide; the last
/// row need not be full. The key is the number of a line: the rows from 0, then the columns. The
/// repair symbol is the sum of that line.
///
/// A block of 25 symbols is a square of five by five with ten repair symbols. It takes only additions,
/// and the columns recover a burst no longer than a row; but more losses than one in a line may be
/// beyond it where another code with as many repair symbols recovers them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parity2d;

impl Parity2d {
    /// The most symbols of a block: a square of sixteen by sixteen.
    pub const MAX_SYMBOLS: u64 = 256;

    /// Number of repair symbols of a block of `symbols`: rows and columns.
    #[must_use]
    pub const fn lines(symbols: u64) -> u64 {
        if symbols == 0 {
            return 0;
        }
        let columns = Self::columns(symbols);
        symbols.div_ceil(columns) + columns
    }

    /// The length of a row.
    const fn columns(symbols: u64) -> u64 {
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
        symbols > 0 && symbols <= Self::MAX_SYMBOLS && u64::from(key) < Self::lines(symbols)
    }

    fn coefficient(&self, span: &Range<u64>, key: u32, id: u64) -> u8 {
        let symbols = span.end.saturating_sub(span.start).max(1);
        let columns = Self::columns(symbols);
        let rows = symbols.div_ceil(columns);
        let place = id.saturating_sub(span.start);
        let line = u64::from(key);
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

    /// The repair symbols are those of the block code of the same shape.
    #[test]
    fn lines_are_those_of_the_block_code() {
        for symbols in [1, 2, 5, 12, 24, 25, 26, 256] {
            let width = (1..).find(|width| width * width >= symbols).unwrap();
            let block = Xor2d::new(symbols, width).unwrap();
            assert_eq!(block.repairs() as u64, Parity2d::lines(symbols as u64));
            let span = 1000..1000 + symbols as u64;
            for place in 0..symbols {
                // A block that is zero but for one symbol has its coefficients as repair symbols.
                let sources: Vec<_> = (0..symbols).map(|n| [u8::from(n == place)]).collect();
                let sources: Vec<&[u8]> = sources.iter().map(|symbol| &symbol[..]).collect();
                let mut repairs = vec![[0]; block.repairs()];
                let mut slots: Vec<&mut [u8]> = repairs.iter_mut().map(|r| &mut r[..]).collect();
                block.encode(&sources, &mut slots).unwrap();
                for (key, [expected]) in (0..).zip(&repairs) {
                    let coefficient = Parity2d.coefficient(&span, key, span.start + place as u64);
                    assert_eq!(coefficient, *expected, "{symbols} {place} {key}");
                }
            }
        }
    }
}
