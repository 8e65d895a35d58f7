//! Entry points for fuzzers, which the tests run on pseudo-random input as well.
//!
//! Not part of the public interface. Each function takes any bytes, acts on them and panics if the
//! coder breaks a promise.

use alloc::{collections::VecDeque, vec::Vec};
use core::ops::Range;

use crate::{
    Arrival, Decoder, DecoderLimits, Encoder, MAX_SYMBOL_ID, RepairOutcome, SymbolId, WindowLimits,
};

/// Small, so that input of a few hundred bytes reaches every bound.
const LIMITS: DecoderLimits =
    DecoderLimits { symbols: 16, bytes: 200, symbol_size: 40, repairs: 5 };

/// Reads actions from fuzzer input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn bytes(&mut self, len: u8) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(usize::from(len).min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// An id: mostly near the window, sometimes far off, up to beyond what is allowed.
    fn id(&mut self, decoder: &Decoder) -> Option<SymbolId> {
        let byte = self.byte()?;
        let offset = SymbolId::from(byte & 0x1f);
        Some(match byte >> 5 {
            0..=4 => decoder.lower_bound() + offset,
            5 => decoder.upper_bound() + offset,
            6 => (decoder.upper_bound() + 1).saturating_mul(offset),
            _ => u64::MAX >> offset,
        })
    }
}

/// Gives a decoder symbols that no encoder made, and checks its bounds and its books.
pub fn decoder(data: &[u8]) {
    let mut input = Input(data);
    let mut decoder = Decoder::new(LIMITS);
    while let Some(action) = input.byte() {
        if act(action, &mut input, &mut decoder).is_none() {
            break;
        }
        check_bounds(&decoder);
    }
    check_window(&decoder);
}

fn act(action: u8, input: &mut Input<'_>, decoder: &mut Decoder) -> Option<()> {
    match action % 8 {
        0..=2 => {
            let id = input.id(decoder)?;
            let len = input.byte()? % 48;
            let bytes = input.bytes(len);
            let known = decoder.symbol(id).map(Vec::from);
            let result = decoder.source(id, bytes);
            match result {
                // The limit on bytes may have pushed the symbol out at once.
                Ok(Arrival::New) if id >= decoder.lower_bound() => {
                    assert_eq!((known, decoder.symbol(id)), (None, Some(bytes)));
                }
                Ok(Arrival::Duplicate) => assert_eq!(known.as_deref(), decoder.symbol(id)),
                Ok(Arrival::New | Arrival::Old) => assert_eq!(known, None),
                Err(_) => {}
            }
        }
        3..=5 => {
            let start = input.id(decoder)?;
            let count = input.byte()? % 18;
            let key = input.byte()? % 4;
            let len = input.byte()? % 48;
            let end = start.saturating_add(SymbolId::from(count));
            let (missing, bytes) = (decoder.missing().len(), decoder.bytes());
            let result = decoder.repair(start..end, u32::from(key), input.bytes(len));
            if result == Ok(RepairOutcome::Unneeded) {
                assert_eq!(missing, decoder.missing().len());
                assert_eq!(bytes, decoder.bytes());
            }
        }
        6 => {
            if let Some(id) = decoder.pop_recovered() {
                assert!(decoder.symbol(id).is_some_and(|symbol| !symbol.is_empty()));
            }
        }
        _ => {
            let lower = input.id(decoder)?;
            decoder.release_below(lower);
            assert!(decoder.lower_bound() >= lower.min(MAX_SYMBOL_ID + 1));
        }
    }
    Some(())
}

fn check_bounds(decoder: &Decoder) {
    assert!(decoder.upper_bound() - decoder.lower_bound() <= LIMITS.symbols as u64);
    assert!(decoder.upper_bound() <= MAX_SYMBOL_ID + 1);
    assert!(decoder.bytes() <= LIMITS.bytes);
    assert!(decoder.repairs() <= LIMITS.repairs.min(decoder.missing().len()));
    assert!(decoder.allocated() <= LIMITS.memory());
}

