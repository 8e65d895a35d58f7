//! Sums of products, such as repair symbols.

use super::encode::scalar;
use crate::{buffers::Symbols, field};
use std::ops::Range;

/// Sources, the coefficients of each destination in rows, and the expected destinations.
pub struct Sums<'a> {
    pub sources: Vec<&'a [u8]>,
    pub coefficients: Vec<u8>,
    pub expected: Symbols,
}

impl<'a> Sums<'a> {
    /// The repair symbols with `keys` over the first `n` symbols.
    pub fn new(sources: &'a Symbols, n: usize, keys: Range<u32>) -> &'a Self {
        Self::leak(sources, n, keys.flat_map(|key| field::coefficients(key, n)).collect())
    }

    /// The XOR of the first `n` symbols.
    pub fn xor(sources: &'a Symbols, n: usize) -> &'a Self {
        Self::leak(sources, n, vec![1; n])
    }

    /// The sums live as long as the program, like the races that use them.
    fn leak(sources: &'a Symbols, n: usize, coefficients: Vec<u8>) -> &'a Self {
        let sources = sources.slots(n);
        let mut expected = Symbols::zeroed(coefficients.len() / n);
        scalar().matmul(&mut expected.slots_mut(), &coefficients, &sources);
        Box::leak(Box::new(Self { sources, coefficients, expected }))
    }
}
