//! Parities of the shape of LDPC-Staircase (RFC 6816), on `Kernel::sum`: each source symbol is in
//! five parities, and each parity in the next one. Which are which is not the RFC's choice here.

use crate::{
    Error,
    buffers::Symbols,
    cases::encode::scalar,
    measure::{Kind, Race},
};
use std::fmt;
use sutura_erasure::{coefficient, kernel::Kernel};

const SOURCES: usize = 1000;
const PARITIES: usize = 50;
/// Parities that a source symbol is in: N1 of the RFC.
const DEGREE: usize = 5;

/// The source symbols of each parity.
#[derive(Clone)]
pub struct Staircase<'a> {
    parities: Vec<Vec<&'a [u8]>>,
}

impl<'a> Staircase<'a> {
    pub fn new(sources: &'a Symbols) -> Self {
        let mut parities = vec![Vec::new(); PARITIES];
        for (id, slot) in sources.slots(SOURCES).into_iter().enumerate() {
            let mut chosen = Vec::new();
            for key in 0.. {
                let parity = usize::from(coefficient(key, id as u64)) % PARITIES;
                if !chosen.contains(&parity) {
                    chosen.push(parity);
                    parities[parity].push(slot);
                }
                if chosen.len() == DEGREE {
                    break;
                }
            }
        }
        Self { parities }
    }

    /// Symbols that are read for all parities.
    pub fn edges(&self) -> usize {
        SOURCES * DEGREE + PARITIES - 1
    }

    fn encode(&self, kernel: Kernel, dsts: &mut [&mut [u8]]) {
        let mut before: Option<&[u8]> = None;
        for (dst, sources) in dsts.iter_mut().zip(&self.parities) {
            match before {
                None => dst.fill(0),
                Some(before) => dst.copy_from_slice(before),
            }
            kernel.sum(dst, sources);
            before = Some(dst);
        }
    }
}

impl fmt::Display for Staircase<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LDPC-Staircase encoding, k={SOURCES}, {PARITIES} parities, N1={DEGREE}")
    }
}

pub fn encode<'a>(race: &mut Race<'a>, code: &Staircase<'a>) -> Result<(), Error> {
    let mut expected = Symbols::zeroed(PARITIES);
    code.encode(scalar(), &mut expected.slots_mut());
    let ours = code.clone();
    let entry = ("ours", "Kernel::sum (kernel level)", Kind::Ours);
    race.add(entry, &expected, move |dsts| ours.encode(Kernel::best(), dsts))?;
    let passes = code.clone();
    let entry = ("one-source", "one source per pass", Kind::StandIn);
    race.add(entry, &expected, move |dsts| {
        let mut before: Option<&[u8]> = None;
        for (dst, sources) in dsts.iter_mut().zip(&passes.parities) {
            match before {
                None => dst.fill(0),
                Some(before) => dst.copy_from_slice(before),
            }
            sources.iter().for_each(|source| Kernel::best().xor(dst, source));
            before = Some(dst);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_in_as_many_parities() {
        let sources = Symbols::zeroed(SOURCES);
        let code = Staircase::new(&sources);
        assert_eq!(code.parities.iter().map(Vec::len).sum::<usize>(), SOURCES * DEGREE);
        assert!(code.parities.iter().all(|sources| (50..150).contains(&sources.len())));
    }
}
