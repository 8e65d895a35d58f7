//! Peers that send any number of symbols of any kind: memory stays within the limits, and no symbol costs
//! more than the bound on work.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::ops::Range;

use sutura_erasure::{
    Arrival, DecodeError, Decoder, DecoderLimits, Encoder, MAX_OPEN_REPAIRS, MAX_SYMBOL_ID,
    RepairOutcome, RepairSymbol, WindowLimits,
};
use sutura_random::Rng;

const LIMITS: DecoderLimits =
    DecoderLimits { symbols: 256, bytes: 64 * 1024, symbol_size: 1400, repairs: 32 };

/// Bytes for meaningless symbols.
static NOISE: [u8; 70_000] = {
    let mut noise = [0; 70_000];
    let mut at = 0;
    while at < noise.len() {
        noise[at] = (at * at / 7 % 255) as u8 + 1;
        at += 1;
    }
    noise
};

/// A decoder whose bounds are all checked after each call.
struct Flooded {
    decoder: Decoder,
    limits: DecoderLimits,
}

impl Flooded {
    fn new(limits: DecoderLimits) -> Self {
        Self { decoder: Decoder::new(limits), limits: limits.effective() }
    }

    fn source(&mut self, id: u64, bytes: &[u8]) -> Result<Arrival, DecodeError> {
        let work = self.decoder.work();
        let result = self.decoder.source(id, bytes);
        self.check(work, 1);
        result
    }

    fn repair(
        &mut self,
        span: Range<u64>,
        key: u32,
        payload: &[u8],
    ) -> Result<RepairOutcome, DecodeError> {
        let work = self.decoder.work();
        let result = self.decoder.repair(span, key, payload);
        self.check(work, 1);
        result
    }

