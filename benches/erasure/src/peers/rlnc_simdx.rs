//! The crate rlnc-simdx. Its field is the field of AES, so it is checked against that field.

use crate::{
    Error,
    buffers::{SLOT, Symbols},
    cases::{
        decode::{Losses, columns, solvable_keys},
        sums::Sums,
    },
    clock,
    field::{self, Field},
    measure::{Decoded, Kind, Race},
};
use rlnc_simdx::{CodedPacket, Decoder, kernel};
use std::{ops::Range, time::Duration};

/// The largest window that the crate decodes here; larger generations take too long.
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
pub fn single<'a>(race: &mut Race<'a>, job: &'a Sums<'a>) -> Result<(), Error> {
    let sum = dot(job.coefficients.iter().copied().zip(job.sources.iter().copied()));
    let expected = Symbols::copied([&sum[..]]);
    race.add(("rlnc-simdx", "rlnc-simdx axpy", Kind::Peer), &expected, move |dsts| {
        for (source, &c) in job.sources.iter().zip(&job.coefficients) {
            kernel::axpy(c, source, dsts[0]);
        }
    })
}

/// A window with losses, as a generation.
pub fn decode<'a>(race: &mut Race<'a>, job: &'a Losses<'a>) -> Result<(), Error> {
    if job.n > MOST {
        return Ok(());
    }
    let slots = job.sources.slots(job.n);
    let repair = |key: u32| {
        let coefficients = field::coefficients(key, job.n);
        let payload = dot(coefficients.iter().copied().zip(slots.iter().copied()));
        CodedPacket::from_vecs(coefficients, payload)
    };
    // Keys that are solvable in our field need not be solvable in the field of AES.
    let keys = solvable_keys(job.keys.len(), |keys| rank(job, keys) == job.keys.len())?;
    let repairs: Vec<CodedPacket> = keys.map(repair).collect();
    let known: Vec<CodedPacket> = job
        .known
        .iter()
        .map(|&id| {
            let mut unit = vec![0; job.n];
            unit[id] = 1;
            CodedPacket::from_slices(&unit, slots[id])
        })
        .collect();
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

/// Gives the repair symbols and asks for the result; the time is the time of the last repair symbol.
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

/// The rank of repair symbols in the missing symbols, in the field of AES.
fn rank(job: &Losses<'_>, keys: Range<u32>) -> usize {
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
