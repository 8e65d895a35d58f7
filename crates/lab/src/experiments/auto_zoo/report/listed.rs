//! The cases that are listed one by one: where the first policy does harm, or could do better.

use super::super::compare::{Lineup, Reference};
use super::super::neighbour::NeighbourTime;
use super::{Alone, interval, name};
use crate::report::{Cell, Table};

/// Each case that the first policy harms, with the distances of further seeds, and the worst of those where that may be
/// chance.
pub fn harmed(
    rows: &[Lineup<'_>],
    further: &[Lineup<'_>],
    policy: &str,
    alone: &Alone,
) -> [Table; 2] {
    const MOST: usize = 10;
    let worst = |row: &Lineup<'_>| row.distance(1, Reference::None).mean() / row.harm();
    let all = sorted(rows.iter().filter(|row| row.seems_harmed(1)), worst);
    let (certain, perhaps): (Vec<_>, Vec<_>) = all.into_iter().partition(|row| row.is_harmed(1));
    let title = format!(
        "The {} of {} cases where `{policy}` seems to be worst against none, and it may be chance",
        MOST.min(perhaps.len()),
        perhaps.len()
    );
    let certainly = format!("Every case where `{policy}` is worse than none");
    let perhaps = perhaps.into_iter().take(MOST);
    [
        cases(certainly, certain.into_iter(), further, Reference::None, alone),
        cases(title, perhaps, &[], Reference::None, alone),
    ]
}

/// The cases where the first policy is farthest behind the best fixed policy that sends no more.
pub fn behind(rows: &[Lineup<'_>], policy: &str, alone: &Alone) -> Table {
    const MOST: usize = 20;
    let distance = |row: &Lineup<'_>| row.distance(1, Reference::Fixed).interval()[0] / row.harm();
    let all = sorted(rows.iter().filter(|row| distance(row) > 1.0), distance);
    let title = format!(
        "The {} of {} cases where `{policy}` is farthest behind fixed redundancy of no more bytes",
        MOST.min(all.len()),
        all.len()
    );
    cases(title, all.into_iter().take(MOST), &[], Reference::Fixed, alone)
}

/// The cases where the first policy is the largest multiple of the ideal.
pub fn far_from_ideal(rows: &[Lineup<'_>], policy: &str, alone: &Alone) -> Table {
    const MOST: usize = 10;
    let ratio = |row: &Lineup<'_>| row.ratio(1, Reference::Ideal);
    let all = sorted(rows.iter().filter(|row| row.has_ideal(1)), ratio);
    let title = format!(
        "The {} of {} cases where `{policy}` is the largest multiple of the ideal",
        MOST.min(all.len()),
        all.len()
    );
    cases(title, all.into_iter().take(MOST), &[], Reference::Ideal, alone)
}

/// Each case where the first policy slows down the flow beside it.
pub fn slowed(rows: &[Lineup<'_>], further: &[Lineup<'_>], policy: &str, alone: &Alone) -> Table {
    let p95: NeighbourTime = |times| times.p95;
    let mean: NeighbourTime = |times| times.mean;
    let change = |row: &Lineup<'_>, time| row.neighbour(1, time).unwrap_or_default();
    let all = sorted(rows.iter().filter(|row| row.is_slowed(1)), |row| change(row, p95).mean());
    let beside = rows.iter().filter(|row| row.case.beside.is_some()).count();
    let title = format!(
        "Every neighbour that `{policy}` slows down, {} of {beside}: the 95th percentile of its times",
        all.len()
    );
    let header = [
        "case",
        "neighbour",
        "longer",
        "further seeds",
        "none",
        "policy",
        "mean longer",
        "own distance",
        "bytes",
        "dropped",
        "alone",
        "line",
    ];
    let mut table = Table::new(title, header);
    for row in all {
        let time = |arm| Cell::Millis(1000.0 * row.neighbour_times(arm, p95).mean());
        table.row([
            Cell::from(row.case.number),
            row.case.beside.map(|beside| beside.name()).into(),
            interval(&change(row, p95), "%").into(),
            of_case(further, row).map(|row| interval(&change(row, p95), "%")).into(),
            time(0),
            time(1),
            interval(&change(row, mean), "%").into(),
            interval(&row.distance(1, Reference::None), row.unit()).into(),
            bytes(row),
            Cell::Share(row.figures(1, |run| run.dropped).mean()),
            format!("`{}`", alone.command(row.case.number)).into(),
            format!("`{}`", row.case).into(),
        ]);
    }
    table
}

/// The rows with the largest figure first.
fn sorted<'a>(
    rows: impl Iterator<Item = &'a Lineup<'a>>,
    figure: impl Fn(&Lineup<'_>) -> f64,
) -> Vec<&'a Lineup<'a>> {
    let mut all: Vec<&Lineup<'_>> = rows.collect();
    all.sort_by(|a, b| figure(b).total_cmp(&figure(a)));
    all
}

/// The same case with further seeds.
fn of_case<'a>(further: &'a [Lineup<'a>], row: &Lineup<'_>) -> Option<&'a Lineup<'a>> {
    further.iter().find(|other| other.case.number == row.case.number)
}

fn bytes(row: &Lineup<'_>) -> Cell {
    format!("{:.3} -> {:.3}", row.wire(0), row.wire(1)).into()
}

fn cases<'a>(
    title: String,
    rows: impl Iterator<Item = &'a Lineup<'a>>,
    further: &[Lineup<'_>],
    reference: Reference,
    alone: &Alone,
) -> Table {
    let header = [
        "case",
        "distance",
        "further seeds",
        "none",
        "policy",
        "ideal",
        "best fixed",
        "bytes",
        "dropped",
        "alone",
        "line",
    ];
    let mut table = Table::new(title, header);
    for row in rows {
        let score = |score: f64| {
            if row.is_feed() { Cell::Share(score) } else { Cell::Millis(1000.0 * score) }
        };
        let distance = |row: &Lineup<'_>| interval(&row.distance(1, reference), row.unit());
        let best = match reference {
            Reference::Fixed | Reference::Foreseen => row.best_fixed_within(1),
            Reference::None | Reference::Ideal => row.best_fixed(f64::INFINITY),
        };
        table.row([
            Cell::from(row.case.number),
            distance(row).into(),
            of_case(further, row).map(distance).into(),
            score(row.score(0).mean()),
            score(row.score(1).mean()),
            row.ideal(1).map(|ideal| score(ideal.mean())).into(),
            row.arms().get(best).map_or("none", |arm| name(&arm.setup)).into(),
            bytes(row),
            Cell::Share(row.figures(1, |run| run.dropped).mean()),
            format!("`{}`", alone.command(row.case.number)).into(),
            format!("`{}`", row.case).into(),
        ]);
    }
    table
}
