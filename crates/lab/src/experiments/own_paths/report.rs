//! The report: what each policy makes of each application.

use sutura_analysis::interval::Estimate;

use crate::comparison::mean_within;
use crate::experiments::auto_zoo::{Lineup, Outcome, Reference, interval, policy_name};
use crate::own::OwnPath;
use crate::report::{Cell, Report, Table, report_of};

/// The report on these paths and applications.
pub fn of(paths: &[OwnPath], rows: &[Lineup<'_>]) -> Report {
    report_of("Your own paths", &TEXT, [path_table(paths), policy_table(paths, rows)], [])
}

fn path_table(paths: &[OwnPath]) -> Table {
    let all = (1usize..).zip(paths);
    Table::of(
        "Paths",
        all,
        &[
            ("path", &|(number, _)| (*number).into()),
            ("link", &|(_, path)| path.text.as_str().into()),
        ],
    )
}

fn policy_table(paths: &[OwnPath], rows: &[Lineup<'_>]) -> Table {
    let header = [
        "path",
        "application",
        "policy",
        "late or time",
        "than none",
        "verdict",
        "ideal",
        "bytes",
        "repairs",
        "dropped",
        "lost",
    ];
    let mut table = Table::new("Policies", header);
    for row in rows {
        let path =
            paths.iter().position(|path| path.down == row.case.down && path.up == row.case.up);
        for (arm, runs) in row.arms().iter().enumerate() {
            let mean = |figure: fn(&Outcome) -> f64| row.figures(arm, figure).mean();
            table.row([
                path.map(|path| path + 1).into(),
                row.case.app.to_string().into(),
                policy_name(&runs.setup).into(),
                score(row, &row.score(arm).0),
                change(row, arm),
                verdict(row, arm).into(),
                row.ideal(arm).map(|ideal| score(row, &ideal.0)).into(),
                Cell::Number(mean(|run| run.wire)),
                Cell::Share(mean(|run| run.repairs)),
                Cell::Share(mean(|run| run.dropped)),
                Cell::Share(mean(|run| run.lost)),
            ]);
        }
    }
    table
}

/// The share of late messages, or the mean time of a file.
fn score(row: &Lineup<'_>, scores: &[f64]) -> Cell {
    if row.is_feed() {
        return Cell::ShareWithin(Estimate::of_mean_share(scores));
    }
    Cell::MillisWithin(mean_within(scores.iter().map(|seconds| 1000.0 * seconds)))
}

fn change(row: &Lineup<'_>, arm: usize) -> Cell {
    if arm == 0 {
        return Cell::none();
    }
    interval(&row.distance(arm, Reference::None), row.unit()).into()
}

/// Whether a policy is worth it, as far as these runs can tell.
fn verdict(row: &Lineup<'_>, arm: usize) -> &'static str {
    if arm == 0 {
        return "-";
    }
    let [low, high] = row.distance(arm, Reference::None).interval();
    match row.harm() {
        harm if low > harm => "worse",
        harm if high < -harm => "better",
        harm if -harm <= low && high <= harm => "level",
        _ => "not certain",
    }
}

const TEXT: [&str; 3] = [
    "Each application runs over each path on connections of its own, with BBR, without redundancy and with each \
     policy, with the same seeds. `late or time` is the share of messages that are late, or the mean time of a file: \
     a message is late after its deadline (`within`), or 10 ms later than a path without losses and queues brings it.",
    "`than none` is the difference to no redundancy in percentage points of messages, or in percent of the time, with \
     the interval that holds nine times in ten; less than 0 is better. A policy is better or worse if the whole \
     interval is beyond 0.1 percentage points or 2 %, level if all of it is within, and otherwise more seeds are needed \
     (`--seeds`). `ideal` is what a perfect code makes of the repair symbols of the policy, at the times at which it \
     sent them.",
    "`bytes` are those that the server sent for each of the application, `repairs` repair symbols for each packet. \
     `dropped` packets met a full queue, `lost` ones were lost otherwise.",
];