    fn burst(&mut self, burst: &[RepairSymbol<'_>]) -> Vec<Result<RepairOutcome, DecodeError>> {
        let work = self.decoder.work();
        let outcomes = self.decoder.repair_burst(burst);
        assert_eq!(outcomes.len(), burst.len());
        self.check(work, burst.len());
        outcomes
    }

    fn release_below(&mut self, lower: u64) {
        let work = self.decoder.work();
        self.decoder.release_below(lower);
        self.check(work, 0);
    }

    fn check(&self, work: u64, symbols: usize) {
        let (decoder, limits) = (&self.decoder, self.limits);
        assert!(decoder.upper_bound() - decoder.lower_bound() <= limits.symbols as u64);
        assert!(decoder.upper_bound() <= MAX_SYMBOL_ID + 1);
        assert!(decoder.missing().len() <= limits.symbols);
        assert!(decoder.bytes() <= limits.bytes);
        assert!(decoder.repairs() <= limits.repairs);
        let (held, allowed) = (decoder.allocated(), limits.memory());
        assert!(held <= allowed, "{held} bytes are held, {allowed} allowed");
        let (read, allowed) = (decoder.work() - work, (symbols * limits.work()) as u64);
        assert!(read <= allowed, "{read} bytes were read, {allowed} allowed");
    }
}

/// A repair symbol over `span` that no encoder made.
fn garbage<'a>(span: Range<u64>, key: u32, len: usize) -> RepairSymbol<'a> {
    RepairSymbol { span, key, payload: &NOISE[..len] }
}

/// Symbols of all lengths up to `size`.
fn honest_window(limits: WindowLimits, size: usize) -> Encoder {
    let mut encoder = Encoder::new(limits);
    for id in 0..limits.symbols {
        encoder.push(&NOISE[id..][..1 + id * 37 % size]).unwrap();
    }
    encoder
}

#[test]
fn source_symbols_that_are_never_released() {
    let mut flooded = Flooded::new(LIMITS);
    for id in 0..20_000u64 {
        // Long symbols for a while, then short ones that could end up in the long buffers.
        let len = if id / 500 % 2 == 0 { 1400 } else { 1 };
        assert_eq!(flooded.source(id, &NOISE[..len]), Ok(Arrival::New));
    }
    assert_eq!(flooded.decoder.upper_bound(), 20_000);
}

#[test]
fn gaps_of_every_size() {
    let mut flooded = Flooded::new(LIMITS);
    let mut id = 0u64;
    for step in 0..62 {
        for _ in 0..50 {
            assert_eq!(flooded.source(id, b"x"), Ok(Arrival::New));
            id += (1 << step) / 50 + 1;
        }
    }
    assert!(flooded.decoder.upper_bound() > 1 << 61);
    assert_eq!(flooded.source(MAX_SYMBOL_ID, b"x"), Ok(Arrival::New));
    assert_eq!(flooded.source(MAX_SYMBOL_ID + 1, b"x"), Err(DecodeError::SymbolId));
    assert_eq!(flooded.source(0, b"x"), Ok(Arrival::Old));
}

#[test]
fn nothing_but_gaps() {
    let mut flooded = Flooded::new(LIMITS);
    for id in (0..1_000_000).step_by(256) {
        assert_eq!(flooded.source(id, &[1; 1400]), Ok(Arrival::New));
    }
    for id in (1_000_000..1_040_000).step_by(2) {
        assert_eq!(flooded.source(id, &[1; 200]), Ok(Arrival::New));
    }
}

#[test]
fn equations_that_nothing_solves() {
    let mut flooded = Flooded::new(LIMITS);
    let mut stored = 0;
    for key in 0..3000 {
        // Each repair symbol covers source symbols that no other one covers alone, and none of which ever
        // arrives.
        let start = u64::from(key) / 10;
        let result = flooded.repair(start..start + 250, key, &[key as u8 | 1; 1402]);
        if result == Ok(RepairOutcome::Innovative { recovered: 0 }) {
            stored += 1;
        }
    }
    assert!(stored > LIMITS.repairs, "{stored} were taken in");
    assert_eq!(flooded.decoder.repairs(), LIMITS.repairs);
    is_of_use(&mut flooded, 10_000);
}

/// After a flood, the decoder still works at ids that it has not seen.
fn is_of_use(flooded: &mut Flooded, first: u64) {
    let mut encoder = Encoder::new(LIMITS.window());
    for _ in 0..first + 3 {
        encoder.push(&[7; 100]).unwrap();
        encoder.release_below(encoder.next_id().saturating_sub(3));
    }
    let (span, mut payload) = (encoder.window(), Vec::new());
    encoder.repair(span.clone(), 0, &mut payload).unwrap();
    flooded.source(span.start, &[7; 100]).unwrap();
    flooded.source(span.start + 2, &[7; 100]).unwrap();
    let outcome = flooded.repair(span.clone(), 0, &payload);
    assert_eq!(outcome, Ok(RepairOutcome::Innovative { recovered: 1 }));
    assert_eq!(flooded.decoder.symbol(span.start + 1), Some(&[7; 100][..]));
}

/// Spans around every power of two, and lengths on both sides of every limit.
fn absurd() -> Vec<RepairSymbol<'static>> {
    let mut symbols = Vec::new();
    for bit in 0..64 {
        let far = 1u64 << bit;
        for span in [0..far, far..u64::MAX, far..far.wrapping_mul(2), far..far] {
            for len in [0, 2, 3, 1402, 1403, 70_000] {
                symbols.push(garbage(span.clone(), 1, len));
            }
        }
    }
    symbols
}

#[test]
fn repair_symbols_of_absurd_spans_and_sizes() {
    let mut flooded = Flooded::new(LIMITS);
    for RepairSymbol { span, key, payload } in absurd() {
        let _outcome = flooded.repair(span, key, payload);
    }
}

#[test]
fn bursts_of_absurd_spans_and_sizes() {
    let mut symbols = absurd();
    let mut random = Rng::new(1);
    for size in [2, 5, 6, 7, 13, 100] {
        let mut flooded = Flooded::new(LIMITS);
        for burst in symbols.chunks(size) {
            flooded.burst(burst);
        }
        random.shuffle(&mut symbols);
    }
}

