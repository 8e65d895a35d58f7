//! From measurements to tables.

use crate::Options;
use crate::measure::{Measurement, Round, Shares};
use crate::replay::Cost;
use sutura_benches::spread::Spread;
use sutura_lab::{Cell, Report, Table};

/// Median, smallest and largest of the rounds, with so many digits.
fn spread(m: &Measurement, digits: usize, figure: impl Fn(&Round) -> f64) -> Cell {
    let spread = Spread::of(m.rounds.iter().map(figure));
    Cell::Text(spread.map_or_else(|| "-".to_owned(), |s| format!("{s:.digits$}")))
}

fn median(m: &Measurement, figure: impl Fn(&Round) -> f64) -> f64 {
    Spread::of(m.rounds.iter().map(figure)).map_or(0.0, |s| s.median)
}

fn micros(seconds: f64) -> f64 {
    seconds * 1e6
}

fn case(m: &Measurement) -> Vec<Cell> {
    vec![Cell::Count(m.rtt_ms), Cell::Text(format!("{} %", m.loss * 100.0))]
}

fn table(caption: &str, columns: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    let columns = ["RTT ms", "loss"].iter().chain(columns).map(|&s| s.to_owned()).collect();
    Table { caption: caption.to_owned(), columns, rows }
}

/// What was transferred, and how.
fn transfers(all: &[Measurement]) -> Table {
    let rows = all.iter().map(|m| {
        let mut row = case(m);
        row.extend([
            spread(m, 1, |r| r.plain.megabits_per_second()),
            spread(m, 1, |r| r.protected.megabits_per_second()),
            Cell::Text(format!("{:.1}", median(m, |r| r.protected.server.rtt * 1e3))),
            Cell::Count(median(m, |r| r.plain.server.packets_sent as f64) as u64),
            Cell::Count(median(m, |r| r.protected.server.packets_sent as f64) as u64),
            Cell::Count(m.burst.into()),
            Cell::Share(median(m, |r| r.protected.repair_share())),
            Cell::Text(format!("{:.0} ({})", m.mean_span, m.max_span)),
            Cell::Count(m.recorded.server.packets_lost),
            Cell::Count(m.recovered),
        ]);
        row
    });
    let columns = [
        "Mbit/s without",
        "with",
        "smoothed RTT ms",
        "packets without",
        "with",
        "burst",
        "repair symbols",
        "mean span (max)",
        "lost",
        "recovered",
    ];
    table("Transfers without and with repair symbols", &columns, rows.collect())
}

/// What packets cost.
fn packets(all: &[Measurement]) -> Table {
    let rows = all.iter().map(|m| {
        let mut row = case(m);
        row.extend([
            spread(m, 2, |r| micros(r.plain.cpu_per_packet().0)),
            spread(m, 2, |r| micros(r.protected.cpu_per_packet().0)),
            spread(m, 2, |r| micros(r.plain.cpu_per_packet().1)),
            spread(m, 2, |r| micros(r.protected.cpu_per_packet().1)),
            spread(m, 2, |r| r.protected.server.cpu / r.plain.server.cpu),
            spread(m, 2, |r| r.protected.client.cpu / r.plain.client.cpu),
            spread(m, 2, |r| r.protected.cpu() / r.plain.cpu()),
        ]);
        row
    });
    let columns = [
        "server µs without",
        "with",
        "client µs without",
        "with",
        "server CPU with/without",
        "client",
        "both",
    ];
    table("CPU time per packet, and of the whole transfer", &columns, rows.collect())
}

/// Coding's part with one kernel: a cost for each round.
fn shares(m: &Measurement, tier: &str, coding: impl Fn(&Round) -> Cost) -> Vec<Cell> {
    let share = |part: fn(&Shares) -> f64| spread(m, 1, |r| 100.0 * part(&m.shares(r, &coding(r))));
    let per_packet = |r: &Round| m.coding_per_packet(&coding(r));
    let mut row = case(m);
    row.extend([
        Cell::from(tier),
        Cell::Text(format!("{:.0}", 1e9 * median(m, |r| per_packet(r).0))),
        Cell::Text(format!("{:.0}", 1e9 * median(m, |r| per_packet(r).1))),
        share(|s| s.server),
        share(|s| s.client),
        share(|s| s.both),
    ]);
    row
}

fn coding(all: &[Measurement]) -> Table {
    let rows = all.iter().flat_map(|m| {
        let own = shares(m, m.tier, |round| round.coding);
        let others = m.others.iter().map(|other| shares(m, other.tier, |_| other.coding));
        std::iter::once(own).chain(others)
    });
    let columns =
        ["kernel", "server ns", "client ns", "server share %", "client share %", "both %"];
    table("Erasure coding per packet, and its share of the CPU time", &columns, rows.collect())
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
        series: Vec::new(),
        ..Report::default()
    }
}
