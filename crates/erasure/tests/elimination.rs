//! Compares the decoder with a textbook decoder: full Gaussian elimination over everything
//! received.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod naive;

use std::{fmt::Debug, ops::Range};

use naive::Naive;
use proptest::{collection::vec, prelude::*};
use sutura_erasure::{
    Arrival, DecodeError, Decoder, DecoderLimits, Encoder, OpenRepair, RepairOutcome, RepairSymbol,
    SpanError, WindowLimits, kernel::Kernel,
};

/// An event between the encoder and the decoder.
#[derive(Debug, Clone)]
enum Event {
    /// A new source symbol of this length; it arrives or is lost.
    Source { len: usize, arrives: bool },
    /// An earlier source symbol, counted back from the newest, arrives late or once more.
    Again { back: usize },
    /// A new repair symbol. If it does not arrive now, it may arrive later.
    Repair { shape: Shape, arrives: bool },
    /// An earlier repair symbol arrives late or once more.
    RepairAgain { which: usize },
    /// Several repair symbols arrive together.
    Burst { picks: Vec<Pick> },
    /// A repair symbol is opened.
    Open,
    /// An open repair symbol is closed.
    Close { which: usize, arrives: bool },
    /// The receiver moves its window.
    Release { forward: u64 },
}

/// A span of `width` symbols that ends `back` before the newest.
#[derive(Debug, Clone, Copy)]
struct Shape {
    back: usize,
    width: usize,
}

/// One repair symbol of a burst.
#[derive(Debug, Clone)]
enum Pick {
    New(Shape),
    Again(usize),
}

fn shape() -> impl Strategy<Value = Shape> {
    (0..4usize, 1..12usize).prop_map(|(back, width)| Shape { back, width })
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![3 => shape().prop_map(Pick::New), 1 => any::<usize>().prop_map(Pick::Again)]
}

fn event(releases: bool) -> impl Strategy<Value = Event> {
    let release = if releases { 1 } else { 0 };
    prop_oneof![
        8 => (1..24usize, prop::bool::weighted(0.6))
            .prop_map(|(len, arrives)| Event::Source { len, arrives }),
        2 => (0..16usize).prop_map(|back| Event::Again { back }),
        4 => (shape(), prop::bool::weighted(0.8))
            .prop_map(|(shape, arrives)| Event::Repair { shape, arrives }),
        2 => any::<usize>().prop_map(|which| Event::RepairAgain { which }),
        // More than a decoder processes together.
        2 => vec(pick(), 0..9).prop_map(|picks| Event::Burst { picks }),
        1 => Just(Event::Open),
        1 => (any::<usize>(), prop::bool::weighted(0.8))
            .prop_map(|(which, arrives)| Event::Close { which, arrives }),
        release => (1..4u64).prop_map(|forward| Event::Release { forward }),
    ]
}

/// Does the same to all coders, which must give the same answer, and returns it.
fn all<C, T: PartialEq + Debug>(coders: &mut [C], act: impl FnMut(&mut C) -> T) -> T {
    let mut answers: Vec<T> = coders.iter_mut().map(act).collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    answers.swap_remove(0)
}

/// Encoders and decoders with every available kernel, and the textbook decoder's view of the
/// symbols given to the decoders.
struct Run {
    encoders: Vec<Encoder>,
    decoders: Vec<Decoder>,
    /// A decoder that gets the repair symbols of bursts one at a time.
    one_at_a_time: Decoder,
    naive: Naive,
    keys: u32,
    open: Vec<(OpenRepair, u64, u32)>,
    repairs: Vec<(Range<u64>, u32, Vec<u8>)>,
    content: Vec<Vec<u8>>,
    recovered: Vec<u64>,
    /// Whether a burst has moved the lower bound of the window.
    pushed_out: bool,
}

