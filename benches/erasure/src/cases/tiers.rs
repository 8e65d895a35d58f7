//! One operation of all kernels that run here.

use super::{Case, encode::Single, matmul::Product};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    measure::{Kind, Race},
};
use std::hint::black_box;
use sutura_erasure::kernel::Kernel;

/// What a kernel can do.
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
    let mut race = Race::new(case, operation.name(), n * d * SYMBOL);
    for kernel in Kernel::available() {
        let name = kernel.tier().name();
        let entry = (name, name, Kind::Ours);
        match operation {
            Operation::Dot100 | Operation::Dot1000 => {
                let Single { sources, coefficients, expected } = Single::new(sources, n);
                race.add(entry, &expected, move |dsts| {
                    kernel.dot(dsts[0], &coefficients, black_box(&sources));
                })?;
            }
            Operation::Matmul => {
                let Product { sources, coefficients, expected } = Product::new(sources, n, d);
                race.add(entry, &expected, move |dsts| {
                    kernel.matmul(dsts, &coefficients, black_box(&sources));
                })?;
            }
            Operation::Mad => {
                let Single { sources, coefficients, expected } = Single::new(sources, n);
                race.add(entry, &expected, move |dsts| {
                    for (source, &c) in sources.iter().zip(&coefficients) {
                        kernel.mad(dsts[0], source, c);
                    }
                })?;
            }
            Operation::Xor => {
                let Single { sources, expected, .. } = Single::sum(sources, n);
                race.add(entry, &expected, move |dsts| {
                    for source in &sources {
                        kernel.xor(dsts[0], source);
                    }
                })?;
            }
        }
    }
    Ok(race)
}
