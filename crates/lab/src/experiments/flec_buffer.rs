//! A receiver with a small buffer on a satellite path (Michel et al. 2022, FlEC, section VII-B1, Figs.
//! 6 to 9): 5 MB over 8 Mbit/s and 400 ms of round trip with receive windows of 70 kB to 6 MB.

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{quantile, sorted};
use sutura_analysis::table::{Cell, Table};

use super::Experiment;
use super::flec_path::{
    Compared, Download, Outcome, Path, compare, distribution, mean_wire, median_time,
};
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

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "flec-buffer",
    about: "5 MB over a satellite path to receivers with small buffers",
    run,
};

fn run(options: &Options) -> Result<Report, Error> {
    let path = |loss| Path::random([8.0, 200.0, loss, loss]);
    let download =
        |(loss, window)| Download { path: path(loss), bytes: BYTES, buffer: Some(window) };
    let all = LOSSES.iter().flat_map(|loss| WINDOWS.iter().map(move |window| (*loss, *window)));
    let downloads: Vec<_> = all.map(download).collect();
    let compared =
        compare(options, &downloads, &POLICIES, [DOWNLOADS; 2].map(|n| options.seeds(n)))?;
    Ok(report(&compared))
}

/// The times of single downloads divided by those without protection, seed by seed.
fn single(compared: &Compared, policy: usize) -> Vec<f64> {
    let with = compared.policies.get(policy).into_iter().flatten();
    sorted(with.zip(&compared.plain).map(|(with, plain)| with.time / plain.time))
}

fn report(compared: &[Compared]) -> Report {
    let rows = POLICIES.iter().enumerate();
    let rows: Vec<_> =
        rows.flat_map(|(n, name)| compared.iter().map(move |row| (n, *name, row))).collect();
    type Row<'a> = (usize, &'static str, &'a Compared);
    let at = |(policy, _, row): &Row<'_>, q| Cell::Number(quantile(&single(row, *policy), q));
    let ratio = |(policy, _, row): &Row<'_>, of: fn(&[Outcome]) -> f64| {
        Cell::Number(row.ratio(*policy, of))
    };
    let table = Table::of(
        "Downloads with each policy, divided by those without protection",
        &rows,
        &[
            ("policy", &|(_, name, _)| (*name).into()),
            ("loss", &|(_, _, row)| Cell::Share(row.download.path.loss_down / 100.0)),
            ("window", &|(_, _, row)| row.download.buffer.into()),
            ("time without", &|(_, _, row)| Cell::Millis(1000.0 * median_time(&row.plain))),
            ("median time", &|row| ratio(row, median_time)),
            ("p5", &|row| at(row, 0.05)),
            ("p25", &|row| at(row, 0.25)),
            ("p75", &|row| at(row, 0.75)),
            ("p95", &|row| at(row, 0.95)),
            ("ideal", &|(_, _, row)| Cell::Number(row.ideal_ratio(median_time))),
            ("bytes", &|row| ratio(row, mean_wire)),
        ],
    );
    let boxes = LOSSES.iter().filter(|loss| **loss > 0.0);
    let mut charts: Vec<_> = boxes.map(|loss| distributions(compared, *loss)).collect();
    charts.extend(SCATTERED.iter().filter_map(|(loss, window)| {
        let wanted = |row: &&Compared| {
            row.download.path.loss_down == *loss && row.download.buffer == Some(*window)
        };
        compared.iter().find(wanted).map(scatter)
    }));
    Report {
        title: "Transfers to receivers with small buffers".to_owned(),
        text: text(),
        tables: vec![table],
        charts,
        ..Report::default()
    }
}

/// Figs. 6 and 7 as distributions.
fn distributions(compared: &[Compared], loss: f64) -> Chart {
    let rows = compared.iter().filter(|row| row.download.path.loss_down == loss);
    let series = rows.map(|row| {
        let window = row.download.buffer.unwrap_or_default();
        Series::line(format!("{} kB", window / 1000), distribution(single(row, 0)))
    });
    Chart {
        name: format!("loss-{}-permille", loss * 10.0),
        title: format!("5 MB at {loss} % loss with `{}`", POLICIES[0]),
        x: Axis::log("time divided by that without protection"),
        y: Axis::linear("share of downloads"),
        baseline: None,
        panels: vec![Panel::of(series)],
    }
}

/// Figs. 8 and 9: the time of each download and its bytes.
fn scatter(row: &Compared) -> Chart {
    let point = |outcome: &Outcome| (outcome.wire / BYTES as f64, outcome.time);
    let points = |outcomes: &[Outcome]| outcomes.iter().map(point).collect();
    let policies = POLICIES.iter().zip(&row.policies);
    let with = policies.map(|(name, outcomes)| Series::points(*name, points(outcomes)));
    let plain = Series::points("without", points(&row.plain));
    let window = row.download.buffer.unwrap_or_default() / 1000;
    Chart {
        name: format!("window-{window}-kb"),
        title: format!("Window of {window} kB, {} % loss", row.download.path.loss_down),
        x: Axis::linear("bytes from the server per byte of the file"),
        y: Axis::linear("time in s"),
        baseline: None,
        panels: vec![Panel::of(std::iter::once(plain).chain(with))],
    }
}

fn text() -> Vec<String> {
    vec![
        "Michel et al. 2022 (FlEC), section VII-B1, Figs. 6 to 9: 5 MB over 8 Mbit/s, 200 ms one way \
         (400 kB in a round trip) with BBR, to receivers that buffer 70 kB to 6 MB. The same share of \
         packets is lost each way. The quantiles are of single downloads with the same seed, with \
         protection and without. `ideal` is the ratio of a download over the same path without \
         losses."
            .to_owned(),
        "FlEC's receiver takes 5 % off its window, at least 10 kB, to store repair symbols. Nothing \
         is taken off here, because repair symbols are not flow-controlled data: the decoder has \
         memory of its own, as large as the window in this experiment. It holds what arrived of the \
         coding window, so that a receiver needs twice its window in all, with or without a \
         reserve. A repair symbol is dropped once it recovered something or its span was delivered."
            .to_owned(),
    ]
}
