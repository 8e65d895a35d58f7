//! Parities of rows and columns.

use super::{Case, ours};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    cases::encode::scalar,
    limits,
    measure::{Kind, Race},
};
use sutura_erasure::block::Xor2d;

/// Rows and columns.
const SIDE: usize = 10;

fn race<'a>(case: Case, what: &str, symbols: usize) -> Race<'a> {
    let title = format!("two-dimensional parity, {SIDE} by {SIDE}, {what}");
    Race::new(case, title, symbols * SYMBOL).within(limits::READ)
}

/// Each source symbol is read twice.
pub fn encode(case: Case, sources: &Symbols) -> Result<Race<'_>, Error> {
    let mut race = race(case, "encoding", 2 * SIDE * SIDE);
    let code = Xor2d::new(SIDE * SIDE, SIDE)?;
    let reference = code.clone().with_kernel(scalar());
    let entry = ("ours", "Xor2d::encode", Kind::Ours);
    ours::encode(&mut race, entry, sources, code, &reference)?;
    limits::read(&mut race, sources, SIDE * SIDE, limits::ANY);
    Ok(race)
}

/// A burst as long as a row: each column recovers one symbol from its other symbols.
pub fn decode(case: Case, sources: &Symbols) -> Result<Race<'_>, Error> {
    let mut race = race(case, "a burst of a row lost", SIDE * SIDE);
    let code = Xor2d::new(SIDE * SIDE, SIDE)?;
    let entry = ("ours", "Xor2d::decode", Kind::Ours);
    let lost = |turn: usize| {
        let first = turn * 7 % (SIDE * SIDE - SIDE + 1);
        (first..first + SIDE).collect()
    };
    ours::decode(&mut race, entry, sources, code, lost)?;
    limits::read(&mut race, sources, SIDE * SIDE, limits::ANY);
    Ok(race)
}
