//! Sends a million small windows through all kinds of networks, and compares with an oracle:
//! elimination on the coefficients alone determines which symbols are known, and the sender knows
//! their bytes.
//!
//! `WINDOWS` sets the number of windows. A failure prints the seed of its batch of windows;
//! `WINDOW_SEED` runs only that batch.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[path = "naive/field.rs"]
mod field;

use std::{ops::Range, sync::LazyLock, thread};

use sutura_erasure::{
    Arrival, Decoder, DecoderLimits, Encoder, OpenRepair, RepairOutcome, RepairSymbol,
    kernel::Kernel,
};
use sutura_random::Rng;

/// The longest window.
const MAX: usize = 40;

/// The longest symbol.
const SIZE: usize = 200;

/// No window comes near these limits; another test covers them.
const LIMITS: DecoderLimits =
    DecoderLimits { symbols: 64, bytes: 64 * SIZE, symbol_size: SIZE, repairs: 64 };

/// Windows that one pair of coders handles in sequence.
const BATCH: u64 = 64;

static PRODUCTS: LazyLock<Vec<[u8; 256]>> =
    LazyLock::new(|| (0..=255).map(|a| std::array::from_fn(|b| field::mul(a, b as u8))).collect());

static INVERSES: LazyLock<Vec<u8>> = LazyLock::new(|| (0..=255).map(field::inverse).collect());

type Row = [u8; MAX];

/// All received symbols, as equations over all symbols of a window.
#[derive(Default)]
struct Oracle {
    /// In echelon form: the row of each column has zeros before the column, and a one there.
    rows: Vec<Option<Row>>,
}

impl Oracle {
    fn reset(&mut self, columns: usize) {
        self.rows.clear();
        self.rows.resize(columns, None);
    }

    /// Adds an equation, and returns whether it raises the rank.
    fn add(&mut self, mut row: Row) -> bool {
        for (column, pivot) in self.rows.iter_mut().enumerate() {
            if row[column] == 0 {
                continue;
            }
            if let Some(pivot) = pivot {
                let factor = row[column];
                add(&mut row, pivot, factor, column);
                continue;
            }
            let scale = &PRODUCTS[usize::from(INVERSES[usize::from(row[column])])];
            *pivot = Some(row.map(|c| scale[usize::from(c)]));
            return true;
        }
        false
    }

    fn source(&mut self, column: usize) -> bool {
        let mut row = [0; MAX];
        row[column] = 1;
        self.add(row)
    }

    /// Which symbols are determined.
    fn determined(&self) -> [bool; MAX] {
        let mut rows = self.rows.clone();
        let mut determined = [false; MAX];
        for column in (0..rows.len()).rev() {
            let (above, below) = rows.split_at_mut(column);
            let Some(pivot) = &below[0] else { continue };
            determined[column] = pivot.iter().filter(|&&c| c != 0).count() == 1;
            for row in above.iter_mut().flatten().filter(|row| row[column] != 0) {
                let factor = row[column];
                add(row, pivot, factor, column);
            }
        }
        determined
    }
}

/// Adds a multiple of a row whose first column is `from`.
fn add(row: &mut Row, other: &Row, factor: u8, from: usize) {
    let products = &PRODUCTS[usize::from(factor)];
    for (c, other) in row[from..].iter_mut().zip(&other[from..]) {
        *c ^= products[usize::from(*other)];
    }
}

/// Outcomes of windows.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    windows: u64,
    lost: u64,
    recovered: u64,
    unsolved: u64,
    innovative: u64,
    dependent: u64,
    unneeded: u64,
    bursts: u64,
    opened: u64,
    late: u64,
    duplicates: u64,
}

#[derive(Clone, Copy)]
enum Delivery {
    Source(usize),
    Repair(usize),
}

struct Repair {
    span: Range<u64>,
    key: u32,
    payload: Vec<u8>,
}

/// A sequence of windows on one pair of coders.
struct Batch {
    random: Rng,
    encoder: Encoder,
    decoder: Decoder,
    oracle: Oracle,
    key: u32,
    /// The id of the window's first symbol.
    first: u64,
    content: Vec<Vec<u8>>,
    repairs: Vec<Repair>,
    deliveries: Vec<Delivery>,
    /// Symbols that the decoder has reported as known.
    known: [bool; MAX],
    count: Count,
}

