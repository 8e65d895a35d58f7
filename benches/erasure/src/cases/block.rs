//! Block codes: Reed-Solomon, random linear, LDPC-Staircase, and parities.

pub mod grid;
mod ours;
pub mod staircase;

use super::{Case, encode::scalar, sums::Sums};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    limits,
    measure::{Kind, Race},
    peers::{isal, raptorq, reed_solomon_erasure, reed_solomon_simd},
};
use std::hint::black_box;
use sutura_erasure::{
    block::{RandomLinear, ReedSolomon},
    kernel::Kernel,
};

/// Source symbols of a Reed-Solomon block.
pub const DATA: usize = 100;
/// Parity symbols of a Reed-Solomon block, and lost source symbols of each.
pub const PARITY: usize = 5;
/// Loss patterns, of which each decode takes the next one.
const PATTERNS: usize = 300;

/// The source symbols that are lost in a turn: one of each twenty, in a different pattern each time.
pub fn lost(turn: usize) -> [usize; PARITY] {
    let pattern = turn % PATTERNS;
    let width = DATA / PARITY;
    let (low, high) = (pattern % width, pattern / width);
    std::array::from_fn(|i| i * width + (low + i * high) % width)
}

pub fn rs_encode(case: Case, sources: &Symbols) -> Result<Race<'_>, Error> {
    let title = format!("Reed-Solomon encoding, {DATA}+{PARITY}");
    let mut race = Race::new(case, title, DATA * PARITY * SYMBOL).within(limits::ALU);
    let code = ReedSolomon::new(DATA, PARITY)?;
    let reference = code.clone().with_kernel(scalar());
    let entry = ("ours", "ReedSolomon::encode", Kind::Ours);
    ours::encode(&mut race, entry, sources, code, &reference)?;
    let code = RandomLinear::new(DATA, PARITY, 0)?;
    let reference = code.clone().with_kernel(scalar());
    let entry = ("random-linear", "RandomLinear::encode", Kind::Ours);
    ours::encode(&mut race, entry, sources, code, &reference)?;
    isal::rs_encode(&mut race, sources)?;
    reed_solomon_simd::rs_encode(&mut race, sources)?;
    reed_solomon_erasure::rs_encode(&mut race, sources)?;
    raptorq::rs_encode(&mut race, sources)?;
    Ok(race)
}

pub fn rs_decode(case: Case, sources: &Symbols) -> Result<Race<'_>, Error> {
    let title = format!("Reed-Solomon decoding, {DATA}+{PARITY}, {PARITY} lost, fresh patterns");
    let mut race = Race::new(case, title, DATA * PARITY * SYMBOL).within(limits::ALU);
    let code = ReedSolomon::new(DATA, PARITY)?;
    let entry = ("ours", "ReedSolomon::decode", Kind::Ours);
    ours::decode(&mut race, entry, sources, code, |turn| lost(turn).to_vec())?;
    // One repair symbol more than losses, for the patterns for which five do not suffice.
    let code = RandomLinear::new(DATA, PARITY + 1, 0)?;
    let entry = ("random-linear", "RandomLinear::decode", Kind::Ours);
    ours::decode(&mut race, entry, sources, code, |turn| lost(turn).to_vec())?;
    isal::rs_decode(&mut race, sources)?;
    reed_solomon_simd::rs_decode(&mut race, sources)?;
    reed_solomon_erasure::rs_decode(&mut race, sources)?;
    raptorq::rs_decode(&mut race, sources)?;
    Ok(race)
}

pub fn xor(case: Case, sources: &Symbols, n: usize) -> Result<Race<'_>, Error> {
    let job = Sums::xor(sources, n);
    let title = format!("one XOR parity over {n}");
    let mut race = Race::new(case, title, n * SYMBOL).within(limits::READ);
    race.add(("sum", "Kernel::sum", Kind::Ours), &job.expected, move |dsts| {
        Kernel::best().sum(dsts[0], black_box(&job.sources));
    })?;
    let code = ReedSolomon::new(n, 1)?;
    let reference = code.clone().with_kernel(scalar());
    let entry = ("reed-solomon", "ReedSolomon::encode, one parity", Kind::Ours);
    ours::encode(&mut race, entry, sources, code, &reference)?;
    let label = "one source per pass (stand-in for libmoepgf with coefficients of 1)";
    race.add(("one-source", label, Kind::StandIn), &job.expected, move |dsts| {
        for slot in &job.sources {
            Kernel::best().xor(dsts[0], slot);
        }
    })?;
    isal::xor(&mut race, job)?;
    limits::read(&mut race, sources, n, limits::ANY);
    Ok(race)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_turn_loses_other_symbols() {
        let patterns: BTreeSet<_> = (0..PATTERNS).map(lost).collect();
        assert_eq!(patterns.len(), PATTERNS);
        assert!(patterns.iter().all(|lost| lost.is_sorted() && lost[4] < DATA));
    }
}
