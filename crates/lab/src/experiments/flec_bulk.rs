//! Bulk transfers over a space-filling design of paths (Michel et al. 2022, FlEC, section VI-B,
//! Figs. 3 and 4): completion times with a policy divided by the times without.

use super::flec_path::{
    Completion, Download, Path, mean_time, mean_wire, median_cell, median_time, points,
    quantile_time, ratio_chart, worst,
};
use crate::comparison::{Arm, Compared, Grouped, Subject};
use crate::design::{Range, latin_hypercube};
use crate::report::{Chart, Report, Table, report_of};
use crate::{Error, Options};

/// Bytes of the files, with the number of seeds of the first policy, and of further policies: long transfers
/// differ less by chance, and they take longer to simulate.
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

experiment! {
    "flec-bulk": "Files of 10 kB to 10 MB over 95 lossy paths with FlEC's bulk rules" (Seeds, Policies),
    one in 5 takes 28 s
}

/// The paths: 1 to 30 Mbit/s, 5 to 100 ms one way, 0.1 to 8 % of loss each way.
pub(super) fn design(count: usize) -> Vec<Path> {
    let loss = Range { low: 0.1, high: 8.0 };
    let ranges = [Range { low: 1.0, high: 30.0 }, Range { low: 5.0, high: 100.0 }, loss, loss];
    latin_hypercube(count, ranges, DESIGN).into_iter().map(Path::random).collect()
}

/// The downloads of a size in bytes.
type SizeDownloads = Grouped<u64, Download>;
type SizeArm<'a> = Arm<'a, u64, Download>;

fn run(options: &Options) -> Result<Report, Error> {
    let paths = design(points(options));
    let policies = options.policies_or(&POLICIES);
    let (mut sizes, mut lossless) = (Vec::new(), Vec::new());
    for (bytes, seeds) in SIZES {
        let seeds = seeds.map(|count| options.seeds(count));
        let downloads: Vec<_> = paths.iter().map(|path| Download::new(*path, bytes)).collect();
        sizes.push((bytes, Compared::measure_to_ideal(options, &downloads, &policies, seeds)?));
        let downloads: Vec<_> = downloads.iter().map(Subject::lossless).collect();
        lossless.push((bytes, Compared::measure(options, &downloads, &policies, [1, 1])?));
    }
    let rows = Arm::each(&policies, &sizes);
    let tables = [
        ratio_table(
            "Median time of a path, divided by that without protection",
            &rows,
            median_time,
        ),
        ratio_table("Mean time", &rows, mean_time),
        ratio_table("Time that one in ten exceeds", &rows, |o| quantile_time(o, 0.9)),
        byte_table(&rows),
        lossless_table(&Arm::each(&policies, &lossless)),
        worst_table(&sizes, policies.first().copied().unwrap_or_default()),
    ];
    let charts: Vec<_> = rows.chunks(SIZES.len()).map(policy_chart).collect();
    Ok(report_of("Bulk transfers with FlEC's rules", &TEXT, tables, charts))
}

