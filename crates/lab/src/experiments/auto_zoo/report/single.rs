//! The results of each case one by one, for other programs.

use super::super::compare::{Lineup, Reference};
use super::super::neighbour::NeighbourTime;
use super::{Alone, name};
use crate::report::{Cell, Column, Table};

/// A policy on a case.
struct Entry<'a> {
    row: &'a Lineup<'a>,
    arm: usize,
}

impl Entry<'_> {
    /// A number without a unit.
    fn ideal(&self) -> Option<Cell> {
        self.row.ideal(self.arm).map(|ideal| Cell::Number(ideal.mean()))
    }

    fn best_fixed(&self) -> usize {
        self.row.best_fixed_within(self.arm)
    }

    fn neighbour(&self, time: NeighbourTime) -> Option<Cell> {
        self.row.case.beside?;
        Some(Cell::Number(self.row.neighbour_times(self.arm, time).mean()))
    }

    /// A figure of the change of the 95th percentile of the neighbour's times.
    fn slowing(&self, figure: fn([f64; 2]) -> f64) -> Option<Cell> {
        let change = self.row.neighbour(self.arm, |times| times.p95);
        change.map(|change| Cell::Number(figure(change.interval())))
    }

    fn name(&self, arm: usize) -> &str {
        self.row.arms().get(arm).map_or("none", |arm| name(&arm.setup))
    }
}

/// A row for each case and policy, none first. Scores are the mean share of late messages, 0 to 1, or the mean
/// time of files in seconds; changes are in percentage points or in percent of the time without redundancy.
pub fn table(rows: &[Lineup<'_>], alone: &Alone) -> Table {
    let entries =
        rows.iter().flat_map(|row| (0..row.arms().len()).map(move |arm| Entry { row, arm }));
    let change = |entry: &Entry<'_>| entry.row.distance(entry.arm, Reference::None);
    let number = Cell::Number;
    let columns: [Column<'_, Entry<'_>>; 30] = [
        ("case", &|e| e.row.case.number.into()),
        ("seed", &|_| alone.seed.into()),
        ("seeds", &|_| alone.seeds.into()),
        ("policy", &|e| e.name(e.arm).into()),
        ("application", &|e| e.row.case.app.kind().into()),
        ("score_unit", &|e| if e.row.is_feed() { "late" } else { "s" }.into()),
        ("score", &|e| number(e.row.score(e.arm).mean())),
        ("none", &|e| number(e.row.score(0).mean())),
        ("change", &|e| number(change(e).mean())),
        ("change_low", &|e| number(change(e).interval()[0])),
        ("change_high", &|e| number(change(e).interval()[1])),
        ("harmed", &|e| u64::from(e.row.is_harmed(e.arm)).into()),
        ("ideal", &|e| e.ideal().into()),
        ("ideal_counts", &|e| u64::from(e.row.has_ideal(e.arm)).into()),
        ("best_fixed", &|e| e.name(e.best_fixed()).into()),
        ("best_fixed_score", &|e| number(e.row.score(e.best_fixed()).mean())),
        ("foreseen_score", &|e| number(e.row.foreseen(e.arm).mean())),
        ("bytes", &|e| number(e.row.wire(e.arm))),
        ("repairs", &|e| number(e.row.figures(e.arm, |run| run.repairs).mean())),
        ("dropped", &|e| number(e.row.figures(e.arm, |run| run.dropped).mean())),
        ("lost", &|e| number(e.row.figures(e.arm, |run| run.lost).mean())),
        ("neighbour", &|e| e.row.case.beside.map(|beside| beside.name()).into()),
        ("neighbour_mean_s", &|e| e.neighbour(|times| times.mean).into()),
        ("neighbour_p95_s", &|e| e.neighbour(|times| times.p95).into()),
        ("slowing_low", &|e| e.slowing(|[low, _]| low).into()),
        ("slowing_high", &|e| e.slowing(|[_, high]| high).into()),
        ("slowed", &|e| u64::from(e.row.is_slowed(e.arm)).into()),
        ("controller", &|e| e.row.case.congestion.to_string().into()),
        ("alone", &|e| alone.command(e.row.case.number).into()),
        ("line", &|e| e.row.case.to_string().into()),
    ];
    Table::of("Each case with each policy", entries, &columns)
}
