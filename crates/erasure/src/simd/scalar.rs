//! The portable tier: 64-bit words, without `unsafe`. The other tiers are tested against it.

use crate::gf256;

/// Bytes of a word.
const WORD: usize = 8;

/// The lowest bit of each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// `c` times x^0 to x^7, each repeated in every byte of a word. By linearity, the product of `c`
/// and any element is the sum of the multiples for the element's set bits.
#[derive(Clone, Copy)]
struct Multiples([u64; 8]);

impl Multiples {
    fn of(mut c: u8) -> Self {
        let mut multiples = [0; 8];
        for multiple in &mut multiples {
            *multiple = u64::from(c) * ONES;
            c = gf256::double(c);
        }
        Self(multiples)
    }

    /// Eight products without look-ups or branches: each bit becomes a mask.
    #[inline(always)]
    fn times(&self, word: u64) -> u64 {
        let mut product = 0;
        for (bit, multiple) in self.0.iter().enumerate() {
            let mask = (word >> bit & ONES).wrapping_mul(0xff);
            product ^= mask & multiple;
        }
        product
    }
}

/// Replaces each word of `dst` by `f` of it and of the corresponding word of `src`.
#[inline(always)]
fn words(dst: &mut [u8], src: &[u8], f: impl Fn(u64, u64) -> u64) {
    let len = dst.len().min(src.len());
    let (dst, dst_rest) = dst[..len].as_chunks_mut::<WORD>();
    let (src, src_rest) = src[..len].as_chunks::<WORD>();
    for (d, s) in dst.iter_mut().zip(src) {
        *d = f(u64::from_ne_bytes(*d), u64::from_ne_bytes(*s)).to_ne_bytes();
    }
    for (d, s) in dst_rest.iter_mut().zip(src_rest) {
        *d = f(u64::from(*d), u64::from(*s)) as u8;
    }
}

fn xor(dst: &mut [u8], src: &[u8]) {
    words(dst, src, |d, s| d ^ s);
}

pub(super) fn mad(dst: &mut [u8], src: &[u8], c: u8) {
    match c {
        0 => {}
        1 => xor(dst, src),
        _ => {
            let multiples = Multiples::of(c);
            words(dst, src, |d, s| d ^ multiples.times(s));
        }
    }
}

pub(super) fn scale(dst: &mut [u8], c: u8) {
    let multiples = Multiples::of(c);
    let (words, rest) = dst.as_chunks_mut::<WORD>();
    for word in words {
        *word = multiples.times(u64::from_ne_bytes(*word)).to_ne_bytes();
    }
    for byte in rest {
        *byte = multiples.times(u64::from(*byte)) as u8;
    }
}

pub(super) fn sum(dst: &mut [u8], sources: &[&[u8]]) {
    for source in sources {
        xor(dst, source);
    }
}

pub(super) fn dot(dst: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) {
    for (source, &c) in sources.iter().zip(coefficients) {
        mad(dst, source, c);
    }
}

pub(super) fn matmul(dsts: &mut [&mut [u8]], coefficients: &[u8], sources: &[&[u8]]) {
    for (dst, row) in dsts.iter_mut().zip(coefficients.chunks_exact(sources.len())) {
        dot(dst, row, sources);
    }
}
