//! The cost of decoding in bytes that arithmetic reads: exact figures, independent of any clock.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::ops::Range;

use sutura_erasure::{Decoder, DecoderLimits, Encoder, RepairOutcome, RepairSymbol, WindowLimits};

/// Bytes of a symbol, and of its coded form: the length prefix, and zeros up to a whole cache line.
const SIZE: usize = 1200;
const CODED: u64 = 1216;

const SYMBOLS: u64 = 1000;

fn content(id: u64) -> [u8; SIZE] {
    std::array::from_fn(|at| (id as usize * 31 + at * at / 3) as u8)
}

fn encoder(symbols: u64) -> Encoder {
    let mut encoder = Encoder::new(WindowLimits::default());
    for id in 0..symbols {
        assert_eq!(encoder.push(&content(id)), Ok(id));
    }
    encoder
}

/// A decoder that has all source symbols except the lost ones.
fn without(encoder: &Encoder, limits: DecoderLimits, is_lost: impl Fn(u64) -> bool) -> Decoder {
    let mut decoder = Decoder::new(limits);
    for id in encoder.window().filter(|&id| !is_lost(id)) {
        decoder.source(id, encoder.symbol(id).unwrap()).unwrap();
    }
    decoder
}

fn repairs(encoder: &Encoder, span: Range<u64>, keys: Range<u32>) -> Vec<Vec<u8>> {
    let keys: Vec<u32> = keys.collect();
    let mut payloads = vec![Vec::new(); keys.len()];
    encoder.repair_burst(span, &keys, &mut payloads).unwrap();
    payloads
}

/// The repair symbols with consecutive keys from 0.
fn burst<'a>(span: &Range<u64>, payloads: &'a [Vec<u8>]) -> Vec<RepairSymbol<'a>> {
    let symbols = (0..).zip(payloads);
    symbols.map(|(key, payload)| RepairSymbol { span: span.clone(), key, payload }).collect()
}

#[test]
fn nothing_is_read_while_nothing_is_missing() {
    let limits = DecoderLimits { symbols: 64, ..DecoderLimits::default() };
    let mut encoder = Encoder::new(limits.window());
    let mut decoder = Decoder::new(limits);
    for id in 0..50_000u64 {
        if encoder.window().count() == limits.symbols {
            encoder.release_below(encoder.window().start + 1);
        }
        encoder.push(&id.to_be_bytes()).unwrap();
        decoder.source(id, &id.to_be_bytes()).unwrap();
        let span = encoder.window();
        if id % 10 == 0 {
            let payload = &repairs(&encoder, span.clone(), 0..1)[0];
            let outcome = decoder.repair(span.clone(), 0, payload);
            assert_eq!(outcome, Ok(RepairOutcome::Unneeded));
        }
        if id % 100 == 0 {
            let payloads = repairs(&encoder, span.clone(), 0..9);
            for outcome in decoder.repair_burst(&burst(&span, &payloads)) {
                assert_eq!(outcome, Ok(RepairOutcome::Unneeded));
            }
        }
        if id % 1000 == 0 {
            decoder.release_below(span.start);
        }
    }
    assert_eq!((decoder.work(), decoder.missing().len()), (0, 0));
}

#[test]
fn what_is_not_covered_costs_nothing_either() {
    let encoder = encoder(100);
    let mut decoder = without(&encoder, DecoderLimits::default(), |id| id == 50);
    let payloads = repairs(&encoder, 60..100, 0..9);
    decoder.repair(60..100, 0, &payloads[0]).unwrap();
    decoder.repair_burst(&burst(&(60..100), &payloads));
    assert_eq!((decoder.work(), decoder.missing().len()), (0, 1));
}

