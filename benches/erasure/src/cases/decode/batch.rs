//! All repair symbols at once, made of kernels: product, inverse, product.

use super::{Losses, columns};
use crate::{
    Error,
    buffers::Symbols,
    clock, field,
    measure::{Decoded, Kind, Race},
};
use std::rc::Rc;
use sutura_erasure::{Coefficients, kernel::Kernel};

/// Coefficients of all repair symbols: those of known symbols and those of missing ones.
pub fn coefficients(job: &Losses<'_>) -> (Vec<u8>, Vec<u8>) {
    let mut known = Vec::with_capacity(job.keys.len() * job.known.len());
    let mut missing = Vec::with_capacity(job.keys.len() * job.missing.len());
    let mut row = Vec::with_capacity(job.n);
    for &key in &job.keys {
        row.clear();
        row.extend(Coefficients::new(key).from(0).take(job.n));
        known.extend(job.known.iter().map(|&id| row[id]));
        missing.extend(columns(key, &job.missing));
    }
    (known, missing)
}

pub fn add<'a>(race: &mut Race<'a>, job: &Rc<Losses<'a>>) -> Result<(), Error> {
    let job = Rc::clone(job);
    let count = job.missing.len();
    let (mut residuals, mut recovered) = (Symbols::zeroed(count), Symbols::zeroed(count));
    let entry = ("batch", "batch (kernel level: product, inverse, product)", Kind::Ours);
    race.add_decode(entry, move || {
        let (total, (last, solved)) =
            job.clock.time(|| clock::wall(|| decode(&job, &mut residuals, &mut recovered)));
        solved.ok_or("no inverse")?;
        job.check(recovered.iter())?;
        Ok(Decoded { total, last })
    })
}

fn decode(job: &Losses<'_>, residuals: &mut Symbols, recovered: &mut Symbols) -> Option<()> {
    let kernel = Kernel::best();
    let count = job.missing.len();
    let (known, missing) = coefficients(job);
    residuals.copy_from(&job.repairs);
    kernel.matmul(&mut residuals.slots_mut(), &known, &job.known_slots);
    let inverse = field::invert(kernel, &missing, count)?;
    recovered.clear();
    kernel.matmul(&mut recovered.slots_mut(), &inverse, &residuals.slots(count));
    Some(())
}
