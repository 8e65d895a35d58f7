//! The tier of WebAssembly, in builds with `simd128`, as a program cannot detect it at run time.

use core::arch::wasm32::*;

use super::{
    part,
    tables::HALVES,
    vector::{MAX_ROWS, Vector, instructions},
};

/// simd128: multiplies by looking up both halves of each byte.
#[derive(Clone, Copy)]
pub(super) struct Simd128(v128);

impl Vector for Simd128 {
    const BYTES: usize = 16;
    /// The fastest values measured in V8 on x86-64: sharing a source among many rows is worth more
    /// than keeping all sums in its 16 registers.
    const DOT_COLUMNS: usize = 8;
    const ROWS: usize = 6;
    const MATMUL_COLUMNS: [usize; MAX_ROWS + 1] = [0, 4, 4, 3, 3, 3, 3];
    const PAIRS: bool = false;
    /// The products of the lower and of the upper half.
    type Factor = [v128; 2];

    instructions!(v128_load, v128_store, v128_xor);

    #[inline(always)]
    unsafe fn factor(c: u8) -> Self::Factor {
        let halves = &HALVES[usize::from(c)];
        // SAFETY: tables of 16 bytes.
        unsafe {
            [v128_load(halves.lower.as_ptr().cast()), v128_load(halves.upper.as_ptr().cast())]
        }
    }

    #[inline(always)]
    unsafe fn times(self, [lower, upper]: Self::Factor) -> Self {
        let low = v128_and(self.0, u8x16_splat(15));
        let high = u8x16_shr(self.0, 4);
        Self(v128_xor(i8x16_swizzle(lower, low), i8x16_swizzle(upper, high)))
    }

    #[inline(always)]
    unsafe fn load_part(at: *const u8, len: usize) -> Self {
        // SAFETY: the caller's promise.
        let [low, high] = unsafe { part::load(at, len) };
        Self(u64x2(low, high))
    }

    #[inline(always)]
    unsafe fn store_part(self, at: *mut u8, len: usize) {
        let words = [u64x2_extract_lane::<0>(self.0), u64x2_extract_lane::<1>(self.0)];
        // SAFETY: the caller's promise.
        unsafe { part::store(words, at, len) }
    }
}
