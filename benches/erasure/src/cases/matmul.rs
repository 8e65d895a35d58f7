//! Several repair symbols at a time.

use super::{Case, encode::encoder, sums::Sums};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    limits,
    measure::{Kind, Race},
    peers::{isal, one_source},
};
use std::hint::black_box;
use sutura_erasure::kernel::Kernel;

pub fn race(case: Case, sources: &Symbols, n: usize, d: usize) -> Result<Race<'_>, Error> {
    let job = Sums::new(sources, n, 0..d as u32);
    let title = format!("{d} repair symbols over {n}");
    let mut race = Race::new(case, title, n * d * SYMBOL).within(limits::ALU);
    race.add(("matmul", "Kernel::matmul", Kind::Ours), &job.expected, move |dsts| {
        Kernel::best().matmul(dsts, &job.coefficients, black_box(&job.sources));
    })?;
    encoder::burst(&mut race, sources, n, d)?;
    let label = "one source per pass (stand-in for libmoepgf's best kernel)";
    one_source::add(&mut race, ("one-source", label), Kernel::best(), job)?;
    isal::product(&mut race, job)?;
    Ok(race)
}
