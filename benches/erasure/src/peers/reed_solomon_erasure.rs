//! The crate reed-solomon-erasure, in pure Rust.

use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    cases::block::{DATA, PARITY, lost},
    clock,
    measure::{Kind, Race},
};
use reed_solomon_erasure::galois_8::ReedSolomon;
use std::hint::black_box;

/// Data and parity shards.
fn shards(sources: &Symbols) -> Result<Vec<Vec<u8>>, Error> {
    let mut shards: Vec<Vec<u8>> = (0..DATA).map(|i| sources.symbol(i).to_vec()).collect();
    shards.resize(DATA + PARITY, vec![0; SYMBOL]);
    let code = ReedSolomon::new(DATA, PARITY)?;
    code.encode(&mut shards)?;
    if code.verify(&shards)? { Ok(shards) } else { Err("parities are wrong".into()) }
}

/// Parities of a block.
pub fn rs_encode<'a>(race: &mut Race<'a>, sources: &'a Symbols) -> Result<(), Error> {
    let mut shards = shards(sources)?;
    let code = ReedSolomon::new(DATA, PARITY)?;
    let bytes = race.bytes as usize;
    let entry = ("rs-erasure", "reed-solomon-erasure, without C", Kind::Peer);
    race.add_loop(entry, bytes, move || {
        let (data, parities) = shards.split_at_mut(DATA);
        let encoded = code.encode_sep(data, parities);
        debug_assert!(encoded.is_ok());
        black_box(parities);
    });
    Ok(())
}

/// Losses of a block. The crate keeps the inverses of some 250 patterns, fewer than the patterns of this
/// bench.
pub fn rs_decode<'a>(race: &mut Race<'a>, sources: &'a Symbols) -> Result<(), Error> {
    let shards = shards(sources)?;
    let code = ReedSolomon::new(DATA, PARITY)?;
    let entry = ("rs-erasure", "reed-solomon-erasure, without C", Kind::Peer);
    race.add_block_decode(entry, move |turn| {
        let lost = lost(turn);
        let mut received: Vec<Option<Vec<u8>>> = shards.iter().cloned().map(Some).collect();
        for &index in &lost {
            received[index] = None;
        }
        let (time, result) = clock::wall(|| code.reconstruct_data(&mut received));
        result?;
        sources.check(&lost, lost.iter().filter_map(|&index| received[index].as_deref()))?;
        Ok(time)
    })
}
