//! The results of the measurements, without the code that measures.

use crate::{
    cases::Case,
    measure::{Kind, Metric, Series},
    memory::Pages,
};
use sutura_analysis::statistics::Spread;

/// Best and median of the rounds, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Time {
    /// The best of all rounds.
    pub best: f64,
    /// The median of the rounds' medians.
    pub median: f64,
}

impl Time {
    pub fn of(series: &Series) -> Option<Self> {
        let best = Spread::of(series.best.iter().copied())?.low;
        Some(Self { best, median: Spread::of(series.median.iter().copied())?.median })
    }
}

/// One entry of a race, and its times.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Row {
    /// The name by which targets refer to it.
    pub id: &'static str,
    pub label: String,
    pub kind: Kind,
    /// Bytes that count for a call.
    pub bytes: f64,
    pub total: Option<Time>,
    pub last: Option<Time>,
    pub total_rounds: Series,
    pub last_rounds: Series,
}

impl Row {
    pub fn time(&self, metric: Metric) -> Option<Time> {
        match metric {
            Metric::Total => self.total,
            Metric::Last => self.last,
        }
    }
}

/// A race, and the times of its entries.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Table {
    pub case: Case,
    /// The pages of its memory.
    pub pages: Pages,
    /// The work in words.
    pub title: String,
    /// Bytes that must be read after the last repair symbol.
    pub last_bytes: f64,
    /// The limits of the work and of its last part: entries of the race itself or else of
    /// [`Case::Limits`].
    pub limit: Option<&'static str>,
    pub last_limit: Option<&'static str>,
    pub rows: Vec<Row>,
}

impl Table {
    pub fn row(&self, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// The limit of a part of the work, and the bytes that count against it.
    pub fn limit_of(&self, row: &Row, metric: Metric) -> Option<(&'static str, f64)> {
        match metric {
            Metric::Total => Some((self.limit?, row.bytes)),
            Metric::Last => Some((self.last_limit?, self.last_bytes)),
        }
    }
}

/// All measurements.
#[derive(Debug)]
pub struct Results {
    pub rounds: usize,
    pub tables: Vec<Table>,
}

impl Results {
    pub fn table(&self, case: Case, pages: Pages) -> Option<&Table> {
        self.tables.iter().find(|table| table.case == case && table.pages == pages)
    }

    /// The entry that stands for a limit of a race: an entry of the race itself, which works on the same
    /// memory, or else an entry of the machine's limits.
    pub fn limit<'r>(&'r self, table: &'r Table, id: &str) -> Option<&'r Row> {
        let machine = || self.table(Case::Limits, table.pages)?.row(id);
        table.row(id).or_else(machine)
    }
}

/// The share of a limit that `bytes` in `time` are: best time against best time.
pub fn share(limit: &Row, bytes: f64, time: Time) -> Option<f64> {
    Some(bytes / time.best / (limit.bytes / limit.total?.best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_of_all_rounds_and_the_median_of_medians() {
        assert_eq!(Time::of(&Series::default()), None);
        let odd = Series { best: vec![2.0, 1.0, 3.0], median: vec![9.0, 4.0, 5.0] };
        assert_eq!(Time::of(&odd), Some(Time { best: 1.0, median: 5.0 }));
    }
}
