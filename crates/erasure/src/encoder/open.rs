//! Repair symbols that grow with the window.

use alloc::vec::Vec;
use core::ops::Range;

use crate::{
    coefficient::Coefficients,
    kernel::Kernel,
    limits::{MAX_OPEN_REPAIRS, vector},
    pool::Pool,
    slot::Slot,
    symbol::{PREFIX, SymbolId},
};

/// Identifies an open repair symbol: see [`Encoder::open_repair`](super::Encoder::open_repair).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpenRepair(u64);

#[derive(Debug)]
struct Open {
    name: OpenRepair,
    first: SymbolId,
    coefficients: Coefficients,
    /// The sum of the products so far, as long as the longest symbol.
    sum: Slot,
}

/// The bound on the memory of all of them, without their sums.
pub(super) const CONTAINER: usize = vector::<Open>(MAX_OPEN_REPAIRS);

/// All open repair symbols.
#[derive(Debug, Default)]
pub(super) struct OpenRepairs {
    open: Vec<Open>,
    opened: u64,
}

impl OpenRepairs {
    /// Starts a repair symbol whose first source symbol will be `first`. `None` if too many are
    /// open.
    pub(super) fn open(
        &mut self,
        first: SymbolId,
        key: u32,
        symbol_size: usize,
        pool: &mut Pool,
    ) -> Option<OpenRepair> {
        if self.open.len() >= MAX_OPEN_REPAIRS {
            return None;
        }
        let name = OpenRepair(self.opened);
        self.opened += 1;
        // Room for the longest symbol, so that the sum never has to be reallocated.
        let sum = pool.take(PREFIX + symbol_size);
        self.open.push(Open { name, first, coefficients: Coefficients::new(key), sum });
        Some(name)
    }

    /// Adds a source symbol in coded form to all of them.
    pub(super) fn add(&mut self, id: SymbolId, coded: &Slot, kernel: Kernel) {
        for open in &mut self.open {
            if open.sum.len() < coded.len() {
                open.sum.resize(coded.len());
            }
            kernel.mad(open.sum.padded_mut(), coded.padded(), open.coefficients.at(id));
        }
    }

    /// Allocated bytes, except for the sums, which belong to the pool.
    pub(super) fn allocated(&self) -> usize {
        self.open.capacity() * size_of::<Open>()
    }

    pub(super) fn shrink(&mut self) {
        self.open.shrink_to_fit();
    }

    /// Removes a repair symbol and appends it to `out`. `None` if it is not open. It covers no symbol if none
    /// was added.
    pub(super) fn close(
        &mut self,
        name: OpenRepair,
        next_id: SymbolId,
        out: &mut Vec<u8>,
        pool: &mut Pool,
    ) -> Option<Range<SymbolId>> {
        let index = self.open.iter().position(|open| open.name == name)?;
        let open = self.open.swap_remove(index);
        out.extend_from_slice(open.sum.bytes());
        pool.give(open.sum);
        Some(open.first..next_id)
    }
}
