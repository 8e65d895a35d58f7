//! The report on single flows.

use sutura_analysis::figure;

use super::paths::{Axis, VariedPath};
use super::single::{DEADLINE, SingleFigures, Size, senders};
use crate::Options;
use crate::report::{Cell, Chart, Panel, Report, Series, Table, chart_of, report_of};

/// The report.
pub fn report(
    paths: &[VariedPath],
    sizes: &[Size],
    summaries: &[SingleFigures<'_>],
    options: &Options,
) -> Report {
    let mut tables: Vec<Table> = Vec::new();
    let of_size = |size: &Size| -> Vec<&SingleFigures<'_>> {
        summaries.iter().filter(|s| s.setup.size.bytes == size.bytes).collect()
    };
    for size in sizes {
        let summaries = of_size(size);
        let caption = format!("Median time as a multiple of the reference, {}", bytes(*size));
        tables.push(matrix(caption, paths, &summaries, |s| s.ratio().map(Cell::Number).into()));
        let caption = format!("Median time, {}", bytes(*size));
        tables.push(matrix(caption, paths, &summaries, |s| time(s, 0.5)));
    }
    tables.extend(sizes.iter().map(|size| details(*size, &of_size(size))));
    let mut charts: Vec<Chart> =
        sizes.iter().flat_map(|size| over_loss(*size, &of_size(size))).collect();
    if let Some(size) = sizes.last() {
        charts.push(queue_delay(*size, &of_size(size)));
    }
    report_of("One flow, by congestion controller", &text(sizes, options), tables, charts)
}

fn text(sizes: &[Size], options: &Options) -> Vec<String> {
    let seeds = sizes.iter().map(|size| format!("{} ({} connections)", bytes(*size), size.seeds));
    vec![
        format!(
            "Downloads of {}, each on a fresh connection, over 10 Mbit/s, a round-trip time of 100 ms \
             and a drop-tail queue of one bandwidth-delay product, from which one thing at a time \
             differs. Seed {}: connection n of each size has the same random numbers on every path and \
             with every sender. quinn's BBR draws the phase of its gain cycle from the operating \
             system; its figures alone differ from run to run.",
            seeds.collect::<Vec<_>>().join(", "),
            options.seed,
        ),
        "The reference is the same transfer by the same controller, without redundancy, on the same \
         path without losses, reordering or policer, at a rate that is lower by the share of packets \
         lost. Times are from the request to the last byte, without the handshake."
            .to_owned(),
        format!(
            "`+ repair` is tail protection with three repair symbols. The queue delay is the mean of all \
             packets; `lost in queue` the share of the server's packets that found it full; `sent again` \
             for each byte of the transfer, with quinn the bytes of packets that it declares lost. A \
             transfer that takes more than {} s is unfinished.",
            DEADLINE.as_secs()
        ),
    ]
}

fn bytes(size: Size) -> String {
    match size.bytes {
        bytes if bytes >= 1_000_000 => format!("{} MB", bytes / 1_000_000),
        bytes => format!("{} kB", bytes / 1000),
    }
}

fn time(summary: &SingleFigures<'_>, q: f64) -> Cell {
    if summary.times.quantile(q) < DEADLINE {
        summary.times.cell(q)
    } else {
        format!("> {} s", DEADLINE.as_secs()).into()
    }
}

/// A row for each path, a column for each sender.
fn matrix(
    caption: String,
    paths: &[VariedPath],
    summaries: &[&SingleFigures<'_>],
    cell: impl Fn(&SingleFigures<'_>) -> Cell,
) -> Table {
    let widest = paths.iter().map(senders).max_by_key(Vec::len).unwrap_or_default();
    let names: Vec<String> = widest.iter().map(ToString::to_string).collect();
    let heads = std::iter::once("path").chain(names.iter().map(String::as_str));
    let mut table = Table::new(caption, heads);
    for path in paths {
        let row: Vec<_> = summaries.iter().filter(|s| s.setup.path.name == path.name).collect();
        let of = |name: &String| row.iter().find(|s| s.setup.sender.to_string() == *name);
        let cells: Vec<Cell> = names.iter().map(|name| of(name).map(|s| cell(s)).into()).collect();
        if !row.is_empty() && cells.iter().any(|cell| *cell != Cell::none()) {
            table.row(std::iter::once(Cell::from(path.name.clone())).chain(cells));
        }
    }
    table
}

fn details(size: Size, summaries: &[&SingleFigures<'_>]) -> Table {
    Table::of(
        format!("All figures, {}", bytes(size)),
        summaries.iter().copied(),
        &[
            ("path", &|s: &&SingleFigures<'_>| s.setup.path.name.clone().into()),
            ("sender", &|s| s.setup.sender.to_string().into()),
            ("time p50", &|s| time(s, 0.5)),
            ("p90", &|s| time(s, 0.9)),
            ("reference", &|s| s.reference.into()),
            ("ratio", &|s| s.ratio().map(Cell::Number).into()),
            ("queue delay", &|s| Cell::Millis(s.queue_delay)),
            ("lost in queue", &|s| Cell::Share(s.overflow)),
            ("sent again", &|s| Cell::Share(s.sent_again)),
            ("unfinished", &|s| Cell::Share(s.unfinished)),
        ],
    )
}

/// A curve for each sender, over the places of the paths that `take` takes.
fn curves(
    summaries: &[&SingleFigures<'_>],
    take: impl Fn(&VariedPath) -> bool,
    point: impl Fn(&SingleFigures<'_>) -> Option<(f64, f64)>,
) -> Vec<Series> {
    let taken: Vec<_> = summaries.iter().filter(|s| take(s.setup.path)).collect();
    let mut names: Vec<String> = Vec::new();
    for summary in &taken {
        let name = summary.setup.sender.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let series = names.into_iter().map(|name| {
        let own = taken.iter().filter(|s| s.setup.sender.to_string() == name);
        let points = own.filter_map(|s| point(s)).collect();
        Series::line(name, points)
    });
    series.collect()
}

/// A chart for each kind of loss: many curves need the legend beside them.
fn over_loss(size: Size, summaries: &[&SingleFigures<'_>]) -> [Chart; 2] {
    let kinds = [("independent losses", Axis::Random), ("bursts of losses", Axis::Bursts)];
    kinds.map(|(kind, axis)| {
        let series = curves(
            summaries,
            |path| path.axis == axis && path.lossy,
            |s| Some((s.setup.path.place * 100.0, s.ratio()?)),
        );
        Chart {
            name: format!("{kind} {}", bytes(size)),
            title: format!("Time to completion of {}, {kind}", bytes(size)),
            x: figure::Axis::linear("packets lost in %"),
            y: figure::Axis::log("median time / time on the reference"),
            baseline: Some(1.0),
            panels: vec![Panel::of(series)],
        }
    })
}

fn queue_delay(size: Size, summaries: &[&SingleFigures<'_>]) -> Chart {
    let series = curves(
        summaries,
        |path| path.axis == Axis::Queue && !path.lossy,
        |s| Some((s.setup.path.place, s.queue_delay)),
    );
    chart_of(
        "queue delay",
        format!("Queue delay of {} without loss, over the size of the queue", bytes(size)),
        [
            figure::Axis::log("queue in bandwidth-delay products"),
            figure::Axis::linear("mean queue delay in ms"),
        ],
        series,
    )
}
