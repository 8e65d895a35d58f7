//! Tables in Markdown.

pub mod json;
mod machine;

use crate::{
    args::Section,
    buffers::SYMBOL,
    cases::{Bout, Case, Loss, Operation},
    limits,
    measure::{Kind, Metric},
    memory::Pages,
    results::{self, Results, Row, Time},
    targets::{self, Criterion, Finding},
};
use std::collections::BTreeSet;
use sutura_analysis::{
    report::Report,
    table::{Cell, Column, Table},
};

/// All results as tables.
pub fn report(results: &Results, criteria: &[Criterion], sections: &[Section]) -> Report {
    let mut text = vec![format!("* {}", machine::describe().join("\n* "))];
    text.push(format!(
        "{} rounds; best of all / median of the rounds' medians. In a comparison best is against \
         best, which decides, and median against median; a verdict in parentheses is information \
         and does not decide.",
        results.rounds
    ));
    text.extend(clock(results));
    let mut tables = vec![limits(results)];
    if !criteria.is_empty() {
        let findings: Vec<_> = criteria.iter().map(|c| targets::judge(results, c)).collect();
        tables.push(targets_table(&findings));
    }
    tables.extend(races(results, criteria, sections));
    if sections.contains(&Section::Paper) {
        tables.extend([generation(results), decoding(results)]);
    }
    if sections.contains(&Section::Tiers) {
        tables.push(tiers(results));
    }
    let title = "Erasure codes".to_owned();
    Report { name: "erasure".to_owned(), title, text, tables, ..Report::default() }
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

fn limits(results: &Results) -> Table {
    let [ordinary, huge] =
        [Pages::Ordinary, Pages::Huge].map(|pages| results.table(Case::Limits, pages));
    let show = |row: &Row| row.total.map(|time| rate(row.bytes, time));
    let in_huge_pages = |row: &Row| huge.and_then(|table| table.row(row.id)).and_then(show);
    let rows = ordinary.map(|table| &table.rows[..]).unwrap_or_default();
    Table::of(
        "Limits of the machine",
        rows.iter().filter(|row| row.id != limits::CLOCK),
        &[
            ("limit", &|row| row.label.as_str().into()),
            ("GB/s", &|row| show(row).into()),
            ("in huge pages", &|row| in_huge_pages(row).into()),
        ],
    )
}

/// The clock of the machine, if it was measured.
fn clock(results: &Results) -> Option<String> {
    let row = results.table(Case::Limits, Pages::Ordinary)?.row(limits::CLOCK)?;
    Some(format!("GHz of the {}: {}.", row.label, rate(row.bytes, row.total?)))
}

fn targets_table(findings: &[Finding]) -> Table {
    let figure = |named: &targets::Named| match named.bytes {
        // Limits move other amounts of bytes, so their times say nothing here.
        Some(bytes) if named.kind == Kind::Limit => format!("{} GB/s", rate(bytes, named.time)),
        Some(bytes) => format!("{} us = {} GB/s", micros(named.time), rate(bytes, named.time)),
        None => format!("{} us", micros(named.time)),
    };
    let against = |named: &targets::Named| format!("{}: {}", named.label, figure(named));
    Table::of(
        "Targets",
        findings,
        &[
            ("#", &|finding| finding.target.to_string().into()),
            ("case", &|finding| finding.what.to_string().into()),
            ("ours", &|finding| finding.ours.as_ref().map(figure).into()),
            ("against", &|finding| finding.against.as_ref().map(against).into()),
            ("seen", &|f| format!("{} / {}", f.seen, f.seen_of_medians).into()),
            ("wanted", &|finding| finding.wanted.to_string().into()),
            ("", &|finding| finding.verdict.to_string().into()),
        ],
    )
}

/// All figures of the races of the criteria and the sections.
fn races(results: &Results, criteria: &[Criterion], sections: &[Section]) -> Vec<Table> {
    let mut bouts: BTreeSet<Bout> = criteria.iter().flat_map(Criterion::bouts).collect();
    let others = [Section::Block, Section::Push].into_iter().filter(|s| sections.contains(s));
    bouts.extend(others.flat_map(targets::tables));
    let races = bouts.into_iter().filter_map(|bout| results.table(bout.case, bout.pages));
    races.map(|race| self::race(results, race)).collect()
}

fn capitalized(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// The entry with which all others are compared: our first entry.
fn reference(table: &results::Table) -> Option<&Row> {
    table.rows.iter().find(|row| row.kind == Kind::Ours)
}

/// The name of an entry, in bold if it is ours.
fn label(row: &Row) -> String {
    match row.kind {
        Kind::Ours => format!("**{}**", row.label),
        _ => row.label.clone(),
    }
}

/// The time of an entry as a multiple of the time of our first entry.
fn ratio(table: &results::Table, row: &Row, metric: Metric) -> Option<String> {
    let (ours, time) = (reference(table)?.time(metric)?, row.time(metric)?);
    Some(format!("{:.2} / {:.2}", time.best / ours.best, time.median / ours.median))
}

/// The share of the limit that an entry reaches.
fn share(results: &Results, table: &results::Table, row: &Row, metric: Metric) -> Option<String> {
    let (limit, bytes) = table.limit_of(row, metric)?;
    let share = results::share(results.limit(table, limit)?, bytes, row.time(metric)?)?;
    Some(format!("{:.0} %", share * 100.0))
}

/// The name of a limit.
fn limit_name<'r>(results: &'r Results, table: &'r results::Table, limit: Option<&str>) -> &'r str {
    limit
        .and_then(|id| results.limit(table, id))
        .map_or("the limit, which is not known here", |row| &row.label)
}

fn race(results: &Results, race: &results::Table) -> Table {
    let caption = match race.rows.is_empty() {
        true => format!("{} (nothing here runs on this CPU)", capitalized(&race.title)),
        false => capitalized(&race.title),
    };
    let of_limit = |limit| format!("share of: {}", limit_name(results, race, limit));
    let share_of = [of_limit(race.limit), of_limit(race.last_limit)];
    let [share_of_limit, share_of_last] = share_of.each_ref().map(String::as_str);
    let share = |row: &Row, metric| share(results, race, row, metric).into();
    let ratio = |row: &Row, metric| ratio(race, row, metric).into();
    let name: Column<&Row> = ("", &|row| label(row).into());
    let columns: &[Column<&Row>] = if race.last_limit.is_some() {
        &[
            name,
            ("total CPU, us", &|row| row.total.map(micros).into()),
            ("total / ours", &|row| ratio(row, Metric::Total)),
            (share_of_limit, &|row| share(row, Metric::Total)),
            ("last, us", &|row| row.last.map(micros).into()),
            ("last / ours", &|row| ratio(row, Metric::Last)),
            (share_of_last, &|row| share(row, Metric::Last)),
        ]
    } else {
        &[
            name,
            ("us", &|row| row.total.map(micros).into()),
            ("ns a symbol", &|row| row.total.map(|time| nanos_a_symbol(row.bytes, time)).into()),
            ("GB/s", &|row| row.total.map(|time| rate(row.bytes, time)).into()),
            ("time / ours", &|row| ratio(row, Metric::Total)),
            (share_of_limit, &|row| share(row, Metric::Total)),
        ]
    };
    Table::of(caption, &race.rows, columns)
}

fn generation(results: &Results) -> Table {
    let row = |n: usize| results.table(Case::Generate { n }, Pages::Ordinary)?.row("encoder");
    let figure = |n: usize, show: &dyn Fn(&Row, Time) -> String| {
        row(n).and_then(|row| Some(show(row, row.total?))).into()
    };
    Table::of(
        "One repair symbol by `Encoder::repair`, coefficients included, symbols of 1500 bytes",
        targets::WINDOWS,
        &[
            ("window", &|n| (*n).into()),
            ("us", &|n| figure(*n, &|_, time| micros(time))),
            ("GB/s", &|n| figure(*n, &|row, time| rate(row.bytes, time))),
        ],
    )
}

fn decoding(results: &Results) -> Table {
    let heads = Loss::ALL
        .iter()
        .flat_map(|loss| ["total", "last"].map(|m| format!("{}, {m}", loss.name())));
    let heads = ["window".to_owned(), "decoder".to_owned()].into_iter().chain(heads);
    let mut table = Table::new(
        "One symbol in twenty lost, as many repair symbols over the whole window: CPU time of all \
         repair symbols, and time after the last one, in us",
        heads,
    );
    for n in targets::WINDOWS {
        let tables = Loss::ALL.map(|loss| results.table(Case::Decode { n, loss }, Pages::Ordinary));
        let rows = tables[0].map(|table| &table.rows[..]).unwrap_or_default();
        for ours in rows.iter().filter(|row| row.kind == Kind::Ours) {
            let times = tables.iter().flat_map(|table| {
                let row = table.and_then(|table| table.row(ours.id));
                [Metric::Total, Metric::Last].map(|metric| row.and_then(|row| row.time(metric)))
            });
            let labels = [n.into(), ours.label.as_str().into()];
            table.row(labels.into_iter().chain(times.map(|time| Cell::from(time.map(micros)))));
        }
    }
    table
}

fn tiers(results: &Results) -> Table {
    let tables =
        Operation::ALL.map(|operation| results.table(Case::Tiers(operation), Pages::Ordinary));
    let heads = std::iter::once("kernel").chain(Operation::ALL.map(Operation::name));
    let mut table = Table::new("Kernels, GB/s", heads);
    for kernel in tables[0].map(|table| &table.rows[..]).unwrap_or_default() {
        let rates = tables.iter().map(|table| {
            let row = table.and_then(|table| table.row(kernel.id));
            Cell::from(row.and_then(|row| Some(rate(row.bytes, row.total?))))
        });
        table.row(std::iter::once(kernel.label.as_str().into()).chain(rates));
    }
    table
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