#[test]
fn bursts_in_which_each_symbol_moves_the_window() {
    let mut flooded = Flooded::new(LIMITS);
    for round in 0..300u64 {
        let first = round * 4000;
        for id in (first..first + 200).step_by(3) {
            flooded.source(id, &NOISE[..900]).unwrap();
        }
        // Forward, each span beyond the end of the previous one, then back to ids that are gone.
        let spans = (0..7).map(|step| first + step * (100 + round % 90)).chain([first, first + 5]);
        let burst: Vec<_> = spans
            .map(|start| garbage(start..start + 1 + round % 256, start as u32, 1402))
            .collect();
        let outcomes = flooded.burst(&burst);
        assert!(outcomes[0].is_ok(), "what comes later takes nothing from the first");
        assert_ne!(outcomes[0], Ok(RepairOutcome::Old));
    }
    assert!(flooded.decoder.given_up() > 10_000);
}

#[test]
fn bursts_of_garbage() {
    let mut random = Rng::new(2);
    let mut flooded = Flooded::new(LIMITS);
    let (mut contradictions, mut taken_in) = (0, 0);
    for round in 0..6000u64 {
        let lower = flooded.decoder.lower_bound();
        let burst: Vec<_> = (0..random.index(20))
            .map(|_| {
                let start = lower + random.index(300) as u64;
                let end = start + random.index(257) as u64;
                garbage(start..end, random.index(40) as u32, random.index(1404))
            })
            .collect();
        for outcome in flooded.burst(&burst) {
            contradictions += usize::from(outcome == Err(DecodeError::Contradiction));
            taken_in += usize::from(matches!(outcome, Ok(RepairOutcome::Innovative { .. })));
        }
        for _ in 0..random.index(30) {
            let id = lower + random.index(280) as u64;
            let _arrival = flooded.source(id, &NOISE[..1 + random.index(1400)]);
        }
        if round % 50 == 0 {
            flooded.release_below(lower + random.index(300) as u64);
        }
    }
    assert!(contradictions > 1000 && taken_in > 1000, "{contradictions}, {taken_in}");
    is_of_use(&mut flooded, 10_000_000);
}

#[test]
fn bursts_of_dependent_symbols() {
    let encoder = honest_window(LIMITS.window(), 200);
    let window = encoder.window();
    let mut payloads = vec![Vec::new(); LIMITS.repairs];
    let keys: Vec<u32> = (0..LIMITS.repairs as u32).collect();
    encoder.repair_burst(window.clone(), &keys, &mut payloads).unwrap();
    let of =
        |&key: &u32| RepairSymbol { span: window.clone(), key, payload: &payloads[key as usize] };
    let burst: Vec<_> = keys.iter().map(of).collect();
    let mut flooded = Flooded::new(LIMITS);
    let outcomes = flooded.burst(&burst);
    assert!(outcomes.iter().all(|o| *o == Ok(RepairOutcome::Innovative { recovered: 0 })));
    for size in [1, 2, 6, 7, 32] {
        for burst in burst.chunks(size) {
            let outcomes = flooded.burst(burst);
            assert!(outcomes.iter().all(|outcome| *outcome == Ok(RepairOutcome::Dependent)));
        }
    }
    // Only copies of one symbol.
    let mut flooded = Flooded::new(LIMITS);
    let outcomes = flooded.burst(&vec![of(&0); 50]);
    assert_eq!(outcomes[0], Ok(RepairOutcome::Innovative { recovered: 0 }));
    assert!(outcomes[1..].iter().all(|outcome| *outcome == Ok(RepairOutcome::Dependent)));
}