/// Each id of the window is held or missing, and never both.
fn check_window(decoder: &Decoder) {
    let mut missing = decoder.missing();
    let mut bytes = 0;
    for id in decoder.lower_bound()..decoder.upper_bound() {
        match decoder.symbol(id) {
            Some(symbol) => bytes += symbol.len(),
            None => assert_eq!(missing.next(), Some(id)),
        }
    }
    assert_eq!((missing.next(), bytes), (None, decoder.bytes()));
}

/// A repair symbol on its way.
struct Repair {
    span: Range<SymbolId>,
    key: u32,
    payload: Vec<u8>,
}

/// Takes an encoder's symbols through a network that the input drives, with loss, reordering and
/// duplication, and checks that nothing is refused and that every symbol recovered is the one that
/// was sent.
pub fn round_trip(data: &[u8]) {
    let mut input = Input(data);
    let mut encoder = Encoder::new(WindowLimits { symbols: 12, ..LIMITS.window() });
    let mut decoder = Decoder::new(LIMITS);
    let mut delayed = VecDeque::new();
    let mut key = 0;
    while let Some(action) = input.byte() {
        let argument = action >> 3;
        match action % 8 {
            0 => send_source(&mut encoder, None),
            1 | 2 => send_source(&mut encoder, Some(&mut decoder)),
            3 => {
                // The original once more, or late.
                let back = SymbolId::from(argument) + 1;
                if let Some(id) = encoder.next_id().checked_sub(back) {
                    decoder.source(id, &content(id)).expect("an honest source symbol");
                }
            }
            4 | 5 => {
                if let Some(repair) = make_repair(&encoder, argument, key) {
                    key += 1;
                    delayed.push_back(repair);
                }
                if action % 8 == 4 {
                    deliver(&mut decoder, delayed.pop_back());
                }
            }
            6 => deliver(&mut decoder, delayed.pop_front()),
            _ => decoder.release_below(encoder.window().start),
        }
        if delayed.len() > 8 {
            delayed.pop_front();
        }
        check_recovered(&mut decoder);
        check_bounds(&decoder);
    }
    check_window(&decoder);
}

/// The bytes of symbol `id`, which differ in length from symbol to symbol.
fn content(id: SymbolId) -> Vec<u8> {
    let len = 1 + (id * id + id / 3) % 16;
    (0..len).map(|at| (id * 37 + at * 11) as u8).collect()
}

fn send_source(encoder: &mut Encoder, decoder: Option<&mut Decoder>) {
    let bytes = content(encoder.next_id());
    let id = loop {
        match encoder.push(&bytes) {
            Ok(id) => break id,
            Err(_) => encoder.release_below(encoder.window().start + 1),
        }
    };
    if let Some(decoder) = decoder {
        let arrival = decoder.source(id, &bytes);
        assert_eq!(arrival, Ok(Arrival::New));
    }
}

/// A repair symbol over all of the window, or over all but its oldest symbols.
fn make_repair(encoder: &Encoder, skip: u8, key: u32) -> Option<Repair> {
    let window = encoder.window();
    let skip = SymbolId::from(skip).checked_rem(window.end - window.start)?;
    let span = window.start + skip..window.end;
    let mut payload = Vec::new();
    encoder.repair(span.clone(), key, &mut payload).expect("a span of the window");
    Some(Repair { span, key, payload })
}

fn deliver(decoder: &mut Decoder, repair: Option<Repair>) {
    if let Some(Repair { span, key, payload }) = repair {
        decoder.repair(span, key, &payload).expect("an honest repair symbol");
    }
}

fn check_recovered(decoder: &mut Decoder) {
    while let Some(id) = decoder.pop_recovered() {
        assert_eq!(decoder.symbol(id), Some(&content(id)[..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deterministic noise (xorshift64*).
    fn noise(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let next = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 56) as u8
        };
        core::iter::repeat_with(next).take(len).collect()
    }

    #[test]
    fn noise_does_not_upset_a_decoder() {
        for seed in 0..4000 {
            decoder(&noise(seed, 600));
        }
    }

    #[test]
    fn honest_traffic_survives_a_noisy_network() {
        for seed in 0..4000 {
            round_trip(&noise(seed, 400));
        }
    }
}
