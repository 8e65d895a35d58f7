//! The tables of the zoo.

use super::apps::{Beside, ZooApp};
use super::compare::{BySeed, HARM, Lineup, Reference, Spread};
use super::paths::{Course, Lossy, QueueKind};
use crate::report::{Cell, Report, Table, report_of};

/// The cases of a table: a name, and whether a case is among them.
type Group = (String, Box<dyn Fn(&Lineup<'_>) -> bool>);

/// The report on one case.
pub fn of_one(rows: &[Lineup<'_>]) -> Report {
    let text: Vec<String> = rows.iter().map(|row| format!("`{}`", row.case)).collect();
    let tables: Vec<Table> = rows.iter().map(one_table).collect();
    report_of("A case of the zoo", &text, tables, [])
}

/// The report on all cases. The details are of the first policy.
pub fn of_all(rows: &[Lineup<'_>], policies: &[String], seeds: u64) -> Report {
    let first = policies.first().map_or("", String::as_str);
    let mut tables = Vec::new();
    for feed in [true, false] {
        for plain in [true, false] {
            let of = |row: &&Lineup<'_>| row.is_feed() == feed && row.case.is_plain() == plain;
            let own: Vec<Lineup<'_>> = rows.iter().filter(of).copied().collect();
            if !own.is_empty() {
                tables.push(distances(&own, policies, (feed, plain)));
            }
        }
    }
    tables.push(neighbours(rows, policies));
    tables.push(by_kind(rows, first));
    tables.extend(harmed(rows, first));
    tables.push(behind(rows, first));
    report_of("Redundancy on paths that nobody tuned it for", &text(rows, seeds), tables, [])
}

fn name(arm: &super::ZooArm) -> &str {
    arm.policy.as_deref().unwrap_or("none")
}

fn one_table(row: &Lineup<'_>) -> Table {
    let header =
        ["policy", "score", "by seed", "ideal", "bytes", "repairs", "dropped", "lost", "neighbour"];
    let mut table = Table::new(format!("Case {}", row.case.number), header);
    for (arm, runs) in row.arms().iter().enumerate() {
        let score = |value: f64| {
            let shown = if row.is_feed() { 100.0 * value } else { 1000.0 * value };
            format!("{shown:.2} {}", if row.is_feed() { "%" } else { "ms" })
        };
        let own = row.figures(arm, |run| run.score);
        let all: Vec<String> = own.0.iter().map(|value| score(*value)).collect();
        let ideal = row.figures(arm, |run| run.ideal.unwrap_or(f64::NAN)).mean();
        let mean = |figure: fn(&super::Outcome) -> f64| row.figures(arm, figure).mean();
        table.row([
            Cell::from(name(&runs.setup)),
            score(own.mean()).into(),
            all.join(", ").into(),
            if ideal.is_nan() { Cell::none() } else { score(ideal).into() },
            Cell::Number(mean(|run| run.wire)),
            Cell::Share(mean(|run| run.repairs)),
            Cell::Share(mean(|run| run.dropped)),
            Cell::Share(mean(|run| run.lost)),
            row.neighbour(arm).map_or(Cell::none(), |change| interval(&change, "%").into()),
        ]);
    }
    table
}

fn interval(change: &BySeed, unit: &str) -> String {
    let [low, high] = change.interval();
    format!("{:+.2} {unit} ({low:+.2}..{high:+.2})", change.mean())
}

fn share_of(rows: &[Lineup<'_>], holds: impl Fn(&Lineup<'_>) -> bool) -> Cell {
    Cell::Share(crate::comparison::share(rows, holds))
}

/// How far each policy is from each reference.
fn distances(rows: &[Lineup<'_>], policies: &[String], (feed, plain): (bool, bool)) -> Table {
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
    let names = std::iter::once("none").chain(policies.iter().map(String::as_str));
    for (arm, policy) in names.enumerate() {
        let spread = |reference| Spread::of(rows.iter().map(|row| row.distance(arm, reference)));
        let [ideal, fixed, none] =
            [Reference::Ideal, Reference::Fixed, Reference::None].map(spread);
        let figure = |figure: fn(&super::Outcome) -> f64| {
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

fn neighbours(rows: &[Lineup<'_>], policies: &[String]) -> Table {
    let header = ["policy", "paths", "p10", "p50", "p90", "worst", "slower", "faster"];
    let mut table = Table::new("The flow beside: how many percent longer it takes", header);
    for (arm, policy) in (1..).zip(policies) {
        let changes: Vec<BySeed> = rows.iter().filter_map(|row| row.neighbour(arm)).collect();
        let share = |holds: &dyn Fn([f64; 2]) -> bool| {
            Cell::Share(crate::comparison::share(&changes, |change| holds(change.interval())))
        };
        let ends = [share(&|[low, _]| low > HARM[1]), share(&|[_, high]| high < -HARM[1])];
        let spread = Spread::of(changes.iter().cloned());
        let mut cells = vec![Cell::from(policy.as_str()), (spread.len() as u64).into()];
        cells.extend([0.1, 0.5, 0.9, 1.0].map(|q| Cell::from(spread.quantile(q))));
        cells.extend(ends);
        table.row(cells);
    }
    table
}

/// All kinds of cases that the generator makes.
pub fn groups() -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for kind in QueueKind::ALL {
        let name = format!("queue: {}", kind.name());
        groups.push((name, Box::new(move |row| row.case.kinds.bottleneck == kind)));
    }
    for kind in Lossy::ALL {
        let name = format!("loss: {}", kind.name());
        groups.push((name, Box::new(move |row| row.case.kinds.lossy == kind)));
    }
    for kind in Course::ALL {
        let name = format!("changes: {}", kind.name());
        groups.push((name, Box::new(move |row| row.case.kinds.course == kind)));
    }
    groups.push(("jitter or reordering".to_owned(), Box::new(|row| row.case.kinds.unsteady)));
    groups.push(("slower way back".to_owned(), Box::new(|row| row.case.kinds.asymmetric)));
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
fn by_kind(rows: &[Lineup<'_>], policy: &str) -> Table {
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
        "neighbours, mean",
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
        let changes: Vec<BySeed> = own.iter().filter_map(|row| row.neighbour(1)).collect();
        let spread = Spread::of(changes);
        let change = (spread.len() > 0).then(|| format!("{:+.2} %", spread.mean()));
        cells.push(change.into());
        table.row(cells);
    }
    table
}

/// Each case that the first policy harms, and the worst of those where that may be chance.
fn harmed(rows: &[Lineup<'_>], policy: &str) -> [Table; 2] {
    const MOST: usize = 10;
    let mut all: Vec<(f64, &Lineup<'_>)> = rows
        .iter()
        .filter(|row| row.seems_harmed(1))
        .map(|row| (row.distance(1, Reference::None).mean() / row.harm(), row))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let sorted = all.into_iter().map(|(_, row)| row);
    let (certain, perhaps): (Vec<_>, Vec<_>) = sorted.partition(|row| row.is_harmed(1));
    let title = format!(
        "The {} of {} cases where `{policy}` seems to be worst against none, and it may be chance",
        MOST.min(perhaps.len()),
        perhaps.len()
    );
    [
        cases(
            format!("Every case where `{policy}` is worse than none"),
            certain.into_iter(),
            Reference::None,
        ),
        cases(title, perhaps.into_iter().take(MOST), Reference::None),
    ]
}

/// The cases where the first policy is farthest behind the best fixed policy that sends no more.
fn behind(rows: &[Lineup<'_>], policy: &str) -> Table {
    const MOST: usize = 20;
    let mut all: Vec<(f64, &Lineup<'_>)> = rows
        .iter()
        .map(|row| (row.distance(1, Reference::Fixed).interval()[0] / row.harm(), row))
        .filter(|(distance, _)| *distance > 1.0)
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let title = format!(
        "The {} of {} cases where `{policy}` is farthest behind fixed redundancy of no more bytes",
        MOST.min(all.len()),
        all.len()
    );
    cases(title, all.into_iter().map(|(_, row)| row).take(MOST), Reference::Fixed)
}

fn cases<'a>(
    title: String,
    rows: impl Iterator<Item = &'a Lineup<'a>>,
    reference: Reference,
) -> Table {
    let header = ["case", "distance", "none", "policy", "best fixed", "bytes", "dropped", "line"];
    let mut table = Table::new(title, header);
    for row in rows {
        let unit = if row.is_feed() { "pp" } else { "%" };
        let score = |arm| {
            let score = row.figures(arm, |run| run.score).mean();
            if row.is_feed() { Cell::Share(score) } else { Cell::Millis(1000.0 * score) }
        };
        let bytes = |arm| row.figures(arm, |run| run.wire).mean();
        let best = row.best_fixed(if reference == Reference::Fixed {
            1.005 * bytes(1)
        } else {
            f64::INFINITY
        });
        let best = row.arms().get(best).map_or("none", |arm| name(&arm.setup));
        table.row([
            Cell::from(row.case.number),
            interval(&row.distance(1, reference), unit).into(),
            score(0),
            score(1),
            best.into(),
            format!("{:.3} -> {:.3}", bytes(0), bytes(1)).into(),
            Cell::Share(row.figures(1, |run| run.dropped).mean()),
            format!("`{}`", row.case).into(),
        ]);
    }
    table
}

fn text(rows: &[Lineup<'_>], seeds: u64) -> Vec<String> {
    let feeds = rows.iter().filter(|row| matches!(row.case.app, ZooApp::Feed(_))).count();
    let harmed = rows.iter().filter(|row| row.is_harmed(1)).count();
    vec![
        format!(
            "{} random cases: {feeds} feeds of messages or datagrams and {} series of files, each on a fresh \
             connection to the same host, on random paths of 1 to 200 Mbit/s and 2 to 800 ms, a quarter of \
             them beside another flow. Each policy runs with the same {seeds} seeds as none. The first \
             policy harms {harmed} cases. `--only K` runs case K alone.",
            rows.len(),
            rows.len() - feeds,
        ),
        "A message is late after its deadline, or 10 ms later than a path without losses and queues brings it. \
         Distances are in percentage points of late messages, or in percent of the mean time of files \
         without redundancy; less than 0 is better. In brackets is the same quantile of the single seeds, \
         the smallest and the largest."
            .to_owned(),
        "*Ideal* is what a perfect code could have made of the repair symbols at the times at which the policy \
         sent them, with the same losses; *fixed* is the best fixed policy, or none, that sends no more bytes, \
         and *any fixed* the best of all, which stands for the ideal where other packets would have met \
         other losses. A case is *harmed* if it is worse than none by more than 0.1 percentage points or 2 % \
         of the time at the lower end of the interval that holds nine times in ten, and *perhaps* if the mean is \
         so much worse. *None* is the difference to no redundancy, *bytes* are those that the server sent for each \
         of the application."
            .to_owned(),
    ]
}
