//! Tables for multiplication by a constant with vector instructions.

use crate::gf256;

/// For each constant, the matrix over GF(2) that multiplies by it, in the layout of GFNI's affine
/// instructions: row *i* of the product's bits is byte 7 - *i*.
#[cfg(target_arch = "x86_64")]
pub(super) static MATRICES: [u64; 256] = matrices();

#[cfg(target_arch = "x86_64")]
const fn matrices() -> [u64; 256] {
    let mut matrices = [0; 256];
    let mut c = 0;
    while c < 256 {
        let mut multiple = c as u8;
        let mut column = 0;
        while column < 8 {
            let mut row = 0;
            while row < 8 {
                let bit = (multiple >> row & 1) as u64;
                matrices[c] |= bit << (8 * (7 - row) + column);
                row += 1;
            }
            multiple = gf256::double(multiple);
            column += 1;
        }
        c += 1;
    }
    matrices
}

/// The products of one constant with all values of an element's lower and upper half.
#[repr(C, align(32))]
#[derive(Clone, Copy)]
pub(super) struct Halves {
    pub(super) lower: [u8; 16],
    pub(super) upper: [u8; 16],
}

/// [`Halves`] of each constant, for instructions that look bytes up in a table of 16.
pub(super) static HALVES: [Halves; 256] = halves();

const fn halves() -> [Halves; 256] {
    let mut all = [Halves { lower: [0; 16], upper: [0; 16] }; 256];
    let mut c = 0;
    while c < 256 {
        let mut multiple = c as u8;
        let mut bit = 0;
        while bit < 8 {
            let mut value = 0;
            while value < 16 {
                if value >> (bit % 4) & 1 == 1 {
                    if bit < 4 {
                        all[c].lower[value] ^= multiple;
                    } else {
                        all[c].upper[value] ^= multiple;
                    }
                }
                value += 1;
            }
            multiple = gf256::double(multiple);
            bit += 1;
        }
        c += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_add_up_to_products() {
        for (c, table) in (0..=255).zip(&HALVES) {
            for element in 0..=255u8 {
                let product =
                    table.lower[usize::from(element & 15)] ^ table.upper[usize::from(element >> 4)];
                assert_eq!(product, gf256::mul(c, element));
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn matrices_multiply() {
        for (c, matrix) in (0..=255).zip(&MATRICES) {
            for element in 0..=255u8 {
                let bytes = matrix.to_le_bytes();
                let product = (0..8).fold(0, |product, row| {
                    let parity = (bytes[7 - row] & element).count_ones() % 2;
                    product | (parity as u8) << row
                });
                assert_eq!(product, gf256::mul(c, element));
            }
        }
    }
}
