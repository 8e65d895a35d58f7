//! The only module with `unsafe` code: vector instructions and their safety requirements.
//!
//! [`vector`] has the loops over regions, and the modules of the tiers have the instructions for
//! them. The module's interface is safe: a [`Table`] is only handed out on a CPU that supports its
//! functions.
#![allow(unsafe_code, reason = "vector instructions work on pointers")]

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(test, target_arch = "aarch64", all(target_arch = "wasm32", target_feature = "simd128")))]
mod part;
mod scalar;
#[cfg(any(
    test,
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
mod tables;
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
mod vector;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::tier::Tier;

/// The functions of a tier. [`Kernel`](crate::kernel::Kernel) documents them, and checks the number
/// of coefficients.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) tier: Tier,
    pub(crate) mad: fn(&mut [u8], &[u8], u8),
    pub(crate) scale: fn(&mut [u8], u8),
    pub(crate) sum: fn(&mut [u8], &[&[u8]]),
    pub(crate) dot: fn(&mut [u8], &[u8], &[&[u8]]),
    pub(crate) matmul: Matmul,
}

/// Destinations, a row of coefficients for each, and sources.
type Matmul = fn(&mut [&mut [u8]], &[u8], &[&[u8]]);

/// The tier that is always available.
pub(crate) static SCALAR: &Table = &SCALAR_TABLE;

static SCALAR_TABLE: Table = Table {
    tier: Tier::Scalar,
    mad: scalar::mad,
    scale: scalar::scale,
    sum: scalar::sum,
    dot: scalar::dot,
    matmul: scalar::matmul,
};

/// Instantiates the loops in [`vector`] as a tier's functions.
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
macro_rules! tier {
    ($module:ident, $tier:expr, $vector:ty, $features:literal) => {
        mod $module {
            use super::{Tier, vector};

            #[target_feature(enable = $features)]
            unsafe fn mad(dst: &mut [u8], src: &[u8], c: u8) {
                // SAFETY: the CPU has the instructions.
                unsafe { vector::mad::<$vector>(dst, src, c) }
            }

            #[target_feature(enable = $features)]
            unsafe fn scale(dst: &mut [u8], c: u8) {
                // SAFETY: the CPU has the instructions.
                unsafe { vector::scale::<$vector>(dst, c) }
            }

            #[target_feature(enable = $features)]
            unsafe fn sum(dst: &mut [u8], sources: &[&[u8]]) {
                // SAFETY: the CPU has the instructions.
                unsafe { vector::dot::<$vector, false>(dst, &[], sources) }
            }

            #[target_feature(enable = $features)]
            unsafe fn dot(dst: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) {
                assert_eq!(coefficients.len(), sources.len());
                // SAFETY: the CPU has the instructions, and there are coefficients for all.
                unsafe { vector::dot::<$vector, true>(dst, coefficients, sources) }
            }

            #[target_feature(enable = $features)]
            unsafe fn matmul(dsts: &mut [&mut [u8]], coefficients: &[u8], sources: &[&[u8]]) {
                assert_eq!(coefficients.len(), dsts.len() * sources.len());
                // SAFETY: the CPU has the instructions, and there are coefficients for all.
                unsafe { vector::matmul::<$vector>(dsts, coefficients, sources) }
            }

            // SAFETY (all of them): `table` hands this out where the CPU has the instructions.
            pub(super) static TABLE: super::Table = super::Table {
                tier: $tier,
                mad: |dst, src, c| unsafe { mad(dst, src, c) },
                scale: |dst, c| unsafe { scale(dst, c) },
                sum: |dst, sources| unsafe { sum(dst, sources) },
                dot: |dst, coefficients, sources| unsafe { dot(dst, coefficients, sources) },
                matmul: |dsts, coefficients, sources| unsafe {
                    matmul(dsts, coefficients, sources)
                },
            };
        }
    };
}

#[cfg(target_arch = "x86_64")]
tier!(avx2, Tier::Avx2, super::x86::Avx2, "avx2");
#[cfg(target_arch = "x86_64")]
tier!(avx2_gfni, Tier::Avx2Gfni, super::x86::Avx2Gfni, "avx2,gfni");
#[cfg(target_arch = "x86_64")]
tier!(avx512_gfni, Tier::Avx512Gfni, super::x86::Avx512Gfni, "avx512f,avx512bw,avx512vl,gfni");
#[cfg(target_arch = "aarch64")]
tier!(neon_tier, Tier::Neon, super::neon::Neon, "neon");
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
tier!(simd128, Tier::Simd128, super::wasm::Simd128, "simd128");

/// Has the CPU load the cache lines of memory that will soon be written.
pub(crate) fn prefetch(region: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        let load = |line: &[u8]| {
            // SAFETY: every such CPU has the instruction, which accesses no memory.
            unsafe {
                core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
                    line.as_ptr().cast(),
                );
            }
        };
        let (lines, rest) = region.as_chunks::<64>();
        lines.iter().for_each(|line| load(line));
        load(rest);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = region;
}

/// Whether the CPU has instructions: detected at run time with the standard library, otherwise
/// known from the target features of the build.
#[cfg(target_arch = "x86_64")]
macro_rules! has {
    ($($feature:tt),*) => {{
        #[cfg(feature = "std")]
        let has = true $(&& std::arch::is_x86_feature_detected!($feature))*;
        #[cfg(not(feature = "std"))]
        let has = true $(&& cfg!(target_feature = $feature))*;
        has
    }};
}

/// The functions of a tier, if this CPU supports it.
pub(crate) fn table(tier: Tier) -> Option<&'static Table> {
    match tier {
        Tier::Scalar => Some(SCALAR),
        #[cfg(target_arch = "x86_64")]
        Tier::Avx2 if has!("avx2") => Some(&avx2::TABLE),
        #[cfg(target_arch = "x86_64")]
        Tier::Avx2Gfni if has!("avx2", "gfni") => Some(&avx2_gfni::TABLE),
        #[cfg(target_arch = "x86_64")]
        Tier::Avx512Gfni if has!("avx512f", "avx512bw", "avx512vl", "gfni") => {
            Some(&avx512_gfni::TABLE)
        }
        #[cfg(target_arch = "aarch64")]
        Tier::Neon => Some(&neon_tier::TABLE),
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Tier::Simd128 => Some(&simd128::TABLE),
        _ => None,
    }
}
