//! The report on one case.

use super::super::compare::Lineup;
use super::{interval, name};
use crate::report::{Cell, Table};

/// A row for each policy.
pub fn table(row: &Lineup<'_>) -> Table {
    let header = [
        "policy",
        "score",
        "by seed",
        "ideal",
        "bytes",
        "repairs",
        "dropped",
        "lost",
        "neighbour, mean",
        "neighbour, p95",
    ];
    let mut table = Table::new(format!("Case {}", row.case.number), header);
    for (arm, runs) in row.arms().iter().enumerate() {
        let score = |value: f64| {
            let shown = if row.is_feed() { 100.0 * value } else { 1000.0 * value };
            format!("{shown:.2} {}", if row.is_feed() { "%" } else { "ms" })
        };
        let own = row.score(arm);
        let all: Vec<String> = own.0.iter().map(|value| score(*value)).collect();
        let mean = |figure: fn(&super::super::Outcome) -> f64| row.figures(arm, figure).mean();
        table.row([
            Cell::from(name(&runs.setup)),
            score(own.mean()).into(),
            all.join(", ").into(),
            row.ideal(arm).map(|ideal| score(ideal.mean())).into(),
            Cell::Number(mean(|run| run.wire)),
            Cell::Share(mean(|run| run.repairs)),
            Cell::Share(mean(|run| run.dropped)),
            Cell::Share(mean(|run| run.lost)),
            row.neighbour(arm, |times| times.mean).map(|change| interval(&change, "%")).into(),
            row.neighbour(arm, |times| times.p95).map(|change| interval(&change, "%")).into(),
        ]);
    }
    table
}
