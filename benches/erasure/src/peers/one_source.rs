//! One source per pass: the form of libmoepgf's kernels, which are in no package registry.
//!
//! These are our own instructions in that form. The destination is loaded and stored again for each source,
//! which takes most of the time, not the multiplication. On x86-64, libmoepgf 1.2 chooses scalar code by
//! itself, whose stand-in is our scalar tier.

use crate::{
    Error,
    cases::sums::Sums,
    measure::{Kind, Race},
};
use sutura_erasure::kernel::Kernel;

/// Repair symbols, one after the other.
pub fn add<'a>(
    race: &mut Race<'a>,
    (id, label): (&'static str, &str),
    kernel: Kernel,
    job: &'a Sums<'a>,
) -> Result<(), Error> {
    race.add((id, label, Kind::StandIn), &job.expected, move |dsts| {
        for (dst, row) in dsts.iter_mut().zip(job.coefficients.chunks_exact(job.sources.len())) {
            mad(kernel, dst, row, &job.sources);
        }
    })
}

/// Adds to `dst` the sum of the sources times their coefficients.
pub fn mad(kernel: Kernel, dst: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) {
    for (source, &c) in sources.iter().zip(coefficients) {
        kernel.mad(dst, source, c);
    }
}
