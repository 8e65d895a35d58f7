//! The tiers of x86-64.

use core::arch::x86_64::*;

use super::{
    tables::{HALVES, MATRICES},
    vector::{MAX_ROWS, Vector, instructions},
};

/// AVX2: multiplies by looking up both halves of each byte.
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256i);

impl Vector for Avx2 {
    const BYTES: usize = 32;
    const DOT_COLUMNS: usize = 8;
    const ROWS: usize = 4;
    const MATMUL_COLUMNS: [usize; MAX_ROWS + 1] = [0, 4, 3, 2, 2, 1, 1];
    const PAIRS: bool = false;
    /// The products of the lower and of the upper half, twice each.
    type Factor = [__m256i; 2];

    instructions!(_mm256_loadu_si256, _mm256_storeu_si256, _mm256_xor_si256);

    #[inline(always)]
    unsafe fn factor(c: u8) -> Self::Factor {
        let halves = &HALVES[usize::from(c)];
        // SAFETY: the caller's promise, and tables of 16 bytes.
        unsafe {
            [
                _mm256_broadcastsi128_si256(_mm_load_si128(halves.lower.as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_load_si128(halves.upper.as_ptr().cast())),
            ]
        }
    }

    #[inline(always)]
    unsafe fn times(self, [lower, upper]: Self::Factor) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let mask = _mm256_set1_epi8(15);
            let low = _mm256_and_si256(self.0, mask);
            let high = _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), mask);
            Self(_mm256_xor_si256(
                _mm256_shuffle_epi8(lower, low),
                _mm256_shuffle_epi8(upper, high),
            ))
        }
    }
}

/// AVX2 with GFNI: one instruction multiplies 32 bytes by a matrix over GF(2).
#[derive(Clone, Copy)]
pub(super) struct Avx2Gfni(__m256i);

impl Vector for Avx2Gfni {
    const BYTES: usize = 32;
    const DOT_COLUMNS: usize = 12;
    const ROWS: usize = 6;
    const MATMUL_COLUMNS: [usize; MAX_ROWS + 1] = [0, 4, 4, 3, 3, 2, 2];
    const PAIRS: bool = false;
    type Factor = __m256i;

    instructions!(_mm256_loadu_si256, _mm256_storeu_si256, _mm256_xor_si256);

    #[inline(always)]
    unsafe fn factor(c: u8) -> Self::Factor {
        // SAFETY: the caller's promise.
        unsafe { _mm256_set1_epi64x(MATRICES[usize::from(c)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn times(self, factor: Self::Factor) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(self.0, factor) })
    }
}

/// AVX-512 with GFNI: 64 bytes at a time, additions of three in one instruction, and loads and
/// stores of partial registers.
#[derive(Clone, Copy)]
pub(super) struct Avx512Gfni(__m512i);

impl Vector for Avx512Gfni {
    const BYTES: usize = 64;
    const DOT_COLUMNS: usize = 24;
    const ROWS: usize = 6;
    const MATMUL_COLUMNS: [usize; MAX_ROWS + 1] = [0, 4, 4, 4, 4, 4, 3];
    const PAIRS: bool = true;
    type Factor = __m512i;

    instructions!(_mm512_loadu_si512, _mm512_storeu_si512, _mm512_xor_si512);

    #[inline(always)]
    unsafe fn add2(self, a: Self, b: Self) -> Self {
        /// The truth table of the exclusive or of three operands.
        const SUM: i32 = 0x96;
        // SAFETY: the caller's promise.
        Self(unsafe { _mm512_ternarylogic_epi64::<SUM>(self.0, a.0, b.0) })
    }

    #[inline(always)]
    unsafe fn factor(c: u8) -> Self::Factor {
        // SAFETY: the caller's promise.
        unsafe { _mm512_set1_epi64(MATRICES[usize::from(c)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn times(self, factor: Self::Factor) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self.0, factor) })
    }

    #[inline(always)]
    unsafe fn load_part(at: *const u8, len: usize) -> Self {
        // SAFETY: the caller's promise; masked-out bytes are not accessed.
        Self(unsafe { _mm512_maskz_loadu_epi8((1 << len) - 1, at.cast()) })
    }

    #[inline(always)]
    unsafe fn store_part(self, at: *mut u8, len: usize) {
        // SAFETY: the caller's promise; masked-out bytes are not accessed.
        unsafe { _mm512_mask_storeu_epi8(at.cast(), (1 << len) - 1, self.0) }
    }
}
