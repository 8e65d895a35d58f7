//! From measurements to tables.

use crate::Options;
use crate::measure::{Measurement, Round, Shares};
use crate::replay::Cost;
use sutura_analysis::report::Report;
use sutura_analysis::statistics::Spread;
use sutura_analysis::table::{Cell, Table};

fn spread_of(m: &Measurement, figure: impl Fn(&Round) -> f64) -> Option<Spread> {
    Spread::of(m.rounds.iter().map(figure))
}

/// Median, smallest and largest of the rounds, with `digits` digits.
fn spread(m: &Measurement, digits: usize, figure: impl Fn(&Round) -> f64) -> Cell {
    Cell::spread(spread_of(m, figure), digits)
}

fn median(m: &Measurement, figure: impl Fn(&Round) -> f64) -> f64 {
    spread_of(m, figure).map_or(0.0, |s| s.median)
}

fn micros(seconds: f64) -> f64 {
    seconds * 1e6
}

fn loss(m: &Measurement) -> Cell {
    format!("{} %", m.loss * 100.0).into()
}

/// The transfers.
fn transfers(all: &[Measurement]) -> Table {
    Table::of(
        "Transfers without and with repair symbols",
        all,
        &[
            ("RTT ms", &|m| m.rtt_ms.into()),
            ("loss", &|m| loss(m)),
            ("Mbit/s without", &|m| spread(m, 1, |r| r.plain.megabits_per_second())),
            ("with", &|m| spread(m, 1, |r| r.protected.megabits_per_second())),
            ("smoothed RTT ms", &|m| {
                format!("{:.1}", median(m, |r| r.protected.server.rtt * 1e3)).into()
            }),
            ("packets without", &|m| {
                Cell::Count(median(m, |r| r.plain.server.packets_sent as f64) as u64)
            }),
            (
                "with",
                &|m| Cell::Count(median(m, |r| r.protected.server.packets_sent as f64) as u64),
            ),
            ("burst", &|m| m.burst.into()),
            ("repair symbols", &|m| Cell::Share(median(m, |r| r.protected.repair_share()))),
            ("mean span (max)", &|m| format!("{:.0} ({})", m.mean_span, m.max_span).into()),
            ("lost", &|m| m.recorded.server.packets_lost.into()),
            ("recovered", &|m| m.recovered.into()),
        ],
    )
}

/// The CPU time of packets.
fn packets(all: &[Measurement]) -> Table {
    Table::of(
        "CPU time per packet, and of the whole transfer",
        all,
        &[
            ("RTT ms", &|m| m.rtt_ms.into()),
            ("loss", &|m| loss(m)),
            ("server µs without", &|m| spread(m, 2, |r| micros(r.plain.cpu_per_packet().0))),
            ("with", &|m| spread(m, 2, |r| micros(r.protected.cpu_per_packet().0))),
            ("client µs without", &|m| spread(m, 2, |r| micros(r.plain.cpu_per_packet().1))),
            ("with", &|m| spread(m, 2, |r| micros(r.protected.cpu_per_packet().1))),
            ("server CPU with/without", &|m| {
                spread(m, 2, |r| r.protected.server.cpu / r.plain.server.cpu)
            }),
            ("client", &|m| spread(m, 2, |r| r.protected.client.cpu / r.plain.client.cpu)),
            ("both", &|m| spread(m, 2, |r| r.protected.cpu() / r.plain.cpu())),
        ],
    )
}

/// The cost of coding with one kernel in one round.
type Coding<'a> = &'a dyn Fn(&Round) -> Cost;

/// Coding's part, with the kernel that the transfers used and with other kernels.
fn coding(all: &[Measurement]) -> Table {
    let columns = [
        "RTT ms",
        "loss",
        "kernel",
        "server ns",
        "client ns",
        "server share %",
        "client share %",
        "both %",
    ];
    let mut table = Table::new("Erasure coding per packet, and its share of the CPU time", columns);
    let mut row = |m: &Measurement, tier: &str, coding: Coding| {
        let nanos = |part: fn((f64, f64)) -> f64| {
            let cost = median(m, |r| part(m.coding_per_packet(&coding(r))));
            Cell::Text(format!("{:.0}", 1e9 * cost))
        };
        let share =
            |part: fn(&Shares) -> f64| spread(m, 1, |r| 100.0 * part(&m.shares(r, &coding(r))));
        table.row([
            m.rtt_ms.into(),
            loss(m),
            tier.into(),
            nanos(|cost| cost.0),
            nanos(|cost| cost.1),
            share(|s| s.server),
            share(|s| s.client),
            share(|s| s.both),
        ]);
    };
    for m in all {
        row(m, m.tier, &|round| round.coding);
        for other in &m.others {
            row(m, other.tier, &|_| other.coding);
        }
    }
    table
}

fn conditions(all: &[Measurement]) -> String {
    let rounds = || all.iter().flat_map(|m| &m.rounds).flat_map(|r| [r.plain, r.protected]);
    let mean = Spread::of(rounds().map(|t| t.late_mean * 1e3));
    let worst = rounds().map(|t| t.late_max * 1e3).fold(0.0, f64::max);
    let mean = mean.map_or(0.0, |s| s.median);
    format!(
        "The relay sent datagrams on late by {mean:.2} ms on average (median of the transfers), \
         and by {worst:.1} ms at most."
    )
}

pub fn report(all: &[Measurement], options: &Options) -> Report {
    Report {
        name: "coding".to_owned(),
        title: "What erasure coding costs a transfer".to_owned(),
        text: vec![
            format!(
                "{} bytes over {}, {} bytes of UDP payload, {}, repair delay tolerance {} ms, \
                 coding window of {} symbols, {} rounds. Median [smallest largest] of the rounds; \
                 ratios and shares are those of one round each.",
                options.bytes,
                options.rate,
                options.payload,
                options.congestion,
                options.delay,
                options.window,
                options.rounds,
            ),
            conditions(all),
            "Packets are those that the server sent and those that the client received. A repair \
             symbol's span is the source symbols that it was made of. `lost` and `recovered` are of \
             the transfer that is replayed. A share is the replay's CPU time over that of the \
             thread in a protected transfer; with another kernel than the one that the transfer \
             used, the difference of the replays is added to the transfer."
                .to_owned(),
        ],
        tables: vec![transfers(all), packets(all), coding(all)],
        ..Report::default()
    }
}