impl Run {
    fn new(symbols: usize) -> Self {
        let limits = DecoderLimits { symbols, bytes: 1 << 16, symbol_size: 24, repairs: symbols };
        let window = WindowLimits { symbols: 256, ..limits.window() };
        let kernels = Kernel::available;
        Self {
            encoders: kernels().map(|kernel| Encoder::with_kernel(window, kernel)).collect(),
            decoders: kernels().map(|kernel| Decoder::with_kernel(limits, kernel)).collect(),
            one_at_a_time: Decoder::new(limits),
            naive: Naive::default(),
            keys: 0,
            open: Vec::new(),
            repairs: Vec::new(),
            content: Vec::new(),
            recovered: Vec::new(),
            pushed_out: false,
        }
    }

    fn decoder(&self) -> &Decoder {
        &self.decoders[0]
    }

    fn next_key(&mut self) -> u32 {
        self.keys += 1;
        self.keys
    }

    fn apply(&mut self, event: &Event) {
        match *event {
            Event::Source { len, arrives } => {
                let id = self.content.len() as u64;
                let bytes: Vec<u8> = (0..len).map(|at| (id as usize * 41 + at * 7) as u8).collect();
                assert_eq!(all(&mut self.encoders, |encoder| encoder.push(&bytes)), Ok(id));
                self.content.push(bytes);
                if arrives {
                    self.source(id);
                }
            }
            Event::Again { back } => {
                if let Some(id) = self.content.len().checked_sub(back + 1) {
                    self.source(id as u64);
                }
            }
            Event::Repair { shape, arrives } => {
                let which = self.new_repair(shape);
                if let Some(which) = which.filter(|_| arrives) {
                    self.repair(which);
                }
            }
            Event::RepairAgain { which } => {
                if let Some(which) = which.checked_rem(self.repairs.len()) {
                    self.repair(which);
                }
            }
            Event::Burst { ref picks } => {
                let which = picks.iter().filter_map(|pick| match *pick {
                    Pick::New(shape) => self.new_repair(shape),
                    Pick::Again(which) => which.checked_rem(self.repairs.len()),
                });
                let which: Vec<usize> = which.collect();
                self.burst(&which);
            }
            Event::Open => {
                let (key, first) = (self.next_key(), self.content.len() as u64);
                let opened = all(&mut self.encoders, |encoder| encoder.open_repair(key));
                self.open.push((opened.unwrap(), first, key));
            }
            Event::Close { which, arrives } => {
                if let Some(which) = which.checked_rem(self.open.len()) {
                    self.close(which, arrives);
                }
            }
            Event::Release { forward } => {
                let lower = self.decoder().lower_bound() + forward;
                let lower = lower.min(self.content.len() as u64);
                all(&mut self.decoders, |decoder| decoder.release_below(lower));
                self.one_at_a_time.release_below(lower);
            }
        }
    }

    fn source(&mut self, id: u64) {
        let bytes = &self.content[id as usize];
        let arrival = all(&mut self.decoders, |decoder| decoder.source(id, bytes)).unwrap();
        if arrival == Arrival::New {
            self.naive.source(id, bytes);
        }
        self.one_at_a_time.source(id, bytes).unwrap();
        self.collect();
    }

    /// Makes a repair symbol, if there is any source symbol to cover.
    fn new_repair(&mut self, shape: Shape) -> Option<usize> {
        let end = self.content.len().saturating_sub(shape.back);
        let start = end.saturating_sub(shape.width.min(self.decoder().limits().symbols));
        let (span, key) = (start as u64..end as u64, self.next_key());
        if span.is_empty() {
            return None;
        }
        let payload = self.made_of(&span, key);
        self.repairs.push((span, key, payload));
        Some(self.repairs.len() - 1)
    }

    fn made_of(&mut self, span: &Range<u64>, key: u32) -> Vec<u8> {
        all(&mut self.encoders, |encoder| {
            let mut payload = Vec::new();
            encoder.repair(span.clone(), key, &mut payload).unwrap();
            payload
        })
    }

