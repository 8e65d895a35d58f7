//! Messages with deadlines over a space-filling design of paths (Michel et al. 2022, section VIII-B, Fig.
//! 17).

use super::flec_messages::{Messages, Variant, run_once};
use super::flec_path::{Path, points};
use crate::comparison::{Runs, Values, seed};
use crate::design::{Range, latin_hypercube};
use crate::report::{Axis, Cell, Chart, Report, Series, Table, chart_of, report_of};
use crate::{Error, Options, message_trace};

/// The seed of the design: it is the same whatever the seed of the losses.
const DESIGN: u64 = 97;
/// The variant with which the others are compared: the paper's QUIC.
const BASELINE: Variant = Variant::RoundRobin;

experiment! {
    "flec-messages-design": "Messages with deadlines over 95 lossy paths",
    one in 2 takes 23 s
}

/// The paths: 0.8 to 30 Mbit/s, 5 to 200 ms one way, 0.1 to 3 % of loss each way.
fn design(count: usize) -> Vec<Path> {
    let loss = Range { low: 0.1, high: 3.0 };
    let ranges = [Range { low: 0.8, high: 30.0 }, Range { low: 5.0, high: 200.0 }, loss, loss];
    latin_hypercube(count, ranges, DESIGN).into_iter().map(Path::random).collect()
}

/// The outcomes of a variant on all paths, in their order, under its name.
type OfVariant = Runs<&'static str, Messages>;

/// The name of the baseline with other seeds.
const OTHER_LOSSES: &str = "QUIC, other losses";

/// A quantity of each run, divided by the same quantity of the baseline's run.
fn ratios(row: &OfVariant, baseline: &[Messages], of: fn(&Messages) -> f64) -> Values {
    Values::of(row.runs.iter().zip(baseline).map(|(run, plain)| of(run) / of(plain)))
}

fn run(options: &Options) -> Result<Report, Error> {
    let (paths, trace) = (design(points(options)), message_trace::tixeo()?);
    let count = paths.len() as u64;
    let of = |variants: &[(&'static str, Variant)], first: u64| {
        Runs::measure(options, variants, count, |(_, variant), n| {
            run_once(*variant, paths[n as usize], &trace, seed(options.seed, first + n))
        })
    };
    let variants = Variant::ALL.map(|variant| (variant.name(), variant));
    let all = [of(&variants, 0)?, of(&[(OTHER_LOSSES, BASELINE)], count)?].concat();
    let rows = all.into_iter().map(|Runs { setup: (name, _), runs }| Runs { setup: name, runs });
    Ok(report(&rows.collect::<Vec<_>>()))
}

fn report(rows: &[OfVariant]) -> Report {
    let baseline = rows.iter().find(|row| row.setup == BASELINE.name());
    let baseline = baseline.map_or(&[][..], |row| &row.runs);
    let at = |row: &OfVariant, of: fn(&Messages) -> f64, q| ratios(row, baseline, of).cell(q);
    let fewer =
        |row: &OfVariant| ratios(row, baseline, Messages::on_time).share_cell(|ratio| ratio < 1.0);
    let table = Table::of(
        "Messages in time and bytes, divided by those of QUIC with round robin",
        rows,
        &[
            ("variant", &|row| row.setup.into()),
            ("on time", &|row| row.mean_share_cell(Messages::on_time)),
            ("in time p5", &|row| at(row, Messages::on_time, 0.05)),
            ("p50", &|row| at(row, Messages::on_time, 0.5)),
            ("p95", &|row| at(row, Messages::on_time, 0.95)),
            ("worst", &|row| at(row, Messages::on_time, 0.0)),
            ("fewer", &|row| fewer(row)),
            ("bytes p5", &|row| at(row, Messages::bytes, 0.05)),
            ("bytes p50", &|row| at(row, Messages::bytes, 0.5)),
            ("bytes p95", &|row| at(row, Messages::bytes, 0.95)),
            ("repairs", &|row| Cell::Number(row.mean(|run| run.repairs as f64))),
        ],
    );
    let of = |name, label, of| ratio_chart(rows, baseline, (name, label), of);
    let charts = [
        of("on-time", "messages in time, for each with QUIC", Messages::on_time as fn(&_) -> _),
        of("bytes", "bytes, for each with QUIC", Messages::bytes),
    ];
    report_of("Messages with deadlines on many paths", &[TEXT], [table], charts)
}

const TEXT: &str = "Michel et al. 2022 (FlEC), section VIII-B, Fig. 17: the messages of `flec-messages` over \
     links of 0.8 to 30 Mbit/s, 5 to 200 ms one way and 0.1 to 3 % of loss each way, a \
     connection for each path. The paths are a Latin hypercube of our own. Ratios compare the \
     connections of a path, and the quantiles are over the paths; `fewer` is the share of \
     paths on which fewer messages are in time than without protection. The policies send other packets than \
     QUIC, so that others are lost: `QUIC, other losses`, the same without protection and with other seeds, shows what \
     that alone does to the ratios.";

fn ratio_chart(
    rows: &[OfVariant],
    baseline: &[Messages],
    (name, label): (&str, &str),
    of: fn(&Messages) -> f64,
) -> Chart {
    let others = rows.iter().filter(|row| row.setup != BASELINE.name());
    let series = others.map(|row| Series::line(row.setup, ratios(row, baseline, of).curve()));
    let axes = [Axis::linear(label), Axis::linear("share of paths")];
    chart_of(name, format!("Messages on many paths: {label}"), axes, series)
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
