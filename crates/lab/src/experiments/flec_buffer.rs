//! A receiver with a small buffer on a satellite path (Michel et al. 2022, FlEC, section VII-B1, Figs.
//! 6 to 9): 5 MB over 8 Mbit/s and 400 ms of round trip with receive windows of 70 kB to 6 MB.

use super::flec_path::{
    Completion, Download, Path, mean_wire, median_cell, median_time, ratio_chart,
};
use crate::comparison::{Compared, Values};
use crate::report::{Axis, Cell, Chart, Report, Series, Table, chart_of, report_of};
use crate::{Error, Options};

/// Bytes of the file.
const BYTES: u64 = 5_000_000;
/// Receive windows: the paper's, and 6 MB of its Fig. 9.
const WINDOWS: [u64; 7] = [70_000, 150_000, 250_000, 400_000, 1_000_000, 3_000_000, 6_000_000];
/// Share of the packets that are lost each way, in percent.
const LOSSES: [f64; 3] = [0.0, 0.5, 2.0];
/// Downloads of each configuration, as in the paper.
const DOWNLOADS: u64 = 95;
/// The policies, in the order of the tables.
const POLICIES: [&str; 4] = ["buffer", "buffer:literal", "bulk", "bulk:literal"];
/// The configurations of which each download is drawn: share of loss and window.
const SCATTERED: [(f64, u64); 2] = [(2.0, 150_000), (0.5, 6_000_000)];

experiment! {
    "flec-buffer": "5 MB over a satellite path to receivers with small buffers" (Seeds, Policies),
    one in 10 takes 38 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let path = |loss| Path::random([8.0, 200.0, loss, loss]);
    let download =
        |(loss, window)| Download { buffer: Some(window), ..Download::new(path(loss), BYTES) };
    let all = LOSSES.iter().flat_map(|loss| WINDOWS.iter().map(move |window| (*loss, *window)));
    let downloads: Vec<_> = all.map(download).collect();
    let seeds = [options.seeds(DOWNLOADS); 2];
    let policies = options.policies_or(&POLICIES);
    let compared = Compared::measure_to_ideal(options, &downloads, &policies, seeds)?;
    Ok(report(&compared, &policies))
}

/// The times of single downloads divided by the times without protection, seed by seed.
fn single(compared: &Compared<Download>, policy: usize) -> Values {
    let pairs = compared.with(policy).iter().zip(&compared.plain);
    Values::of(pairs.map(|(with, plain)| with.time / plain.time))
}

fn report(compared: &[Compared<Download>], policies: &[&str]) -> Report {
    let rows = policies.iter().enumerate();
    let rows: Vec<_> =
        rows.flat_map(|(n, name)| compared.iter().map(move |row| (n, *name, row))).collect();
    type BufferRow<'a> = (usize, &'a str, &'a Compared<Download>);
    let at = |(policy, _, row): &BufferRow<'_>, q| single(row, *policy).cell(q);
    let ratio = |(policy, _, row): &BufferRow<'_>, of: fn(&[Completion]) -> f64| {
        row.ratio_cell(*policy, of)
    };
    let table = Table::of(
        "Downloads with each policy, divided by those without protection",
        &rows,
        &[
            ("policy", &|(_, name, _)| (*name).into()),
            ("loss", &|(_, _, row)| Cell::Share(row.setup.path.loss_down / 100.0)),
            ("window", &|(_, _, row)| row.setup.buffer.into()),
            ("time without", &|(_, _, row)| median_cell(&row.plain)),
            ("median time", &|row| ratio(row, median_time)),
            ("p5", &|row| at(row, 0.05)),
            ("p25", &|row| at(row, 0.25)),
            ("p75", &|row| at(row, 0.75)),
            ("p95", &|row| at(row, 0.95)),
            ("ideal", &|(_, _, row)| row.ideal_ratio(median_time).map(Cell::Number).into()),
            ("bytes", &|row| ratio(row, mean_wire)),
        ],
    );
    let boxes = LOSSES.iter().filter(|loss| **loss > 0.0);
    let mut charts: Vec<_> = boxes.map(|loss| distributions(compared, *loss, policies)).collect();
    charts.extend(SCATTERED.iter().filter_map(|(loss, window)| {
        let wanted = |row: &&Compared<Download>| {
            row.setup.path.loss_down == *loss && row.setup.buffer == Some(*window)
        };
        compared.iter().find(wanted).map(|row| scatter(row, policies))
    }));
    report_of("Transfers to receivers with small buffers", &TEXT, [table], charts)
}

/// Figs. 6 and 7 as distributions.
fn distributions(compared: &[Compared<Download>], loss: f64, policies: &[&str]) -> Chart {
    let rows = compared.iter().filter(|row| row.setup.path.loss_down == loss);
    let series = rows.map(|row| {
        let window = row.setup.buffer.unwrap_or_default();
        (format!("{} kB", window / 1000), single(row, 0))
    });
    let title = format!("5 MB at {loss} % loss with `{}`", policies.first().unwrap_or(&""));
    ratio_chart(format!("loss-{}-permille", loss * 10.0), title, "downloads", series)
}

/// Figs. 8 and 9: the time of each download and its bytes.
fn scatter(row: &Compared<Download>, policies: &[&str]) -> Chart {
    let point = |outcome: &Completion| (outcome.wire / BYTES as f64, outcome.time);
    let points = |outcomes: &[Completion]| outcomes.iter().map(point).collect();
    let policies = policies.iter().zip(&row.policies);
    let with = policies.map(|(name, outcomes)| Series::points(*name, points(outcomes)));
    let plain = Series::points("without", points(&row.plain));
    let window = row.setup.buffer.unwrap_or_default() / 1000;
    let title = format!("Window of {window} kB, {} % loss", row.setup.path.loss_down);
    let x = Axis::linear("bytes from the server per byte of the file");
    let series = std::iter::once(plain).chain(with);
    chart_of(format!("window-{window}-kb"), title, [x, Axis::linear("time in s")], series)
}

const TEXT: [&str; 2] = [
    "Michel et al. 2022 (FlEC), section VII-B1, Figs. 6 to 9: 5 MB over 8 Mbit/s, 200 ms one way \
     (400 kB in a round trip) with BBR, to receivers that buffer 70 kB to 6 MB. The same share of \
     packets is lost each way. The quantiles are of single downloads with the same seed, with \
     protection and without. `ideal` is the ratio of a download over the same path without \
     losses.",
    "FlEC's receiver takes 5 % off its window, at least 10 kB, to store repair symbols. Nothing \
     is taken off here, because repair symbols are not flow-controlled data: the decoder has \
     memory of its own, as large as the window in this experiment. It holds what arrived of the \
     coding window, so that a receiver needs twice its window in all, with or without a \
     reserve. A repair symbol is dropped once it recovered something or its span was delivered.",
];
