//! The decoder that is shipped, and the ways of giving it repair symbols.

use super::{
    Losses,
    stream::{Repair, Stream},
};
use crate::{
    Error, clock,
    measure::{Kind, Race},
};
use std::{ops::Range, rc::Rc, time::Duration};
use sutura_erasure::Decoder;

/// Adds each way of giving repair symbols to a [`Decoder`].
pub fn add<'a>(race: &mut Race<'a>, job: &Rc<Losses<'a>>) -> Result<(), Error> {
    let mut stream = Stream::new(job);
    let entry = ("one", "Decoder::repair, one at a time", Kind::Ours);
    race.add_decode(entry, move || stream.next(one_at_a_time))
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
