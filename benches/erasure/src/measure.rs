//! Races: several ways of doing the same work, timed in turns.

use crate::{Error, buffers::Symbols, cases::Case, memory::Pages};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};
use sutura_analysis::statistics::Spread;

/// A repetition lasts at least this long, so that reading the clock does not matter.
const REPETITION: Duration = Duration::from_millis(1);
/// Timed repetitions of an entry in a round.
const REPETITIONS: usize = 20;
/// Whole decodes go on for this long in a round.
const DECODES: Duration = Duration::from_millis(60);
/// At least and at most so many decodes in a round.
const DECODE_COUNT: (usize, usize) = (3, 200);

/// Whose code an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// What this project ships.
    Ours,
    /// Another library.
    Peer,
    /// Our own code in the form of a library that cannot be had here.
    StandIn,
    /// What the machine can do.
    Limit,
}

/// The times of one decode.
#[derive(Debug, Clone, Copy)]
pub struct Decoded {
    /// CPU time of all repair symbols.
    pub total: Duration,
    /// Wall time of the last one, until everything was recovered.
    pub last: Duration,
}

/// Which time of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Of the work as a whole.
    Total,
    /// Of the last repair symbol.
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
    /// Called over and over again.
    Loop { call: Box<dyn FnMut() + 'a>, calls: u32 },
    /// Times itself, since what it prepares does not count.
    Decode(Box<dyn FnMut() -> Result<Decoded, Error> + 'a>),
}

/// One way of doing the work.
pub struct Entry<'a> {
    /// The name by which targets refer to it.
    pub id: &'static str,
    pub label: String,
    pub kind: Kind,
    /// Bytes that a call counts for.
    pub bytes: f64,
    pub total: Series,
    pub last: Series,
    work: Work<'a>,
}

impl Entry<'_> {
    /// Measures this entry for one round.
    fn round(&mut self) -> Result<(), Error> {
        match &mut self.work {
            Work::Loop { call, calls } => {
                if *calls == 0 {
                    *calls = calibrate(call);
                }
                // The first one warms the caches up.
                let times = (0..=REPETITIONS).map(|_| repeat(call, *calls) / f64::from(*calls));
                self.total.push(times.skip(1).collect());
            }
            Work::Decode(decode) => {
                let (mut total, mut last) = (Vec::new(), Vec::new());
                let start = Instant::now();
                let (least, most) = DECODE_COUNT;
                while total.len() < least || (start.elapsed() < DECODES && total.len() < most) {
                    let decoded = decode()?;
                    total.push(decoded.total.as_secs_f64());
                    last.push(decoded.last.as_secs_f64());
                }
                self.total.push(total);
                self.last.push(last);
            }
        }
        Ok(())
    }
}

/// Seconds of so many calls.
fn repeat(call: &mut dyn FnMut(), calls: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_secs_f64()
}

/// How many calls make a repetition.
fn calibrate(call: &mut dyn FnMut()) -> u32 {
    let mut calls = 1;
    while repeat(call, calls) < REPETITION.as_secs_f64() && calls < 1 << 24 {
        calls *= 2;
    }
    calls
}

/// Entries that do the same work.
pub struct Race<'a> {
    pub case: Case,
    /// What its memory is in.
    pub pages: Pages,
    /// What is done.
    pub title: String,
    /// Bytes that doing it once counts for.
    pub bytes: f64,
    /// Bytes that must be read after the last repair symbol.
    pub last_bytes: f64,
    /// The limits of the work and of its last part: entries of the race itself or else of
    /// [`Case::Limits`].
    pub limit: Option<&'static str>,
    pub last_limit: Option<&'static str>,
    pub entries: Vec<Entry<'a>>,
}

impl<'a> Race<'a> {
    pub fn new(case: Case, title: impl Into<String>, bytes: usize) -> Self {
        Self {
            case,
            pages: Pages::Ordinary,
            title: title.into(),
            bytes: bytes as f64,
            last_bytes: 0.0,
            limit: None,
            last_limit: None,
            entries: Vec::new(),
        }
    }

    /// Names the limit of the work.
    pub fn within(mut self, limit: &'static str) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Names what must be read after the last repair symbol, and its limit.
    pub fn last_within(mut self, bytes: usize, limit: &'static str) -> Self {
        (self.last_bytes, self.last_limit) = (bytes as f64, Some(limit));
        self
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn push(&mut self, id: &'static str, label: &str, kind: Kind, bytes: f64, work: Work<'a>) {
        let label = label.to_owned();
        let (total, last) = (Series::default(), Series::default());
        self.entries.push(Entry { id, label, kind, bytes, total, last, work });
    }

    /// Adds what is called over and over again, with bytes of its own.
    pub fn add_loop(
        &mut self,
        (id, label, kind): (&'static str, &str, Kind),
        bytes: usize,
        call: impl FnMut() + 'a,
    ) {
        let work = Work::Loop { call: Box::new(call), calls: 0 };
        self.push(id, label, kind, bytes as f64, work);
    }

    /// Adds what writes, or adds to, destinations, after one call on zeros gave what is expected.
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

    /// Adds what decodes, checks what came out, and says how long it took, after doing it once.
    pub fn add_decode(
        &mut self,
        (id, label, kind): (&'static str, &str, Kind),
        mut decode: impl FnMut() -> Result<Decoded, Error> + 'a,
    ) -> Result<(), Error> {
        decode().map_err(|error| format!("{label}: {error}"))?;
        self.push(id, label, kind, self.bytes, Work::Decode(Box::new(decode)));
        Ok(())
    }

    /// Measures all entries once. Each round begins with another one.
    pub fn round(&mut self, round: usize, mut done: impl FnMut()) -> Result<(), Error> {
        for turn in 0..self.len() {
            let index = (round + turn) % self.len();
            self.pages.with(|| self.entries[index].round())?;
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
        assert_eq!((race.entries[0].total.best.len(), race.entries[0].last.best.len()), (2, 0));
        assert_eq!(
            (&race.entries[1].total.median[..], race.entries[1].last.best[0]),
            (&[2.0, 2.0][..], 1.0)
        );
    }
}
