//! From runs to tables.

use crate::Options;
use crate::server::Kind;
use serde::Serialize;
use std::fmt;
use sutura_analysis::report::Report;
use sutura_analysis::statistics::Spread;
use sutura_analysis::table::{Cell, Table};
use sutura_benches::costs::Costs;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Small files.
    Small { at_once: u64 },
    /// Large files, one after another.
    Large,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small { at_once: 1 } => f.write_str("small files, one after another"),
            Self::Small { at_once } => write!(f, "small files, {at_once} at a time"),
            Self::Large => f.write_str("large files, one after another"),
        }
    }
}

/// The costs of one GET.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    pub kind: Kind,
    pub load: Load,
    #[serde(flatten)]
    pub costs: Costs,
}

/// All runs, in the order in which they were made.
#[derive(Debug, Default, Serialize)]
pub struct Measurements {
    pub runs: Vec<Run>,
}

/// A figure of one GET.
type Figure<'a> = &'a dyn Fn(&Costs) -> f64;

impl Measurements {
    fn of(&self, kind: Kind, load: Load) -> impl Iterator<Item = &Costs> {
        let of = self.runs.iter().filter(move |run| run.kind == kind && run.load == load);
        of.map(|run| &run.costs)
    }

    fn spread(&self, (load, kind): (Load, Kind), figure: Figure<'_>, places: usize) -> Cell {
        Cell::spread(Spread::of(self.of(kind, load).map(figure)), places)
    }

    /// Sutura over caddy, round by round.
    fn ratio(&self, load: Load, figure: Figure<'_>) -> Option<Spread> {
        let pairs = self.of(Kind::Sutura, load).zip(self.of(Kind::Caddy, load));
        Spread::of(pairs.map(|(sutura, caddy)| figure(sutura) / figure(caddy)))
    }

    pub fn report(&self, options: &Options, versions: &[String; 2]) -> Report {
        let [sutura, caddy] = versions;
        let loads = format!(
            "`sutura serve` ({sutura}) and {caddy}, each as it comes, with the same files and certificate. The client \
             is Sutura's for both, in one thread and on one connection; it offers AES-128-GCM and X25519. GETs of a \
             file of 1000 bytes, {} for each row, and of one of {} MB, {} in each round; {} rounds, median [smallest \
             largest].",
            options.requests,
            options.bytes / 1_000_000,
            options.downloads,
            options.rounds,
        );
        let others = "caddy is that of Debian 12. nginx of Debian 12 is version 1.22, which has no HTTP/3. The \
                      CPU time of a server is read in hundredths of a second, from before the first request to \
                      after the last answer."
            .to_owned();
        Report {
            name: "http".to_owned(),
            title: "HTTP/3 beside caddy over the loopback device".to_owned(),
            text: vec![loads, others],
            tables: vec![self.small(options), self.large(options), self.ratios(options)],
            ..Report::default()
        }
    }

    fn small(&self, options: &Options) -> Table {
        let small = options.loads().filter(|load| *load != Load::Large);
        Table::of(
            "Small files",
            small.flat_map(|load| [(load, Kind::Sutura), (load, Kind::Caddy)]),
            &[
                ("load", &|row| row.0.to_string().into()),
                ("server", &|row| row.1.to_string().into()),
                ("per second", &|row| self.spread(*row, &Costs::per_second, 0)),
                ("server CPU us", &|row| self.spread(*row, &|costs| costs.server_cpu * 1e6, 1)),
                ("client CPU us", &|row| self.spread(*row, &|costs| costs.client_cpu * 1e6, 1)),
            ],
        )
    }

    fn large(&self, options: &Options) -> Table {
        let gigabits = options.bytes as f64 * 8e-9;
        let gigabytes = options.bytes as f64 * 1e-9;
        Table::of(
            "Large files",
            [Kind::Sutura, Kind::Caddy].map(|kind| (Load::Large, kind)),
            &[
                ("server", &|row| row.1.to_string().into()),
                ("Gbit/s", &|row| self.spread(*row, &|costs| gigabits / costs.seconds, 2)),
                ("server CPU s/GB", &|row| {
                    self.spread(*row, &|costs| costs.server_cpu / gigabytes, 2)
                }),
                ("client CPU s/GB", &|row| {
                    self.spread(*row, &|costs| costs.client_cpu / gigabytes, 2)
                }),
            ],
        )
    }

    fn ratios(&self, options: &Options) -> Table {
        let ratio = |load: Load, figure: Figure<'_>| Cell::spread(self.ratio(load, figure), 2);
        Table::of(
            "Sutura over caddy, round by round",
            options.loads(),
            &[
                ("load", &|load| load.to_string().into()),
                ("rate", &|load| ratio(*load, &Costs::per_second)),
                ("server CPU", &|load| ratio(*load, &|costs| costs.server_cpu)),
                ("CPU", &|load| ratio(*load, &Costs::cpu)),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let run = |kind, seconds| Run {
            kind,
            load: Load::Large,
            costs: Costs { seconds, server_cpu: seconds, client_cpu: 1.0 },
        };
        let runs = vec![
            run(Kind::Sutura, 1.0),
            run(Kind::Caddy, 2.0),
            run(Kind::Caddy, 40.0),
            run(Kind::Sutura, 10.0),
        ];
        let ratio = Measurements { runs }.ratio(Load::Large, &Costs::per_second);
        assert_eq!(ratio, Some(Spread { median: 2.0, low: 2.0, high: 4.0 }));
    }
}
