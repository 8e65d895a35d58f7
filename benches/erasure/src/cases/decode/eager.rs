//! An eager decoder that works on one source per pass: a solver on kernels without products of several
//! sources, such as the kernels of libmoepgf.
//!
//! Each repair symbol is reduced by all known symbols, then by the rows before it; then it reduces these rows
//! itself: the system is in reduced row echelon form at all times.

use super::Losses;
use crate::{
    Error,
    buffers::Symbols,
    clock,
    measure::{Decoded, Kind, Race},
};
use sutura_erasure::{Coefficients, gf256, kernel::Kernel};

pub fn add<'a>(
    race: &mut Race<'a>,
    (id, label): (&'static str, &str),
    kernel: Kernel,
    job: &'a Losses<'a>,
) -> Result<(), Error> {
    let mut solver = Solver::new(kernel, job);
    race.add_decode((id, label, Kind::StandIn), move || {
        solver.pivots.clear();
        let last = job.keys.len() - 1;
        let (total, time) = job.clock.time(|| {
            (0..last).for_each(|index| solver.repair(job, index));
            clock::wall(|| solver.repair(job, last)).0
        });
        job.check(solver.recovered())?;
        Ok(Decoded { total, last: time })
    })
}

struct Solver {
    kernel: Kernel,
    /// Coefficients of one repair symbol over the whole window.
    coefficients: Vec<u8>,
    /// For each row, the missing symbol for which it stands, by its rank among the missing symbols.
    pivots: Vec<usize>,
    /// Coefficients of each row over the missing symbols.
    rows: Vec<Vec<u8>>,
    payloads: Symbols,
}

impl Solver {
    fn new(kernel: Kernel, job: &Losses<'_>) -> Self {
        let count = job.missing.len();
        Self {
            kernel,
            coefficients: vec![0; job.n],
            pivots: Vec::with_capacity(count),
            rows: vec![vec![0; count]; count],
            payloads: Symbols::zeroed(count),
        }
    }

    fn repair(&mut self, job: &Losses<'_>, index: usize) {
        let Self { kernel, coefficients, pivots, rows, payloads } = self;
        Coefficients::new(job.keys[index]).fill(0, coefficients);
        let at = pivots.len();
        let (rows, rest) = rows.split_at_mut(at);
        let Some(row) = rest.first_mut() else { return };
        row.iter_mut().zip(&job.missing).for_each(|(c, &id)| *c = coefficients[id]);

        let mut slots = payloads.slots_mut();
        let (slots, rest) = slots.split_at_mut(at);
        let Some(payload) = rest.first_mut() else { return };
        payload.copy_from_slice(job.repairs.slot(index));
        for (slot, &id) in job.known_slots.iter().zip(&job.known) {
            kernel.mad(payload, slot, coefficients[id]);
        }
        for ((other, slot), &pivot) in rows.iter().zip(&*slots).zip(&*pivots) {
            let c = row[pivot];
            kernel.mad(row, other, c);
            kernel.mad(payload, slot, c);
        }
        let Some(pivot) = row.iter().position(|&c| c != 0) else { return };
        let scale = gf256::inv(row[pivot]);
        kernel.scale(row, scale);
        kernel.scale(payload, scale);
        for (other, slot) in rows.iter_mut().zip(slots) {
            let c = other[pivot];
            kernel.mad(other, row, c);
            kernel.mad(slot, payload, c);
        }
        pivots.push(pivot);
    }

    /// The slots of the missing symbols, in their order.
    fn recovered(&self) -> impl Iterator<Item = &[u8]> {
        let mut order: Vec<usize> = (0..self.pivots.len()).collect();
        order.sort_by_key(|&row| self.pivots[row]);
        order.into_iter().map(|row| self.payloads.slot(row))
    }
}
