//! What the first policy does, by the kind of the case.

use super::super::apps::Beside;
use super::super::compare::{BySeed, Lineup, Reference, Spread};
use super::super::paths::{Course, Kinds, Lossy, QueueKind};
use super::share_of;
use crate::report::{Cell, Table};

/// The cases of a table: a name, and whether a case is among them.
type Group = (String, Box<dyn Fn(&Lineup<'_>) -> bool>);

/// Whether a case was drawn from such kinds.
fn is(row: &Lineup<'_>, of: impl Fn(Kinds) -> bool) -> bool {
    row.case.kinds.is_some_and(of)
}

/// All kinds of cases that the generator makes.
pub fn groups() -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for kind in QueueKind::ALL {
        let name = format!("queue: {}", kind.name());
        groups.push((name, Box::new(move |row| is(row, |of| of.bottleneck == kind))));
    }
    for kind in Lossy::ALL {
        let name = format!("loss: {}", kind.name());
        groups.push((name, Box::new(move |row| is(row, |of| of.lossy == kind))));
    }
    for kind in Course::ALL {
        let name = format!("changes: {}", kind.name());
        groups.push((name, Box::new(move |row| is(row, |of| of.course == kind))));
    }
    groups.push(("jitter or reordering".to_owned(), Box::new(|row| is(row, |of| of.unsteady))));
    groups.push(("slower way back".to_owned(), Box::new(|row| is(row, |of| of.asymmetric))));
    for kind in ["messages", "messages in time", "datagrams", "files"] {
        let name = format!("application: {kind}");
        groups.push((name, Box::new(move |row| row.case.app.kind() == kind)));
    }
    groups.push(("beside: nobody".to_owned(), Box::new(|row| row.case.beside.is_none())));
    for kind in Beside::ALL {
        let name = format!("beside: {}", kind.name());
        groups.push((name, Box::new(move |row| row.case.beside == Some(kind))));
    }
    for kind in [sutura_proto::Algorithm::BBR, sutura_proto::Algorithm::CUBIC] {
        let name = format!("controller: {kind}");
        groups.push((name, Box::new(move |row| row.case.congestion == kind)));
    }
    groups
}

/// What the first policy does, by the kind of the case.
pub fn table(rows: &[Lineup<'_>], policy: &str) -> Table {
    let header = [
        "cases",
        "feeds",
        "late, mean",
        "p90",
        "harmed",
        "files",
        "time, mean",
        "p90",
        "harmed",
        "neighbours' p95, mean",
    ];
    let mut table = Table::new(format!("`{policy}` against none, by kind"), header);
    for (name, holds) in groups() {
        let mut cells = vec![Cell::from(name)];
        let own: Vec<Lineup<'_>> = rows.iter().filter(|row| holds(row)).copied().collect();
        for feed in [true, false] {
            let own: Vec<Lineup<'_>> =
                own.iter().filter(|row| row.is_feed() == feed).copied().collect();
            let spread = Spread::of(own.iter().map(|row| row.distance(1, Reference::None)));
            cells.push((own.len() as u64).into());
            if own.is_empty() {
                cells.extend([Cell::none(), Cell::none(), Cell::none()]);
                continue;
            }
            cells.push(format!("{:+.3}", spread.mean()).into());
            cells.push(spread.quantile(0.9).into());
            cells.push(share_of(&own, |row| row.is_harmed(1)));
        }
        let changes: Vec<BySeed> =
            own.iter().filter_map(|row| row.neighbour(1, |times| times.p95)).collect();
        let spread = Spread::of(changes);
        let change = (spread.len() > 0).then(|| format!("{:+.2} %", spread.mean()));
        cells.push(change.into());
        table.row(cells);
    }
    table
}
