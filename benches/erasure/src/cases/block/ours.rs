//! Sutura's own block codes. They get slots, as ISA-L does.

use crate::{
    Error,
    buffers::{SLOT, Slot, Symbols},
    clock,
    measure::{Kind, Race},
};
use std::hint::black_box;
use sutura_erasure::block::BlockCode;

/// Adds encoding of the first symbols, after checking that the result equals the result of `reference`.
pub fn encode<'a>(
    race: &mut Race<'a>,
    entry: (&'static str, &str, Kind),
    sources: &'a Symbols,
    code: impl BlockCode + 'a,
    reference: &impl BlockCode,
) -> Result<(), Error> {
    let data = sources.slots(code.sources());
    let mut expected = Symbols::zeroed(code.repairs());
    reference.encode(&data, &mut expected.slots_mut())?;
    race.add(entry, &expected, move |dsts| {
        // An error leaves zeros, which the check notices.
        let encoded = code.encode(black_box(&data), dsts);
        debug_assert!(encoded.is_ok());
    })
}

/// Adds decoding of the first symbols in place, less those that are lost in a turn. Lost symbols are
/// overwritten before; collecting the slices is part of the measured time.
pub fn decode<'a>(
    race: &mut Race<'a>,
    entry: (&'static str, &str, Kind),
    sources: &'a Symbols,
    code: impl BlockCode + 'a,
    lost: impl Fn(usize) -> Vec<usize> + 'a,
) -> Result<(), Error> {
    let data = sources.slots(code.sources());
    let mut repairs = Symbols::zeroed(code.repairs());
    code.encode(&data, &mut repairs.slots_mut())?;
    let mut block = Symbols::copied(data.into_iter().chain(repairs.iter()));
    race.add_block_decode(entry, move |turn| {
        let lost = lost(turn);
        let mut present = vec![true; block.len()];
        for &index in &lost {
            *block.slot_mut(index) = Slot([0xEE; SLOT]);
            present[index] = false;
        }
        let (time, decoded) =
            clock::wall(|| code.decode(&mut block.slots_mut(), black_box(&mut present)));
        if !decoded?.is_complete() {
            return Err("not recovered".into());
        }
        if lost.iter().any(|&index| block.slot(index) != sources.slot(index)) {
            return Err("what is recovered is not what was lost".into());
        }
        Ok(time)
    })
}
