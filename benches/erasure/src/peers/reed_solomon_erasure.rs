//! The crate reed-solomon-erasure, in pure Rust.

use crate::{
    Error,
    buffers::SYMBOL,
    cases::block::{Block, DATA, PARITY},
    clock,
    measure::{Decoded, Kind, Race},
};
use reed_solomon_erasure::galois_8::ReedSolomon;
use std::{hint::black_box, rc::Rc};

/// Data and parity shards.
fn shards(job: &Block<'_>) -> Result<Vec<Vec<u8>>, Error> {
    let mut shards: Vec<Vec<u8>> = (0..DATA).map(|i| job.sources.symbol(i).to_vec()).collect();
    shards.resize(DATA + PARITY, vec![0; SYMBOL]);
    let code = ReedSolomon::new(DATA, PARITY)?;
    code.encode(&mut shards)?;
    if code.verify(&shards)? { Ok(shards) } else { Err("parities are wrong".into()) }
}

/// Parities of a block.
pub fn rs_encode<'a>(race: &mut Race<'a>, job: &Rc<Block<'a>>) -> Result<(), Error> {
    let mut shards = shards(job)?;
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

/// Losses of a block. The crate keeps the inverses of some 250 patterns, fewer than there are here.
pub fn rs_decode<'a>(race: &mut Race<'a>, job: &Rc<Block<'a>>) -> Result<(), Error> {
    let job = Rc::clone(job);
    let shards = shards(&job)?;
    let code = ReedSolomon::new(DATA, PARITY)?;
    let mut turn = 0;
    let entry = ("rs-erasure", "reed-solomon-erasure, without C", Kind::Peer);
    race.add_decode(entry, move || {
        turn += 1;
        let lost = job.lost(turn);
        let mut received: Vec<Option<Vec<u8>>> = shards.iter().cloned().map(Some).collect();
        for &index in &lost {
            received[index] = None;
        }
        let (time, result) = clock::wall(|| code.reconstruct_data(&mut received));
        result?;
        job.check(&lost, lost.iter().filter_map(|&index| received[index].as_deref()))?;
        Ok(Decoded { total: time, last: time })
    })
}
