//! The tier of AArch64, where NEON is always available.

use core::arch::aarch64::*;

use super::{
    part,
    tables::HALVES,
    vector::{MAX_ROWS, Vector, instructions},
};

/// NEON: multiplies by looking up both halves of each byte.
#[derive(Clone, Copy)]
pub(super) struct Neon(uint8x16_t);

impl Vector for Neon {
    const BYTES: usize = 16;
    /// There are 32 registers; with more columns the compiler, which loads ahead, runs out of them.
    const DOT_COLUMNS: usize = 11;
    const ROWS: usize = 6;
    const MATMUL_COLUMNS: [usize; MAX_ROWS + 1] = [0, 4, 4, 4, 3, 3, 3];
    const PAIRS: bool = false;
    /// The products of the lower and of the upper half.
    type Factor = [uint8x16_t; 2];

    instructions!(vld1q_u8, vst1q_u8, veorq_u8);

    #[inline(always)]
    unsafe fn factor(c: u8) -> Self::Factor {
        let halves = &HALVES[usize::from(c)];
        // SAFETY: the caller's promise, and tables of 16 bytes.
        unsafe { [vld1q_u8(halves.lower.as_ptr()), vld1q_u8(halves.upper.as_ptr())] }
    }

    #[inline(always)]
    unsafe fn times(self, [lower, upper]: Self::Factor) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let low = vandq_u8(self.0, vdupq_n_u8(15));
            let high = vshrq_n_u8::<4>(self.0);
            Self(veorq_u8(vqtbl1q_u8(lower, low), vqtbl1q_u8(upper, high)))
        }
    }

    #[inline(always)]
    unsafe fn load_part(at: *const u8, len: usize) -> Self {
        // SAFETY: the caller's promise, and bytes of a whole register.
        unsafe { Self::load(part::load(at, len).map(u64::to_le).as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn store_part(self, at: *mut u8, len: usize) {
        let mut words = [0; 2];
        // SAFETY: the caller's promise, and bytes of a whole register.
        unsafe {
            self.store(words.as_mut_ptr().cast());
            part::store(words.map(u64::from_le), at, len);
        }
    }
}
