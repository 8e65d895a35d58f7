//! FlEC's bulk rules with each congestion controller (Michel et al. 2022, sections VI-B1 and VI-B2): BBR and CUBIC,
//! both as they are here, where they know the floor of a path's loss, and as in the paper, where they answer every
//! loss.

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{quantile, sorted};
use sutura_analysis::table::{Cell, Table};
use sutura_proto::Algorithm;

use super::Experiment;
use super::flec_bulk::design;
use super::flec_path::{
    Download, Outcome, Path, distribution, mean_wire, median_time, points, protection,
};
use super::paper_path::seed;
use crate::{Error, Options, parallel};

/// Bytes of the files, with the number of seeds: long transfers differ less by chance.
const SIZES: [(u64, u64); 4] = [(10_000, 20), (100_000, 20), (1_000_000, 10), (10_000_000, 1)];
/// Files from this size on are left out of a quick look.
const LONG: u64 = 10_000_000;
const CONTROLLERS: [Algorithm; 4] = [
    Algorithm::BBR,
    Algorithm::BBR_WITHOUT_FLOOR,
    Algorithm::CUBIC,
    Algorithm::CUBIC_WITHOUT_FLOOR,
];
/// The policy.
const POLICY: &str = "bulk";

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "flec-controllers",
    about: "FlEC's bulk rules with BBR and CUBIC, with and without the floor of loss",
    run,
};

/// The downloads of one size with one controller over one path: without protection, and with the policy.
#[derive(Clone, Debug)]
struct Point {
    plain: Vec<Outcome>,
    with: Vec<Outcome>,
}

impl Point {
    fn of(path: Path, bytes: u64, congestion: Algorithm, seeds: &[u64]) -> Result<Self, Error> {
        let download = Download { path, bytes, buffer: None };
        let run = |policy| {
            let protection = protection(policy)?;
            let all = seeds.iter().map(|n| download.run_with(congestion, protection.as_ref(), *n));
            all.collect::<Result<Vec<_>, Error>>()
        };
        Ok(Self { plain: run(None)?, with: run(Some(POLICY))? })
    }

    /// What is taken from the downloads with the policy, divided by the same without.
    fn ratio(&self, of: fn(&[Outcome]) -> f64) -> f64 {
        let plain = of(&self.plain);
        if plain > 0.0 { of(&self.with) / plain } else { 1.0 }
    }
}

/// The paths of one size with one controller.
#[derive(Clone, Debug)]
struct Group {
    congestion: Algorithm,
    bytes: u64,
    points: Vec<Point>,
}

impl Group {
    /// What is taken from each path, in ascending order.
    fn sorted(&self, of: impl Fn(&Point) -> f64) -> Vec<f64> {
        sorted(self.points.iter().map(of))
    }

    fn faster(&self) -> f64 {
        let faster = self.points.iter().filter(|point| point.ratio(median_time) < 1.0);
        faster.count() as f64 / self.points.len().max(1) as f64
    }
}

/// Downloads a file over each of `paths` with a controller, `count` times without protection and with.
fn measure(
    paths: &[Path],
    (congestion, bytes): (Algorithm, u64),
    count: u64,
    options: &Options,
) -> Result<Group, Error> {
    let numbered: Vec<(u64, Path)> = (0u64..).zip(paths.iter().copied()).collect();
    let points = parallel::map(options, &numbered, |(number, path)| {
        let seeds = (0..count).map(|run| seed(options.seed, number * 10_000 + run));
        Point::of(*path, bytes, congestion, &seeds.collect::<Vec<_>>())
    })?;
    Ok(Group { congestion, bytes, points })
}

fn run(options: &Options) -> Result<Report, Error> {
    let paths = design(points(options));
    let mut groups = Vec::new();
    for (bytes, seeds) in
        SIZES.into_iter().filter(|(bytes, _)| options.reduce <= 1 || *bytes < LONG)
    {
        for congestion in CONTROLLERS {
            groups.push(measure(&paths, (congestion, bytes), options.seeds(seeds), options)?);
        }
    }
    Ok(report(&groups))
}

