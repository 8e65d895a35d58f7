//! The crate rlnc-simdx. Its field is that of AES, so it is checked against that.

use crate::{
    Error,
    buffers::{SLOT, Symbols},
    cases::{
        decode::{Losses, columns},
        encode::Single,
    },
    clock,
    field::{self, Field},
    measure::{Decoded, Kind, Race},
};
use rlnc_simdx::{CodedPacket, Decoder, kernel};
use std::{rc::Rc, time::Duration};

/// Its decoder works on whole generations, which takes too long for larger ones.
const MOST: usize = 500;

/// A sum of products in the field of AES.
fn dot<'a>(terms: impl IntoIterator<Item = (u8, &'a [u8])>) -> Vec<u8> {
    let mut sum = vec![0; SLOT];
    for (c, source) in terms {
        let products = Field::AES.products(c);
        for (sum, &byte) in sum.iter_mut().zip(source) {
            *sum ^= products[usize::from(byte)];
        }
    }
    sum
}

/// One repair symbol.
pub fn single<'a>(race: &mut Race<'a>, job: &Single<'a>) -> Result<(), Error> {
    let Single { sources, coefficients, .. } = job.clone();
    let sum = dot(coefficients.iter().copied().zip(sources.iter().copied()));
    let expected = Symbols::copied([&sum[..]]);
    race.add(("rlnc-simdx", "rlnc-simdx axpy", Kind::Peer), &expected, move |dsts| {
        for (source, &c) in sources.iter().zip(&coefficients) {
            kernel::axpy(c, source, dsts[0]);
        }
    })
}

/// A window with losses, as a generation.
pub fn decode<'a>(race: &mut Race<'a>, job: &Rc<Losses<'a>>) -> Result<(), Error> {
    if job.n > MOST {
        return Ok(());
    }
    let slots = job.sources.slots(job.n);
    let repair = |&key: &u32| {
        let coefficients = field::coefficients(key, job.n);
        let payload = dot(coefficients.iter().copied().zip(slots.iter().copied()));
        CodedPacket::from_vecs(coefficients, payload)
    };
    // Solvable in our field is not solvable in that one.
    let count = job.keys.len() as u32;
    let solvable = |first: &u32| rank(job, (*first..first + count).collect()) == job.keys.len();
    let first = (0..100).map(|attempt| attempt * count).find(solvable).ok_or("no solvable keys")?;
    let repairs: Vec<CodedPacket> = (first..first + count).map(|key| repair(&key)).collect();
    let known: Vec<CodedPacket> = job
        .known
        .iter()
        .map(|&id| {
            let mut unit = vec![0; job.n];
            unit[id] = 1;
            CodedPacket::from_slices(&unit, slots[id])
        })
        .collect();
    let job = Rc::clone(job);
    race.add_decode(("rlnc-simdx", "rlnc-simdx Decoder", Kind::Peer), move || {
        let mut decoder = Decoder::new(job.n, SLOT)?;
        for packet in &known {
            decoder.receive(packet.clone())?;
        }
        let mut packets = repairs.clone();
        let last = packets.pop().ok_or("no repair symbols")?;
        let (total, (time, decoded)) = job.clock.time(|| finish(&mut decoder, packets, last));
        let decoded = decoded?.ok_or("not recovered")?;
        job.check(job.missing.iter().map(|&id| &decoded[id][..]))?;
        Ok(Decoded { total, last: time })
    })
}

type Outcome = Result<Option<Vec<Vec<u8>>>, rlnc_simdx::RlncError>;

/// Gives the repair symbols and asks for the result; the time is that of the last one.
fn finish(
    decoder: &mut Decoder,
    packets: Vec<CodedPacket>,
    last: CodedPacket,
) -> (Duration, Outcome) {
    for packet in packets {
        if let Err(error) = decoder.receive(packet) {
            return (Duration::ZERO, Err(error));
        }
    }
    clock::wall(|| {
        decoder.receive(last)?;
        decoder.decode()
    })
}

/// The rank of repair symbols in the missing ones, in the field of AES.
fn rank(job: &Losses<'_>, keys: Vec<u32>) -> usize {
    let count = job.missing.len();
    let Ok(mut decoder) = Decoder::new(count, 1) else { return 0 };
    for key in keys {
        let coefficients = columns(key, &job.missing).collect();
        if decoder.receive(CodedPacket::from_vecs(coefficients, vec![0])).is_err() {
            return 0;
        }
    }
    decoder.rank()
}
