//! Tables in Markdown.

pub mod json;
mod machine;

use crate::{
    args::Section,
    cases::{Case, Loss, Operation},
    limits,
    measure::{Kind, Metric},
    results::{Results, Row, Table, Time},
    targets::{self, Criterion, Finding},
};
use std::collections::BTreeSet;

/// Prints everything.
pub fn print(results: &Results, criteria: &[Criterion], sections: &[Section]) {
    println!("# Erasure codes\n");
    for line in machine::describe() {
        println!("* {line}");
    }
    println!("* {} rounds; best of all / median of the rounds' medians", results.rounds);
    print_limits(results);
    if !criteria.is_empty() {
        let findings: Vec<_> = criteria.iter().map(|c| targets::judge(results, c)).collect();
        print_targets(&findings);
        print_races(results, criteria);
    }
    if sections.contains(&Section::Paper) {
        print_paper(results);
    }
    if sections.contains(&Section::Tiers) {
        print_tiers(results);
    }
}

/// 1e9 bytes per second, best and median.
fn rate(bytes: f64, time: Time) -> String {
    format!("{:.1} / {:.1}", bytes / time.best / 1e9, bytes / time.median / 1e9)
}

/// Microseconds, best and median.
fn micros(time: Time) -> String {
    let show = |seconds: f64| {
        let micros = seconds * 1e6;
        let decimals = if micros < 10.0 { 2 } else { usize::from(micros < 1000.0) };
        format!("{micros:.decimals$}")
    };
    format!("{} / {}", show(time.best), show(time.median))
}

fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".into())
}

fn print_limits(results: &Results) {
    println!("\n## Limits of the machine\n");
    println!("| limit | GB/s |\n|---|---|");
    let rows = results.table(Case::Limits).map(|table| &table.rows[..]).unwrap_or_default();
    for row in rows.iter().filter(|row| row.id != limits::CLOCK) {
        println!("| {} | {} |", row.label, or_dash(row.total.map(|time| rate(row.bytes, time))));
    }
    if let Some(row) = results.limit(limits::CLOCK) {
        let ghz = or_dash(row.total.map(|time| rate(row.bytes, time)));
        println!("\nGHz of the {}: {ghz}.", row.label);
    }
}

fn print_targets(findings: &[Finding]) {
    println!("\n## Targets\n");
    println!("A verdict in parentheses is information and does not decide.\n");
    println!("| # | case | ours | against | seen | wanted | |\n|---|---|---|---|---|---|---|");
    for finding in findings {
        let figure = |named: &targets::Named| match named.bytes {
            Some(bytes) => format!("{} us = {} GB/s", micros(named.time), rate(bytes, named.time)),
            None => format!("{} us", micros(named.time)),
        };
        let ours = finding.ours.as_ref().map(figure);
        // Limits move other amounts of bytes, so their times say nothing here.
        let against = finding.against.as_ref().map(|named| match named.bytes {
            Some(bytes) => format!("{}: {} GB/s", named.label, rate(bytes, named.time)),
            None => format!("{}: {} us", named.label, micros(named.time)),
        });
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            finding.target,
            finding.what,
            or_dash(ours),
            or_dash(against),
            finding.seen,
            finding.wanted,
            finding.verdict,
        );
    }
}

fn print_races(results: &Results, criteria: &[Criterion]) {
    println!("\n## Everybody's figures");
    let cases: BTreeSet<Case> = criteria.iter().flat_map(Criterion::cases).collect();
    for table in cases.into_iter().filter_map(|case| results.table(case)) {
        println!("\n### {}\n", capitalized(&table.title));
        if table.rows.is_empty() {
            println!("Nothing here runs on this CPU.");
        } else if table.last_limit.is_some() {
            print_decode(results, table);
        } else {
            print_race(results, table);
        }
    }
}

