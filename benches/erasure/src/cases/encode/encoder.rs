//! One repair symbol by the encoder that is shipped.

use crate::{
    Error,
    buffers::{SYMBOL, Symbols},
    cases::encode::scalar,
    measure::{Kind, Race},
};
use std::hint::black_box;
use sutura_erasure::{Coefficients, Encoder, PREFIX, WindowLimits};

/// The limits of a window of `n` symbols.
pub fn window_limits(n: usize) -> WindowLimits {
    WindowLimits { symbols: n, bytes: n * SYMBOL, symbol_size: SYMBOL }
}

/// An encoder whose window is the first `n` symbols.
fn window(sources: &Symbols, n: usize) -> Result<Encoder, Error> {
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
    let mut expected = vec![0; SYMBOL];
    for (index, c) in (0..n).zip(Coefficients::new(1).from(0)) {
        scalar().mad(&mut expected, sources.symbol(index), c);
    }
    if out[PREFIX..] != expected {
        return Err("Encoder::repair gives a wrong result".into());
    }
    let bytes = race.bytes as usize;
    let mut key = 0;
    race.add_loop(("encoder", "Encoder::repair", Kind::Ours), bytes, move || {
        out.clear();
        key += 1;
        // The window has the span, so there is no error to be seen.
        let made = encoder.repair(0..n as u64, key, &mut out);
        debug_assert!(made.is_ok());
        black_box(&out);
    });
    Ok(())
}
