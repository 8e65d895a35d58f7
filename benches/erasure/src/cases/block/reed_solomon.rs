//! Reed-Solomon on `Kernel::matmul`.

use super::{Block, PARITY};
use crate::{
    Error,
    buffers::Symbols,
    clock, field,
    measure::{Decoded, Kind, Race},
};
use std::rc::Rc;
use sutura_erasure::kernel::Kernel;

/// Parities.
pub fn encode<'a>(race: &mut Race<'a>, job: &Rc<Block<'a>>) -> Result<(), Error> {
    let block = Rc::clone(job);
    let entry = ("ours", "Kernel::matmul, Cauchy matrix (kernel level)", Kind::Ours);
    race.add(entry, &job.parity, move |dsts| {
        dsts.iter_mut().for_each(|dst| dst.fill(0));
        Kernel::best().matmul(dsts, &block.matrix, &block.data);
    })
}

/// Losses.
pub fn decode<'a>(race: &mut Race<'a>, job: &Rc<Block<'a>>) -> Result<(), Error> {
    let job = Rc::clone(job);
    let mut recovered = Symbols::zeroed(PARITY);
    let mut turn = 0;
    let entry =
        ("ours", "Kernel::matmul and the inverse of what is lost (kernel level)", Kind::Ours);
    race.add_decode(entry, move || {
        turn += 1;
        let lost = job.lost(turn);
        let (time, solved) = clock::wall(|| {
            let kernel = Kernel::best();
            let rows = job.decoding_rows(&lost, |m| field::invert(kernel, &m, PARITY))?;
            recovered.clear();
            kernel.matmul(&mut recovered.slots_mut(), &rows, &job.received(&lost));
            Some(())
        });
        solved.ok_or("no inverse")?;
        job.check(&lost, recovered.iter())?;
        Ok(Decoded { total: time, last: time })
    })
}
