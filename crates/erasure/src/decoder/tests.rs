use super::*;
use crate::{Encoder, WindowLimits, coefficient, gf256};
use alloc::vec;

/// An encoder that holds `content(0)` to `content(count - 1)`.
fn encoder(count: u64) -> Encoder {
    let mut encoder = Encoder::new(WindowLimits::default());
    for id in 0..count {
        assert_eq!(encoder.push(&content(id)), Ok(id));
    }
    encoder
}

fn content(id: SymbolId) -> Vec<u8> {
    (0..3 + id * 7 % 11).map(|at| (id * 13 + at) as u8).collect()
}

fn repair(encoder: &Encoder, span: Range<SymbolId>, key: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    encoder.repair(span, key, &mut payload).unwrap();
    payload
}

fn give(decoder: &mut Decoder, ids: impl IntoIterator<Item = SymbolId>) {
    for id in ids {
        decoder.source(id, &content(id)).unwrap();
        assert!(decoder.matrix.is_reduced());
    }
}

fn give_repair(
    decoder: &mut Decoder,
    encoder: &Encoder,
    span: Range<SymbolId>,
    key: u32,
) -> RepairOutcome {
    let payload = repair(encoder, span.clone(), key);
    let outcome = decoder.repair(span, key, &payload).unwrap();
    assert!(decoder.matrix.is_reduced());
    outcome
}

/// Takes the recovered symbols, and checks them.
fn recovered(decoder: &mut Decoder) -> Vec<SymbolId> {
    let mut ids = Vec::new();
    while let Some(id) = decoder.pop_recovered() {
        assert_eq!(decoder.symbol(id), Some(&content(id)[..]));
        ids.push(id);
    }
    ids
}

fn missing(decoder: &Decoder) -> Vec<SymbolId> {
    decoder.missing().collect()
}

fn innovative(recovered: usize) -> RepairOutcome {
    RepairOutcome::Innovative { recovered }
}

fn default() -> Decoder {
    Decoder::new(DecoderLimits::default())
}

fn with_symbols(symbols: usize, repairs: usize) -> Decoder {
    Decoder::new(DecoderLimits { symbols, repairs, ..DecoderLimits::default() })
}

#[test]
fn what_is_determined_does_not_wait_for_what_is_not() {
    let encoder = encoder(9);
    let mut decoder = default();
    give(&mut decoder, [0, 1, 4, 8]);
    assert_eq!(give_repair(&mut decoder, &encoder, 0..9, 1), innovative(0));
    assert_eq!(give_repair(&mut decoder, &encoder, 0..3, 2), innovative(1));
    assert_eq!(recovered(&mut decoder), [2]);
    assert_eq!(give_repair(&mut decoder, &encoder, 6..8, 3), innovative(0));
    assert_eq!(give_repair(&mut decoder, &encoder, 6..9, 4), innovative(2));
    assert_eq!(recovered(&mut decoder), [6, 7]);
    assert_eq!(missing(&decoder), [3, 5]);
    assert_eq!(give_repair(&mut decoder, &encoder, 3..6, 5), innovative(2));
    assert_eq!(recovered(&mut decoder), [3, 5]);
}

#[test]
fn released_symbols_are_gone_and_the_rest_is_unharmed() {
    let encoder = encoder(6);
    let mut decoder = default();
    give(&mut decoder, [0, 2, 4, 5]);
    give_repair(&mut decoder, &encoder, 0..6, 1);
    decoder.release_below(2);
    assert_eq!((decoder.lower_bound(), decoder.upper_bound()), (2, 6));
    assert_eq!((decoder.given_up(), decoder.repairs()), (1, 0));
    assert_eq!(decoder.symbol(0), None);
    assert_eq!(decoder.source(1, &content(1)), Ok(Arrival::Old));
    assert_eq!(give_repair(&mut decoder, &encoder, 1..6, 2), RepairOutcome::Old);
    assert_eq!(give_repair(&mut decoder, &encoder, 2..6, 3), innovative(1));
    assert_eq!(recovered(&mut decoder), [3]);
    decoder.release_below(1);
    assert_eq!(decoder.lower_bound(), 2);
}

