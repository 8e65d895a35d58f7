//! Arithmetic on regions of bytes, each byte an element of [GF(256)](crate::gf256).
//!
//! All work on the bytes of symbols is here and nowhere else, in portable code that compilers turn
//! into vector instructions. A region may be shorter than the one it is added to: it counts as
//! padded with zeros. What is longer than the destination is left out.

use crate::gf256;

/// Adds `src` to `dst`.
pub fn xor(dst: &mut [u8], src: &[u8]) {
    for (d, s) in dst.iter_mut().zip(src) {
        *d ^= s;
    }
}

/// Adds `c` times `src` to `dst`.
pub fn mad(dst: &mut [u8], src: &[u8], c: u8) {
    match c {
        0 => return,
        1 => return xor(dst, src),
        _ => {}
    }
    let multiples = multiples(c);
    for (d, s) in dst.iter_mut().zip(src) {
        *d ^= times(*s, &multiples);
    }
}

/// Multiplies `dst` by `c`.
pub fn scale(dst: &mut [u8], c: u8) {
    if c == 1 {
        return;
    }
    let multiples = multiples(c);
    for d in dst {
        *d = times(*d, &multiples);
    }
}

/// Adds a sum of products to `dst`: for each term, the coefficient times the region.
pub fn dot<'a>(dst: &mut [u8], terms: impl IntoIterator<Item = (u8, &'a [u8])>) {
    for (c, src) in terms {
        mad(dst, src, c);
    }
}

/// Whether all bytes are zero.
#[must_use]
pub fn is_zero(region: &[u8]) -> bool {
    region.iter().fold(0, |any, byte| any | byte) == 0
}

/// How many bytes are not zero.
#[must_use]
pub fn weight(region: &[u8]) -> usize {
    region.iter().filter(|&&byte| byte != 0).count()
}

/// `c` times x^0 to x^7. By linearity the product of `c` and any element is the sum of those that
/// belong to the element's bits.
fn multiples(c: u8) -> [u8; 8] {
    let mut multiples = [c; 8];
    for i in 1..8 {
        multiples[i] = gf256::double(multiples[i - 1]);
    }
    multiples
}

/// An element times the constant of `multiples`, from the element's highest bit down.
///
/// There are no look-ups and no branches: the top bit becomes a mask. Compilers make this a loop
/// over 16 or 32 elements at a time, which is several times as fast as any table.
#[inline(always)]
fn times(mut element: u8, multiples: &[u8; 8]) -> u8 {
    let mut product = 0;
    for multiple in multiples.iter().rev() {
        let mask = (element.cast_signed() >> 7).cast_unsigned();
        product ^= mask & multiple;
        element <<= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};

    const LENGTHS: [usize; 12] = [0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 100, 1500];

    fn region(len: usize, salt: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 31 + (i >> 8) + salt * 97) as u8).collect()
    }

    #[test]
    fn every_coefficient_meets_every_element() {
        let elements: Vec<u8> = (0..=255).collect();
        for c in 0..=255 {
            let expected: Vec<u8> = elements.iter().map(|&e| gf256::mul(c, e)).collect();
            let mut scaled = elements.clone();
            scale(&mut scaled, c);
            assert_eq!(scaled, expected, "scale by {c}");
            let mut sum = vec![0; 256];
            mad(&mut sum, &elements, c);
            assert_eq!(sum, expected, "mad with {c}");
        }
    }

    #[test]
    fn every_length_and_offset_agrees_with_single_products() {
        for len in LENGTHS {
            for offset in [0, 1, 5] {
                for c in [0, 1, 2, 0x1d, 0x80, 255] {
                    let src = region(len + offset, 1);
                    let before = region(len + offset, 2);
                    let mut dst = before.clone();
                    mad(&mut dst[offset..], &src[offset..], c);
                    assert_eq!(dst[..offset], before[..offset]);
                    for i in offset..len + offset {
                        assert_eq!(dst[i], before[i] ^ gf256::mul(c, src[i]));
                    }
                    let mut scaled = src.clone();
                    scale(&mut scaled[offset..], c);
                    assert_eq!(scaled[..offset], src[..offset]);
                    for i in offset..len + offset {
                        assert_eq!(scaled[i], gf256::mul(c, src[i]));
                    }
                }
            }
        }
    }

    #[test]
    fn shorter_regions_are_padded_and_longer_ones_cut() {
        for c in [1, 77] {
            let mut long = region(40, 1);
            mad(&mut long, &region(21, 2), c);
            assert_eq!(long[21..], region(40, 1)[21..]);
            let mut short = region(21, 1);
            mad(&mut short, &region(40, 2), c);
            let mut same = region(21, 1);
            mad(&mut same, &region(21, 2), c);
            assert_eq!(short, same);
        }
    }

    #[test]
    fn a_dot_product_is_the_sum_of_its_terms() {
        let regions: Vec<Vec<u8>> = (0..9).map(|i| region(30 + i, i)).collect();
        let mut dst = region(40, 99);
        let mut expected = dst.clone();
        for (i, region) in regions.iter().enumerate() {
            mad(&mut expected, region, i as u8 * 29);
        }
        let terms = regions.iter().enumerate();
        dot(&mut dst, terms.map(|(i, r)| (i as u8 * 29, &r[..])));
        assert_eq!(dst, expected);
    }

    #[test]
    fn zeros_are_counted() {
        assert!(is_zero(&[]) && is_zero(&[0; 50]) && !is_zero(&[0, 0, 4]));
        assert_eq!((weight(&[]), weight(&[0, 3, 0, 1])), (0, 2));
    }
}
