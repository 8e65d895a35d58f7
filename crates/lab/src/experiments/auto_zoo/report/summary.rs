//! All policies side by side, and what the flows beside them pay.

use sutura_analysis::statistics::mean;

use super::super::compare::{BySeed, HARM, Lineup, Reference, Spread};
use super::super::neighbour::NeighbourTime;
use super::{arms, by_application, count};
use crate::comparison::{Values, share};
use crate::report::{Cell, Table};

/// A row for each policy, over all cases.
pub fn table(rows: &[Lineup<'_>], policies: &[String]) -> Table {
    let header = [
        "policy",
        "cases",
        "harmed",
        "perhaps",
        "neighbours slowed",
        "late messages",
        "time of files",
        "ideal p50",
        "p90",
        "level or ahead of fixed",
        "of the foreseen",
        "bytes",
        "worse than the first",
        "better than the first",
    ];
    let mut table = Table::new("All policies: counts of cases, and means against none", header);
    let [(_, feeds), (_, files), _] = by_application(rows);
    let beside = count(rows, |row| row.case.beside.is_some());
    for (arm, policy) in arms(policies) {
        let change = |own: &[Lineup<'_>], unit: &str| {
            let all = own.iter().map(|row| row.distance(arm, Reference::None).mean());
            (!own.is_empty()).then(|| format!("{:+.3} {unit}", mean(all)))
        };
        let ideal = rows.iter().filter(|row| row.has_ideal(arm));
        let ideal = Values::of(ideal.map(|row| row.ratio(arm, Reference::Ideal)));
        let of_ideal = |q| Cell::from((!ideal.is_empty()).then(|| ideal.cell(q)));
        let has_fixed = rows.iter().any(Lineup::has_fixed);
        let level = |reference| {
            let share = share(rows, |row: &Lineup<'_>| row.is_level(arm, reference));
            Cell::from(has_fixed.then_some(Cell::Share(share)))
        };
        table.row([
            Cell::from(policy),
            rows.len().into(),
            count(rows, |row| row.is_harmed(arm)).into(),
            count(rows, |row| row.seems_harmed(arm)).into(),
            format!("{} of {beside}", count(rows, |row| row.is_slowed(arm))).into(),
            change(&feeds, "pp").into(),
            change(&files, "%").into(),
            of_ideal(0.5),
            of_ideal(0.9),
            level(Reference::Fixed),
            level(Reference::Foreseen),
            Cell::Number(mean(rows.iter().map(|row| row.wire(arm)))),
            count(rows, |row| row.is_worse(arm, 1)).into(),
            count(rows, |row| row.is_worse(1, arm)).into(),
        ]);
    }
    table
}

/// How much longer the downloads or messages of the flow beside take with each policy.
pub fn neighbours(rows: &[Lineup<'_>], policies: &[String]) -> Table {
    let header = ["policy", "time", "paths", "p10", "p50", "p90", "worst", "slower", "faster"];
    let title = "The flow beside: how many percent longer its downloads or messages take";
    let mut table = Table::new(title, header);
    let times: [(&str, NeighbourTime); 2] =
        [("mean", |times| times.mean), ("p95", |times| times.p95)];
    for (arm, policy) in arms(policies).skip(1) {
        for (name, time) in times {
            let changes: Vec<BySeed> =
                rows.iter().filter_map(|row| row.neighbour(arm, time)).collect();
            let share = |holds: &dyn Fn([f64; 2]) -> bool| {
                Cell::Share(share(&changes, |change| holds(change.interval())))
            };
            let ends = [share(&|[low, _]| low > HARM[1]), share(&|[_, high]| high < -HARM[1])];
            let spread = Spread::of(changes.iter().cloned());
            let mut cells = vec![Cell::from(policy), name.into(), spread.len().into()];
            cells.extend([0.1, 0.5, 0.9, 1.0].map(|q| Cell::from(spread.quantile(q))));
            cells.extend(ends);
            table.row(cells);
        }
    }
    table
}