fn capitalized(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// The entry that others are compared with: our first one.
fn reference(table: &Table) -> Option<&Row> {
    table.rows.iter().find(|row| row.kind == Kind::Ours)
}

/// The name of an entry, in bold if it is ours.
fn label(row: &Row) -> String {
    match row.kind {
        Kind::Ours => format!("**{}**", row.label),
        _ => row.label.clone(),
    }
}

/// How many times the time of our first entry that of another is.
fn ratio(table: &Table, row: &Row, metric: Metric) -> Option<String> {
    let (ours, time) = (reference(table)?.time(metric)?, row.time(metric)?);
    Some(format!("{:.2} / {:.2}", time.best / ours.best, time.median / ours.median))
}

/// How much of the limit an entry reaches.
fn share(results: &Results, table: &Table, row: &Row, metric: Metric) -> Option<String> {
    let (limit, bytes) = table.limit_of(row, metric)?;
    let share = results.share(limit, bytes, row.time(metric)?)?;
    Some(format!("{:.0} %", share * 100.0))
}

/// What a limit is called.
fn limit_name<'r>(results: &'r Results, limit: Option<&str>) -> &'r str {
    limit
        .and_then(|id| results.limit(id))
        .map_or("the limit, which is not known here", |row| &row.label)
}

fn print_race(results: &Results, table: &Table) {
    println!("| | us | GB/s | time / ours | share of: {} |", limit_name(results, table.limit));
    println!("|---|---|---|---|---|");
    for row in &table.rows {
        println!(
            "| {} | {} | {} | {} | {} |",
            label(row),
            or_dash(row.total.map(micros)),
            or_dash(row.total.map(|time| rate(row.bytes, time))),
            or_dash(ratio(table, row, Metric::Total)),
            or_dash(share(results, table, row, Metric::Total)),
        );
    }
}

fn print_decode(results: &Results, table: &Table) {
    println!(
        "| | total CPU, us | total / ours | share of: {} | last, us | last / ours | share of: {} |",
        limit_name(results, table.limit),
        limit_name(results, table.last_limit),
    );
    println!("|---|---|---|---|---|---|---|");
    for row in &table.rows {
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            label(row),
            or_dash(row.total.map(micros)),
            or_dash(ratio(table, row, Metric::Total)),
            or_dash(share(results, table, row, Metric::Total)),
            or_dash(row.last.map(micros)),
            or_dash(ratio(table, row, Metric::Last)),
            or_dash(share(results, table, row, Metric::Last)),
        );
    }
}

fn print_paper(results: &Results) {
    println!("\n## The paper's own cases\n");
    println!(
        "One repair symbol by `Encoder::repair`, coefficients included, symbols of 1500 bytes.\n"
    );
    println!("| window | us | GB/s |\n|---|---|---|");
    for n in targets::WINDOWS {
        let row = results.table(Case::Generate { n }).and_then(|table| table.row("encoder"));
        let time = row.and_then(|row| row.total);
        let bytes = row.map_or(0.0, |row| row.bytes);
        let rate = or_dash(time.map(|time| rate(bytes, time)));
        println!("| {n} | {} | {rate} |", or_dash(time.map(micros)));
    }
    println!("\nOne symbol in twenty lost, as many repair symbols over the whole window.");
    println!("CPU time of all repair symbols, and time after the last one, in us.\n");
    print!("| window | decoder |");
    for loss in Loss::ALL {
        print!(" {0}, total | {0}, last |", loss.name());
    }
    println!("\n|---|---|{}", "---|---|".repeat(Loss::ALL.len()));
    for n in targets::WINDOWS {
        let tables = Loss::ALL.map(|loss| results.table(Case::Decode { n, loss }));
        let rows = tables[0].map(|table| &table.rows[..]).unwrap_or_default();
        for ours in rows.iter().filter(|row| row.kind == Kind::Ours) {
            print!("| {n} | {} |", ours.label);
            for table in tables {
                let row = table.and_then(|table| table.row(ours.id));
                for metric in [Metric::Total, Metric::Last] {
                    let time = row.and_then(|row| row.time(metric));
                    print!(" {} |", or_dash(time.map(micros)));
                }
            }
            println!();
        }
    }
}

fn print_tiers(results: &Results) {
    println!("\n## Kernels, GB/s\n");
    let tables = Operation::ALL.map(|operation| results.table(Case::Tiers(operation)));
    print!("| kernel |");
    for operation in Operation::ALL {
        print!(" {} |", operation.name());
    }
    println!("\n|---|{}", "---|".repeat(Operation::ALL.len()));
    let rows = tables[0].map(|table| &table.rows[..]).unwrap_or_default();
    for kernel in rows {
        print!("| {} |", kernel.label);
        for table in tables {
            let row = table.and_then(|table| table.row(kernel.id));
            let rate = row.and_then(|row| Some(rate(row.bytes, row.total?)));
            print!(" {} |", or_dash(rate));
        }
        println!();
    }
}
