//! Repair symbols that are open while source symbols are pushed.

use super::{
    Case,
    encode::encoder::{check, window_limits},
};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    limits,
    measure::{Kind, Race},
};
use std::hint::black_box;
use sutura_erasure::{Encoder, OpenRepair};

/// Source symbols that each repair symbol covers.
const COVERED: usize = 100;

/// The counted bytes are a symbol for each pair of a source symbol and an open repair symbol; without open
/// repair symbols, a symbol for each source symbol.
pub fn race(case: Case, sources: &Symbols, open: usize) -> Result<Race<'_>, Error> {
    let title = format!("{COVERED} source symbols pushed with {open} repair symbols open");
    let mut race = Race::new(case, title, COVERED * open * SYMBOL).within(limits::ALU);
    let mut pushing = Pushing::new(sources, open);
    pushing.push_window()?;
    for (key, repair) in pushing.repairs.iter().enumerate() {
        check(sources, COVERED, key as u32, repair)?;
    }
    let bytes = race.bytes as usize;
    let entry = ("push", "Encoder::{open_repair, push, close_repair}", Kind::Ours);
    race.add_loop(entry, bytes, move || pushing.push_and_check());
    let mut pushing = Pushing::new(sources, 0);
    let entry = ("push-only", "Encoder::push, nothing open, for each source symbol", Kind::Ours);
    race.add_loop(entry, COVERED * SYMBOL, move || pushing.push_and_check());
    Ok(race)
}

/// An encoder through which one window after the other goes.
struct Pushing<'a> {
    sources: &'a Symbols,
    encoder: Encoder,
    open: Vec<OpenRepair>,
    repairs: Vec<Vec<u8>>,
}

impl<'a> Pushing<'a> {
    fn new(sources: &'a Symbols, open: usize) -> Self {
        let encoder = Encoder::new(window_limits(COVERED));
        Self { sources, encoder, open: Vec::with_capacity(open), repairs: vec![Vec::new(); open] }
    }

    fn push_and_check(&mut self) {
        // The first call was checked, and all others do the same.
        let pushed = self.push_window();
        debug_assert!(pushed.is_ok());
        black_box(&self.repairs);
    }

    fn push_window(&mut self) -> Result<(), Error> {
        let Self { sources, encoder, open, repairs } = self;
        let keys = 0..repairs.len() as u32;
        open.extend(keys.map_while(|key| encoder.open_repair(key)));
        for index in 0..COVERED {
            encoder.push(sources.symbol(index))?;
        }
        for (open, repair) in open.drain(..).zip(repairs) {
            repair.clear();
            encoder.close_repair(open, repair)?;
        }
        encoder.release_below(u64::MAX);
        Ok(())
    }
}
