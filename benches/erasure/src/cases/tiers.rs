//! One operation of all kernels that run here.

use super::{Case, sums::Sums};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    measure::{Kind, Race},
    peers::one_source,
};
use std::hint::black_box;
use sutura_erasure::kernel::Kernel;

/// The operations of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    Dot100,
    Dot1000,
    Matmul,
    Mad,
    Xor,
}

impl Operation {
    pub const ALL: [Self; 5] = [Self::Dot100, Self::Dot1000, Self::Matmul, Self::Mad, Self::Xor];

    pub fn name(self) -> &'static str {
        match self {
            Self::Dot100 => "dot, 100 sources",
            Self::Dot1000 => "dot, 1000 sources",
            Self::Matmul => "matmul, 6 x 100",
            Self::Mad => "mad, 100 in turn",
            Self::Xor => "xor, 100 in turn",
        }
    }
}

pub fn race(case: Case, sources: &Symbols, operation: Operation) -> Result<Race<'_>, Error> {
    let (n, d) = match operation {
        Operation::Dot1000 => (1000, 1),
        Operation::Matmul => (100, 6),
        _ => (100, 1),
    };
    let mut race = Race::new(case, operation.name(), n * d as usize * SYMBOL);
    let job = match operation {
        Operation::Xor => Sums::xor(sources, n),
        _ => Sums::new(sources, n, 0..d),
    };
    for kernel in Kernel::available() {
        let name = kernel.tier().name();
        race.add((name, name, Kind::Ours), &job.expected, move |dsts| match operation {
            Operation::Dot100 | Operation::Dot1000 => {
                kernel.dot(dsts[0], &job.coefficients, black_box(&job.sources));
            }
            Operation::Matmul => {
                kernel.matmul(dsts, &job.coefficients, black_box(&job.sources));
            }
            Operation::Mad => one_source::mad(kernel, dsts[0], &job.coefficients, &job.sources),
            Operation::Xor => job.sources.iter().for_each(|source| kernel.xor(dsts[0], source)),
        })?;
    }
    Ok(race)
}