fn report(groups: &[Group]) -> Report {
    let ratio = |group: &Group, q| {
        Cell::Number(quantile(&group.sorted(|point| point.ratio(median_time)), q))
    };
    let time = |group: &Group, q| {
        Cell::Millis(1000.0 * quantile(&group.sorted(|point| median_time(&point.plain)), q))
    };
    let table = Table::of(
        format!("Downloads with `{POLICY}`, median times divided by those without protection"),
        groups,
        &[
            ("bytes", &|group| group.bytes.into()),
            ("controller", &|group| group.congestion.to_string().into()),
            ("time without p50", &|group| time(group, 0.5)),
            ("p95", &|group| time(group, 0.95)),
            ("ratio p5", &|group| ratio(group, 0.05)),
            ("p50", &|group| ratio(group, 0.5)),
            ("p95", &|group| ratio(group, 0.95)),
            ("worst", &|group| ratio(group, 1.0)),
            ("faster", &|group| Cell::Share(group.faster())),
            ("bytes ratio p50", &|group| {
                Cell::Number(quantile(&group.sorted(|point| point.ratio(mean_wire)), 0.5))
            }),
        ],
    );
    Report {
        title: "Bulk transfers with FlEC's rules, by congestion controller".to_owned(),
        text: text(),
        tables: vec![table],
        charts: CONTROLLERS.map(|congestion| chart(groups, congestion)).to_vec(),
        ..Report::default()
    }
}

fn chart(groups: &[Group], congestion: Algorithm) -> Chart {
    let of_controller = groups.iter().filter(|group| group.congestion == congestion);
    let series = of_controller.map(|group| {
        let ratios = group.sorted(|point| point.ratio(median_time));
        Series::line(format!("{} bytes", group.bytes), distribution(ratios))
    });
    Chart {
        name: congestion.to_string(),
        title: format!("Completion times with `{POLICY}` and {congestion}"),
        x: Axis::log("time divided by that without protection"),
        y: Axis::linear("share of paths"),
        baseline: None,
        panels: vec![Panel::of(series)],
    }
}

fn text() -> Vec<String> {
    vec![
        "Michel et al. 2022 (FlEC), sections VI-B1 and VI-B2: the paths and files of `flec-bulk`, with BBR and with \
         CUBIC. Both know the floor of a path's loss here, which does not slow them down; the paper's answer \
         every loss, as `floor=off` does."
            .to_owned(),
        "Times are medians over the seeds, from the request to the last byte, and the quantiles are over the \
         paths. The seeds are the same with every controller. `faster` is the share of paths with a lower median."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section VI-B2: with CUBIC as with BBR, the end of a file that is protected does not wait for a
    /// retransmission.
    #[test]
    fn bulk_is_faster_with_each_controller() {
        let paths = design(6);
        for congestion in CONTROLLERS {
            let group = measure(&paths, (congestion, 100_000), 5, &Options::default()).unwrap();
            let ratios = group.sorted(|point| point.ratio(median_time));
            assert!(quantile(&ratios, 0.5) < 0.97, "{congestion}: {ratios:?}");
            assert!(quantile(&ratios, 1.0) < 1.05, "{congestion}: {ratios:?}");
        }
    }

    /// A controller that answers every loss is slowed down by losses that it does not cause.
    #[test]
    fn cubic_without_the_floor_takes_longer() {
        let path = [Path::random([20.0, 50.0, 2.0, 0.0])];
        let time = |congestion| {
            let group = measure(&path, (congestion, 2_000_000), 3, &Options::default()).unwrap();
            median_time(&group.points[0].plain)
        };
        let [with, without] = [Algorithm::CUBIC, Algorithm::CUBIC_WITHOUT_FLOOR].map(time);
        assert!(without > 1.5 * with, "{without} {with}");
    }
}
