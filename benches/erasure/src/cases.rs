//! The work that is measured.

pub mod block;
pub mod decode;
pub mod encode;
pub mod matmul;
mod push;
pub mod sums;
pub mod tiers;

use crate::{Error, buffers::Symbols, limits, measure::Race, memory::Pages};
pub use decode::Loss;
pub use tiers::Operation;

/// A piece of work that several entries of a race do. `n` counts source symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// A limit of the machine.
    Limits,
    /// One repair symbol, from prepared coefficients.
    Encode { n: usize },
    /// One repair symbol, including the time to make its coefficients.
    Generate { n: usize },
    /// One repair symbol with AVX2.
    Narrow { n: usize },
    /// `d` repair symbols at a time.
    Product { n: usize, d: usize },
    /// `open` repair symbols that grow with the window.
    Push { open: usize },
    /// A window of which one symbol in twenty is lost.
    Decode { n: usize, loss: Loss },
    /// Reed-Solomon, five parities of a hundred symbols.
    RsEncode,
    /// Reed-Solomon, five of a hundred symbols lost.
    RsDecode,
    /// One parity symbol.
    Xor { n: usize },
    /// LDPC-Staircase parities.
    StaircaseEncode,
    /// LDPC-Staircase, with nearly as many losses as the code can recover.
    StaircaseDecode,
    /// Parities of rows and columns.
    GridEncode,
    /// A block of rows and columns with a lost row.
    GridDecode,
    /// One operation of all kernels.
    Tiers(Operation),
}

/// A case, in memory of some kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bout {
    pub case: Case,
    pub pages: Pages,
}

impl From<Case> for Bout {
    fn from(case: Case) -> Self {
        Self { case, pages: Pages::Ordinary }
    }
}

/// The race that does the work of a case, with all entries checked.
pub fn race(Bout { case, pages }: Bout, sources: &Symbols) -> Result<Race<'_>, Error> {
    let mut race = race_of(case, sources, pages)?;
    race.table.pages = pages;
    race.table.title += pages.suffix();
    Ok(race)
}

fn race_of(case: Case, sources: &Symbols, pages: Pages) -> Result<Race<'_>, Error> {
    match case {
        Case::Limits => Ok(limits::race(sources)),
        Case::Encode { n } => encode::ready(case, sources, n),
        Case::Generate { n } => encode::generate(case, sources, n),
        Case::Narrow { n } => encode::narrow(case, sources, n),
        Case::Product { n, d } => matmul::race(case, sources, n, d),
        Case::Push { open } => push::race(case, sources, open),
        Case::Decode { n, loss } => decode::race(case, sources, (n, loss), pages),
        Case::RsEncode => block::rs_encode(case, sources),
        Case::RsDecode => block::rs_decode(case, sources),
        Case::Xor { n } => block::xor(case, sources, n),
        Case::StaircaseEncode => block::staircase::encode(case, sources),
        Case::StaircaseDecode => block::staircase::decode(case, sources),
        Case::GridEncode => block::grid::encode(case, sources),
        Case::GridDecode => block::grid::decode(case, sources),
        Case::Tiers(operation) => tiers::race(case, sources, operation),
    }
}
