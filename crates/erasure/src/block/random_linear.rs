//! The window code's random linear code, applied to a block.

use alloc::{vec, vec::Vec};

use super::{
    BlockCode, BlockError, Decoded, ParameterError, check_decode, check_encode,
    matrix::{Elimination, Linear, Solution},
};
use crate::{coefficient::Coefficients, kernel::Kernel};

/// A random linear code: each repair symbol is the sum of all source symbols, multiplied by
/// pseudorandom coefficients.
///
/// Repair symbol *i* is the repair symbol of the window code with the repair key `key` + *i* (modulo 2^32)
/// over symbols with the ids 0 to `k` - 1 whose coded forms are the source symbols. One repair symbol for
/// each missing source symbol suffices, except about one time in 255, and each further repair symbol makes
/// failures 255 times as rare.
#[derive(Debug, Clone)]
pub struct RandomLinear(Linear);

impl RandomLinear {
    /// The most source symbols.
    pub const MAX_SOURCES: usize = 4096;

    /// The most repair symbols. Solving for that many lost symbols takes about a thousand times as
    /// long as for a tenth of them, so this bounds the effort of a decoder.
    pub const MAX_REPAIRS: usize = 1024;

    /// The code for blocks of `sources` source symbols, at least one, and `repairs` repair symbols
    /// with consecutive keys starting at `key`.
    ///
    /// # Errors
    ///
    /// There is no source symbol, or more than [`MAX_SOURCES`](Self::MAX_SOURCES) or
    /// [`MAX_REPAIRS`](Self::MAX_REPAIRS).
    pub fn new(sources: usize, repairs: usize, key: u32) -> Result<Self, ParameterError> {
        if sources == 0 || sources > Self::MAX_SOURCES {
            return Err(ParameterError::Sources);
        }
        if repairs > Self::MAX_REPAIRS {
            return Err(ParameterError::Repairs);
        }
        let mut parity = vec![0; sources * repairs];
        for (i, row) in (0u32..).zip(parity.chunks_exact_mut(sources)) {
            Coefficients::new(key.wrapping_add(i)).fill(0, row);
        }
        Ok(Self(Linear { sources, repairs, parity, kernel: Kernel::best() }))
    }

    /// The same code using another kernel.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self(Linear { kernel, ..self.0 })
    }
}

impl BlockCode for RandomLinear {
    fn sources(&self) -> usize {
        self.0.sources
    }

    fn repairs(&self) -> usize {
        self.0.repairs
    }

    fn encode(&self, sources: &[&[u8]], repairs: &mut [&mut [u8]]) -> Result<(), BlockError> {
        check_encode(self, sources, repairs)?;
        self.0.encode(sources, repairs);
        Ok(())
    }

    fn decode(
        &self,
        symbols: &mut [&mut [u8]],
        present: &mut [bool],
    ) -> Result<Decoded, BlockError> {
        check_decode(self, symbols, present)?;
        let solve = |lost: &[usize], arrived: &[usize]| {
            let mut system = Elimination::new(self.0.kernel, lost.len(), self.0.repairs);
            let mut used = Vec::with_capacity(lost.len().min(self.0.repairs));
            for &i in arrived {
                let row = self.0.row(i);
                if system.insert(lost.iter().map(|&j| row[j])) {
                    used.push(i);
                }
                if system.is_complete() {
                    break;
                }
            }
            let (solved, multiples) = system.solution();
            let targets = solved.into_iter().map(|unknown| lost[unknown]).collect();
            Solution { targets, used, multiples }
        };
        Ok(self.0.decode(symbols, present, solve))
    }
}
