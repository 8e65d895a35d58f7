//! Repair symbols by Sutura's own encoder.

use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    cases::encode::scalar,
    field,
    measure::{Kind, Race},
};
use std::hint::black_box;
use sutura_erasure::{Encoder, PREFIX, WindowLimits};

/// The limits of a window of `n` symbols.
pub fn window_limits(n: usize) -> WindowLimits {
    WindowLimits { symbols: n, bytes: n * SYMBOL, symbol_size: SYMBOL }
}

/// An encoder whose window is the first `n` symbols.
pub fn window(sources: &Symbols, n: usize) -> Result<Encoder, Error> {
    let mut encoder = Encoder::new(window_limits(n));
    for index in 0..n {
        encoder.push(sources.symbol(index))?;
    }
    Ok(encoder)
}

/// Adds [`Encoder::repair`] over the whole window, into a vector that is used again.
pub fn repair<'a>(race: &mut Race<'a>, sources: &'a Symbols, n: usize) -> Result<(), Error> {
    let encoder = window(sources, n)?;
    let mut out = Vec::new();
    encoder.repair(0..n as u64, 1, &mut out)?;
    check(sources, n, 1, &out)?;
    let bytes = race.bytes as usize;
    let mut key = 0;
    race.add_loop(("encoder", "Encoder::repair", Kind::Ours), bytes, move || {
        out.clear();
        key += 1;
        // The window contains the span, so no error is possible.
        let made = encoder.repair(0..n as u64, key, &mut out);
        debug_assert!(made.is_ok());
        black_box(&out);
    });
    Ok(())
}

/// Adds [`Encoder::repair_burst`] over the whole window, into vectors that are used again.
pub fn burst<'a>(
    race: &mut Race<'a>,
    sources: &'a Symbols,
    n: usize,
    d: usize,
) -> Result<(), Error> {
    let encoder = window(sources, n)?;
    let mut keys: Vec<u32> = (0..d as u32).collect();
    let mut out = vec![Vec::new(); d];
    encoder.repair_burst(0..n as u64, &keys, &mut out)?;
    for (key, repair) in keys.iter().zip(&out) {
        check(sources, n, *key, repair)?;
    }
    let bytes = race.bytes as usize;
    let entry = ("burst", "Encoder::repair_burst, coefficients included", Kind::Ours);
    race.add_loop(entry, bytes, move || {
        out.iter_mut().for_each(Vec::clear);
        keys.iter_mut().for_each(|key| *key += d as u32);
        let made = encoder.repair_burst(0..n as u64, &keys, &mut out);
        debug_assert!(made.is_ok());
        black_box(&out);
    });
    Ok(())
}

/// Checks the repair symbol with a key over the first `n` symbols.
pub fn check(sources: &Symbols, n: usize, key: u32, repair: &[u8]) -> Result<(), Error> {
    let mut expected = vec![0; SYMBOL];
    for (index, c) in (0..n).zip(field::coefficients(key, n)) {
        scalar().mad(&mut expected, sources.symbol(index), c);
    }
    if repair.get(PREFIX..) == Some(&expected) {
        Ok(())
    } else {
        Err("the encoder gives a wrong repair symbol".into())
    }
}
