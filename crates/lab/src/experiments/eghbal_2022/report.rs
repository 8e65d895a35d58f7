//! The report, and what it is held against.

use std::time::Duration;

use super::{BURST, PageLoad, Protected, Summary};
use crate::{Cell, Report, Series, Table};

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
        name: "eghbal-2022".to_owned(),
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
        series: summaries.iter().flat_map(curves).collect(),
        plots: Vec::new(),
        pictures: Vec::new(),
    }
}

fn targets(summaries: &[Summary]) -> Table {
    let columns =
        ["loss", "connection", "congestion control", "target", "at most", "measured", "verdict"];
    let mut rows = Vec::new();
    for with in summaries.iter().filter(|s| s.setup.protected == Protected::Urgent) {
        let Some(without) = beside(summaries, with, Protected::Nothing) else { continue };
        rows.extend(TARGETS.map(|target| -> Vec<Cell> {
            let measured = (target.ratio)(with, without);
            vec![
                loss(with),
                with.setup.history.name().into(),
                with.setup.congestion.name().into(),
                target.what.into(),
                Cell::Number(target.limit),
                Cell::Number(measured),
                if measured <= target.limit { "met" } else { "missed" }.into(),
            ]
        }));
    }
    Table { caption: "Targets".to_owned(), columns: columns.map(str::to_owned).to_vec(), rows }
}

fn loss(summary: &Summary) -> Cell {
    Cell::Text(format!("{} %", summary.setup.loss))
}

/// Quartiles and the 95th percentile of one of the times.
fn quantiles(
    summary: &Summary,
    time: impl Fn(&PageLoad) -> Duration,
) -> impl Iterator<Item = Cell> {
    let times = summary.times(time);
    [0.25, 0.5, 0.75, 0.95].map(|q| times.quantile(q).into()).into_iter()
}

fn pages(summaries: &[Summary]) -> Table {
    let columns = [
        "loss",
        "connection",
        "congestion control",
        "protected",
        "pages",
        "first byte",
        "first urgent",
        "all urgent q1",
        "median",
        "q3",
        "p95",
        "others q1",
        "median",
        "q3",
        "p95",
        "bytes",
        "more",
        "repairs",
        "recovered",
        "bytes resent",
        "window",
    ];
    let row = |s: &Summary| -> Vec<Cell> {
        let wire = s.mean(|load| load.wire);
        let without = beside(summaries, s, Protected::Nothing);
        let without = without.map_or(wire, |without| without.mean(|load| load.wire));
        let mut row = vec![
            loss(s),
            s.setup.history.name().into(),
            s.setup.congestion.name().into(),
            s.setup.protected.name().into(),
            Cell::Count(s.loads.len() as u64),
            s.times(|load| load.began).quantile(0.5).into(),
            s.times(|load| load.first).quantile(0.5).into(),
        ];
        row.extend(quantiles(s, |load| load.urgent));
        row.extend(quantiles(s, |load| load.others));
        row.extend([
            Cell::Count(wire as u64),
            Cell::Share(wire / without - 1.0),
            Cell::Number(s.mean(|load| load.repair_symbols)),
            Cell::Number(s.mean(|load| load.recovered)),
            Cell::Count(s.mean(|load| load.resent) as u64),
            Cell::Count(s.mean(|load| load.window) as u64),
        ]);
        row
    };
    Table {
        caption: "Pages".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: summaries.iter().map(row).collect(),
    }
}

fn variations(varied: &[Summary]) -> Table {
    let columns = [
        "BLT",
        "RDT",
        "all urgent q1",
        "median",
        "q3",
        "p95",
        "bytes",
        "repairs",
        "recovered",
        "bytes resent",
    ];
    let row = |s: &Summary| -> Vec<Cell> {
        let mut row = vec![Cell::Count(s.setup.burst.into()), s.setup.delay.into()];
        row.extend(quantiles(s, |load| load.urgent));
        row.extend([
            Cell::Count(s.mean(|load| load.wire) as u64),
            Cell::Number(s.mean(|load| load.repair_symbols)),
            Cell::Number(s.mean(|load| load.recovered)),
            Cell::Count(s.mean(|load| load.resent) as u64),
        ]);
        row
    };
    Table {
        caption: "Urgent resources protected otherwise: 2 % loss, warm connection, BBR".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: varied.iter().map(row).collect(),
    }
}

fn curves(summary: &Summary) -> [Series; 2] {
    let series = |what: &str, time: fn(&PageLoad) -> Duration| {
        let (x, y) = summary.times(time).curve();
        let setup = &summary.setup;
        let [history, congestion, protected] =
            [setup.history.name(), setup.congestion.name(), setup.protected.name()];
        Series {
            label: format!(
                "{} % loss, {history}, {congestion}, {protected} protected: {what}",
                setup.loss
            ),
            x_label: "time since the requests in ms".to_owned(),
            y_label: "share of pages".to_owned(),
            x,
            y,
        }
    };
    [series("urgent", |load| load.urgent), series("others", |load| load.others)]
}
