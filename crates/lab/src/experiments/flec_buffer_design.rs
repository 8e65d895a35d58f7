//! Receivers with small buffers over a space-filling design of paths (Michel et al. 2022, FlEC,
//! section VII-B2, Figs. 10 and 11): losses at random and in bursts.

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{mean, quantile, sorted};
use sutura_analysis::table::{Cell, Table};

use super::Experiment;
use super::flec_path::{
    Compared, Download, Outcome, Path, compare, distribution, mean_burst, mean_wire, median_time,
    points,
};
use crate::design::{Range, latin_hypercube};
use crate::{Error, Options};

/// Bytes of the file.
const BYTES: u64 = 5_000_000;
/// Receive windows.
const WINDOWS: [u64; 6] = [70_000, 150_000, 250_000, 400_000, 700_000, 3_000_000];
/// Downloads of each path with the first policy and without, and with those beside it.
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

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "flec-buffer-design",
    about: "5 MB over 95 lossy paths to receivers with small buffers",
    run,
};

/// Whether losses are independent or come in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Random,
    Bursts,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Bursts => "bursts",
        }
    }

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

/// The share of packets that are lost, in percent, if a burst begins with `begins` percent of the
/// packets that follow one that arrived.
fn share_lost(begins: f64) -> f64 {
    let lost = begins * mean_burst(BURST);
    100.0 * lost / (100.0 + lost)
}

/// The comparisons of a kind of loss and a window.
#[derive(Debug)]
struct Group {
    kind: Kind,
    window: u64,
    points: Vec<Compared>,
}

fn run(options: &Options) -> Result<Report, Error> {
    let mut groups = Vec::new();
    for kind in [Kind::Random, Kind::Bursts] {
        let paths = kind.design(points(options));
        for window in WINDOWS {
            let download =
                |path: &Path| Download { path: *path, bytes: BYTES, buffer: Some(window) };
            let downloads: Vec<_> = paths.iter().map(download).collect();
            let points = compare(options, &downloads, &POLICIES, SEEDS.map(|n| options.seeds(n)))?;
            groups.push(Group { kind, window, points });
        }
    }
    Ok(report(&groups))
}

type Row<'a> = (usize, &'a Group);

fn ratios((policy, group): &Row<'_>, of: impl Fn(&[Outcome]) -> f64 + Copy) -> Vec<f64> {
    sorted(group.points.iter().map(|point| point.ratio(*policy, of)))
}

/// A row for each policy and group.
fn time_table(groups: &[Group]) -> Table {
    let rows = (0..POLICIES.len()).flat_map(|n| groups.iter().map(move |group| (n, group)));
    let rows: Vec<Row<'_>> = rows.collect();
    let at = |row: &Row<'_>, q| Cell::Number(quantile(&ratios(row, median_time), q));
    let share = |(policy, group): &Row<'_>, holds: &dyn Fn(usize, &Compared) -> bool| {
        let count = group.points.iter().filter(|point| holds(*policy, point)).count();
        Cell::Share(count as f64 / group.points.len().max(1) as f64)
    };
    let limiting =
        |row: &Row<'_>| share(row, &|_, point| point.download.path.product() > row.1.window as f64);
    let ideal = |(_, group): &Row<'_>| {
        let ideals = group.points.iter().map(|point| point.ideal_ratio(median_time));
        Cell::Number(quantile(&sorted(ideals), 0.5))
    };
    let repairs = |(policy, group): &Row<'_>| {
        let all = group.points.iter().filter_map(|point| point.policies.get(*policy)).flatten();
        Cell::Number(mean(all.map(|outcome| outcome.repairs)))
    };
    Table::of(
        "Median time of a path with a policy, divided by that without protection",
        &rows,
        &[
            ("policy", &|(policy, _)| POLICIES[*policy].into()),
            ("losses", &|(_, group)| group.kind.name().into()),
            ("window", &|(_, group)| group.window.into()),
            ("limiting", &|row| limiting(row)),
            ("faster", &|row| share(row, &|policy, point| point.ratio(policy, median_time) < 1.0)),
            ("p5", &|row| at(row, 0.05)),
            ("p50", &|row| at(row, 0.5)),
            ("p95", &|row| at(row, 0.95)),
            ("worst", &|row| at(row, 1.0)),
            ("ideal p50", &|row| ideal(row)),
            ("bytes p50", &|row| Cell::Number(quantile(&ratios(row, mean_wire), 0.5))),
            ("bytes worst", &|row| Cell::Number(quantile(&ratios(row, mean_wire), 1.0))),
            ("repairs", &|row| repairs(row)),
        ],
    )
}

fn report(groups: &[Group]) -> Report {
    Report {
        title: "Receivers with small buffers on many paths".to_owned(),
        text: vec![format!(
            "Michel et al. 2022 (FlEC), section VII-B2, Figs. 10 and 11: 5 MB with BBR over links of 1 \
             to 30 Mbit/s and 5 to 200 ms one way. Losses are independent, 0.1 to 3 % each way, or \
             come in bursts, of which 0.1 to 1.5 % of packets begin one: each packet of a burst is the \
             last with a probability of a third (G_r of 33 %), and the fifth always is. The paths are \
             Latin hypercubes of our own; the medians are of {} seeds with `buffer`, and of {} with \
             Algorithm 2 to the letter, `buffer:literal`, the same with and without protection. \
             `limiting` is the share of paths that hold more than the window in a round trip, \
             `faster` that of paths with a lower median time. `ideal` is the ratio of a download over \
             the same path without losses.",
            SEEDS[0], SEEDS[1],
        )],
        tables: vec![time_table(groups), worst_table(groups)],
        charts: [Kind::Random, Kind::Bursts].map(|kind| chart(groups, kind)).to_vec(),
        ..Report::default()
    }
}

/// The paths on which the policy gains least.
fn worst_table(groups: &[Group]) -> Table {
    let ratio = |point: &Compared| point.ratio(0, median_time);
    let rows = groups.iter().flat_map(|group| {
        let mut points: Vec<_> = group.points.iter().map(|point| (group, point)).collect();
        points.sort_by(|(_, a), (_, b)| ratio(b).total_cmp(&ratio(a)));
        points.truncate(2);
        points
    });
    Table::of(
        format!("Paths on which `{}` gains least", POLICIES[0]),
        rows,
        &[
            ("losses", &|(group, _)| group.kind.name().into()),
            ("window", &|(group, _)| group.window.into()),
            ("path", &|(_, point)| point.download.path.to_string().into()),
            ("time ratio", &|(_, point)| Cell::Number(ratio(point))),
            ("time without", &|(_, point)| Cell::Millis(1000.0 * median_time(&point.plain))),
            ("bytes ratio", &|(_, point)| Cell::Number(point.ratio(0, mean_wire))),
        ],
    )
}

fn chart(groups: &[Group], kind: Kind) -> Chart {
    let groups = groups.iter().filter(|group| group.kind == kind);
    let series = groups.map(|group| {
        let ratios = ratios(&(0, group), median_time);
        Series::line(format!("{} kB", group.window / 1000), distribution(ratios))
    });
    Chart {
        name: kind.name().to_owned(),
        title: format!("Completion times with `buffer`, losses: {}", kind.name()),
        x: Axis::log("time divided by that without protection"),
        y: Axis::linear("share of paths"),
        baseline: None,
        panels: vec![Panel::of(series)],
    }
}