#[test]
fn giving_up_a_symbol_keeps_what_is_known_about_later_ones() {
    let encoder = encoder(4);
    let mut decoder = default();
    give(&mut decoder, [3]);
    // Two equations over three symbols; with the first symbol known, one equation over two is left.
    give_repair(&mut decoder, &encoder, 0..4, 1);
    give_repair(&mut decoder, &encoder, 0..4, 2);
    decoder.release_below(1);
    assert!(decoder.matrix.is_reduced());
    assert_eq!((decoder.repairs(), missing(&decoder)), (1, vec![1, 2]));
    assert_eq!(give_repair(&mut decoder, &encoder, 1..4, 3), innovative(2));
    assert_eq!(recovered(&mut decoder), [1, 2]);
}

#[test]
fn a_release_beyond_the_window_moves_it() {
    let mut decoder = default();
    give(&mut decoder, [0, 2]);
    decoder.release_below(10);
    assert_eq!((decoder.lower_bound(), decoder.upper_bound()), (10, 10));
    assert_eq!((decoder.given_up(), decoder.bytes()), (8, 0));
    give(&mut decoder, [11]);
    assert_eq!(missing(&decoder), [10]);
    decoder.release_below(u64::MAX);
    assert_eq!(decoder.lower_bound(), MAX_SYMBOL_ID + 1);
    assert_eq!(decoder.source(MAX_SYMBOL_ID, b"x"), Ok(Arrival::Old));
}

#[test]
fn recovered_symbols_that_are_released_are_not_announced() {
    let encoder = encoder(4);
    let mut decoder = default();
    give(&mut decoder, [1, 2]);
    give_repair(&mut decoder, &encoder, 0..4, 1);
    give_repair(&mut decoder, &encoder, 0..4, 2);
    decoder.release_below(1);
    assert_eq!(recovered(&mut decoder), [3]);
}

#[test]
fn a_full_window_gives_up_the_oldest_and_goes_on() {
    let encoder = encoder(12);
    let mut decoder = with_symbols(4, 4);
    give(&mut decoder, [1, 2, 3]);
    assert_eq!(missing(&decoder), [0]);
    give(&mut decoder, [4]);
    assert_eq!((decoder.lower_bound(), decoder.given_up()), (1, 1));
    give(&mut decoder, [6]);
    assert_eq!((decoder.lower_bound(), missing(&decoder)), (3, vec![5]));
    assert_eq!(give_repair(&mut decoder, &encoder, 3..7, 1), innovative(1));
    // A repair symbol moves the window as well, if the symbols that it covers fit.
    assert_eq!(give_repair(&mut decoder, &encoder, 6..9, 2), innovative(0));
    assert_eq!((decoder.lower_bound(), missing(&decoder)), (5, vec![7, 8]));
    assert_eq!(give_repair(&mut decoder, &encoder, 6..9, 3), innovative(2));
    assert_eq!(recovered(&mut decoder), [5, 7, 8]);
}

#[test]
fn a_jump_moves_the_window_and_forgets_what_is_behind() {
    let mut decoder = with_symbols(8, 8);
    give(&mut decoder, [0, 1, 3]);
    decoder.source(1 << 40, b"far").unwrap();
    assert_eq!(decoder.upper_bound(), (1 << 40) + 1);
    assert_eq!(decoder.lower_bound(), (1 << 40) + 1 - 8);
    assert_eq!((decoder.missing().len(), decoder.bytes()), (7, 3));
    assert_eq!(decoder.given_up(), (1 << 40) + 1 - 8 - 3);
    decoder.repair(MAX_SYMBOL_ID - 2..MAX_SYMBOL_ID + 1, 0, &[3; 9]).unwrap();
    assert_eq!(decoder.upper_bound(), MAX_SYMBOL_ID + 1);
    assert_eq!((decoder.missing().len(), decoder.bytes()), (8, 0));
    decoder.source(MAX_SYMBOL_ID, b"last").unwrap();
    assert_eq!(decoder.symbol(MAX_SYMBOL_ID), Some(&b"last"[..]));
}

#[test]
fn the_oldest_symbols_yield_to_the_limit_on_bytes() {
    let mut decoder =
        Decoder::new(DecoderLimits { symbols: 100, bytes: 30, symbol_size: 20, repairs: 4 });
    for id in 0..5 {
        decoder.source(id, &[1; 10]).unwrap();
        assert!(decoder.bytes() <= 30);
    }
    assert_eq!((decoder.lower_bound(), decoder.bytes()), (2, 30));
    // A late symbol is passed on but not kept if giving up older symbols cannot make room for it.
    decoder.source(6, &[1; 10]).unwrap();
    decoder.source(7, &[1; 10]).unwrap();
    assert_eq!(missing(&decoder), [5]);
    decoder.source(8, &[1; 10]).unwrap();
    assert_eq!((decoder.lower_bound(), missing(&decoder)), (5, vec![5]));
    assert_eq!(decoder.source(5, &[1; 10]), Ok(Arrival::New));
    assert_eq!((decoder.symbol(5), decoder.lower_bound()), (None, 6));
    assert_eq!((decoder.bytes(), decoder.missing().len()), (30, 0));
}

