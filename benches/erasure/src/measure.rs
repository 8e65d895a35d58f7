//! Races: several implementations of the same work, timed in turns.

use crate::{
    Error,
    buffers::Symbols,
    cases::Case,
    memory::Pages,
    results::{Row, Table, Time},
};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};
use sutura_analysis::statistics::Spread;

/// The least duration of a repetition, so that reading the clock does not matter.
const REPETITION: Duration = Duration::from_millis(1);
/// Timed repetitions of an entry in a round.
const REPETITIONS: usize = 20;
/// How long whole decodes are repeated in a round.
const DECODES: Duration = Duration::from_millis(60);
/// The least and the largest number of decodes in a round.
const DECODE_COUNT: (usize, usize) = (3, 200);

/// The origin of an entry's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// This project.
    Ours,
    /// Another library.
    Peer,
    /// Our own code in the form of a library that is not available here.
    StandIn,
    /// A limit of the machine.
    Limit,
}

/// The times of one decode.
#[derive(Debug, Clone, Copy)]
pub struct Decoded {
    /// CPU time of all repair symbols.
    pub total: Duration,
    /// Wall time of the last repair symbol, until all symbols were recovered.
    pub last: Duration,
}

/// A time of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// The time of the whole work.
    Total,
    /// The time of the last repair symbol.
    Last,
}

/// Times of one entry in seconds: best and median of each round.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Series {
    pub best: Vec<f64>,
    pub median: Vec<f64>,
}

impl Series {
    fn push(&mut self, times: Vec<f64>) {
        if let Some(times) = Spread::of(times) {
            self.best.push(times.low);
            self.median.push(times.median);
        }
    }
}

enum Work<'a> {
    /// A call that is repeated and timed from outside.
    Loop { call: Box<dyn FnMut() + 'a>, calls: u32 },
    /// A call that times itself, because its preparation does not count.
    Decode(Box<dyn FnMut() -> Result<Decoded, Error> + 'a>),
}

impl Work<'_> {
    /// Measures an entry for one round.
    fn round(&mut self, row: &mut Row) -> Result<(), Error> {
        match self {
            Self::Loop { call, calls } => {
                if *calls == 0 {
                    *calls = calibrate(call);
                }
                // The first repetition warms up the caches.
                let times = (0..=REPETITIONS).map(|_| repeat(call, *calls) / f64::from(*calls));
                row.total_rounds.push(times.skip(1).collect());
            }
            Self::Decode(decode) => {
                let (mut total, mut last) = (Vec::new(), Vec::new());
                let start = Instant::now();
                let (least, most) = DECODE_COUNT;
                while total.len() < least || (start.elapsed() < DECODES && total.len() < most) {
                    let decoded = decode()?;
                    total.push(decoded.total.as_secs_f64());
                    last.push(decoded.last.as_secs_f64());
                }
                row.total_rounds.push(total);
                row.last_rounds.push(last);
            }
        }
        (row.total, row.last) = (Time::of(&row.total_rounds), Time::of(&row.last_rounds));
        Ok(())
    }
}

/// Seconds that `calls` calls take.
fn repeat(call: &mut dyn FnMut(), calls: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_secs_f64()
}

/// The number of calls in a repetition.
fn calibrate(call: &mut dyn FnMut()) -> u32 {
    let mut calls = 1;
    while repeat(call, calls) < REPETITION.as_secs_f64() && calls < 1 << 24 {
        calls *= 2;
    }
    calls
}

/// Entries that do the same work.
pub struct Race<'a> {
    pub table: Table,
    /// Bytes that count for doing the work once.
    pub bytes: f64,
    /// The work of each row of the table.
    works: Vec<Work<'a>>,
}

impl<'a> Race<'a> {
    pub fn new(case: Case, title: impl Into<String>, bytes: usize) -> Self {
        let table = Table {
            case,
            pages: Pages::Ordinary,
            title: title.into(),
            last_bytes: 0.0,
            limit: None,
            last_limit: None,
            rows: Vec::new(),
        };
        Self { table, bytes: bytes as f64, works: Vec::new() }
    }

    /// Names the limit of the work.
    pub fn within(mut self, limit: &'static str) -> Self {
        self.table.limit = Some(limit);
        self
    }

    /// Sets the bytes that must be read after the last repair symbol, and their limit.
    pub fn last_within(mut self, bytes: usize, limit: &'static str) -> Self {
        (self.table.last_bytes, self.table.last_limit) = (bytes as f64, Some(limit));
        self
    }

