//! Tables in Markdown.

pub mod json;
mod machine;

use crate::{
    Error,
    args::Section,
    buffers::SYMBOL,
    cases::{Bout, Case, Loss, Operation},
    limits,
    measure::{Kind, Metric},
    memory::Pages,
    results::{self, Results, Row, Table, Time},
    targets::{self, Criterion, Finding},
};
use std::{
    collections::BTreeSet,
    fmt::{self, Write as _},
    io::{Write as _, stdout},
};

/// Prints everything.
pub fn print(results: &Results, criteria: &[Criterion], sections: &[Section]) -> Result<(), Error> {
    let mut out = String::new();
    write(&mut out, results, criteria, sections)?;
    stdout().lock().write_all(out.as_bytes())?;
    Ok(())
}

fn write(
    out: &mut String,
    results: &Results,
    criteria: &[Criterion],
    sections: &[Section],
) -> fmt::Result {
    writeln!(out, "# Erasure codes\n")?;
    for line in machine::describe() {
        writeln!(out, "* {line}")?;
    }
    writeln!(out, "* {} rounds; best of all / median of the rounds' medians", results.rounds)?;
    write_limits(out, results)?;
    if !criteria.is_empty() {
        let findings: Vec<_> = criteria.iter().map(|c| targets::judge(results, c)).collect();
        write_targets(out, &findings)?;
    }
    write_races(out, results, criteria, sections)?;
    if sections.contains(&Section::Paper) {
        write_paper(out, results)?;
    }
    if sections.contains(&Section::Tiers) {
        write_tiers(out, results)?;
    }
    Ok(())
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

/// Nanoseconds for each source symbol and destination, best and median.
fn nanos_a_symbol(bytes: f64, time: Time) -> String {
    let show = |seconds: f64| seconds * 1e9 * SYMBOL as f64 / bytes;
    format!("{:.1} / {:.1}", show(time.best), show(time.median))
}

fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".into())
}

fn write_limits(out: &mut String, results: &Results) -> fmt::Result {
    writeln!(out, "\n## Limits of the machine\n")?;
    writeln!(out, "| limit | GB/s | in huge pages |\n|---|---|---|")?;
    let [ordinary, huge] =
        [Pages::Ordinary, Pages::Huge].map(|pages| results.table(Case::Limits, pages));
    let show = |row: &Row| row.total.map(|time| rate(row.bytes, time));
    let rows = ordinary.map(|table| &table.rows[..]).unwrap_or_default();
    for row in rows.iter().filter(|row| row.id != limits::CLOCK) {
        let huge = huge.and_then(|table| table.row(row.id)).and_then(show);
        writeln!(out, "| {} | {} | {} |", row.label, or_dash(show(row)), or_dash(huge))?;
    }
    if let Some(row) = ordinary.and_then(|table| table.row(limits::CLOCK)) {
        writeln!(out, "\nGHz of the {}: {}.", row.label, or_dash(show(row)))?;
    }
    Ok(())
}

fn write_targets(out: &mut String, findings: &[Finding]) -> fmt::Result {
    writeln!(out, "\n## Targets\n")?;
    writeln!(
        out,
        "What is seen is best against best, which decides, and median against median. A verdict in \
         parentheses is information and does not decide.\n"
    )?;
    writeln!(
        out,
        "| # | case | ours | against | seen | wanted | |\n|---|---|---|---|---|---|---|"
    )?;
    for finding in findings {
        let figure = |named: &targets::Named| match named.bytes {
            // Limits move other amounts of bytes, so their times say nothing here.
            Some(bytes) if named.kind == Kind::Limit => format!("{} GB/s", rate(bytes, named.time)),
            Some(bytes) => format!("{} us = {} GB/s", micros(named.time), rate(bytes, named.time)),
            None => format!("{} us", micros(named.time)),
        };
        let ours = finding.ours.as_ref().map(figure);
        let against = finding.against.as_ref();
        let against = against.map(|named| format!("{}: {}", named.label, figure(named)));
        let seen = format!("{} / {}", finding.seen, finding.seen_of_medians);
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            finding.target,
            finding.what,
            or_dash(ours),
            or_dash(against),
            seen,
            finding.wanted,
            finding.verdict,
        )?;
    }
    Ok(())
}

fn write_races(
    out: &mut String,
    results: &Results,
    criteria: &[Criterion],
    sections: &[Section],
) -> fmt::Result {
    let mut bouts: BTreeSet<Bout> = criteria.iter().flat_map(Criterion::bouts).collect();
    let others = [Section::Block, Section::Push].into_iter().filter(|s| sections.contains(s));
    bouts.extend(others.flat_map(targets::tables));
    if bouts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Everybody's figures")?;
    for Bout { case, pages } in bouts {
        let Some(table) = results.table(case, pages) else { continue };
        writeln!(out, "\n### {}\n", capitalized(&table.title))?;
        if table.rows.is_empty() {
            writeln!(out, "Nothing here runs on this CPU.")?;
        } else if table.last_limit.is_some() {
            write_decode(out, results, table)?;
        } else {
            write_race(out, results, table)?;
        }
    }
    Ok(())
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
    let share = results::share(results.limit(table, limit)?, bytes, row.time(metric)?)?;
    Some(format!("{:.0} %", share * 100.0))
}

