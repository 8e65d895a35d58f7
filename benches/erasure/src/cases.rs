//! The work that is measured.

pub mod block;
pub mod decode;
pub mod encode;
pub mod matmul;
pub mod tiers;

use crate::{Error, buffers::Symbols, limits, measure::Race};
pub use decode::Loss;
pub use tiers::Operation;

/// A piece of work that several entries do. `n` counts source symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// What the machine can do.
    Limits,
    /// One repair symbol, with coefficients that are ready.
    Encode { n: usize },
    /// One repair symbol, with coefficients that must be made.
    Generate { n: usize },
    /// One repair symbol with AVX2.
    Narrow { n: usize },
    /// `d` repair symbols at a time.
    Product { n: usize, d: usize },
    /// A window with one in twenty lost.
    Decode { n: usize, loss: Loss },
    /// Reed-Solomon, five parities of a hundred symbols.
    RsEncode,
    /// Reed-Solomon, five of a hundred symbols lost.
    RsDecode,
    /// One parity symbol.
    Xor { n: usize },
    /// LDPC-Staircase parities.
    Staircase,
    /// One operation of all kernels.
    Tiers(Operation),
}

/// The race that does the work of a case, with all entries checked.
pub fn race(case: Case, sources: &Symbols) -> Result<Race<'_>, Error> {
    match case {
        Case::Limits => Ok(limits::race(sources)),
        Case::Encode { n } => encode::ready(case, sources, n),
        Case::Generate { n } => encode::generate(case, sources, n),
        Case::Narrow { n } => encode::narrow(case, sources, n),
        Case::Product { n, d } => matmul::race(case, sources, n, d),
        Case::Decode { n, loss } => decode::race(case, sources, n, loss),
        Case::RsEncode => block::rs_encode(case, sources),
        Case::RsDecode => block::rs_decode(case, sources),
        Case::Xor { n } => block::xor(case, sources, n),
        Case::Staircase => block::staircase(case, sources),
        Case::Tiers(operation) => tiers::race(case, sources, operation),
    }
}
