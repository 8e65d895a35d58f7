//! The report.

use std::time::Duration;

use sutura_analysis::statistics::{Distribution, millis};

use super::{Arrivals, ONE_WAY, Order, Pacing, Sending, Sendings, URGENT_MESSAGES, order};
use crate::report::{Axis, Cell, Chart, Panel, Report, Series, Table, panels_of, report_of};

/// A message that is later than this waited for a retransmission, which takes more than a round trip.
const WAITED: Duration = ONE_WAY;

impl Sending {
    fn policy_name(&self) -> &'static str {
        self.policy.unwrap_or("none")
    }
}

impl Sendings {
    /// When urgent messages were complete.
    fn urgent_messages(&self) -> Distribution {
        self.all_times(Arrivals::urgent)
    }
}

/// The summary of the same sender and loss without protection.
fn bare<'a>(summaries: &'a [Sendings], of: &'a Sendings) -> &'a Sendings {
    summaries.iter().find(|s| s.setup == of.setup.bare()).unwrap_or(of)
}

pub(super) fn report(summaries: &[Sendings], lossless: &[(Pacing, Duration)]) -> Report {
    report_of(
        "The order in which messages arrive",
        &[
            "Eghbal and Lu 2022, Fig. 1: five urgent resources of 35 kB and five others of 70 kB in \
             messages of 7 kB, 75 in all, over 1 Gbit/s with a round-trip time of 50 ms, with 2 % of \
             packets lost at random in each direction, or 1 %. The urgent ones are sent first, and \
             only they are protected. A resource is a stream, which is read in the order of arrival. A \
             message takes five packets, an urgent resource 25.",
            "`70 Mbit/s` is a fixed rate whatever is lost, like the paper's UDPBlast; the paper does not \
             give the rate, but its times fit this one. `BBR` is a congestion controller. Each \
             connection carried 4 MB before. Times are since the first byte could have arrived, 25 ms \
             after the messages were handed to the transport, as the paper counts.",
            "A connection waited if its last urgent message came more than half a round trip after the \
             time of a connection without losses. A message is displaced by the places between its \
             number and its rank in the order of completion. It is held if an earlier one is not complete \
             yet: a transport that keeps the order would not deliver it, and `held for` is how long that \
             would take, on average over all messages. More bytes are UDP payload from the server, \
             compared with no protection.",
        ],
        [urgent(summaries, lossless), orders(summaries), costs(summaries)],
        charts(summaries),
    )
}

type Column<'a> = (&'a str, &'a dyn Fn(&&Sendings) -> Cell);

