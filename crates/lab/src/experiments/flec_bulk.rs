//! Bulk transfers over a space-filling design of paths (Michel et al. 2022, FlEC, section VI-B,
//! Figs. 3 and 4): completion times with a policy divided by those without.

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{mean, quantile, sorted};
use sutura_analysis::table::{Cell, Table};

use super::Experiment;
use super::flec_path::{
    Compared, Download, Outcome, Path, compare, distribution, mean_time, mean_wire, median_time,
    points, quantile_time,
};
use crate::design::{Range, latin_hypercube};
use crate::{Error, Options};

/// Bytes of the files, with the number of seeds of the first policy, and of those beside it: long
/// transfers differ less by chance, and they take longer to simulate.
const SIZES: [(u64, [u64; 2]); 5] = [
    (10_000, [40, 20]),
    (40_000, [40, 20]),
    (100_000, [40, 20]),
    (1_000_000, [20, 10]),
    (10_000_000, [20, 3]),
];
/// The policies, in the order of the tables.
const POLICIES: [&str; 5] = ["bulk", "bulk:literal", "ac-rlnc", "ac-rlnc:literal", "sr-arq"];
/// The seed of the design: it is the same whatever the seed of the losses.
const DESIGN: u64 = 95;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "flec-bulk",
    about: "Files of 10 kB to 10 MB over 95 lossy paths with FlEC's bulk rules",
    run,
};

/// The paths: 1 to 30 Mbit/s, 5 to 100 ms one way, 0.1 to 8 % of loss each way.
pub(super) fn design(count: usize) -> Vec<Path> {
    let loss = Range { low: 0.1, high: 8.0 };
    let ranges = [Range { low: 1.0, high: 30.0 }, Range { low: 5.0, high: 100.0 }, loss, loss];
    latin_hypercube(count, ranges, DESIGN).into_iter().map(Path::random).collect()
}

/// The comparisons of one size.
#[derive(Debug)]
struct Size {
    bytes: u64,
    points: Vec<Compared>,
    /// On the same paths without any loss.
    lossless: Vec<Compared>,
}

fn run(options: &Options) -> Result<Report, Error> {
    let paths = design(points(options));
    let mut sizes = Vec::new();
    for (bytes, seeds) in SIZES {
        let seeds = seeds.map(|count| options.seeds(count));
        let download = |path: &Path| Download { path: *path, bytes, buffer: None };
        let downloads: Vec<_> = paths.iter().map(download).collect();
        let clear = |d: &Download| Download { path: d.path.lossless(), ..*d };
        let clear: Vec<_> = downloads.iter().map(clear).collect();
        sizes.push(Size {
            bytes,
            points: compare(options, &downloads, &POLICIES, seeds)?,
            lossless: compare(options, &clear, &POLICIES, [1, 1])?,
        });
    }
    Ok(report(&sizes))
}

/// What is taken from each point, in ascending order.
fn ratios(points: &[Compared], policy: usize, of: impl Fn(&[Outcome]) -> f64 + Copy) -> Vec<f64> {
    sorted(points.iter().map(|point| point.ratio(policy, of)))
}

fn report(sizes: &[Size]) -> Report {
    let rows = POLICIES.iter().enumerate();
    let rows: Vec<_> =
        rows.flat_map(|(n, name)| sizes.iter().map(move |size| (n, *name, size))).collect();
    Report {
        title: "Bulk transfers with FlEC's rules".to_owned(),
        text: text(),
        tables: vec![
            ratio_table(
                "Median time of a path, divided by that without protection",
                &rows,
                median_time,
            ),
            ratio_table("Mean time", &rows, mean_time),
            ratio_table("Time that one in ten exceeds", &rows, |o| quantile_time(o, 0.9)),
            byte_table(&rows),
            lossless_table(&rows),
            worst_table(sizes),
        ],
        charts: rows_of_policies(sizes),
        ..Report::default()
    }
}

type Row<'a> = (usize, &'static str, &'a Size);

fn ratio_table(caption: &str, rows: &[Row<'_>], of: impl Fn(&[Outcome]) -> f64 + Copy) -> Table {
    let ratios = |(policy, _, size): &Row<'_>| ratios(&size.points, *policy, of);
    let at = |row: &Row<'_>, q| Cell::Number(quantile(&ratios(row), q));
    let ideal = |(_, _, size): &Row<'_>, q| {
        let ratios = sorted(size.points.iter().map(|point| point.ideal_ratio(of)));
        Cell::Number(quantile(&ratios, q))
    };
    let share = |row: &Row<'_>, holds: fn(f64) -> bool| {
        let ratios = ratios(row);
        let count = ratios.iter().filter(|ratio| holds(**ratio)).count();
        Cell::Share(count as f64 / ratios.len().max(1) as f64)
    };
    let seeds = |(policy, _, size): &Row<'_>| {
        let outcomes = size.points.first().and_then(|point| point.policies.get(*policy));
        Cell::from(outcomes.map(Vec::len))
    };
    Table::of(
        caption,
        rows,
        &[
            ("policy", &|(_, name, _)| (*name).into()),
            ("bytes", &|(_, _, size)| size.bytes.into()),
            ("seeds", &|row| seeds(row)),
            ("p5", &|row| at(row, 0.05)),
            ("p50", &|row| at(row, 0.5)),
            ("p95", &|row| at(row, 0.95)),
            ("p99", &|row| at(row, 0.99)),
            ("worst", &|row| at(row, 1.0)),
            ("below 0.995", &|row| share(row, |ratio| ratio < 0.995)),
            ("above 1.005", &|row| share(row, |ratio| ratio > 1.005)),
            ("ideal p50", &|row| ideal(row, 0.5)),
            ("ideal p95", &|row| ideal(row, 0.95)),
        ],
    )
}

