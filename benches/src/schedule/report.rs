//! From measurements to tables.

use crate::Workload;
use crate::subject::Name;
use serde::Serialize;
use sutura_analysis::report::Report;
use sutura_analysis::statistics::Spread;
use sutura_analysis::table::{Cell, Table};

/// All rounds of one scheme with one tree and one workload.
#[derive(Debug, Serialize)]
pub struct Measurement {
    pub name: Name,
    pub workload: Workload,
    pub streams: u64,
    /// Levels of the tree; 1 is without classes.
    pub depth: u32,
    /// Nanoseconds for one decision, averaged over a round; one value for each round.
    pub nanoseconds: Vec<f64>,
}

/// All measurements.
#[derive(Debug, Serialize)]
pub struct Results {
    pub rounds: usize,
    /// How long all measurements took.
    pub seconds: f64,
    pub measurements: Vec<Measurement>,
}

impl Results {
    pub fn report(&self) -> Report {
        let tables = [
            (Workload::Backlogged, "All streams always have more to send"),
            (Workload::Pauses, "The stream that was served stops and starts again"),
            (Workload::Replaced, "The stream that was served ends and a new one takes its place"),
        ]
        .map(|(workload, caption)| {
            let of = self.measurements.iter().filter(|entry| entry.workload == workload);
            table(caption, &of.collect::<Vec<_>>())
        });
        let text = [
            format!(
                "Nanoseconds per decision, median [lower and upper decile] of {} interleaved rounds.",
                self.rounds
            ),
            "`form-of-quinn` and `form-of-quiche` are stand-ins with the data structure of those \
             libraries, not measurements of them."
                .to_owned(),
        ];
        Report {
            name: "schedule".to_owned(),
            title: "Decisions of the stream schedulers".to_owned(),
            text: text.to_vec(),
            tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
            ..Report::default()
        }
    }
}

/// A row for each scheme and depth, a column for each number of streams.
fn table(caption: &str, measurements: &[&Measurement]) -> Table {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for entry in measurements {
        if !rows.contains(&(entry.name, entry.depth)) {
            rows.push((entry.name, entry.depth));
        }
        if !columns.contains(&entry.streams) {
            columns.push(entry.streams);
        }
    }
    let heads = columns.iter().map(|streams| format!("{streams} streams"));
    let heads = ["scheme".to_owned(), "depth".to_owned()].into_iter().chain(heads);
    let mut table = Table::new(caption, heads);
    for (name, depth) in rows {
        let spread = |streams: &u64| {
            let is_own =
                |e: &&&Measurement| (e.name, e.depth, e.streams) == (name, depth, *streams);
            let own = measurements.iter().find(is_own);
            let spread = own.and_then(|e| Spread::of_deciles(e.nanoseconds.iter().copied()));
            Cell::spread(spread, 0)
        };
        let labels = [Cell::from(name.to_string()), depth.into()];
        table.row(labels.into_iter().chain(columns.iter().map(spread)));
    }
    table
}
