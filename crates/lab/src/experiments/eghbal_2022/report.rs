//! The report, and what it is held against.

use std::time::Duration;

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::table::{Cell, Table};

use super::{BURST, PageLoad, Protected, Setup, Summary};

/// What protecting the urgent resources should do, as ratios to no protection.
#[derive(Clone, Copy, Debug)]
struct Target {
    what: &'static str,
    limit: f64,
    ratio: fn(&Summary, &Summary) -> f64,
}

const TARGETS: [Target; 4] = [
    Target {
        what: "urgent complete, since the first byte",
        limit: 0.60,
        ratio: |with, without| median_ratio(with, without, |load| load.urgent - load.began),
    },
    Target {
        what: "urgent complete, since the requests",
        limit: 0.60,
        ratio: |with, without| median_ratio(with, without, |load| load.urgent),
    },
    Target {
        what: "bytes from the server",
        limit: 1.15,
        ratio: |with, without| with.mean(|load| load.wire) / without.mean(|load| load.wire),
    },
    Target {
        what: "others complete, since the requests",
        limit: 1.05,
        ratio: |with, without| median_ratio(with, without, |load| load.others),
    },
];

fn median_ratio(
    with: &Summary,
    without: &Summary,
    time: impl Fn(&PageLoad) -> Duration + Copy,
) -> f64 {
    let median = |summary: &Summary| summary.times(time).quantile(0.5).as_secs_f64();
    median(with) / median(without)
}

/// The summary of the same connection with `protected`.
fn beside<'a>(summaries: &'a [Summary], of: &Summary, protected: Protected) -> Option<&'a Summary> {
    summaries.iter().find(|s| s.setup == of.setup.protecting(protected))
}

pub(super) fn report(summaries: &[Summary], varied: &[Summary]) -> Report {
    Report {
        title: "A page of which only the urgent resources are protected".to_owned(),
        text: vec![
            format!(
                "Eghbal and Lu 2022, section 3: five urgent resources of 35 kB and five others of 70 \
                 kB, asked for at once over HTTP/3, urgent ones first; 1 Gbit/s, round-trip time \
                 50 ms, 2 % of packets lost in each direction, or 1 %. Protected resources ask for \
                 {BURST} repair symbols (exp_b) at their end; the others are incremental, so that \
                 theirs follow each piece."
            ),
            "A fresh connection begins with the page, a warm one carried 4 MB before. Times are from \
             the requests, so that 50 ms and the time to send are the least. `q1` and `q3` are \
             quartiles. `more` is how many bytes more the server sent than without protection, in \
             UDP payload. The window is the server's congestion window when the page was asked for."
                .to_owned(),
            "Targets are ratios: urgent resources protected, to nothing protected; of medians, if \
             about times. The paper shows one run at a fixed rate, 28 ms with and 63 ms without \
             protection, in which the first resource is complete after 10 ms. That is less than the \
             path's delay: its clock starts when the first byte arrives."
                .to_owned(),
        ],
        tables: vec![targets(summaries), pages(summaries), variations(varied)],
        charts: charts(summaries),
        ..Report::default()
    }
}

fn targets(summaries: &[Summary]) -> Table {
    let columns =
        ["loss", "connection", "congestion control", "target", "at most", "measured", "verdict"];
    let mut table = Table::new("Targets", columns);
    for with in summaries.iter().filter(|s| s.setup.protected == Protected::Urgent) {
        let Some(without) = beside(summaries, with, Protected::Nothing) else { continue };
        for target in TARGETS {
            let measured = (target.ratio)(with, without);
            table.row([
                loss(with),
                with.setup.history.name().into(),
                with.setup.congestion.name().into(),
                target.what.into(),
                Cell::Number(target.limit),
                Cell::Number(measured),
                if measured <= target.limit { "met" } else { "missed" }.into(),
            ]);
        }
    }
    table
}

fn loss(summary: &Summary) -> Cell {
    format!("{} %", summary.setup.loss).into()
}