fn byte_table(rows: &[Row<'_>]) -> Table {
    let ratios = |(policy, _, size): &Row<'_>| ratios(&size.points, *policy, mean_wire);
    let sum = |(policy, _, size): &Row<'_>, of: fn(&Outcome) -> f64| {
        let outcomes = size.points.iter().filter_map(|point| point.policies.get(*policy));
        Cell::Number(mean(outcomes.flatten().map(of)))
    };
    Table::of(
        "Bytes from the server, divided by those without protection, and repair symbols",
        rows,
        &[
            ("policy", &|(_, name, _)| (*name).into()),
            ("bytes", &|(_, _, size)| size.bytes.into()),
            ("p5", &|row| Cell::Number(quantile(&ratios(row), 0.05))),
            ("p50", &|row| Cell::Number(quantile(&ratios(row), 0.5))),
            ("p95", &|row| Cell::Number(quantile(&ratios(row), 0.95))),
            ("worst", &|row| Cell::Number(quantile(&ratios(row), 1.0))),
            ("repairs", &|row| sum(row, |o| o.repairs)),
            ("recovered", &|row| sum(row, |o| o.recovered)),
        ],
    )
}

fn lossless_table(rows: &[Row<'_>]) -> Table {
    let at = |(policy, _, size): &Row<'_>, of: fn(&[Outcome]) -> f64, q| {
        Cell::Number(quantile(&ratios(&size.lossless, *policy, of), q))
    };
    Table::of(
        "The same paths without any loss",
        rows,
        &[
            ("policy", &|(_, name, _)| (*name).into()),
            ("bytes", &|(_, _, size)| size.bytes.into()),
            ("time p50", &|row| at(row, median_time, 0.5)),
            ("time worst", &|row| at(row, median_time, 1.0)),
            ("bytes p50", &|row| at(row, mean_wire, 0.5)),
            ("bytes worst", &|row| at(row, mean_wire, 1.0)),
        ],
    )
}

/// The paths on which each size gains least.
fn worst_table(sizes: &[Size]) -> Table {
    let ratio = |point: &Compared| point.ratio(0, median_time);
    let worst = |size: &Size| {
        let mut points: Vec<_> = size.points.clone();
        points.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        points.truncate(3);
        points
    };
    let rows: Vec<_> = sizes.iter().flat_map(worst).collect();
    Table::of(
        format!("Paths on which `{}` gains least", POLICIES[0]),
        &rows,
        &[
            ("bytes", &|point| point.download.bytes.into()),
            ("path", &|point| point.download.path.to_string().into()),
            ("time ratio", &|point| Cell::Number(ratio(point))),
            ("time without", &|point| Cell::Millis(1000.0 * median_time(&point.plain))),
        ],
    )
}

fn rows_of_policies(sizes: &[Size]) -> Vec<Chart> {
    let chart = |(policy, name): (usize, &&str)| Chart {
        name: name.replace(':', "-"),
        title: format!("Completion times with `{name}`"),
        x: Axis::log("time divided by that without protection"),
        y: Axis::linear("share of paths"),
        baseline: None,
        panels: vec![Panel::of(sizes.iter().map(|size| {
            let ratios = ratios(&size.points, policy, median_time);
            Series::line(format!("{} bytes", size.bytes), distribution(ratios))
        }))],
    };
    POLICIES.iter().enumerate().map(chart).collect()
}

fn text() -> Vec<String> {
    vec![
        "Michel et al. 2022 (FlEC), section VI-B, Figs. 3 and 4: one file on a fresh connection with \
         BBR, over links of 1 to 30 Mbit/s, 5 to 100 ms one way and 0.1 to 8 % of loss each way, \
         drawn for each packet, with queues of one and a half bandwidth-delay products. The paths \
         are a Latin hypercube of our own, not the paper's points."
            .to_owned(),
        "Times are from the request to the last byte. A ratio compares a path's downloads with a \
         policy to those without, with the same seeds, and the quantiles are over the paths. Where \
         most downloads of a path lose nothing that matters, medians are equal with and without \
         protection, and it shows in means and in the time that one in ten exceeds. `ideal` is the \
         ratio of a download over the same path without losses: its quantiles are over the paths, too."
            .to_owned(),
        "The rules of Table II: `sr-arq` sends what is lost again as repair symbols; `ac-rlnc` adds \
         repair symbols once per round trip; `bulk` protects the last flight. `literal` is the paper to the \
         letter: `bulk:literal` makes symbols of all data, and sends as many repair symbols at the end as \
         losses are expected, `ac-rlnc:literal` one in each round trip. Table I's symbols are \
         fields of the core's `View`: `missing` (md), `added` (ad), `path.loss` (l) and \
         `path.floor.burst` (1/G_r; `path.burst` in literal rules)."
            .to_owned(),
    ]
}
