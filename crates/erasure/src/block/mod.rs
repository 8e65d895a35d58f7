//! Block codes: repair symbols for a fixed number of source symbols.
//!
//! The window code of this crate protects an endless stream. Data of known size, such as an object,
//! a picture or a group of datagrams, can be protected as a *block* instead: `k` source symbols
//! from which `m` repair symbols are made, all of one length. All codes here are *systematic*: the
//! source symbols are sent unchanged. The codes differ in cost and in the losses that they can
//! recover:
//!
//! | code | encoding, for each repair symbol | recovers |
//! |---|---|---|
//! | [`ReedSolomon`] | a product for each source symbol | any `m` losses; `k + m` up to 256 |
//! | [`RandomLinear`] | a product for each source symbol | `m` losses, all but one time in 255 |
//! | [`LdpcStaircase`] | a sum over some of the source symbols | a few losses less than `m` |
//! | [`Xor2d`] | a sum over one row or one column | one loss in each row or column, and bursts |
//!
//! Each decoder recovers every source symbol that is determined by the received symbols, except
//! that [`LdpcStaircase`] bounds its effort and that [`Xor2d`] looks at one row or column at a
//! time. `docs/extension.md`, section "Block codes", defines the codes to the bit.
//!
//! Symbols of different lengths must be padded by the caller as in the window code: the length in
//! front and zeros at the end.
//!
//! ```
//! use sutura_erasure::block::{BlockCode, ReedSolomon};
//!
//! let code = ReedSolomon::new(3, 2)?;
//! let mut repairs = [[0; 4]; 2];
//! let [first, second] = &mut repairs;
//! code.encode(&[b"some", b"more", b"text"], &mut [first, second])?;
//!
//! // The first and the last source symbol are lost.
//! let mut block = [[0; 4], *b"more", [0; 4], repairs[0], repairs[1]];
//! let mut present = [false, true, false, true, true];
//! let decoded = code.decode(&mut block.each_mut().map(|s| &mut s[..]), &mut present)?;
//! assert!(decoded.is_complete());
//! assert_eq!((&block[0], &block[2]), (b"some", b"text"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod binary;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzz;
mod ldpc_staircase;
mod matrix;
mod prng;
mod random_linear;
mod reed_solomon;
mod xor2d;

use alloc::vec::Vec;
use core::fmt;

use crate::kernel::Kernel;

pub use ldpc_staircase::LdpcStaircase;
pub use prng::ParkMiller;
pub use random_linear::RandomLinear;
pub use reed_solomon::ReedSolomon;
pub use xor2d::Xor2d;

/// A systematic erasure code for blocks of symbols of one length.
pub trait BlockCode {
    /// Source symbols of a block, `k`.
    fn sources(&self) -> usize;

    /// Repair symbols of a block, `m`.
    fn repairs(&self) -> usize;

    /// Writes the repair symbols for the source symbols.
    ///
    /// # Errors
    ///
    /// There are not `k` and `m` symbols, or they differ in length. Nothing is written then.
    fn encode(&self, sources: &[&[u8]], repairs: &mut [&mut [u8]]) -> Result<(), BlockError>;

    /// Recovers missing source symbols in place.
    ///
    /// `symbols` are the `k` source symbols followed by the `m` repair symbols, and `present` says
    /// which of them arrived. The other elements are buffers for recovered symbols: their contents do not
    /// matter before, and are meaningless afterwards if they remain missing. Symbols that arrived are only
    /// read.
    ///
    /// The flags of recovered symbols are set: source symbols, and repair symbols that were
    /// computed along the way. No flag is cleared, so the caller may try again when more symbols
    /// arrive.
    ///
    /// Contradictions between symbols are not detected: recovered symbols are correct if the
    /// received ones are.
    ///
    /// # Errors
    ///
    /// There are not `k + m` symbols and flags, or the symbols differ in length. No symbol or flag is written
    /// then.
    fn decode(
        &self,
        symbols: &mut [&mut [u8]],
        present: &mut [bool],
    ) -> Result<Decoded, BlockError>;
}

