//! The report on pairs of flows on random paths.

use std::time::Duration;

use sutura_analysis::statistics::mean;

use super::{AtQueue, DuelRuns, Figures, Pair, QUEUES, STAGGER};
use crate::Options;
use crate::comparison::Values;
use crate::report::{Cell, Report, Table, report_of};

/// The last of so many parts of the time is the end.
const END: u32 = 4;

pub(super) fn report(
    runs: &[DuelRuns],
    pairs: &[Pair],
    length: Duration,
    options: &Options,
) -> Report {
    let by_queue = AtQueue::all(runs, pairs);
    report_of(
        "BBR on random paths, beside quinn's CUBIC and among its own kind",
        &text(runs, pairs, length, options),
        [flows(&by_queue, length), paths(runs, pairs, length)],
        [],
    )
}

fn text(runs: &[DuelRuns], pairs: &[Pair], length: Duration, options: &Options) -> Vec<String> {
    let paths = runs.len() / pairs.len().max(1) / QUEUES.len();
    let seeds = runs.first().map_or(0, |run| run.runs.len());
    vec![
        format!(
            "Two downloads that do not end share a drop-tail bottleneck for {} s on each of {paths} random \
             paths, which lose nothing but in the queue: 2 to 30 Mbit/s and 15 to 200 ms, both drawn so that \
             each ratio is equally likely, with queues of 0.5, 1 and 4 bandwidth-delay products. The second \
             flow begins at a random time within the first {} s; which of two kinds begins is random as well, \
             and the same for all pairs and queues of a path. Runs of each pair: {seeds}, with seed {}.",
            length.as_secs(),
            (length / STAGGER).as_secs(),
            options.seed,
        ),
        format!(
            "A share is the throughput of a flow over half of the rate of the link, in UDP payload that arrives \
             in the last {} s; 1 is fair, less the headers. Jain's index is of the same time and of its last \
             {} s, and lost packets are those of all. Quantiles are over the paths: p10 of 20 paths is the \
             second smallest. `bbr:floor=off` is the draft's own.",
            (length - length / 3).as_secs(),
            (length / END).as_secs(),
        ),
    ]
}

/// The names of both flows of a pair.
fn names(pair: &Pair) -> [String; 2] {
    let [one, other] = [&pair.one, &pair.other].map(ToString::to_string);
    if pair.is_alike() { [format!("{one}, last"), format!("{other}, first")] } else { [one, other] }
}

/// A row for each flow of each pair at each queue.
fn flows(all: &[AtQueue<'_>], length: Duration) -> Table {
    let header = [
        "queue",
        "flow",
        "beside",
        "share p50",
        "p10 to p90",
        "least to most",
        "more than the other",
        "Jain p50",
        "p10",
        "worst",
        "at the end p50",
        "p10",
        "worst",
        "utilisation",
        "lost in queue",
        "queue delay",
    ];
    let mut table = Table::new("Shares of each flow, by queue", header);
    let range = |values: &Values, [from, to]: [f64; 2]| {
        Cell::from(format!("{:.2} to {:.2}", values.at(from), values.at(to)))
    };
    for row in all {
        let names = names(row.pair);
        let jain = row.values(|runs| runs.mean(Figures::jain));
        let end =
            row.values(|runs| runs.mean(|run| run.jain_within(length - length / END, length)));
        let of_all =
            |figure: fn(&Figures) -> f64| mean(row.rows.iter().map(|runs| runs.mean(figure)));
        for flow in [0, 1] {
            let shares = row.values(|runs| runs.share(flow));
            table.row([
                Cell::from(format!("{} BDP", row.queue)),
                names[flow].as_str().into(),
                names[1 - flow].as_str().into(),
                shares.cell(0.5),
                range(&shares, [0.1, 0.9]),
                range(&shares, [0.0, 1.0]),
                format!("{} of {}", row.ahead(flow), row.rows.len()).into(),
                jain.cell(0.5),
                jain.cell(0.1),
                jain.cell(0.0),
                end.cell(0.5),
                end.cell(0.1),
                end.cell(0.0),
                Cell::Share(of_all(Figures::utilisation)),
                Cell::Share(of_all(|run| run.overflow)),
                Cell::Millis(of_all(|run| run.queue_delay)),
            ]);
        }
    }
    table
}

/// A row for each queue of each path, with the shares of both flows of each pair.
fn paths(runs: &[DuelRuns], pairs: &[Pair], length: Duration) -> Table {
    let columns = ["path", "Mbit/s", "RTT", "queue", "kB", "begins", "apart"].map(str::to_owned);
    let header = columns.into_iter().chain(pairs.iter().map(ToString::to_string));
    let mut table = Table::new("Shares on each path", header);
    for row in runs.chunk_by(|a, b| a.setup.path == b.setup.path && a.setup.queue == b.setup.queue)
    {
        let Some(first) = row.first() else { continue };
        let path = &first.setup.path;
        let mut cells = vec![
            Cell::from(path.number),
            Cell::Number(path.rate as f64 / 1e6),
            path.rtt.into(),
            format!("{} BDP", first.setup.queue).into(),
            format!("{:.1}", path.queue(first.setup.queue) as f64 / 1e3).into(),
            if path.one_begins { "bbr" } else { "quinn" }.into(),
            format!("{:.1} s", path.later(length).as_secs_f64()).into(),
        ];
        cells.extend(
            row.iter()
                .map(|duel| Cell::from(format!("{:.2} / {:.2}", duel.share(0), duel.share(1)))),
        );
        table.row(cells);
    }
    table
}
