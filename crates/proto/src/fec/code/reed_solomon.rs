//! Code 1: parity symbols of blocks.

use super::Code;
use crate::wire::code_id::CodeId;
use std::ops::Range;
use sutura_erasure::block;

/// Maximum number of source and parity symbols of a block together.
const MAX_SYMBOLS: u64 = block::ReedSolomon::MAX_SYMBOLS as u64;

/// Reed-Solomon blocks. The span is the block, and the key is the number of the parity symbol,
/// counted from 0. Any set of parity symbols recovers as many losses in their block.
///
/// A block has 1 to 255 source symbols, and at most 256 source and parity symbols together. No coefficient
/// depends on the number of parity symbols, so more parity symbols may be sent later.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReedSolomon;

impl Code for ReedSolomon {
    fn id(&self) -> CodeId {
        CodeId::REED_SOLOMON
    }

    fn name(&self) -> &'static str {
        "reed-solomon"
    }

    fn summary(&self) -> &'static str {
        "blocks of which any parity symbols mend as many losses"
    }

    fn admits(&self, span: &Range<u64>, key: u32) -> bool {
        let sources = span.end.saturating_sub(span.start);
        sources > 0 && sources < MAX_SYMBOLS && u64::from(key) < MAX_SYMBOLS - sources
    }

    fn coefficient(&self, span: &Range<u64>, key: u32, id: u64) -> u8 {
        // The key and the place are below 256 in a repair symbol that the code admits.
        let place = id.saturating_sub(span.start).min(MAX_SYMBOLS) as usize;
        block::ReedSolomon::coefficient(u64::from(key).min(MAX_SYMBOLS) as usize, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_at_most_256_symbols() {
        let admits = |sources: u64, key| ReedSolomon.admits(&(9..9 + sources), key);
        assert!(admits(1, 0) && admits(1, 254) && admits(255, 0) && admits(100, 155));
        assert!(!admits(0, 0) && !admits(1, 255) && !admits(255, 1) && !admits(256, 0));
        assert!(!admits(100, 156) && !admits(1 << 40, 0) && !admits(1, u32::MAX));
    }

    #[test]
    fn coefficients_follow_from_the_place_in_the_block() {
        for first in [0, 7, 1 << 40] {
            let span = first..first + 50;
            for key in [0, 1, 20, 205] {
                for id in span.clone() {
                    let place = (id - first) as usize;
                    let expected = block::ReedSolomon::coefficient(key as usize, place);
                    assert_eq!(ReedSolomon.coefficient(&span, key, id), expected);
                    assert_ne!(expected, 0);
                }
            }
        }
    }
}
