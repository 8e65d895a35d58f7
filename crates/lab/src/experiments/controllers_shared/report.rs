//! The report on shared bottlenecks.

use std::time::Duration;

use sutura_analysis::statistics::millis;

use super::{Contests, Figures, INTERVAL, Interval};
use crate::Options;
use crate::report::{Axis, Cell, Chart, Panel, Report, Series, Table, panels_of, report_of};

/// How many flows a table names individually.
const FEW: usize = 3;
/// How many flows the charts over time show.
const DRAWN: usize = 3;

pub(super) fn report(summaries: &[Contests], length: Duration, options: &Options) -> Report {
    let mut losses: Vec<f64> = summaries.iter().map(|summary| summary.setup.loss).collect();
    losses.dedup();
    let mut charts: Vec<Chart> = Vec::new();
    for loss in losses {
        let drawn = |s: &&Contests| s.setup.loss == loss && s.setup.flows == DRAWN;
        let drawn: Vec<&Contests> = summaries.iter().filter(drawn).collect();
        charts.push(throughput(&drawn, loss));
        charts.push(queue_delay(&drawn, loss));
    }
    report_of(
        "Several flows at a bottleneck, by congestion controller",
        &text(summaries, length, options),
        [table(summaries)],
        charts,
    )
}

fn text(summaries: &[Contests], length: Duration, options: &Options) -> Vec<String> {
    let runs = summaries.first().map_or(0, |summary| summary.runs.len());
    vec![
        format!(
            "Downloads that do not end share 10 Mbit/s, a round-trip time of 100 ms and a drop-tail queue \
             of one bandwidth-delay product for {} s. They begin one after the other within the first \
             sixth, by turns where two kinds take part, quinn first; figures count from a third on, lost \
             packets from the beginning. Mean of {runs} runs with seed {}. quinn's BBR draws the phase of \
             its gain cycle from the operating system; what it takes part in differs from run to run.",
            length.as_secs(),
            options.seed,
        ),
        "A flow's fair share is the rate of the link divided by the number of flows; throughput is UDP \
         payload that arrives. In `a against b`, `newcomer` is the mean share of the flows of a, and \
         `incumbent` of those of b, and `to incumbent` is what those get as a multiple of what they get \
         among themselves. Random losses strike before the queue and take no capacity."
            .to_owned(),
    ]
}

/// The share of each flow, or the smallest and the largest; of the first run.
fn shares(summary: &Contests) -> String {
    let shares = summary.runs.first().map_or(&[][..], |run| &run.shares[..]);
    let text = |share: &f64| format!("{share:.2}");
    if shares.len() <= FEW {
        return shares.iter().map(text).collect::<Vec<_>>().join(" ");
    }
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let most = shares.iter().copied().fold(0.0, f64::max);
    format!("{} to {}", text(&least), text(&most))
}

fn table(summaries: &[Contests]) -> Table {
    let mixed = |s: &Contests, value: f64| s.setup.is_mixed().then_some(Cell::Number(value));
    Table::of(
        "Shared bottleneck",
        summaries,
        &[
            ("flows", &|s| s.setup.flows.into()),
            ("random loss", &|s| Cell::Share(s.setup.loss)),
            ("controllers", &|s| s.setup.name().into()),
            ("shares, first run", &|s| shares(s).into()),
            ("newcomer", &|s| mixed(s, s.share(1)).into()),
            ("incumbent", &|s| mixed(s, s.share(0)).into()),
            ("to incumbent", &|s| mixed(s, s.share(0) / s.among_themselves(summaries)).into()),
            ("Jain", &|s| s.mean_cell(Figures::jain)),
            ("utilisation", &|s| s.mean_share_cell(Figures::utilisation)),
            ("lost in queue", &|s| s.mean_share_cell(|run| run.overflow)),
            ("queue delay", &|s| s.mean_millis_cell(|run| run.queue_delay)),
        ],
    )
}

fn title(what: &str, loss: f64) -> String {
    format!("{what} of {DRAWN} flows, {} random loss", Cell::Share(loss))
}

/// The middle of an interval in seconds.
fn middle(index: usize) -> f64 {
    INTERVAL.as_secs_f64() * (index as f64 + 0.5)
}

/// A panel for each configuration, a curve for each flow of its first run.
fn throughput(summaries: &[&Contests], loss: f64) -> Chart {
    let curve = |(number, course): (usize, &Vec<Interval>)| {
        let rate = |interval: &Interval| interval.arrived as f64 * 8e-6 / INTERVAL.as_secs_f64();
        let points = course.iter().enumerate().map(|(i, at)| (middle(i), rate(at))).collect();
        Series::line(format!("flow {number}"), points)
    };
    let panel = |summary: &&Contests| Panel {
        title: summary.setup.name(),
        series: summary
            .runs
            .first()
            .map_or_else(Vec::new, |run| (1..).zip(&run.courses).map(curve).collect()),
    };
    panels_of(
        format!("throughput {loss}"),
        title("Throughput", loss),
        [Axis::linear("time in s"), Axis::linear("Mbit/s")],
        summaries.iter().map(panel),
    )
}

/// A panel for each configuration, with the queue delay of all flows of its first run.
fn queue_delay(summaries: &[&Contests], loss: f64) -> Chart {
    let panel = |summary: &&Contests| {
        let courses = summary.runs.first().map_or(&[][..], |run| &run.courses[..]);
        let length = courses.iter().map(Vec::len).max().unwrap_or(0);
        let points = (0..length).filter_map(|i| {
            let now = || courses.iter().filter_map(|course| course.get(i));
            let passed: u64 = now().map(|interval| interval.passed).sum();
            let waited: f64 = now().map(|interval| millis(interval.queued)).sum();
            (passed > 0).then(|| (middle(i), waited / passed as f64))
        });
        let series = Series::line("mean of all packets", points.collect());
        Panel { title: summary.setup.name(), series: vec![series] }
    };
    panels_of(
        format!("queue delay {loss}"),
        title("Queue delay", loss),
        [Axis::linear("time in s"), Axis::linear("queue delay in ms")],
        summaries.iter().map(panel),
    )
}
