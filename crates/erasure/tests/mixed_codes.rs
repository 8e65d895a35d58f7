//! Repair symbols of several codes in one decoder.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod naive;

use std::ops::Range;

use sutura_erasure::{
    Combination, Decoder, DecoderLimits, Encoder, RepairOutcome, WindowLimits, block::ReedSolomon,
};
use sutura_random::Rng;

fn content(id: u64) -> Vec<u8> {
    (0..1 + id * 7 % 40).map(|at| (id * 31 + at * at) as u8).collect()
}

fn encoder(symbols: u64) -> Encoder {
    let mut encoder = Encoder::new(WindowLimits::default());
    for id in 0..symbols {
        assert_eq!(encoder.push(&content(id)), Ok(id));
    }
    encoder
}

/// The coefficients of parity symbol `index` of the block `span`.
fn parity(span: &Range<u64>, index: usize) -> impl Combination + use<> {
    let first = span.start;
    move |id: u64| ReedSolomon::coefficient(index, (id - first) as usize)
}

fn give_parity(
    decoder: &mut Decoder,
    encoder: &Encoder,
    span: Range<u64>,
    index: usize,
) -> RepairOutcome {
    let mut payload = Vec::new();
    encoder.repair_with(span.clone(), parity(&span, index), &mut payload).unwrap();
    decoder.repair_with(span.clone(), parity(&span, index), &payload).unwrap()
}

/// A decoder with the symbols of a span that were not lost.
fn without(span: Range<u64>, is_lost: impl Fn(u64) -> bool) -> Decoder {
    let mut decoder = Decoder::new(DecoderLimits::default());
    decoder.release_below(span.start);
    for id in span.clone().filter(|&id| !is_lost(id)) {
        decoder.source(id, &content(id)).unwrap();
    }
    decoder
}

fn assert_complete(decoder: &Decoder, span: Range<u64>) {
    for id in span {
        assert_eq!(decoder.symbol(id), Some(&content(id)[..]));
    }
}

/// Subsets of a given size of the numbers below `n`, as bits.
fn subsets(n: usize, size: usize) -> impl Iterator<Item = u64> {
    (0..1u64 << n).filter(move |set| set.count_ones() as usize == size)
}

#[test]
fn any_parities_mend_as_many_losses() {
    const PARITIES: usize = 4;
    for k in 1..=6 {
        let span = 5..5 + k as u64;
        let encoder = encoder(span.end);
        for losses in 1..=k.min(PARITIES) {
            for lost in subsets(k, losses) {
                for used in subsets(PARITIES, losses) {
                    let mut decoder = without(span.clone(), |id| lost >> (id - 5) & 1 == 1);
                    for index in (0..PARITIES).filter(|index| used >> index & 1 == 1) {
                        let outcome = give_parity(&mut decoder, &encoder, span.clone(), index);
                        assert!(matches!(outcome, RepairOutcome::Innovative { .. }));
                    }
                    assert_complete(&decoder, span.clone());
                }
            }
        }
    }
}

#[test]
fn the_largest_blocks_are_mended_too() {
    let mut random = Rng::new(3);
    for k in [1, 2, 100, 128, 200, 254, 255] {
        let span = 0..k as u64;
        let encoder = encoder(span.end);
        for _ in 0..3 {
            let parities = ReedSolomon::MAX_SYMBOLS - k;
            let losses = 1 + random.index(k.min(parities).min(100));
            let mut ids: Vec<u64> = span.clone().collect();
            let mut indexes: Vec<usize> = (0..parities).collect();
            random.shuffle(&mut ids);
            random.shuffle(&mut indexes);
            let mut decoder = without(span.clone(), |id| ids[..losses].contains(&id));
            for &index in &indexes[..losses] {
                give_parity(&mut decoder, &encoder, span.clone(), index);
            }
            assert_complete(&decoder, span.clone());
        }
    }
}