/// The result of decoding a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Source symbols that were recovered.
    pub recovered: usize,
    /// Source symbols that are still missing.
    pub missing: usize,
}

impl Decoded {
    /// Whether no source symbol is missing.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        self.missing == 0
    }
}

/// Why a block could not be coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockError {
    /// The number of symbols or flags does not fit the code.
    Count {
        /// The number that the code has.
        expected: usize,
        /// The number that was given.
        given: usize,
    },
    /// The symbols differ in length.
    Length,
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { expected, given } => {
                write!(f, "{given} symbols or flags for a code with {expected}")
            }
            Self::Length => f.write_str("the symbols of a block differ in length"),
        }
    }
}

impl core::error::Error for BlockError {}

/// Why a code with these parameters does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterError {
    /// Too few or too many source symbols.
    Sources,
    /// Too few or too many repair symbols.
    Repairs,
    /// No columns, or more columns than source symbols.
    Columns,
    /// A degree outside the range of RFC 6816, or larger than the number of repair symbols.
    Degree,
    /// A seed that is not between 1 and 2^31 - 2.
    Seed,
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sources => "the code has no blocks with so many source symbols",
            Self::Repairs => "the code has no blocks with so many repair symbols",
            Self::Columns => "there must be at least one column and at most one for each symbol",
            Self::Degree => "the degree must be from 3 to 10 and at most the repair symbols",
            Self::Seed => "the seed must be from 1 to 2^31 - 2",
        })
    }
}

impl core::error::Error for ParameterError {}

fn check_count(expected: usize, given: usize) -> Result<(), BlockError> {
    if expected == given { Ok(()) } else { Err(BlockError::Count { expected, given }) }
}

fn check_lengths(mut lengths: impl Iterator<Item = usize>) -> Result<(), BlockError> {
    let first = lengths.next();
    if lengths.all(|len| Some(len) == first) { Ok(()) } else { Err(BlockError::Length) }
}

/// Checks the arguments of [`BlockCode::encode`].
fn check_encode(
    code: &impl BlockCode,
    sources: &[&[u8]],
    repairs: &[&mut [u8]],
) -> Result<(), BlockError> {
    check_count(code.sources(), sources.len())?;
    check_count(code.repairs(), repairs.len())?;
    let lengths = sources.iter().map(|symbol| symbol.len());
    check_lengths(lengths.chain(repairs.iter().map(|symbol| symbol.len())))
}

/// Checks the arguments of [`BlockCode::decode`] and counts the missing source symbols.
fn check_decode(
    code: &impl BlockCode,
    symbols: &[&mut [u8]],
    present: &[bool],
) -> Result<usize, BlockError> {
    let count = code.sources() + code.repairs();
    check_count(count, symbols.len())?;
    check_count(count, present.len())?;
    check_lengths(symbols.iter().map(|symbol| symbol.len()))?;
    Ok(present[..code.sources()].iter().filter(|&&present| !present).count())
}

/// Adds symbols to `dst`, as many at a time as the kernel processes in one pass.
fn add_all<'a>(kernel: Kernel, dst: &mut [u8], symbols: impl Iterator<Item = &'a [u8]>) {
    let symbols: Vec<&[u8]> = symbols.collect();
    for batch in symbols.chunks(128) {
        kernel.sum(dst, batch);
    }
}

/// Adds other symbols to symbol `index`, which is first set to zero if `cleared`.
fn make_sum(
    kernel: Kernel,
    symbols: &mut [&mut [u8]],
    index: usize,
    cleared: bool,
    others: impl IntoIterator<Item = usize>,
) {
    let dst = core::mem::take(&mut symbols[index]);
    if cleared {
        dst.fill(0);
    }
    add_all(kernel, dst, others.into_iter().map(|other| &*symbols[other]));
    symbols[index] = dst;
}
