//! Code 3: LDPC-Staircase blocks.

use super::Code;
use crate::wire::code_id::CodeId;
use std::ops::Range;
use sutura_erasure::block;
use sutura_erasure::{DecodeError, Decoder, Encoder, RepairOutcome, SpanError};

/// Rows of the parity check matrix in which each source symbol is (N1 of RFC 5170).
const DEGREE: usize = 3;
/// The seed of all matrices.
const SEED: u32 = 1;

/// LDPC-Staircase blocks (RFC 5170, section 6; RFC 6816). The span is the block. The key holds the number of
/// repair symbols of the block, and the index of the repair symbol: see [`key`](Self::key).
///
/// Each repair symbol is the sum of the repair symbol before it and a few source symbols. The code takes only
/// additions, but recovers a little less than Reed-Solomon with as many repair symbols. Eghbal and Lu 2025
/// use this code for blocks that are too large for Reed-Solomon.
#[derive(Debug, Clone, Copy, Default)]
pub struct LdpcStaircase;

impl LdpcStaircase {
    /// The most source symbols of a block.
    pub const MAX_SOURCES: u64 = 1024;
    /// The most repair symbols of a block.
    pub const MAX_REPAIRS: u32 = 256;

    /// The key of repair symbol `index` of the `repairs` that a block has; `None` if the block has no such
    /// repair symbol.
    #[must_use]
    pub const fn key(repairs: u32, index: u32) -> Option<u32> {
        let enough = repairs >= DEGREE as u32 && repairs <= Self::MAX_REPAIRS;
        if enough && index < repairs { Some((repairs - 1) << 8 | index) } else { None }
    }

    /// The fewest rows of the matrix with which `repairs` repair symbols mend more than a single repair
    /// symbol does. With as many rows as N1, each row contains all source symbols, so that the sum of two
    /// rows contains none.
    #[must_use]
    pub const fn rows(repairs: u32) -> u32 {
        let degree = DEGREE as u32;
        match repairs {
            0 | 1 => degree,
            _ if repairs <= degree => degree + 1,
            _ => repairs,
        }
    }

    /// The number of repair symbols of the block, and the index of the repair symbol with this key.
    const fn repairs_and_index(key: u32) -> (u32, u32) {
        ((key >> 8) + 1, key & 0xff)
    }

    /// The coefficients of a repair symbol of a block of `sources` symbols. Empty if the block has no such
    /// repair symbol.
    fn coefficients(sources: u64, key: u32) -> Vec<u8> {
        let (repairs, index) = Self::repairs_and_index(key);
        let sources = usize::try_from(sources).unwrap_or(usize::MAX);
        let matrix = block::LdpcStaircase::new(sources, repairs as usize, DEGREE, SEED);
        let Ok(matrix) = matrix else { return Vec::new() };
        let mut sum = vec![0; sources];
        for row in 0..=index as usize {
            matrix.row(row).iter().for_each(|source| sum[usize::from(*source)] ^= 1);
        }
        sum
    }
}

impl Code for LdpcStaircase {
    fn id(&self) -> CodeId {
        CodeId::LDPC_STAIRCASE
    }

    fn name(&self) -> &'static str {
        "ldpc-staircase"
    }

    fn summary(&self) -> &'static str {
        "sums of a few symbols each, by additions alone, for blocks of any size"
    }

    fn admits(&self, span: &Range<u64>, key: u32) -> bool {
        let sources = span.end.saturating_sub(span.start);
        let (repairs, index) = Self::repairs_and_index(key);
        (2..=Self::MAX_SOURCES).contains(&sources) && Self::key(repairs, index) == Some(key)
    }

    fn coefficient(&self, span: &Range<u64>, key: u32, id: u64) -> u8 {
        let sum = Self::coefficients(span.end.saturating_sub(span.start), key);
        let place = usize::try_from(id.saturating_sub(span.start)).unwrap_or(usize::MAX);
        sum.get(place).copied().unwrap_or(0)
    }

    /// Draws the matrix once for all symbols.
    fn encode(
        &self,
        encoder: &Encoder,
        span: Range<u64>,
        key: u32,
        out: &mut Vec<u8>,
    ) -> Result<usize, SpanError> {
        let sum = Self::coefficients(span.end.saturating_sub(span.start), key);
        let first = span.start;
        encoder.repair_with(
            span,
            |id: u64| sum.get((id - first) as usize).copied().unwrap_or(0),
            out,
        )
    }

    /// Draws the matrix once for all symbols.
    fn decode(
        &self,
        decoder: &mut Decoder,
        span: Range<u64>,
        key: u32,
        payload: &[u8],
    ) -> Result<RepairOutcome, DecodeError> {
        let sum = Self::coefficients(span.end.saturating_sub(span.start), key);
        let first = span.start;
        let coefficient = |id: u64| sum.get((id - first) as usize).copied().unwrap_or(0);
        decoder.repair_with(span, coefficient, payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_erasure::block::BlockCode;

    #[test]
    fn blocks_have_the_shapes_that_the_matrix_has() {
        let admits = |sources: u64, repairs, index| {
            LdpcStaircase::key(repairs, index)
                .is_some_and(|key| LdpcStaircase.admits(&(9..9 + sources), key))
        };
        assert!(admits(2, 3, 0) && admits(100, 5, 4) && admits(1024, 256, 255));
        assert!(!admits(1, 3, 0) && !admits(1025, 3, 0) && !admits(9, 2, 0) && !admits(9, 5, 5));
        assert!(!admits(9, 257, 0));
        assert!(!LdpcStaircase.admits(&(0..9), u32::MAX));
        assert!(!LdpcStaircase.admits(&Range { start: 5, end: 3 }, 0x200));
    }

    /// The repair symbols equal the repair symbols of the block code of the same shape.
    #[test]
    fn repair_symbols_are_those_of_the_block_code() {
        for (sources, repairs) in [(2, 3), (5, 4), (100, 5), (300, 30)] {
            let block = block::LdpcStaircase::new(sources, repairs, DEGREE, SEED).unwrap();
            let span = 1000..1000 + sources as u64;
            for place in 0..sources {
                // If only one symbol of a block is not zero, the repair symbols are the coefficients of that
                // symbol.
                let data: Vec<_> = (0..sources).map(|n| [u8::from(n == place)]).collect();
                let data: Vec<&[u8]> = data.iter().map(|symbol| &symbol[..]).collect();
                let mut out = vec![[0]; repairs];
                let mut slots: Vec<&mut [u8]> = out.iter_mut().map(|r| &mut r[..]).collect();
                block.encode(&data, &mut slots).unwrap();
                for (index, [expected]) in (0..).zip(&out) {
                    let key = LdpcStaircase::key(repairs as u32, index).unwrap();
                    let coefficient =
                        LdpcStaircase.coefficient(&span, key, span.start + place as u64);
                    assert_eq!(coefficient, *expected, "{sources} {place} {index}");
                }
            }
        }
    }
}
