//! One repair symbol.

pub mod encoder;

use super::{Case, sums::Sums};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    limits,
    measure::{Kind, Race},
    peers::{isal, one_source, rlnc_simdx},
};
use std::hint::black_box;
use sutura_erasure::{
    Coefficients,
    kernel::{Kernel, Tier},
};

/// The key of the repair symbol.
const KEY: u32 = 7;

/// Adds [`Kernel::dot`].
fn dot<'a>(
    race: &mut Race<'a>,
    (id, label): (&'static str, &str),
    kernel: Kernel,
    job: &'a Sums<'a>,
) -> Result<(), Error> {
    race.add((id, label, Kind::Ours), &job.expected, move |dsts| {
        kernel.dot(dsts[0], &job.coefficients, black_box(&job.sources));
    })
}

/// Adds [`Kernel::dot`] on the 1500 bytes of symbols instead of their whole slots.
fn unpadded<'a>(race: &mut Race<'a>, job: &'a Sums<'a>) -> Result<(), Error> {
    let symbols: Vec<&[u8]> = job.sources.iter().map(|slot| &slot[..SYMBOL]).collect();
    let entry = ("unpadded", "Kernel::dot, 1500 bytes of the slots", Kind::Ours);
    race.add(entry, &job.expected, move |dsts| {
        Kernel::best().dot(&mut dsts[0][..SYMBOL], &job.coefficients, black_box(&symbols));
    })
}

/// The kernel against which all others are checked.
pub fn scalar() -> Kernel {
    Kernel::new(Tier::Scalar).unwrap_or_default()
}

/// One repair symbol from prepared coefficients: kernels against kernels.
pub fn ready(case: Case, sources: &Symbols, n: usize) -> Result<Race<'_>, Error> {
    let job = Sums::new(sources, n, KEY..KEY + 1);
    let title = format!("one repair symbol over {n}, coefficients ready");
    let mut race = Race::new(case, title, n * SYMBOL).within(limits::READ);
    dot(&mut race, ("dot", "Kernel::dot"), Kernel::best(), job)?;
    unpadded(&mut race, job)?;
    let label = "one source per pass (stand-in for libmoepgf's best kernel)";
    one_source::add(&mut race, ("one-source", label), Kernel::best(), job)?;
    let label = "scalar, one source per pass (stand-in for libmoepgf's own choice)";
    one_source::add(&mut race, ("scalar", label), scalar(), job)?;
    isal::single(&mut race, job)?;
    rlnc_simdx::single(&mut race, job)?;
    limits::read(&mut race, sources, n, limits::ANY);
    Ok(race)
}

/// One repair symbol, including the time to make its coefficients.
pub fn generate(case: Case, sources: &Symbols, n: usize) -> Result<Race<'_>, Error> {
    let job = Sums::new(sources, n, KEY..KEY + 1);
    let title = format!("one repair symbol over {n}, coefficients included");
    let mut race = Race::new(case, title, n * SYMBOL).within(limits::READ);
    encoder::repair(&mut race, sources, n)?;
    let mut row = vec![0; n];
    let entry = ("kernel", "Coefficients::fill, Kernel::dot", Kind::Ours);
    race.add(entry, &job.expected, move |dsts| {
        Coefficients::new(KEY).fill(0, &mut row);
        Kernel::best().dot(dsts[0], &row, black_box(&job.sources));
    })?;
    let mut row = vec![0; n];
    let label = "one source per pass (stand-in for libmoepgf's best kernel)";
    race.add(("one-source", label, Kind::StandIn), &job.expected, move |dsts| {
        Coefficients::new(KEY).fill(0, &mut row);
        one_source::mad(Kernel::best(), dsts[0], &row, &job.sources);
    })?;
    limits::read(&mut race, sources, n, limits::ANY);
    Ok(race)
}

/// One repair symbol with AVX2, on CPUs that have it.
pub fn narrow(case: Case, sources: &Symbols, n: usize) -> Result<Race<'_>, Error> {
    let job = Sums::new(sources, n, KEY..KEY + 1);
    let title = format!("one repair symbol over {n}, no more than AVX2");
    let mut race = Race::new(case, title, n * SYMBOL).within(limits::READ);
    if let Some(kernel) = Kernel::new(Tier::Avx2) {
        dot(&mut race, ("avx2", "Kernel::dot, AVX2"), kernel, job)?;
        let label = "AVX2, one source per pass (stand-in for libmoepgf's shuffle_avx2)";
        one_source::add(&mut race, ("one-source-avx2", label), kernel, job)?;
    }
    if let Some(kernel) = Kernel::new(Tier::Avx2Gfni) {
        dot(&mut race, ("avx2-gfni", "Kernel::dot, AVX2 and GFNI"), kernel, job)?;
    }
    isal::narrow(&mut race, job)?;
    limits::read(&mut race, sources, n, limits::AVX2);
    Ok(race)
}