/// What a limit is called.
fn limit_name<'r>(results: &'r Results, table: &'r Table, limit: Option<&str>) -> &'r str {
    limit
        .and_then(|id| results.limit(table, id))
        .map_or("the limit, which is not known here", |row| &row.label)
}

fn write_race(out: &mut String, results: &Results, table: &Table) -> fmt::Result {
    writeln!(
        out,
        "| | us | ns a symbol | GB/s | time / ours | share of: {} |",
        limit_name(results, table, table.limit)
    )?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for row in &table.rows {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            label(row),
            or_dash(row.total.map(micros)),
            or_dash(row.total.map(|time| nanos_a_symbol(row.bytes, time))),
            or_dash(row.total.map(|time| rate(row.bytes, time))),
            or_dash(ratio(table, row, Metric::Total)),
            or_dash(share(results, table, row, Metric::Total)),
        )?;
    }
    Ok(())
}

fn write_decode(out: &mut String, results: &Results, table: &Table) -> fmt::Result {
    writeln!(
        out,
        "| | total CPU, us | total / ours | share of: {} | last, us | last / ours | share of: {} |",
        limit_name(results, table, table.limit),
        limit_name(results, table, table.last_limit),
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for row in &table.rows {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            label(row),
            or_dash(row.total.map(micros)),
            or_dash(ratio(table, row, Metric::Total)),
            or_dash(share(results, table, row, Metric::Total)),
            or_dash(row.last.map(micros)),
            or_dash(ratio(table, row, Metric::Last)),
            or_dash(share(results, table, row, Metric::Last)),
        )?;
    }
    Ok(())
}

fn write_paper(out: &mut String, results: &Results) -> fmt::Result {
    writeln!(out, "\n## The paper's own cases\n")?;
    writeln!(
        out,
        "One repair symbol by `Encoder::repair`, coefficients included, symbols of 1500 bytes.\n"
    )?;
    writeln!(out, "| window | us | GB/s |\n|---|---|---|")?;
    for n in targets::WINDOWS {
        let row = results
            .table(Case::Generate { n }, Pages::Ordinary)
            .and_then(|table| table.row("encoder"));
        let time = row.and_then(|row| row.total);
        let bytes = row.map_or(0.0, |row| row.bytes);
        let rate = or_dash(time.map(|time| rate(bytes, time)));
        writeln!(out, "| {n} | {} | {rate} |", or_dash(time.map(micros)))?;
    }
    writeln!(out, "\nOne symbol in twenty lost, as many repair symbols over the whole window.")?;
    writeln!(out, "CPU time of all repair symbols, and time after the last one, in us.\n")?;
    write!(out, "| window | decoder |")?;
    for loss in Loss::ALL {
        write!(out, " {0}, total | {0}, last |", loss.name())?;
    }
    writeln!(out, "\n|---|---|{}", "---|---|".repeat(Loss::ALL.len()))?;
    for n in targets::WINDOWS {
        let tables = Loss::ALL.map(|loss| results.table(Case::Decode { n, loss }, Pages::Ordinary));
        let rows = tables[0].map(|table| &table.rows[..]).unwrap_or_default();
        for ours in rows.iter().filter(|row| row.kind == Kind::Ours) {
            write!(out, "| {n} | {} |", ours.label)?;
            for table in tables {
                let row = table.and_then(|table| table.row(ours.id));
                for metric in [Metric::Total, Metric::Last] {
                    let time = row.and_then(|row| row.time(metric));
                    write!(out, " {} |", or_dash(time.map(micros)))?;
                }
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn write_tiers(out: &mut String, results: &Results) -> fmt::Result {
    writeln!(out, "\n## Kernels, GB/s\n")?;
    let tables =
        Operation::ALL.map(|operation| results.table(Case::Tiers(operation), Pages::Ordinary));
    write!(out, "| kernel |")?;
    for operation in Operation::ALL {
        write!(out, " {} |", operation.name())?;
    }
    writeln!(out, "\n|---|{}", "---|".repeat(Operation::ALL.len()))?;
    let rows = tables[0].map(|table| &table.rows[..]).unwrap_or_default();
    for kernel in rows {
        write!(out, "| {} |", kernel.label)?;
        for table in tables {
            let row = table.and_then(|table| table.row(kernel.id));
            let rate = row.and_then(|row| Some(rate(row.bytes, row.total?)));
            write!(out, " {} |", or_dash(rate))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let time = Time { best: 1.234_56e-6, median: 1.234_56e-3 };
        assert_eq!(micros(time), "1.23 / 1235");
        assert_eq!(micros(Time { best: 12.34e-6, median: 123.4e-6 }), "12.3 / 123.4");
        assert_eq!(rate(1500.0, Time { best: 1e-7, median: 2e-7 }), "15.0 / 7.5");
        assert_eq!(capitalized("one symbol"), "One symbol");
    }
}
