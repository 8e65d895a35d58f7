//! Receivers with small buffers over a space-filling design of paths (Michel et al. 2022, FlEC,
//! section VII-B2, Figs. 10 and 11): losses at random and in bursts.

use super::flec_path::{
    Download, Path, mean_burst, mean_wire, median_cell, median_time, points, ratio_chart, worst,
};
use crate::comparison::{Arm, Compared, Grouped, share};
use crate::design::{Range, latin_hypercube};
use crate::report::{Cell, Chart, Report, Table, report_of};
use crate::{Error, Options};

/// Bytes of the file.
const BYTES: u64 = 5_000_000;
/// Receive windows.
const WINDOWS: [u64; 6] = [70_000, 150_000, 250_000, 400_000, 700_000, 3_000_000];
/// Downloads of each path with the first policy and without protection, and with further policies.
const SEEDS: [u64; 2] = [20, 5];
/// The policies, in the order of the tables.
const POLICIES: [&str; 2] = ["buffer", "buffer:literal"];
/// The seed of the design: it is the same whatever the seed of the losses.
const DESIGN: u64 = 96;
/// The inverse of the chance that a packet of a burst is its last one (`G_r` of 33 %).
const BURST: f64 = 3.0;
/// How often a loss begins in percent, and the share of lost packets where losses are independent.
const BURSTY: Range = Range { low: 0.1, high: 1.5 };
const RANDOM: Range = Range { low: 0.1, high: 3.0 };

experiment! {
    "flec-buffer-design": "5 MB over 95 lossy paths to receivers with small buffers" (Seeds, Policies),
    one in 5 takes 26 s
}

named! {
    /// Whether losses are independent or come in bursts.
    enum LossKind {
        Random = "random",
        Bursts = "bursts",
    }
}

impl LossKind {
    /// The paths: 1 to 30 Mbit/s, 5 to 200 ms one way.
    fn design(self, count: usize) -> Vec<Path> {
        let (mbit, delay) = (Range { low: 1.0, high: 30.0 }, Range { low: 5.0, high: 200.0 });
        match self {
            Self::Random => {
                let ranges = [mbit, delay, RANDOM, RANDOM];
                latin_hypercube(count, ranges, DESIGN).into_iter().map(Path::random).collect()
            }
            Self::Bursts => {
                let path = |[mbit, one_way_ms, down, up]: [f64; 4]| Path {
                    burst: BURST,
                    ..Path::random([mbit, one_way_ms, share_lost(down), share_lost(up)])
                };
                let ranges = [mbit, delay, BURSTY, BURSTY];
                latin_hypercube(count, ranges, DESIGN).into_iter().map(path).collect()
            }
        }
    }
}

/// The share of packets that are lost, in percent, if a burst begins with `begins` percent of the packets
/// that follow a packet that arrived.
fn share_lost(begins: f64) -> f64 {
    let lost = begins * mean_burst(BURST);
    100.0 * lost / (100.0 + lost)
}

/// The downloads of a kind of loss and a window.
type WindowDownloads = Grouped<(LossKind, u64), Download>;
type WindowArm<'a> = Arm<'a, (LossKind, u64), Download>;

fn run(options: &Options) -> Result<Report, Error> {
    let seeds = SEEDS.map(|n| options.seeds(n));
    let policies = options.policies_or(&POLICIES);
    let first = policies.first().copied().unwrap_or_default();
    let mut groups = Vec::new();
    for kind in LossKind::ALL {
        let paths = kind.design(points(options));
        for window in WINDOWS {
            let download =
                |path: &Path| Download { buffer: Some(window), ..Download::new(*path, BYTES) };
            let downloads: Vec<_> = paths.iter().map(download).collect();
            let points = Compared::measure_to_ideal(options, &downloads, &policies, seeds)?;
            groups.push(((kind, window), points));
        }
    }
    let rows = Arm::each(&policies, &groups);
    let charts = LossKind::ALL.map(|kind| kind_chart(&rows, kind, first));
    let title = "Receivers with small buffers on many paths";
    Ok(report_of(title, &[&text(seeds)], [time_table(&rows), worst_table(&groups, first)], charts))
}

/// A row for each policy and group.
fn time_table(rows: &[WindowArm<'_>]) -> Table {
    let at = |row: &WindowArm<'_>, q| row.ratios(median_time).cell(q);
    let limiting = |row: &WindowArm<'_>| {
        let (_, window) = row.kind;
        share(row.all, |point| point.setup.path.product() > *window as f64)
    };
    Table::of(
        "Median time of a path with a policy, divided by that without protection",
        rows,
        &[
            ("policy", &|row| row.policy.into()),
            ("losses", &|row| row.kind.0.name().into()),
            ("window", &|row| row.kind.1.into()),
            ("limiting", &|row| Cell::Share(limiting(row))),
            ("faster", &|row| row.ratios(median_time).share_cell(|ratio| ratio < 1.0)),
            ("p5", &|row| at(row, 0.05)),
            ("p50", &|row| at(row, 0.5)),
            ("p95", &|row| at(row, 0.95)),
            ("worst", &|row| at(row, 1.0)),
            ("ideal p50", &|row| row.ideal_ratios(median_time).cell(0.5)),
            ("bytes p50", &|row| row.ratios(mean_wire).cell(0.5)),
            ("bytes worst", &|row| row.ratios(mean_wire).cell(1.0)),
            ("repairs", &|row| row.mean(|outcome| outcome.repairs)),
        ],
    )
}

fn text([buffer, literal]: [u64; 2]) -> String {
    format!(
        "Michel et al. 2022 (FlEC), section VII-B2, Figs. 10 and 11: 5 MB with BBR over links of 1 \
         to 30 Mbit/s and 5 to 200 ms one way. Losses are independent, 0.1 to 3 % each way, or \
         come in bursts, of which 0.1 to 1.5 % of packets begin one: each packet of a burst is the \
         last with a probability of a third (G_r of 33 %), and the fifth always is. The paths are \
         Latin hypercubes of our own; the medians are of {buffer} seeds with `buffer`, and of \
         {literal} with Algorithm 2 to the letter, `buffer:literal`, the same with and without \
         protection. \
         `limiting` is the share of paths that hold more than the window in a round trip, \
         `faster` that of paths with a lower median time. `ideal` is the ratio of a download over \
         the same path without losses.",
    )
}

/// The paths on which the policy gains least.
fn worst_table(groups: &[WindowDownloads], policy: &str) -> Table {
    Table::of(
        format!("Paths on which `{policy}` gains least"),
        worst(groups, 2),
        &[
            ("losses", &|((kind, _), _)| kind.name().into()),
            ("window", &|((_, window), _)| (*window).into()),
            ("path", &|(_, point)| point.setup.path.to_string().into()),
            ("time ratio", &|(_, point)| point.ratio_cell(0, median_time)),
            ("time without", &|(_, point)| median_cell(&point.plain)),
            ("bytes ratio", &|(_, point)| point.ratio_cell(0, mean_wire)),
        ],
    )
}

fn kind_chart(rows: &[WindowArm<'_>], kind: LossKind, policy: &str) -> Chart {
    let of_kind = rows.iter().filter(|row| row.policy == policy && row.kind.0 == kind);
    let curves = of_kind.map(|row| (format!("{} kB", row.kind.1 / 1000), row.ratios(median_time)));
    let title = format!("Completion times with `{policy}`, losses: {}", kind.name());
    ratio_chart(kind.name().to_owned(), title, "paths", curves)
}
