//! The matrix as a page.

use std::path::Path;

use serde_json::json;
use sutura_analysis::report::{Origin, Place, Report};
use sutura_analysis::statistics::Spread;
use sutura_analysis::table::{Cell as TableCell, Table};

use crate::Error;
use crate::cell::{Cell, Outcome};
use crate::known;

const INTRODUCTION: &str = "\
The cases of the [QUIC interop runner](https://github.com/quic-interop/quic-interop-runner), between processes: \
[interop/README.md](../../interop/README.md). The network is a relay: 10 Mbit/s, 15 ms each way, a queue of 25 \
packets, unless the case changes that. A case passes if every file arrived as it was, and what the case is about \
was seen to happen: on the path, in our qlog, or in what our end says of its connections.";

const LEGEND: &str = "\
`client` and `server` say what the peer is; the other end is Sutura. `-`: the stack lacks the feature, or its API \
does not offer it. A failure with a number is the peer's, for the reason below; a failure without one would be ours.";

/// The reasons of the failures that are the peer's fault, each once, in the order of their numbers.
fn reasons(cells: &[Cell], outcomes: &[Outcome]) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    let failed = cells.iter().zip(outcomes).filter(|(_, outcome)| outcome.is_failure());
    for known in failed.filter_map(|(cell, _)| known::find(cell)) {
        if !reasons.contains(&known.why) {
            reasons.push(known.why);
        }
    }
    reasons
}

/// The text of a cell, where `reasons` numbers the failures that are the peer's fault.
fn verdict(cell: &Cell, outcome: &Outcome, reasons: &[&str]) -> String {
    match outcome {
        Outcome::Passed(rates) if rates.is_empty() => "ok".to_owned(),
        Outcome::Passed(rates) => {
            let rates = rates.iter().map(|rate| rate / 1e6);
            Spread::of(rates).map_or_else(|| "ok".to_owned(), |spread| format!("{spread:.2}"))
        }
        Outcome::Unsupported => "-".to_owned(),
        Outcome::Failed(_) => {
            let known = known::find(cell);
            let number = known.and_then(|known| reasons.iter().position(|why| *why == known.why));
            number.map_or_else(|| "FAILS".to_owned(), |number| format!("fails [{}]", number + 1))
        }
    }
}

/// Whether all failures are known failures.
fn all_well(cells: &[Cell], outcomes: &[Outcome]) -> bool {
    let mut failed = cells.iter().zip(outcomes).filter(|(_, outcome)| outcome.is_failure());
    failed.all(|(cell, _)| known::find(cell).is_some())
}

/// The columns: each pair of stacks, in the order of the cells.
fn columns(cells: &[Cell]) -> Vec<(String, String)> {
    let mut columns = Vec::new();
    for cell in cells {
        let pair = (cell.client.clone(), cell.server.clone());
        if !columns.contains(&pair) {
            columns.push(pair);
        }
    }
    columns
}

/// The heading of a column.
fn heading((client, server): &(String, String)) -> String {
    match (&**client, &**server) {
        (client, server) if client == server => client.to_owned(),
        (crate::OURS, server) => format!("{server} server"),
        (client, _) => format!("{client} client"),
    }
}

fn table(caption: &str, cells: &[Cell], outcomes: &[Outcome], measured: bool) -> Table {
    let (columns, reasons) = (columns(cells), reasons(cells, outcomes));
    let headings = std::iter::once("case".to_owned()).chain(columns.iter().map(heading));
    let mut table = Table::new(caption, headings);
    let mut rows: Vec<&str> = cells.iter().map(|cell| cell.case.name).collect();
    rows.dedup();
    for case in rows {
        let mut row = vec![TableCell::from(case)];
        let mut wanted = false;
        for column in &columns {
            let found = cells.iter().zip(outcomes).find(|(cell, _)| {
                cell.case.name == case && (&cell.client, &cell.server) == (&column.0, &column.1)
            });
            wanted |= found.is_some_and(|(cell, _)| cell.case.is_measurement() == measured);
            let text = found.map(|(cell, outcome)| verdict(cell, outcome, &reasons));
            row.push(text.map_or_else(TableCell::none, TableCell::from));
        }
        if wanted {
            table.row(row);
        }
    }
    table
}

/// The failures that are not known failures.
fn surprises(cells: &[Cell], outcomes: &[Outcome]) -> Vec<String> {
    let unknown = cells.iter().zip(outcomes).filter(|(cell, _)| known::find(cell).is_none());
    let problems = unknown.filter_map(|(cell, outcome)| match outcome {
        Outcome::Failed(problem) => Some(format!("{}: {problem}", cell.name())),
        Outcome::Passed(_) | Outcome::Unsupported => None,
    });
    problems.collect()
}

fn report(cells: &[Cell], outcomes: &[Outcome], versions: &str) -> Report {
    let failures = surprises(cells, outcomes);
    let mut text = vec![INTRODUCTION.to_owned(), LEGEND.to_owned()];
    if !versions.is_empty() {
        text.push(format!("Versions: {versions}."));
    }
    let reasons = (1..).zip(reasons(cells, outcomes));
    text.extend(reasons.map(|(number, why)| format!("[{number}] {why}")));
    let mut tables = vec![table("Cases", cells, outcomes, false)];
    let rates = "Mbit/s of 10, median and range of the runs; beside a CUBIC flow of quinn in `crosstraffic`";
    tables.push(table(rates, cells, outcomes, true));
    tables.retain(|table| !table.rows.is_empty());
    let (name, title) = ("interop".to_owned(), "Interoperability".to_owned());
    Report { name, title, text, tables, failures, ..Report::default() }
}

/// Prints the outcomes, and writes the page. Returns whether all failures are known failures.
pub fn show(
    cells: &[Cell],
    outcomes: &[Outcome],
    versions: &str,
    page: Option<&Path>,
    as_json: bool,
) -> Result<bool, Error> {
    let report = report(cells, outcomes, versions);
    if let Some(page) = page {
        // The script's arguments are left out: they only name the places of the stacks and of the page.
        let origin =
            Origin { command: "interop/matrix.sh".to_owned(), place: Place::this_machine() };
        report.save(page, &origin)?;
    }
    if as_json {
        let line = |(cell, outcome): (&Cell, &Outcome)| {
            let (result, problem, rates) = match outcome {
                Outcome::Passed(rates) => ("passed", None, rates.clone()),
                Outcome::Unsupported => ("unsupported", None, Vec::new()),
                Outcome::Failed(problem) => ("failed", Some(problem), Vec::new()),
            };
            json!({
                "case": cell.case.name, "client": cell.client, "server": cell.server,
                "result": result, "problem": problem, "bits_per_second": rates,
                "known": known::find(cell).map(|known| known.why),
            })
        };
        let lines: Vec<_> = cells.iter().zip(outcomes).map(line).collect();
        println!("{}", serde_json::to_string_pretty(&lines)?);
    } else {
        print!("{}", report.to_markdown());
    }
    Ok(all_well(cells, outcomes))
}