/// A late source symbol, a repair symbol of the window code, and parities of two blocks: each contributes
/// information that the others lack.
#[test]
fn codes_complete_each_other() {
    let encoder = encoder(30);
    let lost = [2, 5, 7, 11, 14, 20];
    let mut decoder = without(0..30, |id| lost.contains(&id));
    let opened = RepairOutcome::Innovative { recovered: 0 };
    assert_eq!(give_parity(&mut decoder, &encoder, 0..10, 0), opened);
    assert_eq!(give_parity(&mut decoder, &encoder, 0..10, 3), opened);
    assert_eq!(give_parity(&mut decoder, &encoder, 10..20, 1), opened);
    let mut payload = Vec::new();
    encoder.repair(0..30, 9, &mut payload).unwrap();
    assert_eq!(decoder.repair(0..30, 9, &payload), Ok(opened));
    assert_eq!(give_parity(&mut decoder, &encoder, 0..10, 3), RepairOutcome::Dependent);
    decoder.source(5, &content(5)).unwrap();
    assert_eq!((decoder.pop_recovered(), decoder.pop_recovered()), (Some(2), Some(7)));
    assert_eq!(decoder.missing().collect::<Vec<_>>(), [11, 14, 20]);
    let outcome = give_parity(&mut decoder, &encoder, 10..20, 0);
    assert_eq!(outcome, RepairOutcome::Innovative { recovered: 3 });
    assert_complete(&decoder, 0..30);
}

/// Sums of every third symbol: most coefficients are 0.
#[test]
fn sums_of_some_symbols_mend_what_they_hold() {
    let encoder = encoder(30);
    let column = |number: u64| move |id: u64| u8::from(id % 3 == number);
    let mut decoder = without(0..30, |id| (12..15).contains(&id));
    for (lost, number) in [(12, 0), (13, 1), (14, 2)] {
        let mut payload = Vec::new();
        encoder.repair_with(0..30, column(number), &mut payload).unwrap();
        let outcome = decoder.repair_with(0..30, column(number), &payload);
        assert_eq!(outcome, Ok(RepairOutcome::Innovative { recovered: 1 }));
        assert_eq!(decoder.pop_recovered(), Some(lost));
        // None of its symbols is missing now.
        if number < 2 {
            let again = decoder.repair_with(0..30, column(number), &payload);
            assert_eq!(again, Ok(RepairOutcome::Dependent));
        }
    }
    assert_complete(&decoder, 0..30);
}

/// Symbols of all codes over random spans: recovered symbols equal the sent ones, and every symbol that the
/// equations determine is recovered.
#[test]
fn random_mixtures_agree_with_their_rank() {
    let mut random = Rng::new(11);
    let encoder = encoder(24);
    let mut recoveries = 0;
    for _ in 0..400 {
        let lost: Vec<u64> = (0..24).filter(|_| random.index(3) == 0).collect();
        let mut decoder = without(0..24, |id| lost.contains(&id));
        let mut rows = Vec::new();
        for key in 0..8u32 {
            let start = random.index(20) as u64;
            let span = start..start + 1 + random.index(24 - start as usize) as u64;
            let index = random.index(20);
            let code = random.index(3);
            let combination = |id: u64| match code {
                0 => sutura_erasure::coefficient(key, id),
                1 => ReedSolomon::coefficient(index, (id - start) as usize),
                _ => u8::from((id + u64::from(key)).is_multiple_of(4)),
            };
            let mut payload = Vec::new();
            encoder.repair_with(span.clone(), combination, &mut payload).unwrap();
            decoder.repair_with(span.clone(), combination, &payload).unwrap();
            let coefficient = |id: &u64| if span.contains(id) { combination(*id) } else { 0 };
            rows.push(lost.iter().map(coefficient).collect());
        }
        let determined = naive::determined(rows.into_iter(), lost.len());
        for (&id, determined) in lost.iter().zip(determined) {
            assert_eq!(decoder.symbol(id).is_some(), determined, "{id} of {lost:?}");
            if determined {
                assert_eq!(decoder.symbol(id), Some(&content(id)[..]));
                recoveries += 1;
            }
        }
    }
    assert!(recoveries > 500, "{recoveries}");
}
