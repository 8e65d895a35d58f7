//! Peers that send as much of everything as they like: memory stays within the limits, and no
//! single message costs more than the window.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use sutura_erasure::{
    Arrival, DecodeError, Decoder, DecoderLimits, Encoder, MAX_SYMBOL_ID, RepairOutcome,
};

const LIMITS: DecoderLimits =
    DecoderLimits { symbols: 256, bytes: 64 * 1024, symbol_size: 1400, repairs: 32 };

fn check(decoder: &Decoder) {
    assert!(decoder.upper_bound() - decoder.lower_bound() <= LIMITS.symbols as u64);
    assert!(decoder.missing().len() <= LIMITS.symbols);
    assert!(decoder.bytes() <= LIMITS.bytes);
    assert!(decoder.repairs() <= LIMITS.repairs);
    assert!(
        decoder.allocated() <= LIMITS.memory(),
        "{} bytes are held, {} allowed",
        decoder.allocated(),
        LIMITS.memory()
    );
}

#[test]
fn source_symbols_that_are_never_released() {
    let mut decoder = Decoder::new(LIMITS);
    for id in 0..20_000u64 {
        // Long ones for a while, then short ones that could sit in their buffers.
        let len = if id / 500 % 2 == 0 { 1400 } else { 1 };
        assert_eq!(decoder.source(id, &[1; 1400][..len]), Ok(Arrival::New));
        check(&decoder);
    }
    assert_eq!(decoder.upper_bound(), 20_000);
}

#[test]
fn gaps_of_every_size() {
    let mut decoder = Decoder::new(LIMITS);
    let mut id = 0u64;
    for step in 0..62 {
        for _ in 0..50 {
            assert_eq!(decoder.source(id, b"x"), Ok(Arrival::New));
            check(&decoder);
            id += (1 << step) / 50 + 1;
        }
    }
    assert!(decoder.upper_bound() > 1 << 61);
    assert_eq!(decoder.source(MAX_SYMBOL_ID, b"x"), Ok(Arrival::New));
    assert_eq!(decoder.source(MAX_SYMBOL_ID + 1, b"x"), Err(DecodeError::SymbolId));
    assert_eq!(decoder.source(0, b"x"), Ok(Arrival::Old));
    check(&decoder);
}

#[test]
fn nothing_but_gaps() {
    let mut decoder = Decoder::new(LIMITS);
    for id in (0..1_000_000).step_by(256) {
        assert_eq!(decoder.source(id, &[1; 1400]), Ok(Arrival::New));
        check(&decoder);
    }
    for id in (1_000_000..1_040_000).step_by(2) {
        assert_eq!(decoder.source(id, &[1; 200]), Ok(Arrival::New));
        check(&decoder);
    }
}

#[test]
fn equations_that_nothing_solves() {
    let mut decoder = Decoder::new(LIMITS);
    let mut stored = 0;
    for key in 0..3000 {
        // Each is about symbols that no other is about alone, and none of them ever comes.
        let start = u64::from(key) / 10;
        let result = decoder.repair(start..start + 250, key, &[key as u8 | 1; 1402]);
        if result == Ok(RepairOutcome::Innovative { recovered: 0 }) {
            stored += 1;
        }
        check(&decoder);
    }
    assert!(stored > LIMITS.repairs, "{stored} were taken in");
    assert_eq!(decoder.repairs(), LIMITS.repairs);
    // The decoder is still of use.
    let mut encoder = Encoder::new(LIMITS.window());
    for _ in 0..10_000u64 {
        encoder.push(&[7; 100]).unwrap();
        encoder.release_below(encoder.next_id().saturating_sub(3));
    }
    let (span, mut payload) = (encoder.window(), Vec::new());
    encoder.repair(span.clone(), 0, &mut payload).unwrap();
    decoder.source(span.start, &[7; 100]).unwrap();
    decoder.source(span.start + 2, &[7; 100]).unwrap();
    let outcome = decoder.repair(span.clone(), 0, &payload);
    assert_eq!(outcome, Ok(RepairOutcome::Innovative { recovered: 1 }));
    assert_eq!(decoder.symbol(span.start + 1), Some(&[7; 100][..]));
    check(&decoder);
}

#[test]
fn repair_symbols_of_absurd_spans_and_sizes() {
    let mut decoder = Decoder::new(LIMITS);
    for bit in 0..64 {
        let far = 1u64 << bit;
        for span in [0..far, far..u64::MAX, far..far.wrapping_mul(2), far..far] {
            for len in [0, 2, 3, 1402, 1403, 100_000] {
                let _outcome = decoder.repair(span.clone(), 1, &vec![1; len]);
                check(&decoder);
            }
        }
    }
    assert!(decoder.upper_bound() <= MAX_SYMBOL_ID + 1);
}

#[test]
fn recovered_symbols_that_nobody_collects() {
    let mut encoder = Encoder::new(LIMITS.window());
    let mut decoder = Decoder::new(LIMITS);
    let mut payload = Vec::new();
    for id in 0..5000 {
        if encoder.push(&[id as u8; 30]).is_err() {
            encoder.release_below(id);
            encoder.push(&[id as u8; 30]).unwrap();
        }
        payload.clear();
        encoder.repair(id..id + 1, 1, &mut payload).unwrap();
        let outcome = decoder.repair(id..id + 1, 1, &payload);
        assert_eq!(outcome, Ok(RepairOutcome::Innovative { recovered: 1 }));
        check(&decoder);
    }
    let waiting = std::iter::from_fn(|| decoder.pop_recovered()).count();
    assert_eq!(waiting, LIMITS.symbols);
}