fn ratio_table(
    caption: &str,
    rows: &[SizeArm<'_>],
    of: impl Fn(&[Completion]) -> f64 + Copy,
) -> Table {
    let at = |row: &SizeArm<'_>, q| row.ratios(of).cell(q);
    let share = |row: &SizeArm<'_>, holds: fn(f64) -> bool| row.ratios(of).share_cell(holds);
    Table::of(
        caption,
        rows,
        &[
            ("policy", &|row| row.policy.into()),
            ("bytes", &|row| (*row.kind).into()),
            ("seeds", &|row| row.runs().into()),
            ("p5", &|row| at(row, 0.05)),
            ("p50", &|row| at(row, 0.5)),
            ("p95", &|row| at(row, 0.95)),
            ("p99", &|row| at(row, 0.99)),
            ("worst", &|row| at(row, 1.0)),
            ("below 0.995", &|row| share(row, |ratio| ratio < 0.995)),
            ("above 1.005", &|row| share(row, |ratio| ratio > 1.005)),
            ("ideal p50", &|row| row.ideal_ratios(of).cell(0.5)),
            ("ideal p95", &|row| row.ideal_ratios(of).cell(0.95)),
        ],
    )
}

fn byte_table(rows: &[SizeArm<'_>]) -> Table {
    Table::of(
        "Bytes from the server, divided by those without protection, and repair symbols",
        rows,
        &[
            ("policy", &|row| row.policy.into()),
            ("bytes", &|row| (*row.kind).into()),
            ("p5", &|row| row.ratios(mean_wire).cell(0.05)),
            ("p50", &|row| row.ratios(mean_wire).cell(0.5)),
            ("p95", &|row| row.ratios(mean_wire).cell(0.95)),
            ("worst", &|row| row.ratios(mean_wire).cell(1.0)),
            ("repairs", &|row| row.mean(|o| o.repairs)),
            ("recovered", &|row| row.mean(|o| o.recovered)),
        ],
    )
}

fn lossless_table(rows: &[SizeArm<'_>]) -> Table {
    Table::of(
        "The same paths without any loss",
        rows,
        &[
            ("policy", &|row| row.policy.into()),
            ("bytes", &|row| (*row.kind).into()),
            ("time p50", &|row| row.ratios(median_time).cell(0.5)),
            ("time worst", &|row| row.ratios(median_time).cell(1.0)),
            ("bytes p50", &|row| row.ratios(mean_wire).cell(0.5)),
            ("bytes worst", &|row| row.ratios(mean_wire).cell(1.0)),
        ],
    )
}

/// The paths on which each size gains least.
fn worst_table(sizes: &[SizeDownloads], policy: &str) -> Table {
    Table::of(
        format!("Paths on which `{policy}` gains least"),
        worst(sizes, 3),
        &[
            ("bytes", &|(bytes, _)| (**bytes).into()),
            ("path", &|(_, point)| point.setup.path.to_string().into()),
            ("time ratio", &|(_, point)| point.ratio_cell(0, median_time)),
            ("time without", &|(_, point)| median_cell(&point.plain)),
        ],
    )
}

fn policy_chart(sizes: &[SizeArm<'_>]) -> Chart {
    let name = sizes.first().map_or("", |size| size.policy);
    let curve = |size: &SizeArm<'_>| (format!("{} bytes", size.kind), size.ratios(median_time));
    let title = format!("Completion times with `{name}`");
    ratio_chart(name.replace(':', "-"), title, "paths", sizes.iter().map(curve))
}

const TEXT: [&str; 3] = [
    "Michel et al. 2022 (FlEC), section VI-B, Figs. 3 and 4: one file on a fresh connection with \
     BBR, over links of 1 to 30 Mbit/s, 5 to 100 ms one way and 0.1 to 8 % of loss each way, \
     drawn for each packet, with queues of one and a half bandwidth-delay products. The paths \
     are a Latin hypercube of our own, not the paper's points.",
    "Times are from the request to the last byte. A ratio compares a path's downloads with a \
     policy to those without, with the same seeds, and the quantiles are over the paths. Where \
     most downloads of a path lose nothing that matters, medians are equal with and without \
     protection, and it shows in means and in the time that one in ten exceeds. `ideal` is the \
     ratio of a download over the same path without losses: its quantiles are over the paths, too.",
    "The rules of Table II: `sr-arq` sends what is lost again as repair symbols; `ac-rlnc` adds \
     repair symbols once per round trip; `bulk` protects the last flight. `literal` is the paper to the \
     letter: `bulk:literal` makes symbols of all data, and sends as many repair symbols at the end as \
     losses are expected, `ac-rlnc:literal` one in each round trip. Table I's symbols are \
     fields of the core's `View`: `missing` (md), `added` (ad), `path.loss` (l) and \
     `path.floor.burst` (1/G_r; `path.burst` in literal rules).",
];
