//! One repair symbol.

pub mod encoder;

use super::Case;
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    limits,
    measure::{Kind, Race},
    peers::{isal, one_source, rlnc_simdx},
};
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
        Self::with(sources, n, Coefficients::new(KEY).from(0).take(n).collect())
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
            kernel.dot(dsts[0], &coefficients, &sources);
        })
    }
}

/// The kernel that others are checked against.
pub fn scalar() -> Kernel {
    Kernel::new(Tier::Scalar).unwrap_or_default()
}

/// The limit of reading so many symbols.
pub fn read_limit(n: usize) -> &'static str {
    match n {
        0..=20 => limits::L1,
        21..=1200 => limits::L2,
        _ => limits::L3,
    }
}

/// With coefficients that are ready: kernels against kernels.
pub fn ready(case: Case, sources: &Symbols, n: usize) -> Result<Race<'_>, Error> {
    let job = Single::new(sources, n);
    let title = format!("one repair symbol over {n}, coefficients ready");
    let mut race = Race::new(case, title, n * SYMBOL).within(read_limit(n));
    job.dot(&mut race, ("dot", "Kernel::dot"), Kernel::best())?;
    let label = "one source per pass (stand-in for libmoepgf's best kernel)";
    one_source::single(&mut race, ("one-source", label), Kernel::best(), &job)?;
    let label = "scalar, one source per pass (stand-in for libmoepgf's own choice)";
    one_source::single(&mut race, ("scalar", label), scalar(), &job)?;
    isal::single(&mut race, &job)?;
    rlnc_simdx::single(&mut race, &job)?;
    Ok(race)
}

/// With coefficients that must be made.
pub fn generate(case: Case, sources: &Symbols, n: usize) -> Result<Race<'_>, Error> {
    let job = Single::new(sources, n);
    let title = format!("one repair symbol over {n}, coefficients included");
    let mut race = Race::new(case, title, n * SYMBOL).within(read_limit(n));
    encoder::repair(&mut race, sources, n)?;
    let slots = job.sources.clone();
    race.add(("terms", "Kernel::dot_terms", Kind::Ours), &job.expected, move |dsts| {
        let coefficients = Coefficients::new(KEY).from(0);
        Kernel::best().dot_terms(dsts[0], coefficients.zip(slots.iter().copied()));
    })?;
    let slots = job.sources.clone();
    let label = "one source per pass (stand-in for libmoepgf's best kernel)";
    race.add(("one-source", label, Kind::StandIn), &job.expected, move |dsts| {
        let kernel = Kernel::best();
        for (source, c) in slots.iter().zip(Coefficients::new(KEY).from(0)) {
            kernel.mad(dsts[0], source, c);
        }
    })?;
    Ok(race)
}

/// With AVX2, on CPUs that have it.
pub fn narrow(case: Case, sources: &Symbols, n: usize) -> Result<Race<'_>, Error> {
    let job = Single::new(sources, n);
    let title = format!("one repair symbol over {n}, no more than AVX2");
    let mut race = Race::new(case, title, n * SYMBOL).within("read-l2-avx2");
    if let Some(kernel) = Kernel::new(Tier::Avx2) {
        job.dot(&mut race, ("avx2", "Kernel::dot, AVX2"), kernel)?;
        let label = "AVX2, one source per pass (stand-in for libmoepgf's shuffle_avx2)";
        one_source::single(&mut race, ("one-source-avx2", label), kernel, &job)?;
    }
    if let Some(kernel) = Kernel::new(Tier::Avx2Gfni) {
        job.dot(&mut race, ("avx2-gfni", "Kernel::dot, AVX2 and GFNI"), kernel)?;
    }
    isal::narrow(&mut race, &job)?;
    Ok(race)
}