    fn close(&mut self, which: usize, arrives: bool) {
        let (open, first, key) = self.open.swap_remove(which);
        let (closed, payload) = all(&mut self.encoders, |encoder| {
            let mut payload = Vec::new();
            (encoder.close_repair(open, &mut payload), payload)
        });
        let span = first..self.content.len() as u64;
        if span.is_empty() {
            assert_eq!((closed, payload), (Err(SpanError::Empty), Vec::new()));
            return;
        }
        assert_eq!(closed, Ok(span.clone()));
        assert_eq!(payload, self.made_of(&span, key));
        if span.end - span.start > self.decoder().limits().symbols as u64 {
            let refused = |decoder: &mut Decoder| decoder.repair(span.clone(), key, &payload);
            assert_eq!(all(&mut self.decoders, refused), Err(DecodeError::Span));
            return;
        }
        self.repairs.push((span, key, payload));
        if arrives {
            self.repair(self.repairs.len() - 1);
        }
    }

    fn repair(&mut self, which: usize) {
        let (span, key, payload) = self.repairs[which].clone();
        let act = |decoder: &mut Decoder| decoder.repair(span.clone(), key, &payload);
        let outcome = all(&mut self.decoders, act).unwrap();
        let known = self.is_known(&span);
        self.note(which, outcome);
        act(&mut self.one_at_a_time).unwrap();
        let recovered = self.collect();
        assert_eq!(outcome == RepairOutcome::Unneeded, known && outcome != RepairOutcome::Old);
        assert!(recovered == count_recovered(outcome) || self.decoder().given_up() > 0);
    }

    /// Whether no symbol of the span was missing before the last repair symbol.
    fn is_known(&self, span: &Range<u64>) -> bool {
        let determined = self.naive.solve();
        span.clone().all(|id| determined.contains_key(&id))
    }

    fn burst(&mut self, which: &[usize]) {
        let symbols: Vec<RepairSymbol<'_>> = which
            .iter()
            .map(|&which| {
                let (span, key, payload) = &self.repairs[which];
                RepairSymbol { span: span.clone(), key: *key, payload }
            })
            .collect();
        let lower = self.decoder().lower_bound();
        let outcomes = all(&mut self.decoders, |decoder| decoder.repair_burst(&symbols));
        for RepairSymbol { span, key, payload } in symbols {
            self.one_at_a_time.repair(span, key, payload).unwrap();
        }
        assert_eq!(outcomes.len(), which.len());
        let mut expected = 0;
        for (&which, outcome) in which.iter().zip(outcomes) {
            self.note(which, outcome.unwrap());
            expected += count_recovered(outcome.unwrap());
        }
        let recovered = self.collect();
        // A later symbol of the burst may push a symbol that an earlier one recovered out of the
        // window.
        let moved = self.decoder().lower_bound() > lower;
        self.pushed_out |= moved;
        assert!(recovered == expected || (moved && recovered < expected));
    }

    /// Tells the textbook decoder how the decoders handled a repair symbol.
    fn note(&mut self, which: usize, outcome: RepairOutcome) {
        let (span, key, payload) = &self.repairs[which];
        let rank = self.naive.rank();
        if outcome != RepairOutcome::Old {
            self.naive.repair(span.clone(), *key, payload);
        }
        // A symbol is innovative if it raises the rank. With a released symbol involved, this
        // cannot be observed from outside, because the textbook decoder's system remembers the
        // released symbol.
        if self.decoder().given_up() == 0 {
            let innovative = matches!(outcome, RepairOutcome::Innovative { .. });
            assert_eq!(innovative, self.naive.rank() > rank, "{outcome:?}");
        }
    }

    /// Takes the symbols recovered since the last call, and returns their number.
    fn collect(&mut self) -> usize {
        let pop = |decoder: &mut Decoder| std::iter::from_fn(|| decoder.pop_recovered()).collect();
        let ids: Vec<u64> = all(&mut self.decoders, pop);
        for &id in &ids {
            assert!(!self.recovered.contains(&id), "symbol {id} is recovered once");
            self.recovered.push(id);
        }
        ids.len()
    }

