//! A window of which one symbol in twenty is lost, and as many repair symbols over all of it.

mod eager;
mod ours;
mod stream;

use super::{Case, encode::scalar};
use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    clock::CpuClock,
    field, limits,
    measure::Race,
    memory::Pages,
    peers::{isal, raptorq, reed_solomon_simd, rlnc_simdx},
};
use std::ops::Range;
use sutura_erasure::{Coefficients, kernel::Kernel};

/// The largest window that is decoded with scalar code, which takes seconds for larger windows.
const SCALAR_MOST: usize = 1000;
/// The sizes that other libraries decode, too.
const PEER_SIZES: [usize; 4] = [100, 500, 1000, 2000];

/// Where in the window the losses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// The first symbols.
    Early,
    /// The last symbols.
    Late,
    /// Evenly spread symbols.
    Spread,
}

impl Loss {
    pub const ALL: [Self; 3] = [Self::Early, Self::Late, Self::Spread];

    pub fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Late => "late",
            Self::Spread => "spread",
        }
    }

    /// The symbols that are lost of `n`, ascending.
    pub fn missing(self, n: usize) -> Vec<usize> {
        let count = (n / 20).max(1);
        match self {
            Self::Early => (0..count).collect(),
            Self::Late => (n - count..n).collect(),
            Self::Spread => (0..count).map(|i| i * n / count + n / count / 2).collect(),
        }
    }
}

/// A window with losses and repair symbols in slots, for decoders that have no window of their own.
pub struct Losses<'a> {
    pub n: usize,
    pub sources: &'a Symbols,
    /// Ascending.
    pub missing: Vec<usize>,
    pub known: Vec<usize>,
    pub known_slots: Vec<&'a [u8]>,
    /// The keys of the repair symbols, for which all missing symbols can be computed.
    pub keys: Vec<u32>,
    pub repairs: Symbols,
    pub clock: CpuClock,
}

impl<'a> Losses<'a> {
    /// The losses live as long as the program, like the races that use them.
    fn new(sources: &'a Symbols, n: usize, loss: Loss) -> Result<&'a Self, Error> {
        let missing = loss.missing(n);
        let known: Vec<usize> = (0..n).filter(|i| missing.binary_search(i).is_err()).collect();
        let keys = solvable_keys(missing.len(), |keys| {
            let matrix: Vec<u8> = keys.flat_map(|key| columns(key, &missing)).collect();
            field::invert(Kernel::best(), &matrix, missing.len()).is_some()
        })?;
        let keys: Vec<u32> = keys.collect();
        let slots = sources.slots(n);
        let mut repairs = Symbols::zeroed(keys.len());
        let rows: Vec<u8> = keys.iter().flat_map(|&key| field::coefficients(key, n)).collect();
        scalar().matmul(&mut repairs.slots_mut(), &rows, &slots);
        let known_slots = known.iter().map(|&i| slots[i]).collect();
        let clock = CpuClock::new();
        let job = Self { n, sources, missing, known, known_slots, keys, repairs, clock };
        Ok(Box::leak(Box::new(job)))
    }

    /// Checks recovered slots, in the order of the missing symbols.
    pub fn check<'b>(&self, recovered: impl IntoIterator<Item = &'b [u8]>) -> Result<(), Error> {
        self.sources.check(&self.missing, recovered)
    }
}

/// The first `count` consecutive keys that are solvable.
pub fn solvable_keys(
    count: usize,
    solvable: impl Fn(Range<u32>) -> bool,
) -> Result<Range<u32>, Error> {
    let count = count as u32;
    let mut ranges = (0..100).map(|attempt| attempt * count..(attempt + 1) * count);
    Ok(ranges.find(|keys| solvable(keys.clone())).ok_or("no solvable keys")?)
}

/// The coefficients of the symbols `ids` in the repair symbol with a key.
pub fn columns(key: u32, ids: &[usize]) -> impl Iterator<Item = u8> {
    let coefficients = Coefficients::new(key);
    ids.iter().map(move |&id| coefficients.at(id as u64))
}

pub fn race(
    case: Case,
    sources: &Symbols,
    (n, loss): (usize, Loss),
    pages: Pages,
) -> Result<Race<'_>, Error> {
    let job = Losses::new(sources, n, loss)?;
    let lost = job.missing.len();
    let title = format!("decode {n} with {lost} lost, {}", loss.name());
    let last = if n > 1000 { limits::L3 } else { limits::L2 };
    let mut race = Race::new(case, title, lost * n * SYMBOL)
        .within(limits::ALU)
        .last_within((n + lost) * SYMBOL, last);
    ours::add(&mut race, job)?;
    if !PEER_SIZES.contains(&n) || loss != Loss::Late {
        return Ok(race);
    }
    let label = "eager, one source per pass (stand-in for libmoepgf's best kernel)";
    eager::add(&mut race, ("eager", label), Kernel::best(), job)?;
    isal::decode(&mut race, job)?;
    if pages == Pages::Huge {
        // The entries below do not come near the bandwidth of a cache, so huge pages make no difference to
        // them.
        return Ok(race);
    }
    if n <= SCALAR_MOST {
        let label = "eager, scalar (stand-in for libmoepgf's own choice)";
        eager::add(&mut race, ("eager-scalar", label), scalar(), job)?;
    }
    rlnc_simdx::decode(&mut race, job)?;
    reed_solomon_simd::decode(&mut race, job)?;
    raptorq::decode(&mut race, job)?;
    Ok(race)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_symbol_in_twenty_is_lost_where_it_should_be() {
        assert_eq!(Loss::Early.missing(100), [0, 1, 2, 3, 4]);
        assert_eq!(Loss::Late.missing(100), [95, 96, 97, 98, 99]);
        assert_eq!(Loss::Spread.missing(100), [10, 30, 50, 70, 90]);
        for (n, loss) in [10, 20, 50].into_iter().flat_map(|n| Loss::ALL.map(|l| (n, l))) {
            let missing = loss.missing(n);
            assert_eq!(missing.len(), (n / 20).max(1));
            assert!(missing.iter().all(|&i| i < n));
        }
    }
}
