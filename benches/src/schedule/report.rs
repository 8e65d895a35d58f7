//! From measurements to tables.

use crate::Workload;
use crate::subject::Name;
use serde::Serialize;
use std::fmt::Write;

/// All rounds of one scheme with one tree and one workload.
#[derive(Debug, Serialize)]
pub struct Measurement {
    pub name: Name,
    pub workload: Workload,
    pub streams: u64,
    /// Levels of the tree; 1 is without classes.
    pub depth: u32,
    /// For one decision, on average over one round; a value for each round.
    pub nanoseconds: Vec<f64>,
}

impl Measurement {
    /// The median and the deciles around it.
    fn summary(&self) -> String {
        let mut values = self.nanoseconds.clone();
        values.sort_by(f64::total_cmp);
        let at = |tenths: usize| values.get(values.len().saturating_sub(1) * tenths / 10);
        match (at(5), at(1), at(9)) {
            (Some(median), Some(low), Some(high)) => format!("{median:.0} [{low:.0} {high:.0}]"),
            _ => String::from("-"),
        }
    }
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    pub rounds: usize,
    /// How long all of it took.
    pub seconds: f64,
    pub measurements: Vec<Measurement>,
}

impl Report {
    pub fn to_markdown(&self) -> String {
        let rounds = if self.rounds == 1 { "round" } else { "rounds" };
        let mut text = format!(
            "Nanoseconds per decision, median [lower and upper decile] of {} interleaved {rounds}.\n\
             `form-of-quinn` and `form-of-quiche` are stand-ins with the data structure of those \
             libraries,\nnot measurements of them.\n",
            self.rounds,
        );
        for (workload, title) in [
            (Workload::Backlogged, "All streams always have more to send"),
            (Workload::Pauses, "The stream that was served stops and starts again"),
            (Workload::Replaced, "The stream that was served ends and a new one takes its place"),
        ] {
            let of: Vec<_> =
                self.measurements.iter().filter(|entry| entry.workload == workload).collect();
            if !of.is_empty() {
                let _ = write!(text, "\n### {title}\n\n{}", table(&of));
            }
        }
        text
    }
}

/// A row for each scheme and depth, a column for each number of streams.
fn table(measurements: &[&Measurement]) -> String {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for entry in measurements {
        if !rows.contains(&(entry.name, entry.depth)) {
            rows.push((entry.name, entry.depth));
        }
        if !columns.contains(&entry.streams) {
            columns.push(entry.streams);
        }
    }
    let mut text = String::from("| scheme | depth |");
    for streams in &columns {
        let _ = write!(text, " {streams} streams |");
    }
    let _ = writeln!(text, "\n|---|---|{}", "---|".repeat(columns.len()));
    for &(name, depth) in &rows {
        let _ = write!(text, "| {name} | {depth} |");
        for &streams in &columns {
            let cell = measurements
                .iter()
                .find(|entry| (entry.name, entry.depth, entry.streams) == (name, depth, streams));
            let _ = write!(text, " {} |", cell.map_or(String::from("-"), |cell| cell.summary()));
        }
        text.push('\n');
    }
    text
}
