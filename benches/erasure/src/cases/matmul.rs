//! Several repair symbols at a time.

use super::{Case, encode::scalar};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    limits,
    measure::{Kind, Race},
    peers::{isal, one_source},
};
use sutura_erasure::{Coefficients, kernel::Kernel};

/// Destinations, the rows of their coefficients, and what must come out.
#[derive(Clone)]
pub struct Product<'a> {
    pub sources: Vec<&'a [u8]>,
    pub coefficients: Vec<u8>,
    pub expected: Symbols,
}

impl<'a> Product<'a> {
    pub fn new(sources: &'a Symbols, n: usize, d: usize) -> Self {
        let row = |key| Coefficients::new(key).from(0).take(n);
        let coefficients: Vec<u8> = (0..d as u32).flat_map(row).collect();
        let sources = sources.slots(n);
        let mut expected = Symbols::zeroed(d);
        scalar().matmul(&mut expected.slots_mut(), &coefficients, &sources);
        Self { sources, coefficients, expected }
    }
}

pub fn race(case: Case, sources: &Symbols, n: usize, d: usize) -> Result<Race<'_>, Error> {
    let job = Product::new(sources, n, d);
    let title = format!("{d} repair symbols over {n}");
    let mut race = Race::new(case, title, n * d * SYMBOL).within(limits::ALU);
    let Product { sources, coefficients, .. } = job.clone();
    race.add(("matmul", "Kernel::matmul", Kind::Ours), &job.expected, move |dsts| {
        Kernel::best().matmul(dsts, &coefficients, &sources);
    })?;
    one_source::product(&mut race, &job)?;
    isal::product(&mut race, &job)?;
    Ok(race)
}
