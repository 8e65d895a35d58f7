//! How far each policy is from the ideal, from fixed redundancy and from none.

use super::super::compare::{Lineup, Reference, Spread};
use super::{arms, share_of};
use crate::report::{Cell, Table};

/// How far each policy is from each reference.
pub fn table(rows: &[Lineup<'_>], policies: &[String], (feed, plain): (bool, bool)) -> Table {
    let what = if feed { "Messages and datagrams" } else { "Files" };
    let unit = if feed { "percentage points of late ones" } else { "percent of the time" };
    let place = if plain { "alone at a drop-tail queue" } else { "elsewhere" };
    let ideal = if plain { "ideal" } else { "any fixed" };
    let header = [
        "policy".to_owned(),
        "paths".to_owned(),
        format!("{ideal} p50"),
        "p90".to_owned(),
        "worst".to_owned(),
        "fixed p50".to_owned(),
        "p90".to_owned(),
        "worst".to_owned(),
        "none best".to_owned(),
        "p10".to_owned(),
        "p50".to_owned(),
        "p90".to_owned(),
        "worst".to_owned(),
        "mean".to_owned(),
        "harmed".to_owned(),
        "perhaps".to_owned(),
        "bytes".to_owned(),
        "dropped".to_owned(),
    ];
    let mut table = Table::new(format!("{what} {place}: distance in {unit}"), header);
    for (arm, policy) in arms(policies) {
        let spread = |reference| Spread::of(rows.iter().map(|row| row.distance(arm, reference)));
        let [ideal, fixed, none] =
            [Reference::Ideal, Reference::Fixed, Reference::None].map(spread);
        let figure = |figure: fn(&super::super::Outcome) -> f64| {
            sutura_analysis::statistics::mean(
                rows.iter().map(|row| row.figures(arm, figure).mean()),
            )
        };
        let mut cells = vec![Cell::from(policy), (ideal.len() as u64).into()];
        for spread in [&ideal, &fixed] {
            cells.extend([0.5, 0.9, 1.0].map(|q| Cell::from(spread.quantile(q))));
        }
        cells.extend([0.0, 0.1, 0.5, 0.9, 1.0].map(|q| Cell::from(none.quantile(q))));
        cells.push(format!("{:+.3}", none.mean()).into());
        cells.push(share_of(rows, |row| row.is_harmed(arm)));
        cells.push(share_of(rows, |row| row.seems_harmed(arm)));
        cells.push(Cell::Number(figure(|run| run.wire)));
        cells.push(Cell::Share(figure(|run| run.dropped)));
        table.row(cells);
    }
    table
}