#[test]
fn the_oldest_equations_yield_to_the_limit_on_equations() {
    let encoder = encoder(10);
    let mut decoder = with_symbols(16, 2);
    give_repair(&mut decoder, &encoder, 0..5, 1);
    give_repair(&mut decoder, &encoder, 3..7, 2);
    assert_eq!(decoder.repairs(), 2);
    // This repair symbol covers the very oldest symbols, so the next one like it would be dropped.
    assert_eq!(give_repair(&mut decoder, &encoder, 0..5, 3), innovative(0));
    assert_eq!(decoder.repairs(), 2);
    assert_eq!(give_repair(&mut decoder, &encoder, 0..5, 4), RepairOutcome::Dropped);
    // Newer repair symbols are admitted, and solved.
    give_repair(&mut decoder, &encoder, 7..10, 5);
    give_repair(&mut decoder, &encoder, 7..10, 6);
    assert_eq!(give_repair(&mut decoder, &encoder, 7..10, 7), innovative(3));
    assert_eq!(recovered(&mut decoder), [7, 8, 9]);
    assert_eq!(decoder.repairs(), 0);
}

/// Gives the repair symbols with these keys together.
fn give_burst(
    decoder: &mut Decoder,
    encoder: &Encoder,
    symbols: &[(Range<SymbolId>, u32)],
) -> Vec<RepairOutcome> {
    let payload = |(span, key): &(Range<SymbolId>, u32)| repair(encoder, span.clone(), *key);
    let payloads: Vec<_> = symbols.iter().map(payload).collect();
    let burst: Vec<_> = (symbols.iter().zip(&payloads))
        .map(|((span, key), payload)| RepairSymbol { span: span.clone(), key: *key, payload })
        .collect();
    let outcomes = decoder.repair_burst(&burst);
    assert!(decoder.matrix.is_reduced());
    outcomes.into_iter().map(Result::unwrap).collect()
}

#[test]
fn the_last_of_a_burst_that_helps_counts_what_all_recover() {
    let encoder = encoder(10);
    let mut decoder = default();
    give(&mut decoder, [0, 1, 4, 5, 6, 7, 8, 9]);
    let symbols = [(0..10, 1), (0..10, 1), (5..9, 2), (1..4, 3), (0..9, 4)];
    let outcomes = give_burst(&mut decoder, &encoder, &symbols);
    let [dependent, unneeded] = [RepairOutcome::Dependent, RepairOutcome::Unneeded];
    assert_eq!(outcomes, [innovative(0), dependent, unneeded, innovative(2), dependent]);
    assert_eq!(recovered(&mut decoder), [2, 3]);
    assert_eq!(decoder.repair_burst(&[]), []);
}

#[test]
fn a_burst_does_not_count_what_the_limit_drops() {
    let encoder = encoder(10);
    let mut decoder = with_symbols(16, 2);
    give_repair(&mut decoder, &encoder, 5..10, 1);
    give_repair(&mut decoder, &encoder, 5..10, 2);
    let dropped = RepairOutcome::Dropped;
    let outcomes = give_burst(&mut decoder, &encoder, &[(5..10, 3), (0..3, 4), (0..10, 5)]);
    assert_eq!(outcomes, [innovative(0), dropped, dropped]);
    assert_eq!(decoder.repairs(), 2);
}

#[test]
fn a_burst_that_moves_the_window_uses_what_comes_before() {
    let encoder = encoder(12);
    let mut decoder = with_symbols(8, 8);
    give(&mut decoder, [0, 2, 3, 4, 5, 6, 7]);
    let outcomes = give_burst(&mut decoder, &encoder, &[(0..8, 1), (4..12, 2), (0..8, 3)]);
    assert_eq!(outcomes, [innovative(1), innovative(0), RepairOutcome::Old]);
    assert_eq!((decoder.lower_bound(), decoder.given_up()), (4, 0));
}

