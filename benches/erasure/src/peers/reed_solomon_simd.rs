//! The crate reed-solomon-simd: a transform over GF(2^16), for large blocks.

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
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
use std::hint::black_box;

fn parities(sources: &Symbols, k: usize, m: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut encoder = ReedSolomonEncoder::new(k, m, SYMBOL)?;
    for index in 0..k {
        encoder.add_original_shard(sources.symbol(index))?;
    }
    Ok(encoder.encode()?.recovery_iter().map(<[u8]>::to_vec).collect())
}

/// A window with losses, as a block.
pub fn decode<'a>(race: &mut Race<'a>, job: &'a Losses<'a>) -> Result<(), Error> {
    let count = job.missing.len();
    let parities = parities(job.sources, job.n, count)?;
    let mut decoder = ReedSolomonDecoder::new(job.n, count, SYMBOL)?;
    race.add_decode(("rs-simd", "reed-solomon-simd", Kind::Peer), move || {
        for &index in &job.known {
            decoder.add_original_shard(index, job.sources.symbol(index))?;
        }
        let (total, (last, result)) = job.clock.time(|| {
            clock::wall(|| {
                for (index, parity) in parities.iter().enumerate() {
                    decoder.add_recovery_shard(index, parity)?;
                }
                decoder.decode()
            })
        });
        let result = result?;
        job.check(job.missing.iter().filter_map(|&index| result.restored_original(index)))?;
        Ok(Decoded { total, last })
    })
}

/// Parities of a block, which are checked by decoding with them.
pub fn rs_encode<'a>(race: &mut Race<'a>, sources: &'a Symbols) -> Result<(), Error> {
    let bytes = race.bytes as usize;
    let mut encoder = ReedSolomonEncoder::new(DATA, PARITY, SYMBOL)?;
    race.add_loop(("rs-simd", "reed-solomon-simd", Kind::Peer), bytes, move || {
        let added = (0..DATA).all(|i| encoder.add_original_shard(sources.symbol(i)).is_ok());
        debug_assert!(added);
        let _ = black_box(encoder.encode().map(|parities| parities.recovery(0).map(<[u8]>::len)));
    });
    Ok(())
}

/// Losses of a block.
pub fn rs_decode<'a>(race: &mut Race<'a>, sources: &'a Symbols) -> Result<(), Error> {
    let parities = parities(sources, DATA, PARITY)?;
    let mut decoder = ReedSolomonDecoder::new(DATA, PARITY, SYMBOL)?;
    race.add_block_decode(("rs-simd", "reed-solomon-simd", Kind::Peer), move |turn| {
        let lost = lost(turn);
        let (time, result) = clock::wall(|| {
            for index in (0..DATA).filter(|index| !lost.contains(index)) {
                decoder.add_original_shard(index, sources.symbol(index))?;
            }
            for (index, parity) in parities.iter().enumerate() {
                decoder.add_recovery_shard(index, parity)?;
            }
            decoder.decode()
        });
        let result = result?;
        sources.check(&lost, lost.iter().filter_map(|&index| result.restored_original(index)))?;
        Ok(time)
    })
}
