//! Entry points for fuzzers. The tests also run them on pseudo-random input.
//!
//! Not part of the public interface. Each function takes arbitrary bytes, interprets them as
//! actions, and panics if the coder breaks a guarantee.

use alloc::{collections::VecDeque, vec::Vec};
use core::ops::Range;

use crate::{
    Arrival, Decoder, DecoderLimits, Encoder, MAX_SYMBOL_ID, OpenRepair, RepairOutcome,
    RepairSymbol, SymbolId, WindowLimits, kernel::Kernel,
};

/// Small limits, so that input of a few hundred bytes reaches every bound.
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

    /// An id: usually near the window, sometimes far away, even beyond the permitted range.
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

    /// A repair symbol that no encoder made.
    fn repair(&mut self, decoder: &Decoder) -> Option<RepairSymbol<'a>> {
        let start = self.id(decoder)?;
        let count = self.byte()? % 18;
        let key = u32::from(self.byte()? % 4);
        let len = self.byte()? % 48;
        let span = start..start.saturating_add(SymbolId::from(count));
        Some(RepairSymbol { span, key, payload: self.bytes(len) })
    }
}

/// Gives a decoder symbols that no encoder made, and checks its bounds and its bookkeeping.
pub fn decoder(data: &[u8], kernel: Kernel) {
    let mut input = Input(data);
    let mut decoder = Decoder::with_kernel(LIMITS, kernel);
    while let Some(action) = input.byte() {
        let work = decoder.work();
        let Some(symbols) = act(action, &mut input, &mut decoder) else { break };
        check_bounds(&decoder);
        check_work(&decoder, work, symbols);
    }
    check_window(&decoder);
}

/// Performs one action on a decoder and returns how many symbols it was given.
fn act(action: u8, input: &mut Input<'_>, decoder: &mut Decoder) -> Option<usize> {
    match action % 12 {
        0..=2 => give_source(input, decoder),
        3..=5 => {
            let symbol = input.repair(decoder)?;
            let (missing, bytes) = (decoder.missing().len(), decoder.bytes());
            let result = decoder.repair(symbol.span, symbol.key, symbol.payload);
            if result == Ok(RepairOutcome::Unneeded) {
                assert_eq!(missing, decoder.missing().len());
                assert_eq!(bytes, decoder.bytes());
            }
            Some(1)
        }
        6 => {
            if let Some(id) = decoder.pop_recovered() {
                assert!(decoder.symbol(id).is_some_and(|symbol| !symbol.is_empty()));
            }
            Some(0)
        }
        7 => {
            let lower = input.id(decoder)?;
            decoder.release_below(lower);
            assert!(decoder.lower_bound() >= lower.min(MAX_SYMBOL_ID + 1));
            Some(0)
        }
        8 => {
            let before = decoder.allocated();
            decoder.shrink();
            let is_empty = decoder.lower_bound() == decoder.upper_bound();
            assert!(decoder.allocated() <= if is_empty { 0 } else { before });
            Some(0)
        }
        9 => {
            let symbol = input.repair(decoder)?;
            let mask = u64::from(symbol.key);
            let coefficient = |id: SymbolId| (id & mask) as u8;
            let _outcome = decoder.repair_with(symbol.span, coefficient, symbol.payload);
            Some(1)
        }
        _ => {
            let count = input.byte()? % 9;
            let burst: Vec<_> = (0..count).map_while(|_| input.repair(decoder)).collect();
            let outcomes = decoder.repair_burst(&burst);
            assert_eq!(outcomes.len(), burst.len());
            Some(burst.len())
        }
    }
}

