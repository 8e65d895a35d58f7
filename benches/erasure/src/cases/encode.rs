//! One repair symbol.

pub mod encoder;

use super::Case;
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    field, limits,
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

/// One destination, its coefficients, and what must come out.
#[derive(Clone)]
pub struct Single<'a> {
    pub sources: Vec<&'a [u8]>,
    pub coefficients: Vec<u8>,
    pub expected: Symbols,
}

impl<'a> Single<'a> {
    pub fn new(sources: &'a Symbols, n: usize) -> Self {
        Self::with(sources, n, field::coefficients(KEY, n))
    }

    /// With coefficients of ones.
    pub fn sum(sources: &'a Symbols, n: usize) -> Self {
        Self::with(sources, n, vec![1; n])
    }

    fn with(sources: &'a Symbols, n: usize, coefficients: Vec<u8>) -> Self {
        let sources = sources.slots(n);
        let mut expected = Symbols::zeroed(1);
        scalar().dot(expected.slots_mut()[0], &coefficients, &sources);
        Self { sources, coefficients, expected }
    }

    /// Adds [`Kernel::dot`].
    fn dot(
        &self,
        race: &mut Race<'a>,
        (id, label): (&'static str, &str),
        kernel: Kernel,
    ) -> Result<(), Error> {
        let Self { sources, coefficients, .. } = self.clone();
        race.add((id, label, Kind::Ours), &self.expected, move |dsts| {
            kernel.dot(dsts[0], &coefficients, black_box(&sources));
        })
    }

    /// Adds [`Kernel::dot`] on the bytes of symbols without the rest of their slots.
    fn unpadded(&self, race: &mut Race<'a>) -> Result<(), Error> {
        let Self { sources, coefficients, .. } = self.clone();
        let symbols: Vec<&[u8]> = sources.iter().map(|slot| &slot[..SYMBOL]).collect();
        let entry = ("unpadded", "Kernel::dot, 1500 bytes of the slots", Kind::Ours);
        race.add(entry, &self.expected, move |dsts| {
            Kernel::best().dot(&mut dsts[0][..SYMBOL], &coefficients, black_box(&symbols));
        })
    }
}

/// The kernel that others are checked against.
pub fn scalar() -> Kernel {
    Kernel::new(Tier::Scalar).unwrap_or_default()
}

/// With coefficients that are ready: kernels against kernels.
pub fn ready(case: Case, sources: &Symbols, n: usize) -> Result<Race<'_>, Error> {
    let job = Single::new(sources, n);
    let title = format!("one repair symbol over {n}, coefficients ready");
    let mut race = Race::new(case, title, n * SYMBOL).within(limits::READ);
    job.dot(&mut race, ("dot", "Kernel::dot"), Kernel::best())?;
    job.unpadded(&mut race)?;
    let label = "one source per pass (stand-in for libmoepgf's best kernel)";
    one_source::single(&mut race, ("one-source", label), Kernel::best(), &job)?;
    let label = "scalar, one source per pass (stand-in for libmoepgf's own choice)";
    one_source::single(&mut race, ("scalar", label), scalar(), &job)?;
    isal::single(&mut race, &job)?;
    rlnc_simdx::single(&mut race, &job)?;
    limits::read(&mut race, sources, n, limits::ANY);
    Ok(race)
}

/// With coefficients that must be made.
pub fn generate(case: Case, sources: &Symbols, n: usize) -> Result<Race<'_>, Error> {
    let job = Single::new(sources, n);
    let title = format!("one repair symbol over {n}, coefficients included");
    let mut race = Race::new(case, title, n * SYMBOL).within(limits::READ);
    encoder::repair(&mut race, sources, n)?;
    let (slots, mut row) = (job.sources.clone(), vec![0; n]);
    let entry = ("kernel", "Coefficients::fill, Kernel::dot", Kind::Ours);
    race.add(entry, &job.expected, move |dsts| {
        Coefficients::new(KEY).fill(0, &mut row);
        Kernel::best().dot(dsts[0], &row, black_box(&slots));
    })?;
    let (slots, mut row) = (job.sources.clone(), vec![0; n]);
    let label = "one source per pass (stand-in for libmoepgf's best kernel)";
    race.add(("one-source", label, Kind::StandIn), &job.expected, move |dsts| {
        let kernel = Kernel::best();
        Coefficients::new(KEY).fill(0, &mut row);
        for (source, &c) in slots.iter().zip(&row) {
            kernel.mad(dsts[0], source, c);
        }
    })?;
    limits::read(&mut race, sources, n, limits::ANY);
    Ok(race)
}

/// With AVX2, on CPUs that have it.
pub fn narrow(case: Case, sources: &Symbols, n: usize) -> Result<Race<'_>, Error> {
    let job = Single::new(sources, n);
    let title = format!("one repair symbol over {n}, no more than AVX2");
    let mut race = Race::new(case, title, n * SYMBOL).within(limits::READ);
    if let Some(kernel) = Kernel::new(Tier::Avx2) {
        job.dot(&mut race, ("avx2", "Kernel::dot, AVX2"), kernel)?;
        let label = "AVX2, one source per pass (stand-in for libmoepgf's shuffle_avx2)";
        one_source::single(&mut race, ("one-source-avx2", label), kernel, &job)?;
    }
    if let Some(kernel) = Kernel::new(Tier::Avx2Gfni) {
        job.dot(&mut race, ("avx2-gfni", "Kernel::dot, AVX2 and GFNI"), kernel)?;
    }
    isal::narrow(&mut race, &job)?;
    limits::read(&mut race, sources, n, limits::AVX2);
    Ok(race)
}
