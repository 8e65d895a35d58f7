//! Curves: costs by one thing that grows while all others stay the same.

mod crowd;
mod flow;
mod streams;

pub use flow::SEED;

use crate::Error;
use crate::gauge::{Gauge, Meter};
use crate::rows::Kind;
use sutura_proto::Side::{self, Client, Server};

/// A scene with one thing that grows.
#[derive(Debug)]
pub struct Curve {
    /// The name, for the command line and for files.
    pub name: &'static str,
    /// What is played.
    pub title: &'static str,
    /// What grows, with its unit.
    pub growing: &'static str,
    /// How much there is of it, in ascending order.
    pub points: &'static [f64],
    /// What is measured.
    pub series: &'static [Series],
}

/// One cost of a curve at one side.
#[derive(Debug)]
pub struct Series {
    /// What is counted, of what, and at which side.
    pub name: &'static str,
    side: Side,
    /// The kind of cost.
    pub kind: Kind,
    scene: Scene,
}

impl Series {
    const fn work(name: &'static str, side: Side, scene: Scene) -> Self {
        Self { name, side, kind: Kind::Work, scene }
    }

    const fn state(name: &'static str, side: Side, scene: Scene) -> Self {
        Self { name, side, kind: Kind::State, scene }
    }

    /// Plays the scene with this much of what grows, measures the work of its side, and returns by how much the
    /// cost is to be divided.
    ///
    /// # Errors
    /// The scene does not come to its end.
    pub fn run(&self, gauge: Gauge, amount: f64) -> Result<u64, Error> {
        (self.scene)(Meter::new(self.side, gauge), amount)
    }
}

/// Plays with this much of what grows.
type Scene = fn(Meter, f64) -> Result<u64, Error>;

/// All curves.
pub const CURVES: &[Curve] = &[
    Curve {
        name: "streams",
        title: "Exchanges one after another beside streams that are open and silent",
        growing: "open streams",
        points: &[1.0, 10.0, 100.0, 1000.0, 10_000.0],
        series: &[
            Series::work("exchange at the client", Client, streams::beside),
            Series::work("exchange at the server", Server, streams::beside),
            Series::state("open stream at the client", Client, streams::held),
            Series::state("open stream at the server", Server, streams::held),
        ],
    },
    Curve {
        name: "exchanges",
        title: "Exchanges that all begin at the same time",
        growing: "exchanges at a time",
        points: &[1.0, 10.0, 100.0, 1000.0, 10_000.0],
        series: &[
            Series::work("exchange at the client", Client, streams::at_once),
            Series::work("exchange at the server", Server, streams::at_once),
        ],
    },
    Curve {
        name: "connections",
        title: "A server's endpoint with one connection that works and others that are idle",
        growing: "idle connections",
        points: &[1.0, 8.0, 64.0, 512.0, 4096.0],
        series: &[
            Series::work("datagram received", Server, crowd::datagrams),
            Series::work("timer", Server, crowd::timers),
            Series::state("idle connection", Server, crowd::held),
        ],
    },
    Curve {
        name: "window",
        title: "A bulk stream over 40 ms at a rate that keeps this many packets in flight",
        growing: "packets in flight",
        points: &[10.0, 100.0, 1000.0, 10_000.0],
        series: &[
            Series::work("packet at the sender", Client, flow::by_window),
            Series::work("packet at the receiver", Server, flow::by_window),
            Series::state("packet in flight at the sender", Client, flow::held_by_window),
            Series::state("packet in flight at the receiver", Server, flow::held_by_window),
        ],
    },
    Curve {
        name: "gaps",
        title: "A bulk stream over 40 ms of which 5 % of the packets are lost at random",
        growing: "packets in flight",
        points: &[10.0, 40.0, 160.0, 640.0, 2560.0],
        series: &[
            Series::work("packet delivered, sender", Client, flow::by_gaps),
            Series::work("packet delivered, receiver", Server, flow::by_gaps),
            Series::work("packet delivered with `auto`, sender", Client, flow::by_gaps_with_auto),
            Series::work("packet delivered with `auto`, receiver", Server, flow::by_gaps_with_auto),
        ],
    },
    Curve {
        name: "losses",
        title: "A bulk stream of which packets are lost at random, 200 in flight over 40 ms",
        growing: "lost packets in percent",
        points: &[0.0, 0.1, 1.0, 5.0, 20.0],
        series: &[
            Series::work("packet delivered, sender", Client, flow::by_loss),
            Series::work("packet delivered, receiver", Server, flow::by_loss),
            Series::work("packet delivered with `auto`, sender", Client, flow::by_loss_with_auto),
            Series::work("packet delivered with `auto`, receiver", Server, flow::by_loss_with_auto),
        ],
    },
    Curve {
        name: "repair",
        title: "A bulk stream with a repair symbol after every 100, 30, 10 and 3 source symbols, 200 packets in \
                flight over 40 ms",
        growing: "repair symbols per 100 source symbols",
        points: &[0.0, 1.0, 100.0 / 30.0, 10.0, 100.0 / 3.0],
        series: &[
            Series::work("source packet at the sender", Client, flow::by_repair),
            Series::work("source packet at the receiver", Server, flow::by_repair),
        ],
    },
    Curve {
        name: "rtt",
        title: "A bulk stream of 5,000 packets a second, by its round-trip time",
        growing: "round-trip time in ms",
        points: &[1.0, 10.0, 100.0, 1000.0],
        series: &[
            Series::work("packet at the sender", Client, flow::by_rtt),
            Series::work("packet at the receiver", Server, flow::by_rtt),
            Series::state("connection at the sender", Client, flow::held_by_rtt),
            Series::state("connection at the receiver", Server, flow::held_by_rtt),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static MEASURED: Cell<u64> = const { Cell::new(0) };
    }

    fn gauge(work: &mut dyn FnMut()) {
        MEASURED.set(MEASURED.get() + 1);
        work();
    }

    #[test]
    fn every_series_measures_work_at_its_smallest_points() {
        for curve in CURVES {
            for (series, point) in curve.series.iter().flat_map(|s| [(s, 0), (s, 1)]) {
                MEASURED.set(0);
                let times = series.run(gauge, curve.points[point]);
                let times =
                    times.unwrap_or_else(|e| unreachable!("{} {}: {e}", curve.name, series.name));
                assert!(times > 0 && MEASURED.get() > 0, "{} {}", curve.name, series.name);
            }
        }
    }

    #[test]
    fn points_grow_by_powers() {
        for curve in CURVES {
            assert!((4..=6).contains(&curve.points.len()), "{}", curve.name);
            let ratios = curve.points.windows(2).filter(|w| w[0] > 0.0).map(|w| w[1] / w[0]);
            assert!(ratios.into_iter().all(|ratio| ratio >= 3.0), "{}", curve.name);
        }
    }
}
