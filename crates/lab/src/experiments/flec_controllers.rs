//! FlEC's bulk rules with each congestion controller (Michel et al. 2022, sections VI-B1 and VI-B2): BBR and
//! CUBIC, both as they are here, where they know the floor of a path's loss, and as in the paper, where they
//! answer every loss.

use sutura_proto::Algorithm;

use super::flec_bulk::design;
use super::flec_path::{Download, Path, mean_wire, median_time, points, ratio_chart};
use crate::comparison::{Arm, Compared, Grouped, Values};
use crate::report::{Chart, Report, Table, report_of};
use crate::{Error, Options};

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

experiment! {
    "flec-controllers": "FlEC's bulk rules with BBR and CUBIC, with and without the floor of loss" (Seeds),
    one in 4 takes 2 s
}

/// The paths of a controller and a size in bytes.
type ControllerDownloads = Grouped<(Algorithm, u64), Download>;
type ControllerArm<'a> = Arm<'a, (Algorithm, u64), Download>;

/// Downloads a file over each of `paths` with a controller, `count` times without protection and with.
fn measure(
    paths: &[Path],
    (congestion, bytes): (Algorithm, u64),
    count: u64,
    options: &Options,
) -> Result<ControllerDownloads, Error> {
    let download = |path: &Path| Download { congestion, ..Download::new(*path, bytes) };
    let downloads: Vec<_> = paths.iter().map(download).collect();
    let points = Compared::measure(options, &downloads, &[POLICY], [count; 2])?;
    Ok(((congestion, bytes), points))
}

fn run(options: &Options) -> Result<Report, Error> {
    let paths = design(points(options));
    let mut groups = Vec::new();
    let shown = SIZES.into_iter().filter(|(bytes, _)| options.reduce <= 1 || *bytes < LONG);
    for (bytes, seeds) in shown {
        for congestion in CONTROLLERS {
            groups.push(measure(&paths, (congestion, bytes), options.seeds(seeds), options)?);
        }
    }
    let rows = Arm::each(&[POLICY], &groups);
    let charts = CONTROLLERS.map(|congestion| controller_chart(&rows, congestion));
    let title = "Bulk transfers with FlEC's rules, by congestion controller";
    Ok(report_of(title, &TEXT, [table(&rows)], charts))
}

fn table(rows: &[ControllerArm<'_>]) -> Table {
    let ratio = |row: &ControllerArm<'_>, q| row.ratios(median_time).cell(q);
    let time = |row: &ControllerArm<'_>, q| {
        let times = row.all.iter().map(|point| 1000.0 * median_time(&point.plain));
        Values::of(times).millis_cell(q)
    };
    Table::of(
        format!("Downloads with `{POLICY}`, median times divided by those without protection"),
        rows,
        &[
            ("bytes", &|row| row.kind.1.into()),
            ("controller", &|row| row.kind.0.to_string().into()),
            ("time without p50", &|row| time(row, 0.5)),
            ("p95", &|row| time(row, 0.95)),
            ("ratio p5", &|row| ratio(row, 0.05)),
            ("p50", &|row| ratio(row, 0.5)),
            ("p95", &|row| ratio(row, 0.95)),
            ("worst", &|row| ratio(row, 1.0)),
            ("faster", &|row| row.ratios(median_time).share_cell(|ratio| ratio < 1.0)),
            ("bytes ratio p50", &|row| row.ratios(mean_wire).cell(0.5)),
        ],
    )
}

fn controller_chart(rows: &[ControllerArm<'_>], congestion: Algorithm) -> Chart {
    let of_controller = rows.iter().filter(|row| row.kind.0 == congestion);
    let curves =
        of_controller.map(|row| (format!("{} bytes", row.kind.1), row.ratios(median_time)));
    let title = format!("Completion times with `{POLICY}` and {congestion}");
    ratio_chart(congestion.to_string(), title, "paths", curves)
}

const TEXT: [&str; 2] = [
    "Michel et al. 2022 (FlEC), sections VI-B1 and VI-B2: the paths and files of `flec-bulk`, with BBR and with \
     CUBIC. Both know the floor of a path's loss here, which does not slow them down; the paper's answer \
     every loss, as `floor=off` does.",
    "Times are medians over the seeds, from the request to the last byte, and the quantiles are over the \
     paths. The seeds are the same with every controller. `faster` is the share of paths with a lower median.",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Section VI-B2: with CUBIC as with BBR, the end of a file that is protected does not wait for a
    /// retransmission.
    #[test]
    fn bulk_is_faster_with_each_controller() {
        let paths = design(6);
        for congestion in CONTROLLERS {
            let group = [measure(&paths, (congestion, 100_000), 5, &Options::default()).unwrap()];
            let ratios = Arm::each(&[POLICY], &group)[0].ratios(median_time);
            assert!(ratios.at(0.5) < 0.97, "{congestion}: {ratios:?}");
            assert!(ratios.at(1.0) < 1.05, "{congestion}: {ratios:?}");
        }
    }

    /// A controller that answers every loss is slowed down by losses that it does not cause.
    #[test]
    fn cubic_without_the_floor_takes_longer() {
        let path = [Path::random([20.0, 50.0, 2.0, 0.0])];
        let time = |congestion| {
            let (_, points) =
                measure(&path, (congestion, 2_000_000), 3, &Options::default()).unwrap();
            median_time(&points[0].plain)
        };
        let [with, without] = [Algorithm::CUBIC, Algorithm::CUBIC_WITHOUT_FLOOR].map(time);
        assert!(without > 1.5 * with, "{without} {with}");
    }
}