#[test]
fn the_bytes_of_dependent_repair_symbols_are_not_read() {
    let encoder = encoder(100);
    let span = encoder.window();
    let mut decoder = without(&encoder, DecoderLimits::default(), |id| id % 5 == 0);
    let payloads = repairs(&encoder, span.clone(), 0..20);
    let symbols = burst(&span, &payloads);
    decoder.repair_burst(&symbols[..10]);
    assert_eq!((decoder.repairs(), decoder.missing().len()), (10, 20));

    // Ten equations of twenty coefficients each, and up to five more of the burst.
    let coefficients = |symbols: u64| symbols * (10 + 5) * 20;
    assert!(coefficients(1) < CODED);
    let nonsense = vec![0xAA; SIZE];
    for symbol in &symbols[..10] {
        let before = decoder.work();
        let outcome = decoder.repair(span.clone(), symbol.key, &nonsense);
        assert_eq!(outcome, Ok(RepairOutcome::Dependent));
        let work = decoder.work() - before;
        assert!(0 < work && work <= coefficients(1), "{work}");
    }
    let again: Vec<_> = symbols[..10].iter().cycle().take(50).cloned().collect();
    let before = decoder.work();
    assert!(decoder.repair_burst(&again).into_iter().all(|o| o == Ok(RepairOutcome::Dependent)));
    assert!(decoder.work() - before <= coefficients(50), "{}", decoder.work() - before);

    // Useless symbols cost no more in a burst with a useful symbol.
    let mut mixed = vec![symbols[10].clone()];
    mixed.extend_from_slice(&symbols[..5]);
    let before = decoder.work();
    let outcomes = decoder.repair_burst(&mixed);
    assert_eq!(outcomes[0], Ok(RepairOutcome::Innovative { recovered: 0 }));
    assert!(outcomes[1..].iter().all(|outcome| *outcome == Ok(RepairOutcome::Dependent)));
    // Eighty known symbols, ten equations twice, and coefficients three times.
    let one = (80 + 2 * 10) * CODED + 3 * coefficients(1);
    assert!(decoder.work() - before <= one + coefficients(5), "{}", decoder.work() - before);

    decoder.repair_burst(&symbols[11..]);
    assert_eq!(decoder.missing().len(), 0);
    assert!(span.clone().all(|id| decoder.symbol(id) == encoder.symbol(id)));
}

/// The cost of recovering the lost symbols of a window of 1000.
fn recovery(is_lost: impl Fn(u64) -> bool, together: usize) -> u64 {
    let encoder = encoder(SYMBOLS);
    let span = encoder.window();
    assert_eq!(span.clone().filter(|&id| is_lost(id)).count(), 50);
    let mut decoder = without(&encoder, DecoderLimits::default(), is_lost);
    assert_eq!(decoder.work(), 0);
    let payloads = repairs(&encoder, span.clone(), 0..50);
    for symbols in burst(&span, &payloads).chunks(together) {
        decoder.repair_burst(symbols);
    }
    assert_eq!(decoder.missing().len(), 0);
    assert!(span.clone().all(|id| decoder.symbol(id) == encoder.symbol(id)));
    decoder.work()
}

#[test]
fn early_late_and_spread_losses_cost_the_same() {
    // Every repair symbol reads the 950 known symbols, and every two equations are combined twice.
    // The rest is coefficients.
    let expected = 50 * 950 * CODED + 50 * 49 * CODED;
    for together in [1, 6, 50] {
        let early = recovery(|id| id < 50, together);
        let late = recovery(|id| id >= 950, together);
        let middle = recovery(|id| (475..525).contains(&id), together);
        let spread = recovery(|id| id % 20 == 7, together);
        let costs = [early, late, middle, spread];
        println!("{together:2} at a time: {costs:?} bytes, expected are {expected}");
        let (least, most) = (*costs.iter().min().unwrap(), *costs.iter().max().unwrap());
        assert!(100 * most <= 115 * least, "{costs:?}");
        assert!(100 * most <= 115 * expected, "{most}, expected about {expected}");
    }
}

/// A window that costs nearly as much as possible, given the missing bytes: the bound on work is
/// not far above it.
#[test]
fn the_bound_on_work_can_nearly_be_reached() {
    let limits =
        DecoderLimits { symbols: 1024, bytes: 1023 * 1500, symbol_size: 1500, repairs: 128 };
    let mut encoder = Encoder::new(limits.window());
    for id in 0..1023u64 {
        encoder.push(&[id as u8; 1500]).unwrap();
    }
    let span = encoder.window();
    let mut decoder = without(&encoder, limits, |id| id % 8 == 3);
    let missing = decoder.missing().len();
    assert_eq!(missing, limits.repairs);
    let payloads = repairs(&encoder, span.clone(), 0..missing as u32);
    let symbols = burst(&span, &payloads);
    // One equation less than there are unknowns determines few of them; the next equation determines all.
    decoder.repair_burst(&symbols[..missing - 1]);
    let unsolved = decoder.missing().len();
    assert!(unsolved > missing - 5 && decoder.repairs() == unsolved - 1);
    let before = decoder.work();
    let last = &symbols[missing - 1];
    let outcome = decoder.repair(last.span.clone(), last.key, last.payload);
    assert_eq!(outcome, Ok(RepairOutcome::Innovative { recovered: unsolved }));
    let (work, bound) = (decoder.work() - before, limits.work() as u64);
    assert!(work <= bound && 3 * work > 2 * bound, "{work} of {bound}");
}
