//! From runs to tables.

use super::model::{self, Model};
use crate::Options;
use serde::Serialize;
use std::fmt;
use sutura_analysis::report::Report;
use sutura_analysis::statistics::Spread;
use sutura_analysis::table::{Cell, Table};
use sutura_benches::costs::Costs;

/// The kind of a small operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Requests with small answers, one at a time on each connection.
    Requests,
    /// The same from another port than the one that the client came from, so that its datagrams reach whichever
    /// worker the system chooses, which hands them to the worker that has the connection.
    Moved,
    Handshakes,
}

impl Load {
    pub const ALL: [Self; 3] = [Self::Requests, Self::Moved, Self::Handshakes];
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Moved => "requests of clients that have moved",
            Self::Handshakes => "handshakes",
        })
    }
}

/// The costs of one operation.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    pub load: Load,
    pub workers: usize,
    #[serde(flatten)]
    pub costs: Costs,
    /// How many connections each worker accepted.
    pub connections: Vec<u64>,
}

impl Run {
    /// The share of a worker that accepted this many connections, in per cent.
    fn share(&self, connections: Option<&u64>) -> f64 {
        let all: u64 = self.connections.iter().sum();
        connections.map_or(f64::NAN, |connections| *connections as f64 * 100.0 / all as f64)
    }

    fn least(&self) -> f64 {
        self.share(self.connections.iter().min())
    }

    fn most(&self) -> f64 {
        self.share(self.connections.iter().max())
    }
}

/// All runs, in the order in which they were made.
#[derive(Debug, Default, Serialize)]
pub struct Measurements {
    pub runs: Vec<Run>,
}

impl Measurements {
    fn of(&self, load: Load, workers: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.load == load && run.workers == workers)
    }

    /// A figure of many workers over that of one, round by round.
    fn ratio(&self, load: Load, workers: usize, figure: &dyn Fn(&Run) -> f64) -> Option<Spread> {
        let pairs = self.of(load, workers).zip(self.of(load, 1));
        Spread::of(pairs.map(|(many, one)| figure(many) / figure(one)))
    }

    pub fn report(&self, options: &Options, workers: usize) -> Report {
        let together = if options.accept_together {
            "one task accepts and serves all connections"
        } else {
            "each worker's connections are accepted and served on its thread"
        };
        let text = format!(
            "{} requests with answers of 1000 bytes, one at a time on each of {} connections, and {} \
             handshakes; {} rounds, median [smallest largest]. Each worker has a core, which it shares \
             with an equal part of the client; {together}.",
            options.requests, options.connections, options.handshakes, options.rounds
        );
        Report {
            name: "workers".to_owned(),
            title: "Several workers over the loopback device".to_owned(),
            text: vec![text, model::TEXT.to_owned()],
            tables: vec![self.table(workers), self.ratios(workers), self.outlook(options, workers)],
            ..Report::default()
        }
    }

    fn table(&self, workers: usize) -> Table {
        let rows = Load::ALL.into_iter().flat_map(|load| [(load, 1), (load, workers)]);
        let spread = |(load, workers): (Load, usize), figure: &dyn Fn(&Run) -> f64, places| {
            Cell::spread(Spread::of(self.of(load, workers).map(figure)), places)
        };
        Table::of(
            "Small operations",
            rows,
            &[
                ("load", &|row| row.0.to_string().into()),
                ("workers", &|row| (row.1 as u64).into()),
                ("per second", &|row| spread(*row, &|run| run.costs.per_second(), 0)),
                ("server CPU us", &|row| spread(*row, &|run| run.costs.server_cpu * 1e6, 1)),
                ("client CPU us", &|row| spread(*row, &|run| run.costs.client_cpu * 1e6, 1)),
                ("smallest share of connections, %", &|row| spread(*row, &Run::least, 1)),
                ("largest, %", &|row| spread(*row, &Run::most, 1)),
            ],
        )
    }

    /// What more cores would give, by the model.
    fn outlook(&self, options: &Options, workers: usize) -> Table {
        let median = |ratio: Option<Spread>| ratio.map_or(f64::NAN, |spread| spread.median);
        let cpu = |load| median(self.ratio(load, workers, &|run| run.costs.cpu()));
        let moved = self.of(Load::Moved, workers).zip(self.of(Load::Requests, workers));
        let moved = moved.map(|(moved, still)| moved.costs.cpu() / still.costs.cpu());
        let moved = median(Spread::of(moved)) - 1.0;
        let model = |load| Model {
            workers,
            more: cpu(load) - 1.0,
            moved,
            connections: options.connections,
        };
        let [requests, handshakes] = [Load::Requests, Load::Handshakes].map(model);
        let times = |speedup: f64| Cell::Text(format!("{speedup:.1}"));
        Table::of(
            "What more cores would give, over one",
            [2, 4, 8, 16, 32],
            &[
                ("cores", &|cores| (*cores as u64).into()),
                ("requests, if costs level off", &|c| times(requests.level(*c, 0.0))),
                ("if they grow", &|c| times(requests.growing(*c, 0.0))),
                ("if they level off and all clients have moved", &|c| {
                    times(requests.level(*c, 1.0))
                }),
                ("handshakes, if costs level off", &|c| times(handshakes.level(*c, 0.0))),
                ("if costs of handshakes grow", &|c| times(handshakes.growing(*c, 0.0))),
                ("balance", &|cores| Cell::Text(format!("{:.2}", requests.balance(*cores)))),
            ],
        )
    }

    fn ratios(&self, workers: usize) -> Table {
        let ratio = |load: Load, figure: &dyn Fn(&Run) -> f64| {
            Cell::spread(self.ratio(load, workers, figure), 2)
        };
        Table::of(
            "Many workers over one, round by round",
            Load::ALL,
            &[
                ("load", &|load| load.to_string().into()),
                ("rate", &|load| ratio(*load, &|run| run.costs.per_second())),
                ("CPU", &|load| ratio(*load, &|run| run.costs.cpu())),
                ("server CPU", &|load| ratio(*load, &|run| run.costs.server_cpu)),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_connections_and_ratios_of_the_same_round() {
        let run = |workers, seconds, connections: &[u64]| Run {
            load: Load::Requests,
            workers,
            costs: Costs { seconds, server_cpu: 1.0, client_cpu: 1.0 },
            connections: connections.to_vec(),
        };
        let runs = vec![
            run(1, 1.0, &[7]),
            run(2, 0.5, &[30, 70]),
            run(2, 5.0, &[50, 50]),
            run(1, 20.0, &[9]),
        ];
        assert_eq!((runs[1].least(), runs[1].most()), (30.0, 70.0));
        let ratio = Measurements { runs }.ratio(Load::Requests, 2, &|run| run.costs.per_second());
        assert_eq!(ratio, Some(Spread { median: 2.0, low: 2.0, high: 4.0 }));
    }
}