fn pages(summaries: &[Summary]) -> Table {
    let quantile =
        |s: &Summary, time: fn(&PageLoad) -> Duration, q| s.times(time).quantile(q).into();
    let urgent = |s: &Summary, q| quantile(s, |load| load.urgent, q);
    let others = |s: &Summary, q| quantile(s, |load| load.others, q);
    let wire = |s: &Summary| s.mean(|load| load.wire);
    let more = |s: &Summary| {
        let without = beside(summaries, s, Protected::Nothing).unwrap_or(s);
        Cell::Share(wire(s) / wire(without) - 1.0)
    };
    Table::of(
        "Pages",
        summaries,
        &[
            ("loss", &|s| loss(s)),
            ("connection", &|s| s.setup.history.name().into()),
            ("congestion control", &|s| s.setup.congestion.name().into()),
            ("protected", &|s| s.setup.protected.name().into()),
            ("pages", &|s| s.loads.len().into()),
            ("first byte", &|s| quantile(s, |load| load.began, 0.5)),
            ("first urgent", &|s| quantile(s, |load| load.first, 0.5)),
            ("all urgent q1", &|s| urgent(s, 0.25)),
            ("median", &|s| urgent(s, 0.5)),
            ("q3", &|s| urgent(s, 0.75)),
            ("p95", &|s| urgent(s, 0.95)),
            ("others q1", &|s| others(s, 0.25)),
            ("median", &|s| others(s, 0.5)),
            ("q3", &|s| others(s, 0.75)),
            ("p95", &|s| others(s, 0.95)),
            ("bytes", &|s| Cell::Count(wire(s) as u64)),
            ("more", &|s| more(s)),
            ("repairs", &|s| Cell::Number(s.mean(|load| load.repair_symbols))),
            ("recovered", &|s| Cell::Number(s.mean(|load| load.recovered))),
            ("bytes resent", &|s| Cell::Count(s.mean(|load| load.resent) as u64)),
            ("window", &|s| Cell::Count(s.mean(|load| load.window) as u64)),
        ],
    )
}

fn variations(varied: &[Summary]) -> Table {
    let urgent = |s: &Summary, q| s.times(|load| load.urgent).quantile(q).into();
    Table::of(
        "Urgent resources protected otherwise: 2 % loss, warm connection, BBR",
        varied,
        &[
            ("BLT", &|s| s.setup.burst.into()),
            ("RDT", &|s| s.setup.delay.into()),
            ("all urgent q1", &|s| urgent(s, 0.25)),
            ("median", &|s| urgent(s, 0.5)),
            ("q3", &|s| urgent(s, 0.75)),
            ("p95", &|s| urgent(s, 0.95)),
            ("bytes", &|s| Cell::Count(s.mean(|load| load.wire) as u64)),
            ("repairs", &|s| Cell::Number(s.mean(|load| load.repair_symbols))),
            ("recovered", &|s| Cell::Number(s.mean(|load| load.recovered))),
            ("bytes resent", &|s| Cell::Count(s.mean(|load| load.resent) as u64)),
        ],
    )
}

/// A chart for each connection, with what each protection makes of urgent resources and others.
fn charts(summaries: &[Summary]) -> Vec<Chart> {
    let same_connection = |a: &Summary, b: &Summary| {
        a.setup.protecting(Protected::Nothing) == b.setup.protecting(Protected::Nothing)
    };
    let chart = |group: &[Summary]| {
        let Setup { loss, history, congestion, .. } = group.first()?.setup;
        let connection = format!("{loss} % loss, {} {}", history.name(), congestion.name());
        let curve = |s: &Summary, what: &str, time: fn(&PageLoad) -> Duration| {
            let label = format!("{what}, {} protected", s.setup.protected.name());
            Series::line(label, s.times(time).curve())
        };
        let urgent = group.iter().map(|s| curve(s, "urgent", |load| load.urgent));
        let others = group.iter().map(|s| curve(s, "others", |load| load.others));
        Some(Chart {
            title: format!("Time until all resources of a kind are complete: {connection}"),
            name: connection,
            x: Axis::linear("time since the requests in ms"),
            y: Axis::linear("share of pages"),
            baseline: None,
            panels: vec![Panel::of(urgent.chain(others))],
        })
    };
    summaries.chunk_by(same_connection).filter_map(chart).collect()
}
