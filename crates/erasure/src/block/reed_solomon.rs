//! Reed-Solomon codes over GF(256), in the form of a Cauchy matrix.

use alloc::vec::Vec;

use super::{
    BlockCode, BlockError, Decoded, ParameterError, check_decode, check_encode,
    matrix::{Linear, Solution},
};
use crate::{
    gf256::{inv, mul},
    kernel::Kernel,
};

/// A systematic Reed-Solomon code: any `k` of the `k + m` symbols determine the source symbols.
///
/// The coefficient of source symbol *j* in repair symbol *i* is (255 + *j*) / (255 + *i* + *j*) in
/// the field, where *i* and *j* count from 0: a Cauchy matrix for the points 255 + *i* and *j*,
/// with columns scaled so that the first row is all ones. Repair symbol 0 is therefore the sum of
/// the source symbols, and no coefficient depends on `k` or `m`: a sender may later make more
/// repair symbols of the same block with a code that has a larger `m`.
#[derive(Debug, Clone)]
pub struct ReedSolomon(Linear);

impl ReedSolomon {
    /// The most source and repair symbols together: each is a point of the field.
    pub const MAX_SYMBOLS: usize = 256;

    /// The code for blocks of `sources` source symbols, at least one, and `repairs` repair symbols.
    ///
    /// # Errors
    ///
    /// There is no source symbol, or there are more than [`MAX_SYMBOLS`](Self::MAX_SYMBOLS).
    pub fn new(sources: usize, repairs: usize) -> Result<Self, ParameterError> {
        if sources == 0 || sources > Self::MAX_SYMBOLS {
            return Err(ParameterError::Sources);
        }
        if repairs > Self::MAX_SYMBOLS - sources {
            return Err(ParameterError::Repairs);
        }
        let rows = (0..repairs).flat_map(|i| (0..sources).map(move |j| coefficient(i, j)));
        let (parity, kernel) = (rows.collect(), Kernel::best());
        Ok(Self(Linear { sources, repairs, parity, kernel }))
    }

    /// The coefficient of source symbol `source` in repair symbol `repair`, both counted from 0, in
    /// the codes that have both; 0 if no code has, because the field has too few points.
    #[must_use]
    pub fn coefficient(repair: usize, source: usize) -> u8 {
        if repair + source < Self::MAX_SYMBOLS - 1 { coefficient(repair, source) } else { 0 }
    }

    /// The same code using another kernel.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self(Linear { kernel, ..self.0 })
    }
}

impl BlockCode for ReedSolomon {
    fn sources(&self) -> usize {
        self.0.sources
    }

    fn repairs(&self) -> usize {
        self.0.repairs
    }

    fn encode(&self, sources: &[&[u8]], repairs: &mut [&mut [u8]]) -> Result<(), BlockError> {
        check_encode(self, sources, repairs)?;
        match repairs {
            [sum] => {
                sum.fill(0);
                self.0.kernel.sum(sum, sources);
            }
            repairs => self.0.encode(sources, repairs),
        }
        Ok(())
    }

    fn decode(
        &self,
        symbols: &mut [&mut [u8]],
        present: &mut [bool],
    ) -> Result<Decoded, BlockError> {
        check_decode(self, symbols, present)?;
        Ok(self.0.decode(symbols, present, |lost, arrived| match arrived.get(..lost.len()) {
            None => Solution::default(),
            Some(used) => Solution {
                targets: lost.to_vec(),
                used: used.to_vec(),
                multiples: inverse(lost, used),
            },
        }))
    }
}

/// The point of source symbol `j`.
fn source_point(j: usize) -> u8 {
    j as u8
}

/// The point of repair symbol `i`.
fn repair_point(i: usize) -> u8 {
    !(i as u8)
}

/// The factor of column `j` of the Cauchy matrix.
fn column_scale(j: usize) -> u8 {
    repair_point(0) ^ source_point(j)
}

/// The coefficient of source symbol `j` in repair symbol `i`.
fn coefficient(i: usize, j: usize) -> u8 {
    mul(column_scale(j), inv(repair_point(i) ^ source_point(j)))
}

/// Inverts the matrix of the lost source symbols' coefficients in an equal number of repair symbols. The
/// result has a row for each source symbol and a column for each repair symbol.
///
/// For points x of the repair symbols and y of the source symbols, the inverse of a Cauchy matrix
/// has the elements u(x) v(y) / (x + y), where u(x) is the product of x + y over all y, divided by
/// the product of the differences of x to the other x, and v(y) likewise.
fn inverse(lost: &[usize], used: &[usize]) -> Vec<u8> {
    let x: Vec<u8> = used.iter().map(|&i| repair_point(i)).collect();
    let y: Vec<u8> = lost.iter().map(|&j| source_point(j)).collect();
    let factors = |own: &[u8], others: &[u8]| -> Vec<u8> {
        let product = |point: u8, points: &[u8]| {
            let differences = points.iter().filter(|&&p| p != point).map(|&p| p ^ point);
            differences.fold(1, mul)
        };
        own.iter().map(|&p| mul(product(p, others), inv(product(p, own)))).collect()
    };
    let (u, v) = (factors(&x, &y), factors(&y, &x));

    let mut elements = Vec::with_capacity(lost.len() * used.len());
    for ((&j, &y), &v) in lost.iter().zip(&y).zip(&v) {
        let v = mul(v, inv(column_scale(j)));
        elements.extend(x.iter().zip(&u).map(|(&x, &u)| mul(mul(u, v), inv(x ^ y))));
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_repair_symbol_is_the_sum_and_no_coefficient_is_zero() {
        for j in 0..255 {
            assert_eq!(coefficient(0, j), 1);
            for i in 0..255 - j {
                assert_ne!(coefficient(i, j), 0, "{i}, {j}");
            }
        }
    }

    #[test]
    fn the_closed_form_is_the_inverse() {
        let choices: [(&[usize], &[usize]); 4] = [
            (&[7], &[3]),
            (&[0, 1], &[0, 1]),
            (&[3, 50, 51, 99], &[0, 2, 3, 9]),
            (&[0, 9, 17, 100, 101, 127], &[126, 5, 127, 6, 0, 77]),
        ];
        for (lost, used) in choices {
            let inverse = inverse(lost, used);
            for (row, &j) in inverse.chunks(used.len()).zip(lost) {
                for &other in lost {
                    let products =
                        row.iter().zip(used).map(|(&a, &i)| mul(a, coefficient(i, other)));
                    let sum = products.fold(0, |sum, product| sum ^ product);
                    assert_eq!(sum, u8::from(other == j), "{lost:?} by {used:?}");
                }
            }
        }
    }
}