/// Bursts that overflow a full matrix.
#[test]
fn bursts_beyond_the_limit_on_equations() {
    let mut flooded = Flooded::new(LIMITS);
    let mut outcomes = Vec::new();
    for round in 0..400u32 {
        // Each covers newer symbols than the burst before, and some cover the oldest.
        let first = u64::from(round) % 100;
        let burst: Vec<_> = (0..17u32)
            .map(|n| {
                let start = if n % 5 == 4 { 0 } else { first + u64::from(n) };
                garbage(start..250, round * 32 + n, 1402)
            })
            .collect();
        outcomes.extend(flooded.burst(&burst));
    }
    assert_eq!(flooded.decoder.repairs(), LIMITS.repairs);
    let dropped = outcomes.iter().filter(|outcome| **outcome == Ok(RepairOutcome::Dropped));
    assert!(dropped.count() > 100);
    is_of_use(&mut flooded, 10_000);
}

/// Every late source symbol is subtracted from every equation, and most of them move a pivot.
#[test]
fn late_source_symbols_into_a_full_matrix() {
    let encoder = honest_window(LIMITS.window(), 200);
    let window = encoder.window();
    let symbols = LIMITS.symbols as u64;
    let orders: [fn(u64) -> u64; 3] = [|n| n, |n| 255 - n, |n| n * 101 % 256];
    for order in orders {
        let mut flooded = Flooded::new(LIMITS);
        for key in 0..LIMITS.repairs as u32 {
            let mut payload = Vec::new();
            encoder.repair(window.clone(), key, &mut payload).unwrap();
            flooded.repair(window.clone(), key, &payload).unwrap();
        }
        assert_eq!(flooded.decoder.repairs(), LIMITS.repairs);
        for id in (0..symbols - LIMITS.repairs as u64).map(order) {
            let arrival = flooded.source(id, encoder.symbol(id).unwrap());
            assert_eq!(arrival, Ok(Arrival::New));
        }
        assert_eq!((flooded.decoder.repairs(), flooded.decoder.missing().len()), (0, 0));
        for id in window.clone() {
            assert_eq!(flooded.decoder.symbol(id), encoder.symbol(id));
        }
    }
}

/// Late source symbols that contradict every equation.
#[test]
fn late_source_symbols_that_contradict_a_full_matrix() {
    let mut flooded = Flooded::new(LIMITS);
    let mut contradictions = 0;
    for round in 0..100u64 {
        let first = round * 256;
        let burst: Vec<_> =
            (0..40).map(|key| garbage(first..first + 256, key, 3 + key as usize * 9)).collect();
        flooded.burst(&burst);
        for id in first..first + 256 {
            let result = flooded.source(id, &NOISE[id as usize % 1000..][..1 + id as usize % 400]);
            contradictions += u32::from(result == Err(DecodeError::Contradiction));
        }
        assert_eq!(flooded.decoder.repairs(), 0);
    }
    assert!(contradictions >= 100);
}

/// Short symbols that end up in the buffers of long ones, followed by the most equations and long symbols
/// that are permitted.
#[test]
fn memory_that_is_used_as_badly_as_can_be() {
    let limits = DecoderLimits { symbols: 1024, bytes: 64 * 1024, symbol_size: 1400, repairs: 128 };
    let mut flooded = Flooded::new(limits);
    let mut most = 0;
    for layers in 1..9u64 {
        let first = flooded.decoder.upper_bound();
        let (long, short) = (46, first + 46 * layers);
        for layer in 0..layers {
            for id in 0..long {
                flooded.source(first + layer * long + id, &NOISE[..1400]).unwrap();
            }
            flooded.release_below(first + (layer + 1) * long);
            for id in 0..long {
                flooded.source(short + layer * long + id, b"x").unwrap();
            }
        }
        let unknown = short + layers * long..short + layers * long + 180;
        for key in 0..128 {
            flooded.repair(unknown.clone(), key, &NOISE[key as usize..][..1402]).unwrap();
        }
        assert_eq!(flooded.decoder.repairs(), 128);
        for id in unknown.end..unknown.end + 40 {
            flooded.source(id, &NOISE[..1400]).unwrap();
        }
        most = most.max(flooded.decoder.allocated());
        flooded.release_below(unknown.end + 40);
    }
    // The bound can nearly be reached: the rest is for coefficients and for lists of the maximum
    // length.
    assert!(most > limits.memory() * 4 / 9, "{most} of {} bytes", limits.memory());

    // All memory is freed in the end.
    flooded.release_below(flooded.decoder.upper_bound());
    flooded.decoder.shrink();
    assert_eq!(flooded.decoder.allocated(), 0);
    let next = flooded.decoder.upper_bound();
    is_of_use(&mut flooded, next);
}