impl Batch {
    fn new(seed: u64, count: Count) -> Self {
        let kernels: Vec<Kernel> = Kernel::available().collect();
        let kernel = kernels[seed as usize % kernels.len()];
        Self {
            random: Rng::new(seed),
            encoder: Encoder::with_kernel(LIMITS.window(), kernel),
            decoder: Decoder::with_kernel(LIMITS, kernel),
            oracle: Oracle::default(),
            key: seed as u32,
            first: 0,
            content: Vec::new(),
            repairs: Vec::new(),
            deliveries: Vec::new(),
            known: [false; MAX],
            count,
        }
    }

    fn window(&mut self) {
        let symbols = match self.random.index(16) {
            0..=2 => 1 + self.random.index(4),
            3..=12 => 1 + self.random.index(12),
            13 => 1 + self.random.index(24),
            _ => 1 + self.random.index(MAX),
        };
        self.first = self.encoder.next_id();
        self.known = [false; MAX];
        self.oracle.reset(symbols);
        self.repairs.clear();
        self.deliveries.clear();
        self.push_symbols(symbols);
        let lost = self.lose(symbols);
        self.make_repairs(symbols, lost);
        self.plan(symbols);
        self.deliver();
        self.finish(symbols);
        self.count.windows += 1;
        self.count.lost += lost as u64;
    }

    fn next_key(&mut self) -> u32 {
        self.key = self.key.wrapping_add(1);
        self.key
    }

    /// True once in `times` calls on average.
    fn once_in(&mut self, times: usize) -> bool {
        self.random.index(times) == 0
    }

    fn push_symbols(&mut self, symbols: usize) {
        let (kind, fixed) = (self.random.index(4), 1 + self.random.index(40));
        let opens = self.once_in(4);
        let mut open: Vec<(OpenRepair, u32)> = Vec::new();
        self.content.resize(symbols.max(self.content.len()), Vec::new());
        for index in 0..symbols {
            if opens && self.once_in(3) {
                let key = self.next_key();
                open.extend(self.encoder.open_repair(key).map(|name| (name, key)));
            }
            let len = match kind {
                0 => fixed,
                1 => 1 + self.random.index(24),
                // Around the length of a cache line, including the length prefix.
                2 => 58 + self.random.index(8),
                _ if self.random.index(8) == 0 => 1 + self.random.index(SIZE),
                _ => 1 + self.random.index(10),
            };
            let (random, bytes) = (&mut self.random, &mut self.content[index]);
            bytes.resize(len, 0);
            random.fill(bytes);
            assert_eq!(self.encoder.push(bytes), Ok(self.first + index as u64));
            if !open.is_empty() && self.once_in(4) {
                self.close(open.swap_remove(0));
            }
        }
        open.into_iter().for_each(|open| self.close(open));
    }

    fn close(&mut self, (name, key): (OpenRepair, u32)) {
        let mut payload = Vec::new();
        let span = self.encoder.close_repair(name, &mut payload).unwrap();
        self.repairs.push(Repair { span, key, payload });
        self.count.opened += 1;
    }

    /// Decides which symbols arrive, adds these to the deliveries, and returns how many are lost.
    fn lose(&mut self, symbols: usize) -> usize {
        let kind = self.random.index(8);
        let start = self.random.index(symbols);
        let burst = start..start + 1 + self.random.index(symbols);
        for index in 0..symbols {
            let lost = match kind {
                0 => false,
                1 => true,
                2 | 3 => burst.contains(&index),
                4 => self.random.index(8) == 0,
                _ => self.random.index(kind - 3) == 0,
            };
            if !lost {
                self.deliveries.push(Delivery::Source(index));
            }
        }
        symbols - self.deliveries.len()
    }

    fn make_repairs(&mut self, symbols: usize, lost: usize) {
        let count = match self.random.index(4) {
            0 => lost,
            1 => self.random.index(lost + 1),
            2 => lost + 1 + self.random.index(3),
            _ => self.random.index(2 * lost + 2),
        };
        let count = count.min(MAX);
        let (spans, width) = (self.random.index(4), 1 + self.random.index(symbols));
        if spans == 0 && self.once_in(2) {
            return self.make_burst(symbols, count);
        }
        for _ in 0..count {
            let (from, to) = match spans {
                0 => (0, symbols),
                1 => {
                    let from = self.random.index(symbols);
                    (from, from + 1 + self.random.index(symbols - from))
                }
                2 => {
                    let to = 1 + self.random.index(symbols);
                    (to.saturating_sub(width), to)
                }
                _ => (0, 1 + self.random.index(symbols)),
            };
            let (key, span) = (self.next_key(), self.ids(from..to));
            let mut payload = Vec::new();
            self.encoder.repair(span.clone(), key, &mut payload).unwrap();
            self.repairs.push(Repair { span, key, payload });
        }
    }

