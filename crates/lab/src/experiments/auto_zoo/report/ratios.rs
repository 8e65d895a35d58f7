//! Scores as multiples of the ideal, and of fixed redundancy that sends no more.

use super::super::compare::{Lineup, Reference};
use super::{arms, by_application, count};
use crate::comparison::{Values, share};
use crate::report::{Cell, Table};

/// The ratio of each policy to what a perfect code makes of its packets, on the cases where that is known and
/// certainly better than none; beside it, the ratio of none to the same ideal.
pub fn to_ideal(rows: &[Lineup<'_>], policies: &[String]) -> Table {
    let header = [
        "policy",
        "application",
        "cases",
        "p50",
        "p90",
        "worst",
        "worst case",
        "none p50",
        "none p90",
        "none worst",
    ];
    let title = "Ratio to the ideal, where repair symbols in a perfect code are better than none";
    let mut table = Table::new(title, header);
    for (arm, policy) in arms(policies).skip(1) {
        for (application, own) in by_application(rows) {
            let known = count(&own, |row| row.case.is_plain());
            let own: Vec<_> = own.into_iter().filter(|row| row.has_ideal(arm)).collect();
            if own.is_empty() {
                continue;
            }
            let ratio = |row: &&Lineup<'_>| row.ratio(arm, Reference::Ideal);
            let worst = own.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
            let with = Values::of(own.iter().map(|row| ratio(&row)));
            let ideal = |row: &Lineup<'_>| Some(row.ratio_of(0, &row.ideal(arm)?));
            let none = Values::of(own.iter().filter_map(ideal));
            let cases = format!("{} of {known}", own.len());
            let mut cells = vec![Cell::from(policy), application.into(), cases.into()];
            cells.extend([0.5, 0.9, 1.0].map(|q| with.cell(q)));
            cells.push(worst.map(|row| row.case.number).into());
            cells.extend([0.5, 0.9, 1.0].map(|q| none.cell(q)));
            table.row(cells);
        }
    }
    table
}

/// Each policy beside the best fixed policy, or none, that sends no more bytes.
pub fn to_fixed(rows: &[Lineup<'_>], policies: &[String]) -> Table {
    let header = [
        "policy",
        "application",
        "cases",
        "ahead",
        "level",
        "behind",
        "level or ahead",
        "of the foreseen",
        "certainly ahead",
        "certainly behind",
        "ratio p50",
        "p90",
        "worst",
    ];
    let mut table = Table::new("Beside the best fixed redundancy of no more bytes", header);
    for (arm, policy) in arms(policies).skip(1) {
        for (application, own) in by_application(rows) {
            if own.is_empty() {
                continue;
            }
            let distance = |row: &Lineup<'_>| row.distance(arm, Reference::Fixed).mean();
            let ratios = Values::of(own.iter().map(|row| row.ratio(arm, Reference::Fixed)));
            let ahead = |row: &Lineup<'_>| distance(row) < -row.harm();
            let behind = |row: &Lineup<'_>| !row.is_level(arm, Reference::Fixed);
            let certainly = |row: &Lineup<'_>, sign: f64| {
                let [low, high] = row.distance(arm, Reference::Fixed).interval();
                (sign * low).min(sign * high) > row.harm()
            };
            let mut cells = vec![Cell::from(policy), application.into(), own.len().into()];
            cells.push(count(&own, ahead).into());
            cells.push(count(&own, |row| !ahead(row) && !behind(row)).into());
            cells.push(count(&own, behind).into());
            cells.push(Cell::Share(share(&own, |row| !behind(row))));
            let foreseen = |row: &Lineup<'_>| row.is_level(arm, Reference::Foreseen);
            cells.push(Cell::Share(share(&own, foreseen)));
            cells.push(count(&own, |row| certainly(row, -1.0)).into());
            cells.push(count(&own, |row| certainly(row, 1.0)).into());
            cells.extend([0.5, 0.9, 1.0].map(|q| ratios.cell(q)));
            table.row(cells);
        }
    }
    table
}
