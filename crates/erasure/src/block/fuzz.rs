//! Entry points for fuzzers. The tests also run them on pseudo-random input.
//!
//! Not part of the public interface. Each function takes arbitrary bytes, interprets them as
//! actions, and panics if a block code breaks a guarantee.

use alloc::{boxed::Box, vec, vec::Vec};

use super::{BlockCode, BlockError, Decoded, LdpcStaircase, RandomLinear, ReedSolomon, Xor2d};

/// Reads decisions from fuzzer input; bytes past its end are zero.
struct BlockInput<'a>(&'a [u8]);

impl BlockInput<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        byte
    }

    /// A number from `start` to `start + 255`.
    fn number(&mut self, start: usize) -> usize {
        start + usize::from(self.byte())
    }

    /// A code chosen by the input, if one exists with these parameters.
    fn code(&mut self) -> Option<Box<dyn BlockCode>> {
        let (kind, sources, more) = (self.byte(), self.number(0) % 80, self.number(0) % 40);
        match kind % 4 {
            0 => Some(Box::new(ReedSolomon::new(sources, more).ok()?)),
            1 => Some(Box::new(RandomLinear::new(sources, more, u32::from(kind)).ok()?)),
            2 => Some(Box::new(Xor2d::new(sources, more).ok()?)),
            _ => {
                let (degree, seed) = (self.number(0) % 12, u32::from(self.byte()));
                Some(Box::new(LdpcStaircase::new(sources, more, degree, seed).ok()?))
            }
        }
    }
}

fn decode(
    code: &dyn BlockCode,
    symbols: &mut [Vec<u8>],
    present: &mut [bool],
) -> Result<Decoded, BlockError> {
    let mut symbols: Vec<&mut [u8]> = symbols.iter_mut().map(Vec::as_mut_slice).collect();
    code.decode(&mut symbols, present)
}

/// Makes a block, loses the symbols that the input names, lets some of these arrive later, and checks that
/// recovered symbols equal the lost ones.
pub fn block_round_trip(data: &[u8]) {
    let mut input = BlockInput(data);
    let Some(code) = input.code() else {
        return;
    };
    let (k, m) = (code.sources(), code.repairs());
    let len = input.number(0);
    let mut block: Vec<Vec<u8>> = (0..k + m).map(|i| content(i, len)).collect();
    let (sources, repairs) = block.split_at_mut(k);
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut repairs: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
    assert_eq!(code.encode(&sources, &mut repairs), Ok(()));

    // A byte decides about each symbol, so the number of losses is as random as their positions.
    let rate = input.byte();
    let mut arrived: Vec<bool> = (0..k + m).map(|_| input.byte() >= rate).collect();
    let mut symbols = block.clone();
    for (i, symbol) in symbols.iter_mut().enumerate().filter(|&(i, _)| !arrived[i]) {
        *symbol = content(i + 7, len);
    }
    let before = missing(&arrived, k);
    let decoded = decode_and_check(code.as_ref(), &mut symbols, &mut arrived, &block);

    // Some more symbols arrive later.
    for (i, arrived) in arrived.iter_mut().enumerate().filter(|(_, arrived)| !**arrived) {
        if input.byte() % 2 == 1 {
            symbols[i].clone_from(&block[i]);
            *arrived = true;
        }
    }
    let again = decode_and_check(code.as_ref(), &mut symbols, &mut arrived, &block);
    assert!(again.missing <= decoded.missing && decoded.recovered + decoded.missing == before);
}

fn missing(arrived: &[bool], sources: usize) -> usize {
    arrived[..sources].iter().filter(|&&arrived| !arrived).count()
}

fn decode_and_check(
    code: &dyn BlockCode,
    symbols: &mut [Vec<u8>],
    present: &mut [bool],
    block: &[Vec<u8>],
) -> Decoded {
    let before = present.to_vec();
    let decoded = decode(code, symbols, present).expect("a block of the right shape");
    let k = code.sources();
    assert_eq!(decoded.missing, missing(present, k));
    assert_eq!(decoded.recovered, missing(&before, k) - decoded.missing);
    for i in 0..present.len() {
        assert!(present[i] || !before[i], "no flag is cleared");
        assert!(!present[i] || symbols[i] == block[i], "what is there is right");
    }
    decoded
}

fn content(symbol: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (symbol * 37 + at * at * 11 + symbol * at) as u8).collect()
}

/// Gives a decoder a block that no encoder made: arbitrary bytes, and sometimes the wrong shape.
pub fn block_decode(data: &[u8]) {
    let mut input = BlockInput(data);
    let Some(code) = input.code() else {
        return;
    };
    let expected = code.sources() + code.repairs();
    let (shape, len) = (input.byte(), input.number(0));
    let mut lengths = vec![len; expected];
    let mut flags = expected;
    match shape {
        0 => lengths.truncate(input.number(0)),
        1 => lengths.push(len),
        2 => flags = input.number(0),
        3 => {
            let at = input.number(0) % expected;
            lengths[at] = input.number(0);
        }
        _ => {}
    }
    let mut present: Vec<bool> = (0..flags).map(|_| input.byte() % 4 > 0).collect();
    let symbols = lengths.iter().map(|&len| (0..len).map(|_| input.byte()).collect());
    let mut symbols: Vec<Vec<u8>> = symbols.collect();
    let before = (symbols.clone(), present.clone());
    let shapely = lengths.len() == expected
        && flags == expected
        && lengths.iter().all(|&len| len == lengths[0]);
    let result = decode(code.as_ref(), &mut symbols, &mut present);
    assert_eq!(result.is_ok(), shapely, "{result:?}");
    if result.is_err() {
        assert_eq!((symbols, present), before);
        return;
    }
    for i in 0..expected {
        assert!(present[i] || !before.1[i], "no flag is cleared");
        assert!(!before.1[i] || symbols[i] == before.0[i], "what arrived is only read");
    }
}
