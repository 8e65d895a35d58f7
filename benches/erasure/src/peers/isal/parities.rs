//! A block as ISA-L's Reed-Solomon code needs it.

use crate::{
    buffers::Symbols,
    cases::{
        block::{DATA, PARITY},
        encode::scalar,
    },
    field,
};
use sutura_erasure::kernel::Kernel;

/// A block's symbols and its parities by the Cauchy matrix of ISA-L.
pub struct Parities<'a> {
    pub data: Vec<&'a [u8]>,
    pub matrix: Vec<u8>,
    pub parity: Symbols,
}

impl<'a> Parities<'a> {
    pub fn new(sources: &'a Symbols) -> Self {
        let data = sources.slots(DATA);
        let matrix = field::cauchy(PARITY, DATA);
        let mut parity = Symbols::zeroed(PARITY);
        scalar().matmul(&mut parity.slots_mut(), &matrix, &data);
        Self { data, matrix, parity }
    }

    /// The symbols that are left, then the parities.
    pub fn received(&self, lost: &[usize]) -> Vec<&[u8]> {
        let left = self.data.iter().enumerate().filter(|(index, _)| !lost.contains(index));
        left.map(|(_, slot)| *slot).chain(self.parity.iter()).collect()
    }

    /// The rows that compute the lost symbols from the [received](Self::received) ones: only a matrix of as
    /// many rows as losses is inverted.
    pub fn decoding_rows(
        &self,
        lost: &[usize],
        invert: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let rows = || self.matrix.chunks_exact(DATA);
        let matrix = rows().flat_map(|row| lost.iter().map(|&column| row[column])).collect();
        let inverse = invert(matrix)?;
        let mut others = Vec::with_capacity(PARITY * DATA);
        for (i, row) in rows().enumerate() {
            let left = row.iter().enumerate().filter(|(column, _)| !lost.contains(column));
            others.extend(left.map(|(_, &c)| c));
            others.extend((0..PARITY).map(|parity| u8::from(parity == i)));
        }
        Some(field::multiply(Kernel::best(), &inverse, PARITY, &others))
    }
}