    /// Checks that the decoders know exactly the symbols that are determined.
    fn check(&mut self) {
        let determined = self.naive.solve();
        let window = |decoder: &mut Decoder| decoder.lower_bound()..decoder.upper_bound();
        let window = all(&mut self.decoders, window);
        for id in window.clone() {
            let expected = determined.get(&id).map(|_| &self.content[id as usize][..]);
            for decoder in &self.decoders {
                assert_eq!(decoder.symbol(id), expected, "symbol {id}");
            }
        }
        let missing: Vec<u64> = window.filter(|id| !determined.contains_key(id)).collect();
        let same = |decoder: &mut Decoder| decoder.missing().eq(missing.iter().copied());
        assert!(all(&mut self.decoders, same));
        assert!(same(&mut self.one_at_a_time), "bursts say what their symbols say");
        // If repair symbols come one at a time, a symbol may be recovered before a later repair symbol of the
        // burst pushes it out.
        let (given_up, one_by_one) = (self.decoder().given_up(), self.one_at_a_time.given_up());
        assert!(given_up == one_by_one || (self.pushed_out && given_up > one_by_one));
        for (id, coded) in determined {
            assert_eq!(coded, naive::framed(&self.content[id as usize], coded.len()));
        }
    }
}

fn count_recovered(outcome: RepairOutcome) -> usize {
    match outcome {
        RepairOutcome::Innovative { recovered } => recovered,
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, ..ProptestConfig::default() })]

    /// Giving up old symbols, by request or because the window is full, does not affect the newer
    /// ones.
    #[test]
    fn a_symbol_is_recovered_exactly_when_it_is_determined(
        (symbols, events) in prop_oneof![
            (Just(64), vec(event(false), 1..45)),
            (4..14usize, vec(event(true), 1..45)),
        ],
    ) {
        let mut run = Run::new(symbols);
        for event in &events {
            run.apply(event);
            run.check();
        }
    }
}

/// One long window with burst losses, checked at the end: large enough for rows to combine with
/// many others.
#[test]
fn a_window_of_hundreds_with_burst_losses_agrees_with_the_textbook() {
    let mut run = Run::new(256);
    for id in 0..200usize {
        let lost = id % 50 >= 38 || id % 11 == 3;
        run.apply(&Event::Source { len: 1 + id * 5 % 23, arrives: !lost });
        if id % 3 == 0 {
            let shape = Shape { back: id % 4, width: 1 + id * 17 % 120 };
            run.apply(&Event::Repair { shape, arrives: true });
        }
        if id % 29 == 28 {
            run.apply(&Event::Again { back: id % 14 });
        }
    }
    run.check();
    assert!(run.recovered.len() > 30, "{} recovered", run.recovered.len());
}

/// The same with bursts of repair symbols, and with repair symbols opened early.
#[test]
fn a_window_of_hundreds_with_bursts_of_repair_agrees_with_the_textbook() {
    let mut run = Run::new(256);
    for id in 0..200usize {
        if id % 7 == 0 {
            run.apply(&Event::Open);
        }
        run.apply(&Event::Source { len: 1 + id * 5 % 23, arrives: id % 50 < 38 && id % 11 != 3 });
        if id % 25 == 24 {
            let new = (0..8).map(|back| Pick::New(Shape { back, width: 10 + id * back % 90 }));
            let picks = new.chain([Pick::Again(id), Pick::Again(id * 3)]).collect();
            run.apply(&Event::Burst { picks });
            run.apply(&Event::Close { which: id / 3, arrives: true });
            run.apply(&Event::Close { which: id, arrives: false });
            run.check();
        }
    }
    let picks = (0..run.repairs.len()).map(Pick::Again).collect();
    run.apply(&Event::Burst { picks });
    run.check();
    assert!(run.recovered.len() > 30, "{} recovered", run.recovered.len());
}