#[test]
fn a_contradiction_in_a_burst_does_not_harm_the_rest() {
    let encoder = encoder(6);
    let mut decoder = default();
    give(&mut decoder, [0, 1, 2, 3]);
    let payload = repair(&encoder, 0..6, 7);
    let payloads = [&payload[..], &[1; 3], &repair(&encoder, 0..6, 8), &payload];
    let burst: Vec<_> = ([7, 9, 8, 7].into_iter().zip(payloads))
        .map(|(key, payload)| RepairSymbol { span: 0..6, key, payload })
        .collect();
    // There are two unknowns, so the third repair symbol would be useless besides the first two.
    let contradiction = Err(DecodeError::Contradiction);
    let outcomes = decoder.repair_burst(&burst);
    let unneeded = Ok(RepairOutcome::Unneeded);
    assert_eq!(outcomes, [Ok(innovative(0)), contradiction, Ok(innovative(2)), unneeded]);
    assert_eq!(recovered(&mut decoder), [4, 5]);
}

#[test]
fn an_equation_that_completes_a_full_system_is_used() {
    let encoder = encoder(3);
    let mut decoder = with_symbols(16, 2);
    give_repair(&mut decoder, &encoder, 0..3, 1);
    give_repair(&mut decoder, &encoder, 0..3, 2);
    assert_eq!(give_repair(&mut decoder, &encoder, 0..3, 3), innovative(3));
    assert_eq!(recovered(&mut decoder), [0, 1, 2]);
    // A repair symbol that solves a symbol by itself is used too, however old the symbol is.
    let mut decoder = with_symbols(16, 2);
    give_repair(&mut decoder, &encoder, 1..3, 1);
    decoder.repair(3..6, 2, &[1; 10]).unwrap();
    assert_eq!(decoder.repairs(), 2);
    assert_eq!(give_repair(&mut decoder, &encoder, 0..1, 3), innovative(1));
    assert_eq!(recovered(&mut decoder), [0]);
}

#[test]
fn what_no_encoder_sends_is_an_error_and_changes_nothing() {
    let mut decoder =
        Decoder::new(DecoderLimits { symbols: 8, bytes: 1000, symbol_size: 100, repairs: 4 });
    for id in [MAX_SYMBOL_ID + 1, u64::MAX] {
        assert_eq!(decoder.source(id, b"x"), Err(DecodeError::SymbolId));
    }
    for bytes in [&[][..], &[0; 101]] {
        assert_eq!(decoder.source(0, bytes), Err(DecodeError::SymbolSize));
    }
    let reversed = Range { start: 5, end: 2 };
    let over_the_end = MAX_SYMBOL_ID..MAX_SYMBOL_ID + 2;
    for span in [0..0, reversed, 0..9, 0..u64::MAX, over_the_end] {
        assert_eq!(decoder.repair(span, 0, &[1; 20]), Err(DecodeError::Span));
    }
    for len in [0, 1, 2, 103, 5000] {
        let result = decoder.repair(0..3, 0, &vec![1; len]);
        assert_eq!(result, Err(DecodeError::RepairSize));
    }
    assert_eq!((decoder.upper_bound(), decoder.allocated()), (0, 0));
}

#[test]
fn a_repair_symbol_shorter_than_a_symbol_it_covers_is_a_contradiction() {
    let mut decoder = default();
    decoder.source(0, &[1; 50]).unwrap();
    assert_eq!(decoder.repair(0..2, 0, &[1; 51]), Err(DecodeError::Contradiction));
    assert_eq!((decoder.repairs(), missing(&decoder)), (0, vec![1]));
    // The same, with the symbol arriving later.
    assert_eq!(decoder.repair(1..3, 0, &[1; 10]), Ok(innovative(0)));
    assert_eq!(decoder.source(2, &[1; 50]), Err(DecodeError::Contradiction));
    assert_eq!(decoder.symbol(2), Some(&[1; 50][..]));
    assert_eq!((decoder.repairs(), missing(&decoder)), (0, vec![1]));
}

