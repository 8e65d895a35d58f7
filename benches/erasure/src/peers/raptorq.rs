//! The crate raptorq: RFC 6330, with the plan of the source block ready.

use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    cases::{
        block::{DATA, PARITY, lost},
        decode::Losses,
    },
    clock,
    measure::{Decoded, Kind, Race},
};
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, SourceBlockDecoder, SourceBlockEncoder,
    SourceBlockEncodingPlan,
};
use std::hint::black_box;

/// A source block of the first symbols.
struct SourceBlock {
    config: ObjectTransmissionInformation,
    data: Vec<u8>,
    plan: SourceBlockEncodingPlan,
}

impl SourceBlock {
    fn new(sources: &Symbols, k: usize) -> Result<Self, Error> {
        let data = (0..k).flat_map(|index| sources.symbol(index).iter().copied()).collect();
        let bytes = (k * SYMBOL) as u64;
        let config = ObjectTransmissionInformation::new(bytes, SYMBOL.try_into()?, 1, 1, 4);
        Ok(Self { config, data, plan: SourceBlockEncodingPlan::generate(k.try_into()?) })
    }

    fn encode(&self) -> SourceBlockEncoder {
        SourceBlockEncoder::with_encoding_plan(0, &self.config, &self.data, &self.plan)
    }

    /// A decoder that has all symbols except the lost ones.
    fn decoder(&self, lost: &[usize], packets: &[EncodingPacket]) -> SourceBlockDecoder {
        let bytes = self.data.len() as u64;
        let mut decoder = SourceBlockDecoder::new(0, &self.config, bytes);
        let received = packets.iter().enumerate().filter(|(index, _)| !lost.contains(index));
        decoder.decode(received.map(|(_, packet)| packet.clone()));
        decoder
    }
}

/// Repair symbols beyond the number of losses, which few loss patterns need.
const SPARE: u32 = 3;

/// A window with losses, as a block.
pub fn decode<'a>(race: &mut Race<'a>, job: &'a Losses<'a>) -> Result<(), Error> {
    let block = SourceBlock::new(job.sources, job.n)?;
    let encoder = block.encode();
    let (sources, repairs) =
        (encoder.source_packets(), encoder.repair_packets(0, job.missing.len() as u32 + SPARE));
    let label = format!("raptorq, {SPARE} repair symbols more");
    race.add_decode(("raptorq", &label, Kind::Peer), move || {
        let mut decoder = block.decoder(&job.missing, &sources);
        let packets = repairs.clone();
        let (total, (last, decoded)) = job.clock.time(|| clock::wall(|| decoder.decode(packets)));
        if decoded.as_deref() != Some(&block.data) {
            return Err("not recovered".into());
        }
        Ok(Decoded { total, last })
    })
}

/// Parities of a block.
pub fn rs_encode<'a>(race: &mut Race<'a>, sources: &'a Symbols) -> Result<(), Error> {
    let block = SourceBlock::new(sources, DATA)?;
    let bytes = race.bytes as usize;
    race.add_loop(("raptorq", "raptorq", Kind::Peer), bytes, move || {
        black_box(block.encode().repair_packets(0, PARITY as u32));
    });
    Ok(())
}

/// Losses of a block.
pub fn rs_decode<'a>(race: &mut Race<'a>, sources: &'a Symbols) -> Result<(), Error> {
    let block = SourceBlock::new(sources, DATA)?;
    let encoder = block.encode();
    let (packets, repairs) =
        (encoder.source_packets(), encoder.repair_packets(0, PARITY as u32 + SPARE));
    let label = format!("raptorq, {SPARE} repair symbols more");
    race.add_block_decode(("raptorq", &label, Kind::Peer), move |turn| {
        let mut decoder = block.decoder(&lost(turn), &packets);
        let repairs = repairs.clone();
        let (time, decoded) = clock::wall(|| decoder.decode(repairs));
        if decoded.as_deref() != Some(&block.data) {
            return Err("not recovered".into());
        }
        Ok(time)
    })
}