    fn ids(&self, indexes: Range<usize>) -> Range<u64> {
        self.first + indexes.start as u64..self.first + indexes.end as u64
    }

    fn make_burst(&mut self, symbols: usize, count: usize) {
        let keys: Vec<u32> = (0..count).map(|_| self.next_key()).collect();
        let mut payloads = vec![Vec::new(); count];
        let span = self.ids(0..symbols);
        self.encoder.repair_burst(span.clone(), &keys, &mut payloads).unwrap();
        let repairs = keys.into_iter().zip(payloads);
        self.repairs.extend(repairs.map(|(key, payload)| Repair {
            span: span.clone(),
            key,
            payload,
        }));
    }

    /// Adds repair symbols, late source symbols and duplicates to the deliveries, in random order.
    fn plan(&mut self, symbols: usize) {
        let repairs = (0..self.repairs.len()).map(Delivery::Repair);
        match self.random.index(6) {
            0 => {
                let sources = std::mem::take(&mut self.deliveries);
                self.deliveries = repairs.chain(sources).collect();
            }
            1 => {
                self.deliveries.reverse();
                self.deliveries.extend(repairs);
            }
            2 => {
                self.deliveries.extend(repairs);
                self.random.shuffle(&mut self.deliveries);
            }
            3 => repairs.for_each(|repair| self.insert(repair)),
            _ => self.deliveries.extend(repairs),
        }
        let (late, twice) = (self.once_in(3), self.once_in(3));
        for index in 0..symbols {
            if late && self.once_in(8) {
                self.insert(Delivery::Source(index));
            }
        }
        for index in 0..self.deliveries.len() {
            if twice && self.once_in(8) {
                self.insert(self.deliveries[index]);
            }
        }
    }

    /// Inserts a delivery at a random position, more likely a late one.
    fn insert(&mut self, delivery: Delivery) {
        let len = self.deliveries.len() + 1;
        let place = self.random.index(len).max(self.random.index(len));
        self.deliveries.insert(place, delivery);
    }

    fn deliver(&mut self) {
        let small = self.oracle.rows.len() <= 12;
        let bursts = self.once_in(2);
        let mut next = 0;
        while let Some(&delivery) = self.deliveries.get(next) {
            match delivery {
                Delivery::Source(index) => {
                    self.source(index);
                    next += 1;
                }
                Delivery::Repair(index) if !bursts => {
                    self.repair(index);
                    next += 1;
                }
                Delivery::Repair(_) => {
                    let most = 1 + self.random.index(9);
                    let rest =
                        self.deliveries[next..].iter().map_while(|delivery| match delivery {
                            Delivery::Repair(index) => Some(*index),
                            Delivery::Source(_) => None,
                        });
                    let burst: Vec<usize> = rest.take(most).collect();
                    next += burst.len();
                    self.burst(&burst);
                }
            }
            if small || self.once_in(8) {
                self.check();
            }
        }
    }

    fn source(&mut self, index: usize) {
        let (id, work) = (self.first + index as u64, self.decoder.work());
        let (late, new) = (id < self.decoder.upper_bound(), self.oracle.source(index));
        let arrival = self.decoder.source(id, &self.content[index]).unwrap();
        // The rank rises unless the symbol is determined, and then it has been recovered.
        assert_eq!(arrival, if new { Arrival::New } else { Arrival::Duplicate });
        self.known[index] |= new;
        self.check_work(work, 1);
        self.count.late += u64::from(late && new);
        self.count.duplicates += u64::from(!new);
    }

    fn repair(&mut self, index: usize) {
        let work = self.decoder.work();
        let missing = self.decoder.missing().len();
        let Repair { span, key, payload } = &self.repairs[index];
        let whole = span.end <= self.decoder.upper_bound();
        let outcome = self.decoder.repair(span.clone(), *key, payload).unwrap();
        if whole && missing == 0 {
            assert_eq!((outcome, self.decoder.work()), (RepairOutcome::Unneeded, work));
        }
        self.check_work(work, 1);
        self.note(index, outcome);
    }

    fn burst(&mut self, indexes: &[usize]) {
        let work = self.decoder.work();
        let repairs = indexes.iter().map(|&index| &self.repairs[index]);
        let symbols: Vec<RepairSymbol<'_>> = repairs
            .map(|Repair { span, key, payload }| RepairSymbol {
                span: span.clone(),
                key: *key,
                payload,
            })
            .collect();
        let outcomes = self.decoder.repair_burst(&symbols);
        assert_eq!(outcomes.len(), indexes.len());
        self.check_work(work, indexes.len());
        for (&index, outcome) in indexes.iter().zip(outcomes) {
            self.note(index, outcome.unwrap());
        }
        self.count.bursts += u64::from(indexes.len() > 1);
    }

