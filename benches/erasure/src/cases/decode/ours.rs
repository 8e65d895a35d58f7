//! Sutura's own decoders, and the ways of giving them repair symbols.

use super::{
    Losses,
    stream::{Repair, Stream},
};
use crate::{
    Error,
    buffers::{Slot, Symbols},
    clock,
    measure::{Decoded, Kind, Race},
};
use std::{ops::Range, time::Duration};
use sutura_erasure::{
    Decoder, RepairSymbol,
    block::{BlockCode, RandomLinear},
};

/// Adds each way of giving repair symbols to a [`Decoder`], and the block decoder.
pub fn add<'a>(race: &mut Race<'a>, job: &'a Losses<'a>) -> Result<(), Error> {
    let mut stream = Stream::new(job);
    let entry = ("one", "Decoder::repair, one at a time", Kind::Ours);
    race.add_decode(entry, move || stream.next(one_at_a_time))?;
    let bursts = [
        ("burst-4", "Decoder::repair_burst, 4 at a time (last: the last burst)", 4),
        ("burst-6", "Decoder::repair_burst, 6 at a time (last: the last burst)", 6),
        ("burst-all", "Decoder::repair_burst, all at once", usize::MAX),
    ];
    for (id, label, size) in bursts {
        // Bursts of all repair symbols or more would be the same measurement.
        if size == usize::MAX || size < job.missing.len() {
            let mut stream = Stream::new(job);
            race.add_decode((id, label, Kind::Ours), move || {
                stream.next(|decoder, span, repairs| in_bursts(decoder, &span, repairs, size))
            })?;
        }
    }
    batch(race, job)
}

/// Gives repair symbols one by one, and says how long the last one took.
fn one_at_a_time(
    decoder: &mut Decoder,
    span: Range<u64>,
    repairs: &[Repair],
) -> Result<Duration, Error> {
    let Some(((key, payload), others)) = repairs.split_last() else { return Ok(Duration::ZERO) };
    for (key, payload) in others {
        decoder.repair(span.clone(), *key, payload)?;
    }
    let (last, outcome) = clock::wall(|| decoder.repair(span, *key, payload));
    outcome?;
    Ok(last)
}

/// Gives repair symbols in bursts, and says how long the last one took.
fn in_bursts(
    decoder: &mut Decoder,
    span: &Range<u64>,
    repairs: &[Repair],
    size: usize,
) -> Result<Duration, Error> {
    let mut last = Duration::ZERO;
    for burst in repairs.chunks(size) {
        let symbols: Vec<_> = burst
            .iter()
            .map(|(key, payload)| RepairSymbol { span: span.clone(), key: *key, payload })
            .collect();
        let (time, outcomes) = clock::wall(|| decoder.repair_burst(&symbols));
        for outcome in outcomes {
            outcome?;
        }
        last = time;
    }
    Ok(last)
}

/// Adds the block code with the same repair symbols. A sender uses each key once, so making the coefficients
/// is part of the measured time.
fn batch<'a>(race: &mut Race<'a>, job: &'a Losses<'a>) -> Result<(), Error> {
    let (n, count) = (job.n, job.missing.len());
    let key = job.keys[0];
    let slots = job.sources.slots(n).into_iter().chain(job.repairs.iter());
    let mut block = Symbols::copied(slots);
    let entry = ("batch", "RandomLinear::{new, decode}", Kind::Ours);
    race.add_decode(entry, move || {
        let mut present = vec![true; n + count];
        for &id in &job.missing {
            *block.slot_mut(id) = Slot::ZERO;
            present[id] = false;
        }
        let work = || {
            let code = RandomLinear::new(n, count, key)?;
            Ok(code.decode(&mut block.slots_mut(), &mut present)?)
        };
        let (total, (last, decoded)) = job.clock.time(|| clock::wall(work));
        let decoded: Result<_, Error> = decoded;
        if !decoded?.is_complete() {
            return Err("not recovered".into());
        }
        job.check(job.missing.iter().map(|&id| block.slot(id)))?;
        Ok(Decoded { total, last })
    })
}
