//! Messages with deadlines over a space-filling design of paths (Michel et al. 2022, section VIII-B, Fig.
//! 17).

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{mean, quantile, sorted};
use sutura_analysis::table::{Cell, Table};

use super::Experiment;
use super::flec_messages::{Run, Variant, run_once};
use super::flec_path::{Path, distribution, points};
use super::paper_path::seed;
use crate::design::{Range, latin_hypercube};
use crate::{Error, Options, message_trace, parallel};

/// The seed of the design: it is the same whatever the seed of the losses.
const DESIGN: u64 = 97;
/// The variant to which the others are compared: the paper's QUIC.
const BASELINE: Variant = Variant::RoundRobin;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "flec-messages-design",
    about: "Messages with deadlines over 95 lossy paths",
    run,
};

/// The paths: 0.8 to 30 Mbit/s, 5 to 200 ms one way, 0.1 to 3 % of loss each way.
fn design(count: usize) -> Vec<Path> {
    let loss = Range { low: 0.1, high: 3.0 };
    let ranges = [Range { low: 0.8, high: 30.0 }, Range { low: 5.0, high: 200.0 }, loss, loss];
    latin_hypercube(count, ranges, DESIGN).into_iter().map(Path::random).collect()
}

/// What a variant did on all paths, in their order.
#[derive(Debug)]
struct Row {
    variant: Variant,
    runs: Vec<Run>,
}

impl Row {
    /// What is taken from each run, divided by the same of the baseline's, in ascending order.
    fn ratios(&self, baseline: &[Run], of: fn(&Run) -> f64) -> Vec<f64> {
        sorted(self.runs.iter().zip(baseline).map(|(run, plain)| of(run) / of(plain)))
    }
}

fn run(options: &Options) -> Result<Report, Error> {
    let (paths, trace) = (design(points(options)), message_trace::tixeo()?);
    let jobs: Vec<_> = Variant::ALL
        .into_iter()
        .flat_map(|variant| (0..).zip(&paths).map(move |(n, path)| (variant, *path, n)))
        .collect();
    let runs = parallel::map(options, &jobs, |(variant, path, n)| {
        run_once(*variant, *path, &trace, seed(options.seed, *n))
    })?;
    let mut runs = runs.into_iter();
    let rows = Variant::ALL.map(|variant| {
        let runs = runs.by_ref().take(paths.len()).collect();
        Row { variant, runs }
    });
    Ok(report(&rows))
}

fn report(rows: &[Row]) -> Report {
    let baseline = rows.iter().find(|row| row.variant == BASELINE);
    let baseline = baseline.map_or(&[][..], |row| &row.runs);
    let at =
        |row: &Row, of: fn(&Run) -> f64, q| Cell::Number(quantile(&row.ratios(baseline, of), q));
    let fewer = |row: &Row| {
        let ratios = row.ratios(baseline, Run::on_time);
        let count = ratios.iter().filter(|ratio| **ratio < 1.0).count();
        Cell::Share(count as f64 / ratios.len().max(1) as f64)
    };
    let table = Table::of(
        "Messages in time and bytes, divided by those of QUIC with round robin",
        rows,
        &[
            ("variant", &|row| row.variant.name().into()),
            ("on time", &|row| Cell::Share(mean(row.runs.iter().map(Run::on_time)))),
            ("in time p5", &|row| at(row, Run::on_time, 0.05)),
            ("p50", &|row| at(row, Run::on_time, 0.5)),
            ("p95", &|row| at(row, Run::on_time, 0.95)),
            ("worst", &|row| at(row, Run::on_time, 0.0)),
            ("fewer", &|row| fewer(row)),
            ("bytes p5", &|row| at(row, Run::bytes, 0.05)),
            ("bytes p50", &|row| at(row, Run::bytes, 0.5)),
            ("bytes p95", &|row| at(row, Run::bytes, 0.95)),
            ("repairs", &|row| Cell::Number(mean(row.runs.iter().map(|run| run.repairs as f64)))),
        ],
    );
    Report {
        title: "Messages with deadlines on many paths".to_owned(),
        text: vec![
            "Michel et al. 2022 (FlEC), section VIII-B, Fig. 17: the messages of `flec-messages` over \
             links of 0.8 to 30 Mbit/s, 5 to 200 ms one way and 0.1 to 3 % of loss each way, a \
             connection for each path. The paths are a Latin hypercube of our own. Ratios compare the \
             connections of a path, and the quantiles are over the paths; `fewer` is the share of \
             paths on which fewer messages are in time than without protection."
                .to_owned(),
        ],
        tables: vec![table],
        charts: vec![
            chart(rows, baseline, "on-time", "messages in time, for each with QUIC", Run::on_time),
            chart(rows, baseline, "bytes", "bytes, for each with QUIC", Run::bytes),
        ],
        ..Report::default()
    }
}

fn chart(rows: &[Row], baseline: &[Run], name: &str, label: &str, of: fn(&Run) -> f64) -> Chart {
    let others = rows.iter().filter(|row| row.variant != BASELINE);
    let series =
        others.map(|row| Series::line(row.variant.name(), distribution(row.ratios(baseline, of))));
    Chart {
        name: name.to_owned(),
        title: format!("Messages on many paths: {label}"),
        x: Axis::linear(label),
        y: Axis::linear("share of paths"),
        baseline: None,
        panels: vec![Panel::of(series)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_are_in_the_ranges_of_the_paper() {
        let paths = design(20);
        assert_eq!(paths.len(), 20);
        for path in paths {
            assert!((0.8..=30.0).contains(&path.mbit) && (5.0..=200.0).contains(&path.one_way_ms));
            assert!([path.loss_down, path.loss_up].iter().all(|loss| (0.1..=3.0).contains(loss)));
        }
    }

    /// Fig. 17: no fewer messages are in time than without protection, and more where a retransmission
    /// is not.
    #[test]
    fn more_messages_are_in_time_where_a_retransmission_is_not() {
        let trace = &message_trace::tixeo().unwrap()[..600];
        for (path, least) in [([4.0, 30.0, 2.0, 1.0], 0.995), ([6.0, 120.0, 2.0, 1.0], 1.01)] {
            let run = |variant| run_once(variant, Path::random(path), trace, 1).unwrap();
            let plain = run(BASELINE);
            for variant in [Variant::Messages, Variant::Literal, Variant::LiteralNoApi] {
                let gain = run(variant).on_time() / plain.on_time();
                assert!(gain >= least, "{path:?}, {}: {gain}", variant.name());
            }
        }
    }
}
