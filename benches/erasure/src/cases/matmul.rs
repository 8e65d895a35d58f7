//! Several repair symbols at a time.

use super::{
    Case,
    encode::{encoder, scalar},
};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    field, limits,
    measure::{Kind, Race},
    peers::{isal, one_source},
};
use std::hint::black_box;
use sutura_erasure::kernel::Kernel;

/// Destinations, the rows of their coefficients, and what must come out.
#[derive(Clone)]
pub struct Product<'a> {
    pub sources: Vec<&'a [u8]>,
    pub coefficients: Vec<u8>,
    pub expected: Symbols,
}

impl<'a> Product<'a> {
    pub fn new(sources: &'a Symbols, n: usize, d: usize) -> Self {
        let coefficients: Vec<u8> =
            (0..d as u32).flat_map(|key| field::coefficients(key, n)).collect();
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
    let all = sources;
    let Product { sources, coefficients, .. } = job.clone();
    race.add(("matmul", "Kernel::matmul", Kind::Ours), &job.expected, move |dsts| {
        Kernel::best().matmul(dsts, &coefficients, black_box(&sources));
    })?;
    encoder::burst(&mut race, all, n, d)?;
    one_source::product(&mut race, &job)?;
    isal::product(&mut race, &job)?;
    Ok(race)
}