#[test]
fn limits_of_every_shape() {
    let shapes = [
        (1, 1, 1, 1),
        (2, 100, 60, 1),
        (3, 10, 10, 3),
        (7, 7, 1, 7),
        (100, 3000, 62, 1),
        (1024, 1024, 1, 600),
        (300, 300, 300, 300),
        (64, 1 << 20, 65_535, 64),
        (5000, 50_000, 1500, 20),
    ];
    for (symbols, bytes, symbol_size, repairs) in shapes {
        let limits = DecoderLimits { symbols, bytes, symbol_size, repairs };
        let mut flooded = Flooded::new(limits);
        let mut random = Rng::new(symbols as u64);
        for round in 0..400u32 {
            let lower = flooded.decoder.lower_bound();
            let id = |random: &mut Rng| lower + random.index(symbols + symbols / 8 + 1) as u64;
            let burst: Vec<_> = (0..1 + random.index(9))
                .map(|_| {
                    let start = if random.index(2) == 0 { lower } else { id(&mut random) };
                    let end = (start + 1 + random.index(symbols) as u64).max(lower + 1);
                    garbage(
                        start..end,
                        round + random.index(8) as u32,
                        3 + random.index(symbol_size),
                    )
                })
                .collect();
            flooded.burst(&burst);
            for _ in 0..random.index(4) {
                let (id, len) = (id(&mut random), 1 + random.index(symbol_size));
                let _arrival = flooded.source(id, &NOISE[..len]);
            }
            if round % 100 == 99 {
                flooded.release_below(id(&mut random));
            }
        }
    }
}

#[test]
fn recovered_symbols_that_nobody_collects() {
    let mut encoder = Encoder::new(LIMITS.window());
    let mut flooded = Flooded::new(LIMITS);
    let mut payload = Vec::new();
    for id in 0..5000 {
        if encoder.push(&[id as u8; 30]).is_err() {
            encoder.release_below(id);
            encoder.push(&[id as u8; 30]).unwrap();
        }
        payload.clear();
        encoder.repair(id..id + 1, 1, &mut payload).unwrap();
        let outcome = flooded.repair(id..id + 1, 1, &payload);
        assert_eq!(outcome, Ok(RepairOutcome::Innovative { recovered: 1 }));
    }
    let waiting = std::iter::from_fn(|| flooded.decoder.pop_recovered()).count();
    assert_eq!(waiting, LIMITS.symbols);
}

/// A sender that opens repair symbols and never closes them, or opens and closes them all the time.
#[test]
fn open_repair_symbols_without_end() {
    let limits = LIMITS.window();
    let mut encoder = Encoder::new(limits);
    let mut random = Rng::new(3);
    let (mut open, mut refused, mut out) = (Vec::new(), 0, Vec::new());
    for round in 0..30_000u32 {
        match encoder.open_repair(round) {
            Some(name) => open.push(name),
            None => refused += 1,
        }
        assert!(open.len() <= MAX_OPEN_REPAIRS);
        let len = if round / 1000 % 2 == 0 { 1400 } else { 1 + random.index(30) };
        while encoder.push(&NOISE[..len]).is_err() {
            encoder.release_below(encoder.window().start + 1);
        }
        if round % 7000 > 3500 && !open.is_empty() {
            let name = open.swap_remove(random.index(open.len()));
            out.clear();
            assert!(encoder.close_repair(name, &mut out).is_ok());
        }
        assert!(encoder.window().count() <= limits.symbols && encoder.bytes() <= limits.bytes);
        let (held, allowed) = (encoder.allocated(), limits.memory());
        assert!(held <= allowed, "{held} bytes are held, {allowed} allowed");
    }
    assert!(refused > 10_000, "{refused} were one too many");
}