fn give_source(input: &mut Input<'_>, decoder: &mut Decoder) -> Option<usize> {
    let id = input.id(decoder)?;
    let len = input.byte()? % 48;
    let bytes = input.bytes(len);
    let known = decoder.symbol(id).map(Vec::from);
    match decoder.source(id, bytes) {
        // The limit on bytes may have removed the symbol immediately.
        Ok(Arrival::New) if id >= decoder.lower_bound() => {
            assert_eq!((known, decoder.symbol(id)), (None, Some(bytes)));
        }
        Ok(Arrival::Duplicate) => assert_eq!(known.as_deref(), decoder.symbol(id)),
        Ok(Arrival::New | Arrival::Old) => assert_eq!(known, None),
        Err(_) => {}
    }
    Some(1)
}

fn check_bounds(decoder: &Decoder) {
    assert!(decoder.upper_bound() - decoder.lower_bound() <= LIMITS.symbols as u64);
    assert!(decoder.upper_bound() <= MAX_SYMBOL_ID + 1);
    assert!(decoder.bytes() <= LIMITS.bytes);
    assert!(decoder.repairs() <= LIMITS.repairs.min(decoder.missing().len()));
    assert!(decoder.allocated() <= LIMITS.memory());
}

/// Checks the cost of decoding since it was `before`, for a number of symbols.
fn check_work(decoder: &Decoder, before: u64, symbols: usize) {
    assert!(decoder.work() - before <= (symbols * LIMITS.work()) as u64);
}

/// Checks that each id of the window is either held or missing.
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

/// A repair symbol in transit.
struct Repair {
    span: Range<SymbolId>,
    key: u32,
    payload: Vec<u8>,
}

/// An encoder, a decoder, and the network between them.
struct Trip {
    encoder: Encoder,
    decoder: Decoder,
    delayed: VecDeque<Repair>,
    open: Vec<(OpenRepair, u32)>,
    key: u32,
}

/// Sends an encoder's symbols through a network that the input controls, with loss, reordering and
/// duplication. Checks that no symbol is refused and that every recovered symbol equals the sent one.
pub fn round_trip(data: &[u8], kernel: Kernel) {
    let mut input = Input(data);
    let window = WindowLimits { symbols: 12, ..LIMITS.window() };
    let mut trip = Trip {
        encoder: Encoder::with_kernel(window, kernel),
        decoder: Decoder::with_kernel(LIMITS, kernel),
        delayed: VecDeque::new(),
        open: Vec::new(),
        key: 0,
    };
    while let Some(action) = input.byte() {
        let work = trip.decoder.work();
        let symbols = trip.act(action % 12, action / 12);
        check_recovered(&mut trip.decoder);
        check_bounds(&trip.decoder);
        check_work(&trip.decoder, work, symbols);
        assert!(trip.encoder.allocated() <= window.memory());
    }
    check_window(&trip.decoder);
}

impl Trip {
    /// Performs one action and returns how many symbols the decoder was given.
    fn act(&mut self, action: u8, argument: u8) -> usize {
        match action {
            0 => self.send_source(false),
            1 | 2 => self.send_source(true),
            3 => self.send_again(argument),
            4 | 5 => {
                self.make_repair(argument);
                let newest = if action == 4 { self.delayed.pop_back() } else { None };
                self.deliver(newest)
            }
            6 => {
                let oldest = self.delayed.pop_front();
                self.deliver(oldest)
            }
            7 => {
                self.decoder.release_below(self.encoder.window().start);
                0
            }
            8 => self.deliver_burst(argument),
            9 => {
                let key = self.next_key();
                self.open.extend(self.encoder.open_repair(key).map(|open| (open, key)));
                0
            }
            10 => {
                self.close_repair(argument);
                0
            }
            _ => {
                self.make_burst(argument);
                0
            }
        }
    }

    fn next_key(&mut self) -> u32 {
        self.key += 1;
        self.key
    }

    fn send_source(&mut self, arrives: bool) -> usize {
        let bytes = content(self.encoder.next_id());
        let id = loop {
            match self.encoder.push(&bytes) {
                Ok(id) => break id,
                Err(_) => self.encoder.release_below(self.encoder.window().start + 1),
            }
        };
        if arrives {
            assert_eq!(self.decoder.source(id, &bytes), Ok(Arrival::New));
        }
        usize::from(arrives)
    }

