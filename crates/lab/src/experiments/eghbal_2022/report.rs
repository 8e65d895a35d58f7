//! The report, and the goals that it is compared with.

use std::time::Duration;

use sutura_analysis::interval::Estimate;
use sutura_analysis::statistics::millis;

use crate::report::{Axis, Cell, Chart, Report, Series, Table, chart_of, report_of};

use super::{BURST, Protected, Visit, VisitTimes, Visits};

/// The expected effect of protecting the urgent resources, as ratios to no protection.
#[derive(Clone, Copy, Debug)]
struct Goal {
    what: &'static str,
    limit: f64,
    ratio: fn(&Visits, &Visits) -> Estimate,
}

const TARGETS: [Goal; 4] = [
    Goal {
        what: "urgent complete, since the first byte",
        limit: 0.60,
        ratio: |with, without| {
            with.median_ratio_to(without, |load| millis(load.urgent - load.began))
        },
    },
    Goal {
        what: "urgent complete, since the requests",
        limit: 0.60,
        ratio: |with, without| with.median_ratio_to(without, |load| millis(load.urgent)),
    },
    Goal {
        what: "bytes from the server",
        limit: 1.15,
        ratio: |with, without| with.mean_ratio_to(without, wire),
    },
    Goal {
        what: "others complete, since the requests",
        limit: 1.05,
        ratio: |with, without| with.median_ratio_to(without, |load| millis(load.others)),
    },
];

/// Bytes from the server.
const fn wire(load: &VisitTimes) -> f64 {
    load.wire as f64
}

/// The summary of the same connection with `protected`.
fn beside<'a>(summaries: &'a [Visits], of: &Visits, protected: Protected) -> Option<&'a Visits> {
    summaries.iter().find(|s| s.setup == of.setup.protecting(protected))
}

pub(super) fn report(summaries: &[Visits], varied: &[Visits]) -> Report {
    report_of(
        "A page of which only the urgent resources are protected",
        &[
            &format!(
                "Eghbal and Lu 2022, section 3: five urgent resources of 35 kB and five others of 70 \
                 kB, asked for at once over HTTP/3, urgent ones first; 1 Gbit/s, round-trip time \
                 50 ms, 2 % of packets lost in each direction, or 1 %. Protected resources ask for \
                 {BURST} repair symbols (exp_b) at their end; the others are incremental, so that \
                 theirs follow each piece."
            ),
            "A fresh connection begins with the page, a warm one carried 4 MB before. Times are from \
             the requests, so that 50 ms and the time to send are the least. `q1` and `q3` are \
             quartiles. `more` is how many bytes more the server sent than without protection, in \
             UDP payload. The window is the server's congestion window when the page was asked for.",
            "Targets are ratios: urgent resources protected, to nothing protected; of medians, if \
             about times. The paper shows one run at a fixed rate, 28 ms with and 63 ms without \
             protection, in which the first resource is complete after 10 ms. That is less than the \
             path's delay: its clock starts when the first byte arrives.",
        ],
        [targets(summaries), pages(summaries), variations(varied)],
        charts(summaries),
    )
}

fn targets(summaries: &[Visits]) -> Table {
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
                Cell::NumberWithin(measured),
                if measured.value <= target.limit { "met" } else { "missed" }.into(),
            ]);
        }
    }
    table
}

fn loss(summary: &Visits) -> Cell {
    format!("{} %", summary.setup.loss).into()
}

fn pages(summaries: &[Visits]) -> Table {
    let quantile = |s: &Visits, time: fn(&VisitTimes) -> Duration, q| s.times(time).cell(q);
    let urgent = |s: &Visits, q| quantile(s, |load| load.urgent, q);
    let others = |s: &Visits, q| quantile(s, |load| load.others, q);
    let more = |s: &Visits| {
        let without = beside(summaries, s, Protected::Nothing).unwrap_or(s);
        s.more_cell(without, wire)
    };
    Table::of(
        "Pages",
        summaries,
        &[
            ("loss", &|s| loss(s)),
            ("connection", &|s| s.setup.history.name().into()),
            ("congestion control", &|s| s.setup.congestion.name().into()),
            ("protected", &|s| s.setup.protected.name().into()),
            ("pages", &|s| s.runs.len().into()),
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
            ("bytes", &|s| Cell::Count(s.mean(wire) as u64)),
            ("more", &|s| more(s)),
            ("repairs", &|s| s.mean_cell(|load| load.repair_symbols as f64)),
            ("recovered", &|s| s.mean_cell(|load| load.recovered as f64)),
            ("bytes resent", &|s| Cell::Count(s.mean(|load| load.resent as f64) as u64)),
            ("window", &|s| Cell::Count(s.mean(|load| load.window as f64) as u64)),
        ],
    )
}

fn variations(varied: &[Visits]) -> Table {
    let urgent = |s: &Visits, q| s.times(|load| load.urgent).cell(q);
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
            ("bytes", &|s| Cell::Count(s.mean(|load| load.wire as f64) as u64)),
            ("repairs", &|s| s.mean_cell(|load| load.repair_symbols as f64)),
            ("recovered", &|s| s.mean_cell(|load| load.recovered as f64)),
            ("bytes resent", &|s| Cell::Count(s.mean(|load| load.resent as f64) as u64)),
        ],
    )
}

/// A chart for each connection, with the times of urgent and other resources for each protection.
fn charts(summaries: &[Visits]) -> Vec<Chart> {
    let same_connection = |a: &Visits, b: &Visits| {
        a.setup.protecting(Protected::Nothing) == b.setup.protecting(Protected::Nothing)
    };
    let chart = |group: &[Visits]| {
        let Visit { loss, history, congestion, .. } = group.first()?.setup;
        let connection = format!("{loss} % loss, {} {}", history.name(), congestion.name());
        let curve = |s: &Visits, what: &str, time: fn(&VisitTimes) -> Duration| {
            let label = format!("{what}, {} protected", s.setup.protected.name());
            Series::line(label, s.times(time).curve())
        };
        let urgent = group.iter().map(|s| curve(s, "urgent", |load| load.urgent));
        let others = group.iter().map(|s| curve(s, "others", |load| load.others));
        Some(chart_of(
            connection.as_str(),
            format!("Time until all resources of a kind are complete: {connection}"),
            [Axis::linear("time since the requests in ms"), Axis::linear("share of pages")],
            urgent.chain(others),
        ))
    };
    summaries.chunk_by(same_connection).filter_map(chart).collect()
}
