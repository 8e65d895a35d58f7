//! LDPC-Staircase with the matrix of the RFC: each source symbol is in five parities, and each parity
//! in the next one.

use super::{Case, ours};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    cases::encode::scalar,
    limits,
    measure::{Kind, Race},
};
use sutura_erasure::{block::LdpcStaircase, kernel::Kernel};

const SOURCES: usize = 1000;
const PARITIES: usize = 50;
/// Parities in which each source symbol is: N1 of the RFC.
const DEGREE: usize = 5;
const SEED: u32 = 1;
/// Lost source symbols: somewhat fewer than parities, so that the parities mostly suffice.
const LOST: usize = 40;

fn race<'a>(case: Case, what: &str) -> Race<'a> {
    let title = format!("LDPC-Staircase, k={SOURCES}, {PARITIES} parities, N1={DEGREE}, {what}");
    // Symbols that are read for all parities.
    let edges = SOURCES * DEGREE + PARITIES - 1;
    Race::new(case, title, edges * SYMBOL).within(limits::READ)
}

pub fn encode(case: Case, sources: &Symbols) -> Result<Race<'_>, Error> {
    let mut race = race(case, "encoding");
    let code = LdpcStaircase::new(SOURCES, PARITIES, DEGREE, SEED)?;
    let reference = code.clone().with_kernel(scalar());
    let entry = ("ours", "LdpcStaircase::encode", Kind::Ours);
    ours::encode(&mut race, entry, sources, code.clone(), &reference)?;
    let mut expected = Symbols::zeroed(PARITIES);
    one_by_one(scalar(), &code, sources, &mut expected.slots_mut());
    let entry = ("one-source", "one source per pass", Kind::StandIn);
    race.add(entry, &expected, move |dsts| one_by_one(Kernel::best(), &code, sources, dsts))?;
    limits::read(&mut race, sources, SOURCES, limits::ANY);
    Ok(race)
}

/// The same parities with one source per pass over the destination.
fn one_by_one(kernel: Kernel, code: &LdpcStaircase, sources: &Symbols, dsts: &mut [&mut [u8]]) {
    let mut before: Option<&[u8]> = None;
    for (row, dst) in dsts.iter_mut().enumerate() {
        match before {
            None => dst.fill(0),
            Some(before) => dst.copy_from_slice(before),
        }
        for &source in code.row(row) {
            kernel.xor(dst, sources.slot(usize::from(source)));
        }
        before = Some(dst);
    }
}

/// The counted bytes are the symbols of all equations, each of which is read at least once.
pub fn decode(case: Case, sources: &Symbols) -> Result<Race<'_>, Error> {
    let mut race = race(case, &format!("{LOST} lost"));
    let code = LdpcStaircase::new(SOURCES, PARITIES, DEGREE, SEED)?;
    let solvable = solvable_patterns(&code)?;
    let entry = ("ours", "LdpcStaircase::decode", Kind::Ours);
    ours::decode(&mut race, entry, sources, code, move |turn| {
        solvable[turn % solvable.len()].clone()
    })?;
    limits::read(&mut race, sources, SOURCES, limits::ANY);
    Ok(race)
}

/// Loss patterns for which the parities suffice, tried out on symbols of one byte.
fn solvable_patterns(code: &LdpcStaircase) -> Result<Vec<Vec<usize>>, Error> {
    use sutura_erasure::block::BlockCode;
    let width = SOURCES / LOST;
    let mut patterns = Vec::new();
    for turn in 0..width {
        let lost: Vec<usize> =
            (0..LOST).map(|i| i * width + (turn + i * i * (turn + 1)) % width).collect();
        let mut bytes = vec![[0u8; 1]; SOURCES + PARITIES];
        let mut symbols: Vec<&mut [u8]> = bytes.iter_mut().map(|byte| &mut byte[..]).collect();
        let mut present = vec![true; symbols.len()];
        lost.iter().for_each(|&index| present[index] = false);
        if code.decode(&mut symbols, &mut present)?.is_complete() {
            patterns.push(lost);
        }
    }
    if patterns.is_empty() { Err("no loss pattern can be recovered".into()) } else { Ok(patterns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_patterns_can_be_recovered() {
        let code = LdpcStaircase::new(SOURCES, PARITIES, DEGREE, SEED).unwrap();
        assert!(solvable_patterns(&code).unwrap().len() > SOURCES / LOST / 2);
    }
}