    /// Sends a source symbol again, or late.
    fn send_again(&mut self, back: u8) -> usize {
        let Some(id) = self.encoder.next_id().checked_sub(SymbolId::from(back) + 1) else {
            return 0;
        };
        self.decoder.source(id, &content(id)).expect("an honest source symbol");
        1
    }

    /// The whole window, or all but its oldest symbols.
    fn span(&self, skip: u8) -> Option<Range<SymbolId>> {
        let window = self.encoder.window();
        let skip = SymbolId::from(skip).checked_rem(window.end - window.start)?;
        Some(window.start + skip..window.end)
    }

    /// Puts a repair symbol in transit. The network drops the oldest if there are too many.
    fn send(&mut self, repair: Repair) {
        self.delayed.push_back(repair);
        if self.delayed.len() > 8 {
            self.delayed.pop_front();
        }
    }

    fn make_repair(&mut self, skip: u8) {
        let Some(span) = self.span(skip) else { return };
        let (key, mut payload) = (self.next_key(), Vec::new());
        self.encoder.repair(span.clone(), key, &mut payload).expect("a span of the window");
        self.send(Repair { span, key, payload });
    }

    fn make_burst(&mut self, argument: u8) {
        let Some(span) = self.span(argument / 8) else { return };
        let keys: Vec<u32> = (0..argument % 8).map(|_| self.next_key()).collect();
        let mut payloads = alloc::vec![Vec::new(); keys.len()];
        self.encoder.repair_burst(span.clone(), &keys, &mut payloads).expect("as above");
        for (key, payload) in keys.into_iter().zip(payloads) {
            self.send(Repair { span: span.clone(), key, payload });
        }
    }

    /// Closes a repair symbol, compares it with a directly made one if the encoder still has the
    /// symbols, and puts it in transit unless it is too wide for the receiver.
    fn close_repair(&mut self, which: u8) {
        let Some(which) = usize::from(which).checked_rem(self.open.len()) else { return };
        let (open, key) = self.open.swap_remove(which);
        let mut payload = Vec::new();
        let Ok(span) = self.encoder.close_repair(open, &mut payload) else { return };
        let mut expected = Vec::new();
        if self.encoder.repair(span.clone(), key, &mut expected).is_ok() {
            assert_eq!(payload, expected);
        }
        if span.end - span.start <= LIMITS.symbols as u64 {
            self.send(Repair { span, key, payload });
        }
    }

    fn deliver(&mut self, repair: Option<Repair>) -> usize {
        let Some(Repair { span, key, payload }) = repair else { return 0 };
        self.decoder.repair(span, key, &payload).expect("an honest repair symbol");
        1
    }

    /// Delivers the oldest repair symbols together, the first one twice.
    fn deliver_burst(&mut self, count: u8) -> usize {
        let count = usize::from(count).min(self.delayed.len());
        let repairs: Vec<Repair> = self.delayed.drain(..count).collect();
        let burst = repairs.iter().chain(repairs.first()).map(|repair| RepairSymbol {
            span: repair.span.clone(),
            key: repair.key,
            payload: &repair.payload,
        });
        let burst: Vec<_> = burst.collect();
        for outcome in self.decoder.repair_burst(&burst) {
            outcome.expect("an honest repair symbol");
        }
        burst.len()
    }
}

/// The bytes of symbol `id`; lengths vary from symbol to symbol.
fn content(id: SymbolId) -> Vec<u8> {
    let len = 1 + (id * id + id / 3) % 16;
    (0..len).map(|at| (id * 37 + at * 11) as u8).collect()
}

fn check_recovered(decoder: &mut Decoder) {
    while let Some(id) = decoder.pop_recovered() {
        assert_eq!(decoder.symbol(id), Some(&content(id)[..]));
    }
}
