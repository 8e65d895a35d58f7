//! One source per pass: the form of libmoepgf's kernels, which are in no package registry.
//!
//! These are our own instructions in that form. The destination is loaded and stored again for
//! each source, which is what costs the time, and not the multiplication. What libmoepgf 1.2
//! chooses by itself on x86-64 is scalar code, whose stand-in is our scalar tier.

use crate::{
    Error,
    cases::{encode::Single, matmul::Product},
    measure::{Kind, Race},
};
use sutura_erasure::kernel::Kernel;

/// One repair symbol.
pub fn single<'a>(
    race: &mut Race<'a>,
    (id, label): (&'static str, &str),
    kernel: Kernel,
    job: &Single<'a>,
) -> Result<(), Error> {
    let Single { sources, coefficients, .. } = job.clone();
    race.add((id, label, Kind::StandIn), &job.expected, move |dsts| {
        for (source, &c) in sources.iter().zip(&coefficients) {
            kernel.mad(dsts[0], source, c);
        }
    })
}

/// Several repair symbols, one after the other.
pub fn product<'a>(race: &mut Race<'a>, job: &Product<'a>) -> Result<(), Error> {
    let Product { sources, coefficients, .. } = job.clone();
    let kernel = Kernel::best();
    let label = "one source per pass (stand-in for libmoepgf's best kernel)";
    race.add(("one-source", label, Kind::StandIn), &job.expected, move |dsts| {
        for (dst, row) in dsts.iter_mut().zip(coefficients.chunks_exact(sources.len())) {
            for (source, &c) in sources.iter().zip(row) {
                kernel.mad(dst, source, c);
            }
        }
    })
}