    pub fn len(&self) -> usize {
        self.works.len()
    }

    fn push(&mut self, id: &'static str, label: &str, kind: Kind, bytes: f64, work: Work<'a>) {
        let (total_rounds, last_rounds) = (Series::default(), Series::default());
        let (label, total, last) = (label.to_owned(), None, None);
        self.table.rows.push(Row {
            id,
            label,
            kind,
            bytes,
            total,
            last,
            total_rounds,
            last_rounds,
        });
        self.works.push(work);
    }

    /// Adds a call that is repeated and counts for `bytes`.
    pub fn add_loop(
        &mut self,
        (id, label, kind): (&'static str, &str, Kind),
        bytes: usize,
        call: impl FnMut() + 'a,
    ) {
        let work = Work::Loop { call: Box::new(call), calls: 0 };
        self.push(id, label, kind, bytes as f64, work);
    }

    /// Adds a call that writes, or adds to, destinations, after checking its result on zeros.
    pub fn add(
        &mut self,
        entry: (&'static str, &str, Kind),
        expected: &Symbols,
        mut call: impl FnMut(&mut [&mut [u8]]) + 'a,
    ) -> Result<(), Error> {
        let mut dsts = Symbols::zeroed(expected.len()).leak();
        call(&mut dsts);
        if dsts.iter().zip(expected.iter()).any(|(dst, expected)| *dst != expected) {
            return Err(format!("{} gives a wrong result", entry.1).into());
        }
        self.add_loop(entry, self.bytes as usize, move || call(black_box(&mut dsts)));
        Ok(())
    }

    /// Adds a call that decodes, checks the result and returns its times, after calling it once.
    pub fn add_decode(
        &mut self,
        (id, label, kind): (&'static str, &str, Kind),
        mut decode: impl FnMut() -> Result<Decoded, Error> + 'a,
    ) -> Result<(), Error> {
        decode().map_err(|error| format!("{label}: {error}"))?;
        self.push(id, label, kind, self.bytes, Work::Decode(Box::new(decode)));
        Ok(())
    }

    /// Adds a call that decodes a block with the losses of a turn and returns its time.
    pub fn add_block_decode(
        &mut self,
        entry: (&'static str, &str, Kind),
        mut decode: impl FnMut(usize) -> Result<Duration, Error> + 'a,
    ) -> Result<(), Error> {
        let mut turn = 0;
        self.add_decode(entry, move || {
            turn += 1;
            let total = decode(turn)?;
            Ok(Decoded { total, last: total })
        })
    }

    /// Measures all entries once. Each round begins with another entry.
    pub fn round(&mut self, round: usize, mut done: impl FnMut()) -> Result<(), Error> {
        for turn in 0..self.len() {
            let index = (round + turn) % self.len();
            let Self { table, works, .. } = self;
            table.pages.with(|| works[index].round(&mut table.rows[index]))?;
            done();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_result_does_not_enter_a_race() {
        let expected = Symbols::random(2, 1);
        let mut race = Race::new(Case::Limits, "", 1);
        let right = race.add(("a", "a", Kind::Ours), &expected, |dsts| {
            dsts.iter_mut().zip(expected.iter()).for_each(|(dst, s)| dst.copy_from_slice(s));
        });
        assert!(right.is_ok());
        assert!(race.add(("b", "b", Kind::Ours), &expected, |_| ()).is_err());
        let wrong = race.add_decode(("c", "c", Kind::Ours), || Err("not recovered".into()));
        assert_eq!(wrong.map_err(|e| e.to_string()), Err("c: not recovered".to_owned()));
        assert_eq!(race.len(), 1);
    }

    #[test]
    fn a_round_measures_each_entry_once() {
        let mut race = Race::new(Case::Limits, "", 1);
        race.add_loop(("a", "a", Kind::Ours), 1, || {
            black_box(1);
        });
        race.add_decode(("b", "b", Kind::Ours), || {
            Ok(Decoded { total: Duration::from_secs(2), last: Duration::from_secs(1) })
        })
        .unwrap();
        let mut count = 0;
        race.round(0, || count += 1).unwrap();
        race.round(1, || count += 1).unwrap();
        assert_eq!(count, 4);
        let [looped, decoded] = &race.table.rows[..] else { panic!("{:?}", race.table) };
        assert_eq!((looped.total_rounds.best.len(), looped.last), (2, None));
        assert_eq!(decoded.total_rounds.median, [2.0, 2.0]);
        assert_eq!(decoded.last, Some(Time { best: 1.0, median: 1.0 }));
    }
}