#[test]
fn a_solution_that_is_no_symbol_is_a_contradiction() {
    let c = coefficient(9, 0);
    let of = |coded: &[u8]| coded.iter().map(|&byte| gf256::mul(c, byte)).collect::<Vec<_>>();
    for coded in [&[0, 0, 0][..], &[0, 9, 1, 2], &[0xff, 0xff, 1], &[0, 1, 5, 6]] {
        let mut decoder = default();
        let result = decoder.repair(0..1, 9, &of(coded));
        assert_eq!(result, Err(DecodeError::Contradiction), "{coded:?}");
        assert_eq!((decoder.repairs(), missing(&decoder)), (0, vec![0]));
        // The symbol can still arrive.
        assert_eq!(decoder.repair(0..1, 9, &of(&[0, 1, 5, 0])), Ok(innovative(1)));
        assert_eq!(decoder.symbol(0), Some(&[5][..]));
    }
}

#[test]
fn one_contradiction_does_not_hide_what_else_is_solved() {
    let encoder = encoder(2);
    let mut decoder = default();
    give_repair(&mut decoder, &encoder, 0..2, 1);
    decoder.repair(0..3, 2, &[0x77; 20]).unwrap();
    // Symbol 0 determines symbol 1 by the first equation, and with it a symbol 2 that never
    // existed.
    assert_eq!(decoder.source(0, &content(0)), Err(DecodeError::Contradiction));
    assert_eq!(recovered(&mut decoder), [1]);
    assert_eq!((decoder.repairs(), missing(&decoder)), (0, vec![2]));
}

#[test]
fn a_lossy_stream_without_end_neither_grows_nor_sticks() {
    let limits = DecoderLimits { symbols: 64, bytes: 64 * 40, symbol_size: 40, repairs: 16 };
    let mut encoder = Encoder::new(limits.window());
    let mut decoder = Decoder::new(limits);
    let (mut key, mut recoveries) = (0, 0);
    let mut payload = Vec::new();
    let mut settled = 0;
    for id in 0..20_000 {
        if encoder.window().count() == limits.symbols {
            encoder.release_below(encoder.window().start + 1);
        }
        encoder.push(&content(id)).unwrap();
        // Every twentieth symbol is lost, and in each 3000 a burst that repair cannot recover.
        if id % 20 != 7 && id % 3000 >= 50 {
            give(&mut decoder, [id]);
        }
        if id % 15 == 0 {
            key += 1;
            payload.clear();
            let span = encoder.window();
            encoder.repair(span.clone(), key, &mut payload).unwrap();
            decoder.repair(span, key, &payload).unwrap();
        }
        recoveries += recovered(&mut decoder).len();
        assert!(decoder.allocated() <= limits.memory());
        if id == 10_000 {
            settled = decoder.allocated();
        }
    }
    assert_eq!(decoder.allocated(), settled, "buffers are used again");
    let lost = 20_000 / 20 + 7 * 50;
    let unsolved = usize::try_from(decoder.given_up()).unwrap();
    assert!(recoveries >= 900, "{recoveries} of about {lost} recovered, {unsolved} given up");
    // The last burst is long past, and later losses have been recovered.
    assert!(decoder.missing().len() <= 1);
}

/// Equations as long as possible, over source symbols that arrive without any payload to speak of: each of
/// these would have all equations changed.
#[test]
fn small_symbols_do_not_make_a_decoder_rework_long_equations() {
    const BYTE: &[u8] = &[7];
    let limits = DecoderLimits { symbols: 256, repairs: 64, symbol_size: 1472, bytes: 384 << 10 };
    let mut encoder = Encoder::new(limits.window());
    let mut decoder = Decoder::new(limits);
    let (mut first, mut work, mut bytes) = (0, 0, 0);
    for round in 0..100 {
        for id in first..first + 256 {
            let symbol = if id == first + 255 { &[7; 1472][..] } else { BYTE };
            while encoder.push(symbol).is_err() {
                encoder.release_below(encoder.window().start + 1);
            }
        }
        let before = decoder.work();
        for key in 0..64 {
            // The first repair symbol makes the others long.
            let span = first..first + 256 - u64::from(key > 0);
            let payload = repair(&encoder, span.clone(), key);
            decoder.repair(span, key, &payload).unwrap();
            bytes += 64 + payload.len();
        }
        for id in first..first + 191 {
            decoder.source(id, BYTE).unwrap();
            assert!(decoder.matrix.is_reduced());
            bytes += 64;
        }
        // The savings last for the first rounds.
        work += if round < 2 { 0 } else { decoder.work() - before };
        first += 256;
    }
    assert!(work / bytes as u64 <= 400, "{} bytes read for each byte", work / bytes as u64);
}
