//! Statistics of the updates of a screen.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};
use sutura_analysis::statistics::{quantile, sorted};
use tokio::time::Instant;

use crate::output::{bytes, millis};

/// Updates of which pieces are on their way, or not known to be painted; the oldest is forgotten first.
const MAX_UPDATES: usize = 1024;
/// How many of the newest durations count for quantiles.
const MAX_DURATIONS: usize = 4096;

/// The last few durations.
#[derive(Debug, Default)]
pub struct Durations {
    last: VecDeque<Duration>,
    longest: Duration,
}

impl Durations {
    /// Adds one.
    pub fn add(&mut self, duration: Duration) {
        if self.last.len() == MAX_DURATIONS {
            self.last.pop_front();
        }
        self.last.push_back(duration);
        self.longest = self.longest.max(duration);
    }

    fn quantiles(&self) -> Option<[f64; 3]> {
        if self.last.is_empty() {
            return None;
        }
        let sorted = sorted(self.last.iter().map(|&duration| millis(duration)));
        Some([quantile(&sorted, 0.5), quantile(&sorted, 0.99), millis(self.longest)])
    }

    /// For people.
    pub fn text(&self) -> String {
        self.quantiles().map_or_else(
            || "none".into(),
            |[p50, p99, longest]| format!("p50 {p50:.1}, p99 {p99:.1}, longest {longest:.1} ms"),
        )
    }

    /// For scripts, in milliseconds.
    pub fn to_json(&self) -> Value {
        self.quantiles().map_or(
            Value::Null,
            |[p50, p99, longest]| json!({ "p50": p50, "p99": p99, "longest": longest }),
        )
    }
}

/// An update of which not all pieces are known to be painted.
#[derive(Debug)]
struct Update {
    changed: Instant,
    /// Pieces that were sent and not superseded.
    pieces: u32,
    painted: u32,
    /// Whether no more pieces follow.
    complete: bool,
}

/// The statistics of updates at the server's end.
#[derive(Debug, Default)]
pub struct Sent {
    open: BTreeMap<u32, Update>,
    /// The updates of pieces on their way.
    pieces_open: HashMap<u64, u32>,
    updates: u64,
    pieces: u64,
    bytes: u64,
    recovered: u64,
    superseded: u64,
    /// From the change to when it was painted.
    delays: Durations,
}

impl Sent {
    /// An update begins, whose first change was at a time; the previous update is complete.
    pub fn begin(&mut self, update: u32, changed: Instant) {
        self.complete();
        if self.open.len() == MAX_UPDATES {
            self.open.pop_first();
        }
        self.open.insert(update, Update { changed, pieces: 0, painted: 0, complete: false });
    }

    /// Nothing more follows of the last update.
    pub fn complete(&mut self) {
        let last = self.open.last_entry().map(|mut last| {
            last.get_mut().complete = true;
            *last.key()
        });
        if let Some(update) = last {
            self.check(update, Instant::now());
        }
    }

    /// A piece was sent.
    pub fn sent(&mut self, number: u64, update: u32, size: usize) {
        self.pieces += 1;
        self.bytes += size as u64;
        self.pieces_open.insert(number, update);
        self.open.entry(update).and_modify(|open| open.pieces += 1);
    }

    /// A piece will not be painted, because newer ones supersede it.
    pub fn superseded(&mut self, number: u64) {
        self.superseded += 1;
        if let Some(update) = self.pieces_open.remove(&number) {
            self.open.entry(update).and_modify(|open| open.pieces = open.pieces.saturating_sub(1));
            self.check(update, Instant::now());
        }
    }

    /// A piece has arrived.
    pub fn arrived(&mut self, number: u64, recovered: bool) {
        self.recovered += u64::from(recovered);
        self.pieces_open.remove(&number);
    }

    /// The viewer's end has painted pieces of an update, the last of them at a time.
    ///
    /// Returns how long the update took if all of it is painted now.
    pub fn painted(&mut self, update: u32, pieces: u16, at: Instant) -> Option<Duration> {
        self.open.entry(update).and_modify(|open| open.painted += u32::from(pieces));
        self.check(update, at)
    }

    /// Another connection begins; the fate of pieces on their way is not known.
    pub fn restart(&mut self) {
        self.open.clear();
        self.pieces_open.clear();
    }

    fn check(&mut self, update: u32, at: Instant) -> Option<Duration> {
        let open = self.open.get(&update)?;
        if !open.complete || open.painted < open.pieces {
            return None;
        }
        let open = self.open.remove(&update)?;
        // An update that was superseded as a whole was never painted.
        let took = (open.pieces > 0).then(|| at.saturating_duration_since(open.changed))?;
        self.updates += 1;
        self.delays.add(took);
        Some(took)
    }

    /// A line for people.
    pub fn text(&self) -> String {
        format!(
            "{} updates in {} pieces ({}), {} recovered, {} superseded; from change to painted: {}",
            self.updates,
            self.pieces,
            bytes(self.bytes),
            self.recovered,
            self.superseded,
            self.delays.text()
        )
    }

    /// For scripts.
    pub fn to_json(&self) -> Value {
        json!({
            "updates": self.updates,
            "pieces": self.pieces,
            "bytes": self.bytes,
            "recovered": self.recovered,
            "superseded": self.superseded,
            "change_to_painted_ms": self.delays.to_json(),
        })
    }
}

/// The statistics of updates at the viewer's end.
#[derive(Debug, Default)]
pub struct Shown {
    pub pieces: u64,
    /// Pieces that came though they were superseded.
    pub left_out: u64,
    pub reconnections: u64,
    /// How long complete pieces waited until the pieces before them were painted as well.
    pub blocked: Durations,
}

impl Shown {
    /// A line for people.
    pub fn text(&self) -> String {
        format!(
            "{} pieces painted, {} left out, {} reconnections; blocked: {}",
            self.pieces,
            self.left_out,
            self.reconnections,
            self.blocked.text()
        )
    }

    /// For scripts.
    pub fn to_json(&self) -> Value {
        json!({
            "pieces": self.pieces,
            "left_out": self.left_out,
            "reconnections": self.reconnections,
            "blocked_ms": self.blocked.to_json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_painted_once_all_of_it_is() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut sent = Sent::default();
        sent.begin(1, at(0));
        (0..3).for_each(|number| sent.sent(number, 1, 100));
        sent.painted(1, 2, at(10));
        sent.begin(2, at(20));
        sent.sent(3, 2, 100);
        assert_eq!(sent.updates, 0);
        sent.painted(1, 1, at(30));
        assert_eq!((sent.updates, sent.delays.longest), (1, Duration::from_millis(30)));
        // All of the second is superseded: it does not count.
        sent.complete();
        sent.superseded(3);
        assert_eq!((sent.updates, sent.superseded, sent.open.len()), (1, 1, 0));
        assert_eq!(sent.to_json()["change_to_painted_ms"]["p50"], 30.0);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut sent = Sent::default();
        for update in 0..3000 {
            sent.begin(update, Instant::now());
            sent.sent(update.into(), update, 1);
            sent.arrived(update.into(), true);
        }
        assert_eq!(
            (sent.open.len(), sent.pieces_open.len(), sent.recovered),
            (MAX_UPDATES, 0, 3000)
        );
        let mut durations = Durations::default();
        (0..10_000).for_each(|ms| durations.add(Duration::from_millis(ms)));
        assert_eq!(durations.last.len(), MAX_DURATIONS);
    }
}
