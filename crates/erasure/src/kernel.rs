//! Arithmetic on regions of bytes, in which each byte is an element of [GF(256)](crate::gf256).
//!
//! All work on the bytes of symbols is done here. All [`Kernel`]s compute the same results with
//! different instructions. Regions may have any length and alignment. A source shorter than its
//! destination counts as padded with zeros; the excess of a longer source is ignored. Regions that start at a
//! multiple of 64 bytes are read up to 50 % faster than other regions.
//!
//! ```
//! use sutura_erasure::kernel::Kernel;
//!
//! let mut parity = [0; 4];
//! Kernel::best().dot(&mut parity, &[1, 2, 3], &[b"some", b"text", b"more"]);
//! ```

use core::fmt;

use crate::simd::{self, Table};
pub use crate::tier::Tier;

/// The arithmetic of one [`Tier`].
#[derive(Clone, Copy)]
pub struct Kernel(&'static Table);

impl Kernel {
    /// The fastest kernel that runs on this CPU.
    #[must_use]
    pub fn best() -> Self {
        // The standard library caches the CPU's features, so this takes only a few loads.
        Self::available().last().unwrap_or(Self::scalar())
    }

    /// The kernel that runs everywhere.
    fn scalar() -> Self {
        Self(simd::SCALAR)
    }

    /// The kernel of a tier; `None` if the CPU does not support it.
    ///
    /// Without the feature `std`, only tiers that the program is compiled for are available.
    #[must_use]
    pub fn new(tier: Tier) -> Option<Self> {
        simd::table(tier).map(Self)
    }

    /// The kernels that run on this CPU, slowest first.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        Tier::ALL.into_iter().filter_map(Self::new)
    }

    /// The instruction set of this kernel.
    #[must_use]
    pub fn tier(self) -> Tier {
        self.0.tier
    }

    /// Adds `src` to `dst`.
    pub fn xor(self, dst: &mut [u8], src: &[u8]) {
        self.sum(dst, &[src]);
    }

    /// Adds all sources to `dst`.
    pub fn sum(self, dst: &mut [u8], sources: &[&[u8]]) {
        (self.0.sum)(dst, sources);
    }

    /// Adds `c` times `src` to `dst`.
    pub fn mad(self, dst: &mut [u8], src: &[u8], c: u8) {
        if c != 0 {
            (self.0.mad)(dst, src, c);
        }
    }

    /// Multiplies `dst` by `c`.
    pub fn scale(self, dst: &mut [u8], c: u8) {
        if c != 1 {
            (self.0.scale)(dst, c);
        }
    }

    /// Adds a linear combination to `dst`: each source times its coefficient.
    ///
    /// The destination stays in registers while up to 128 sources are processed, so many sources
    /// cost little more than reading them.
    ///
    /// # Panics
    ///
    /// If the number of coefficients differs from the number of sources.
    pub fn dot(self, dst: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) {
        assert_eq!(coefficients.len(), sources.len(), "a coefficient for each source");
        (self.0.dot)(dst, coefficients, sources);
    }

    /// Like [`dot`](Self::dot), with terms that are not in slices.
    pub fn dot_terms<'a>(self, dst: &mut [u8], terms: impl IntoIterator<Item = (u8, &'a [u8])>) {
        const BLOCK: usize = 128;
        let mut coefficients = [0; BLOCK];
        let mut sources: [&[u8]; BLOCK] = [&[]; BLOCK];
        let mut terms = terms.into_iter();
        loop {
            let mut len = 0;
            for ((c, source), term) in coefficients.iter_mut().zip(&mut sources).zip(terms.by_ref())
            {
                (*c, *source) = term;
                len += 1;
            }
            self.dot(dst, &coefficients[..len], &sources[..len]);
            if len < BLOCK {
                break;
            }
        }
    }

    /// Adds a matrix product to the destinations: to each, the [`dot`](Self::dot) product of the
    /// sources with its own row of coefficients. The rows are stored consecutively.
    ///
    /// Sources are read once for up to six destinations.
    ///
    /// # Panics
    ///
    /// If there is not one coefficient for each pair of destination and source.
    pub fn matmul(self, dsts: &mut [&mut [u8]], coefficients: &[u8], sources: &[&[u8]]) {
        let expected = dsts.len() * sources.len();
        assert_eq!(coefficients.len(), expected, "a coefficient for each destination and source");
        match dsts {
            _ if sources.is_empty() => {}
            [dst] => self.dot(dst, coefficients, sources),
            dsts => (self.0.matmul)(dsts, coefficients, sources),
        }
    }
}

impl Default for Kernel {
    fn default() -> Self {
        Self::best()
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.0.tier).finish()
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

#[cfg(test)]
mod tests;