    fn check_work(&self, before: u64, symbols: usize) {
        assert!(self.decoder.work() - before <= (symbols * LIMITS.work()) as u64);
    }

    /// Adds a repair symbol to the oracle, which must agree with its outcome.
    fn note(&mut self, index: usize, outcome: RepairOutcome) {
        let Repair { span, key, .. } = &self.repairs[index];
        let mut row = [0; MAX];
        for id in span.clone() {
            row[(id - self.first) as usize] = field::coefficient(*key, id);
        }
        let rises = self.oracle.add(row);
        match outcome {
            RepairOutcome::Innovative { .. } => self.count.innovative += 1,
            RepairOutcome::Dependent => self.count.dependent += 1,
            RepairOutcome::Unneeded => self.count.unneeded += 1,
            RepairOutcome::Old | RepairOutcome::Dropped => {
                unreachable!("the limits are not reached: {outcome:?}")
            }
        }
        assert_eq!(rises, matches!(outcome, RepairOutcome::Innovative { .. }), "{outcome:?}");
    }

    /// Checks that the decoder knows exactly the symbols that are determined.
    fn check(&mut self) {
        while let Some(id) = self.decoder.pop_recovered() {
            let index = (id - self.first) as usize;
            assert!(!self.known[index], "symbol {id} is recovered once");
            assert_eq!(self.decoder.symbol(id), Some(&self.content[index][..]));
            self.known[index] = true;
            self.count.recovered += 1;
        }
        assert_eq!(self.known, self.oracle.determined());
    }

    fn finish(&mut self, symbols: usize) {
        self.check();
        let known = &self.known[..symbols];
        for (id, (known, content)) in (self.first..).zip(known.iter().zip(&self.content)) {
            assert_eq!(self.decoder.symbol(id), known.then_some(&content[..]));
        }
        let seen = (self.decoder.upper_bound() - self.first) as usize;
        let missing =
            (0..seen).filter(|&index| !known[index]).map(|index| self.first + index as u64);
        assert!(self.decoder.missing().eq(missing));
        let unknown = known.iter().filter(|&&known| !known).count() as u64;
        self.count.unsolved += u64::from(unknown > 0);

        let (end, given_up) = (self.encoder.next_id(), self.decoder.given_up());
        self.encoder.release_below(end);
        self.decoder.release_below(end);
        assert_eq!(self.decoder.given_up(), given_up + unknown);
        assert_eq!((self.decoder.repairs(), self.decoder.bytes()), (0, 0));
        assert!(self.decoder.allocated() <= LIMITS.memory());
    }
}

/// Reports the place of a failure when a test panics.
struct Place {
    seed: u64,
    window: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("window {} of the batch with WINDOW_SEED={}", self.window, self.seed);
        }
    }
}

/// Runs a batch and adds its outcomes to the count.
fn batch(seed: u64, count: Count) -> Count {
    let mut place = Place { seed, window: 0 };
    let mut batch = Batch::new(seed, count);
    for window in 0..BATCH {
        place.window = window;
        batch.window();
    }
    batch.count
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn in_a_million_windows_a_symbol_is_recovered_exactly_when_it_is_determined() {
    if let Some(seed) = setting("WINDOW_SEED") {
        println!("{:?}", batch(seed, Count::default()));
        return;
    }
    let batches = setting("WINDOWS").unwrap_or(1_000_000).div_ceil(BATCH);
    // Half of the batches run on each of two threads.
    let run = |first| (first..batches).step_by(2).fold(Count::default(), |c, seed| batch(seed, c));
    let counts = thread::scope(|scope| {
        let threads = [0, 1].map(|first| scope.spawn(move || run(first)));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(counts[0].windows + counts[1].windows, batches * BATCH);
    for count in counts {
        println!("{count:?}");
        // Every kind of event occurs often.
        let Count { windows, lost, recovered, unsolved, innovative, dependent, .. } = count;
        let Count { unneeded, bursts, opened, late, duplicates, .. } = count;
        let things = [lost, recovered, unsolved, innovative, dependent];
        for thing in things.into_iter().chain([unneeded, bursts, opened, late, duplicates]) {
            assert!(thing >= windows / 16, "{count:?}");
        }
    }
}
