//! Small matrices over GF(256), row by row. Some are for ISA-L only.

use sutura_erasure::{Coefficients, gf256, kernel::Kernel};

/// The coefficients of the first `n` symbols in the repair symbol with a key.
pub fn coefficients(key: u32, n: usize) -> Vec<u8> {
    let mut row = vec![0; n];
    Coefficients::new(key).fill(0, &mut row);
    row
}

/// `rows` by `columns` elements of a Cauchy matrix, any square part of which has an inverse. The elements are
/// those of ISA-L: element (i, j) is the inverse of `columns + i` plus `j`.
#[cfg(any(isal, test))]
pub fn cauchy(rows: usize, columns: usize) -> Vec<u8> {
    let element = |i: usize, j: usize| gf256::inv((columns + i) as u8 ^ j as u8);
    (0..rows).flat_map(|i| (0..columns).map(move |j| element(i, j))).collect()
}

/// The inverse of an n by n matrix, by Gauss and Jordan; `None` if the matrix has no inverse.
pub fn invert(kernel: Kernel, matrix: &[u8], n: usize) -> Option<Vec<u8>> {
    let mut rows: Vec<Vec<u8>> = matrix.chunks_exact(n).map(<[u8]>::to_vec).collect();
    for (i, row) in rows.iter_mut().enumerate() {
        row.resize(2 * n, 0);
        row[n + i] = 1;
    }
    for column in 0..n {
        let pivot = (column..n).find(|&row| rows[row][column] != 0)?;
        rows.swap(column, pivot);
        let mut row = std::mem::take(&mut rows[column]);
        let scale = gf256::inv(row[column]);
        kernel.scale(&mut row, scale);
        for other in rows.iter_mut().filter(|other| !other.is_empty()) {
            let c = other[column];
            kernel.mad(other, &row, c);
        }
        rows[column] = row;
    }
    Some(rows.iter().flat_map(|row| row[n..].iter().copied()).collect())
}

/// The product of an n by m matrix and a matrix of m rows.
#[cfg(any(isal, test))]
pub fn multiply(kernel: Kernel, left: &[u8], m: usize, right: &[u8]) -> Vec<u8> {
    let width = right.len() / m;
    let rows: Vec<&[u8]> = right.chunks_exact(width).collect();
    let mut product = vec![0; left.len() / m * width];
    let mut out: Vec<&mut [u8]> = product.chunks_exact_mut(width).collect();
    kernel.matmul(&mut out, left, &rows);
    product
}

/// A field by its polynomial, for checking libraries that have another field.
#[derive(Debug)]
pub struct Field {
    polynomial: u16,
}

impl Field {
    /// The field of AES.
    pub const AES: Self = Self { polynomial: 0x11B };

    /// Products of `c` with all elements.
    pub fn products(&self, c: u8) -> [u8; 256] {
        std::array::from_fn(|b| self.mul(c, b as u8))
    }

    fn mul(&self, a: u8, b: u8) -> u8 {
        let (mut product, mut power) = (0u16, u16::from(a));
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                product ^= power;
            }
            power <<= 1;
            if power & 0x100 != 0 {
                power ^= self.polynomial;
            }
        }
        product as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cauchy_matrix_times_its_inverse_is_the_identity() {
        let kernel = Kernel::best();
        let n = 20;
        let matrix = cauchy(n, n);
        let inverse = invert(kernel, &matrix, n).unwrap();
        let identity: Vec<u8> = (0..n * n).map(|at| u8::from(at / n == at % n)).collect();
        assert_eq!(multiply(kernel, &matrix, n, &inverse), identity);
        assert_eq!(invert(kernel, &[1, 2, 1, 2], 2), None);
    }

    #[test]
    fn the_field_of_aes_has_its_inverses() {
        // FIPS 197, section 4.2: {53} times {ca} is 1.
        assert_eq!(Field::AES.mul(0x53, 0xca), 1);
        assert_eq!(Field::AES.products(0x57)[0x83], 0xc1);
        assert_eq!(Field { polynomial: 0x11D }.mul(0x57, 0x83), gf256::mul(0x57, 0x83));
    }
}
