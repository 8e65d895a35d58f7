//! From runs to tables.

use crate::Options;
use crate::client::Idle;
use crate::server::{Kind, Version};
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
    pub version: Version,
    pub load: Load,
    #[serde(flatten)]
    pub costs: Costs,
}

/// What silent connections of HTTP/3 take.
#[derive(Debug, Clone, Serialize)]
pub struct Rest {
    pub kind: Kind,
    #[serde(flatten)]
    pub idle: Idle,
}

/// All runs, in the order in which they were made.
#[derive(Debug, Default, Serialize)]
pub struct Measurements {
    pub runs: Vec<Run>,
    pub rests: Vec<Rest>,
}

/// A figure of one GET.
type Figure<'a> = &'a dyn Fn(&Costs) -> f64;

/// What a row is of.
type Case = (Version, Load, Kind);

impl Measurements {
    fn of(&self, (version, load, kind): Case) -> impl Iterator<Item = &Costs> {
        let of = move |run: &&Run| (run.version, run.load, run.kind) == (version, load, kind);
        self.runs.iter().filter(of).map(|run| &run.costs)
    }

    fn spread(&self, case: Case, figure: Figure<'_>, places: usize) -> Cell {
        Cell::spread(Spread::of(self.of(case).map(figure)), places)
    }

    /// Sutura over another server, round by round.
    fn ratio(&self, (version, load, other): Case, figure: Figure<'_>) -> Option<Spread> {
        let pairs = self.of((version, load, Kind::Sutura)).zip(self.of((version, load, other)));
        Spread::of(pairs.map(|(sutura, other)| figure(sutura) / figure(other)))
    }

    pub fn report(&self, options: &Options, versions: &[String]) -> Report {
        let loads = format!(
            "`sutura serve`, caddy and nginx ({}), each as it comes, with the same files and certificate. The client \
             is hyper's over TCP and Sutura's over QUIC, in one thread; it offers AES-128-GCM and X25519. GETs of a \
             file of 1000 bytes, {} for each row, over HTTP/1.1 on as many connections as are asked for at a time and \
             otherwise on one, and of one of {} kB, {} in each round; {} rounds, median [smallest largest].",
            versions.join(", "),
            options.requests,
            options.bytes / 1000,
            options.downloads,
            options.rounds,
        );
        let others = "caddy and nginx are those of Debian 12. nginx has no HTTP/3 in that version, writes no log of \
                      requests here, as the others do not, and may answer more than a thousand requests on a \
                      connection. The CPU time of a server is read in hundredths of a second, from before the first \
                      request to after the last answer."
            .to_owned();
        let mut tables = vec![self.small(options), self.large(options), self.ratios(options)];
        if options.idle > 0 {
            tables.push(self.idle(options));
        }
        Report {
            name: "http".to_owned(),
            title: "HTTP beside caddy and nginx over the loopback device".to_owned(),
            text: vec![loads, others],
            tables,
            ..Report::default()
        }
    }

    fn small(&self, options: &Options) -> Table {
        Table::of(
            "Small files",
            cases(options, &Kind::ALL).filter(|case| case.1 != Load::Large),
            &[
                ("version", &|case| case.0.to_string().into()),
                ("load", &|case| case.1.to_string().into()),
                ("server", &|case| case.2.to_string().into()),
                ("per second", &|case| self.spread(*case, &Costs::per_second, 0)),
                ("server CPU us", &|case| self.spread(*case, &|costs| costs.server_cpu * 1e6, 1)),
                ("client CPU us", &|case| self.spread(*case, &|costs| costs.client_cpu * 1e6, 1)),
            ],
        )
    }

    fn large(&self, options: &Options) -> Table {
        let gigabits = options.bytes as f64 * 8e-9;
        let gigabytes = options.bytes as f64 * 1e-9;
        Table::of(
            "Large files",
            cases(options, &Kind::ALL).filter(|case| case.1 == Load::Large),
            &[
                ("version", &|case| case.0.to_string().into()),
                ("server", &|case| case.2.to_string().into()),
                ("Gbit/s", &|case| self.spread(*case, &|costs| gigabits / costs.seconds, 2)),
                ("server CPU s/GB", &|case| {
                    self.spread(*case, &|costs| costs.server_cpu / gigabytes, 2)
                }),
                ("client CPU s/GB", &|case| {
                    self.spread(*case, &|costs| costs.client_cpu / gigabytes, 2)
                }),
            ],
        )
    }

    fn ratios(&self, options: &Options) -> Table {
        let ratio = |case: Case, figure: Figure<'_>| Cell::spread(self.ratio(case, figure), 2);
        Table::of(
            "Sutura over the other server, round by round",
            cases(options, &[Kind::Caddy, Kind::Nginx]),
            &[
                ("version", &|case| case.0.to_string().into()),
                ("load", &|case| case.1.to_string().into()),
                ("other", &|case| case.2.to_string().into()),
                ("rate", &|case| ratio(*case, &Costs::per_second)),
                ("server CPU", &|case| ratio(*case, &|costs| costs.server_cpu)),
                ("CPU", &|case| ratio(*case, &Costs::cpu)),
            ],
        )
    }

    fn idle(&self, options: &Options) -> Table {
        let spread = |kind: Kind, figure: &dyn Fn(&Idle) -> f64| {
            let of = self.rests.iter().filter(|rest| rest.kind == kind);
            Cell::spread(Spread::of(of.map(|rest| figure(&rest.idle) / 1000.0)), 1)
        };
        Table::of(
            format!(
                "{} connections of HTTP/3 that are silent after one GET: resident memory of the server, for each",
                options.idle
            ),
            Kind::ALL.into_iter().filter(|kind| kind.speaks(Version::Three)),
            &[
                ("server", &|kind| kind.to_string().into()),
                ("kB while open", &|kind| spread(*kind, &|idle| idle.open)),
                ("kB when over", &|kind| spread(*kind, &|idle| idle.over)),
            ],
        )
    }
}

/// All loads in all versions of HTTP with those of the servers that speak them.
fn cases<'a>(options: &'a Options, kinds: &'a [Kind]) -> impl Iterator<Item = Case> + 'a {
    Version::ALL.into_iter().flat_map(move |version| {
        let speaking = kinds.iter().filter(move |kind| kind.speaks(version));
        let speaking: Vec<Kind> = speaking.copied().collect();
        options.loads().flat_map(move |load| {
            speaking.clone().into_iter().map(move |kind| (version, load, kind))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let run = |kind, seconds| Run {
            kind,
            version: Version::Two,
            load: Load::Large,
            costs: Costs { seconds, server_cpu: seconds, client_cpu: 1.0 },
        };
        let runs = vec![
            run(Kind::Sutura, 1.0),
            run(Kind::Caddy, 2.0),
            run(Kind::Caddy, 40.0),
            run(Kind::Sutura, 10.0),
        ];
        let measurements = Measurements { runs, rests: Vec::new() };
        let case = (Version::Two, Load::Large, Kind::Caddy);
        let ratio = measurements.ratio(case, &Costs::per_second);
        assert_eq!(ratio, Some(Spread { median: 2.0, low: 2.0, high: 4.0 }));
    }
}