/// A table with the columns that say which configuration it is.
fn table(title: &str, summaries: &[Sendings], columns: &[Column<'_>]) -> Table {
    let setup: [Column<'_>; 3] = [
        ("loss", &|s| format!("{} %", s.setup.loss).into()),
        ("sender", &|s| s.setup.sender.name().into()),
        ("protection", &|s| s.setup.policy_name().into()),
    ];
    let columns: Vec<Column<'_>> = setup.into_iter().chain(columns.iter().copied()).collect();
    Table::of(title, summaries.iter(), &columns)
}

fn urgent(summaries: &[Sendings], lossless: &[(Pacing, Duration)]) -> Table {
    let complete = |s: &Sendings, q| s.times(Arrivals::urgent_complete).cell(q);
    let waited = |s: &Sendings| {
        let own = lossless.iter().find(|(sender, _)| *sender == s.setup.sender);
        let least = own.map(|(_, time)| *time).unwrap_or_default();
        s.times(Arrivals::urgent_complete).cell_above(least + WAITED)
    };
    table(
        "Urgent messages",
        summaries,
        &[
            ("message p50", &|s| s.urgent_messages().cell(0.5)),
            ("p90", &|s| s.urgent_messages().cell(0.9)),
            ("p99", &|s| s.urgent_messages().cell(0.99)),
            ("all complete p50", &|s| complete(s, 0.5)),
            ("p90", &|s| complete(s, 0.9)),
            ("p99", &|s| complete(s, 0.99)),
            ("waited", &|s| waited(s)),
        ],
    )
}

fn orders(summaries: &[Sendings]) -> Table {
    type Of = fn(&Arrivals) -> Order;
    let urgent: Of = |run| order(run.urgent());
    let all: Of = |run| order(&run.completed);
    let places = |s: &Sendings, of: Of| s.mean_cell(|run| of(run).displaced);
    let most = |s: &Sendings, of: Of| s.mean_cell(|run| of(run).most_displaced as f64);
    let share = |s: &Sendings, of: Of| s.mean_share_cell(|run| of(run).held);
    let time = |s: &Sendings, of: Of| s.mean_millis_cell(|run| millis(of(run).held_for));
    table(
        "Order",
        summaries,
        &[
            ("urgent displaced", &|s| places(s, urgent)),
            ("at most", &|s| most(s, urgent)),
            ("held", &|s| share(s, urgent)),
            ("held for", &|s| time(s, urgent)),
            ("all displaced", &|s| places(s, all)),
            ("at most", &|s| most(s, all)),
            ("held", &|s| share(s, all)),
            ("held for", &|s| time(s, all)),
        ],
    )
}

fn costs(summaries: &[Sendings]) -> Table {
    let wire = |run: &Arrivals| run.wire as f64;
    table(
        "Costs",
        summaries,
        &[
            ("bytes", &|s| Cell::Count(s.mean(wire) as u64)),
            ("more", &|s| s.more_cell(bare(summaries, s), wire)),
            ("source symbols", &|s| s.mean_cell(|run| run.sources as f64)),
            ("repair symbols", &|s| s.mean_cell(|run| run.repairs as f64)),
            ("n/k", &|s| s.mean_cell(Arrivals::rate)),
            ("recovered", &|s| s.mean_cell(|run| run.recovered as f64)),
            ("bytes resent", &|s| Cell::Count(s.mean(|run| run.resent as f64) as u64)),
            ("all messages p50", &|s| s.times(Arrivals::all_complete).cell(0.5)),
            ("p99", &|s| s.times(Arrivals::all_complete).cell(0.99)),
        ],
    )
}

/// For each sender and loss, the messages of one connection as in the paper's figure, a panel for each
/// protection.
fn charts(summaries: &[Sendings]) -> Vec<Chart> {
    let same_channel = |a: &Sendings, b: &Sendings| a.setup.bare() == b.setup.bare();
    let chart = |group: &[Sendings]| {
        let Sending { loss, sender, .. } = group.first()?.setup;
        let channel = format!("{loss} % loss, {}", sender.name());
        let run = typical(group.first()?)?;
        let panels = group.iter().map(|s| {
            let completed = s.runs.get(run).map(|run| &run.completed[..]).unwrap_or_default();
            let points = |wanted: fn(usize) -> bool| {
                let messages = completed.iter().enumerate().filter(|(n, _)| wanted(*n));
                messages.map(|(n, at)| (millis(*at), n as f64)).collect()
            };
            let series = [
                Series::points("urgent", points(|n| n < URGENT_MESSAGES)),
                Series::points("others", points(|n| n >= URGENT_MESSAGES)),
            ];
            Panel { title: s.setup.policy_name().to_owned(), series: series.into() }
        });
        Some(panels_of(
            channel.as_str(),
            format!("When messages are complete: {channel}"),
            [Axis::linear("complete after ms"), Axis::linear("number of the message")],
            panels,
        ))
    };
    summaries.chunk_by(same_channel).filter_map(chart).collect()
}

/// The connection whose urgent messages take the median time.
fn typical(summary: &Sendings) -> Option<usize> {
    let median = summary.times(Arrivals::urgent_complete).quantile(0.5);
    summary.runs.iter().position(|run| run.urgent_complete() == median)
}
