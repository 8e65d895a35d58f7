//! Instruction sets.

use core::fmt;

/// The instruction set of a [`Kernel`](crate::kernel::Kernel).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tier {
    /// 64-bit words, on any CPU.
    Scalar,
    /// WebAssembly's simd128, if the program is compiled for it.
    Simd128,
    /// NEON, on any AArch64.
    Neon,
    /// AVX2 on x86-64.
    Avx2,
    /// AVX2 with GFNI.
    Avx2Gfni,
    /// AVX-512 (F, BW and VL) with GFNI.
    Avx512Gfni,
}

impl Tier {
    /// All tiers. Among those that run on one machine, later ones are faster.
    pub const ALL: [Self; 6] =
        [Self::Scalar, Self::Simd128, Self::Neon, Self::Avx2, Self::Avx2Gfni, Self::Avx512Gfni];

    /// A name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Simd128 => "simd128",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx2Gfni => "avx2+gfni",
            Self::Avx512Gfni => "avx512+gfni",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
