//! Nanoseconds for one decision of each stream scheduler, in memory, without a connection.
//!
//! Each round measures every subject once, and the order changes from round to round, so that other load on
//! the machine meets all subjects alike. The cost is CPU time.

mod report;
mod stand_in;
mod subject;

use clap::{Parser, ValueEnum};
use report::{Measurement, Results};
use serde::Serialize;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use subject::{Name, Subject};
use sutura_benches::output::Output;
use sutura_benches::{Error, exit_code};

/// Nanoseconds that each stream scheduler takes to decide whose turn it is.
///
/// A decision is the choice of a stream and the account of a full packet of it, while all streams
/// have something to send. The schedulers of other libraries are private parts of their connections
/// and cannot be called alone; `form-of-quinn` and `form-of-quiche` are stand-ins from the standard
/// library with the same data structure and the same operations, not measurements of those
/// libraries.
#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  schedule                                       everything, as Markdown
  schedule --quick                               a first look, in a second or two
  schedule --names hmm,hls --streams 100         two schemes with 100 streams, at all depths
  schedule --depths 1 --workloads replaced       streams that come and go, without classes
  schedule --json > schedule.json                every single measurement")]
struct Options {
    /// How many streams there are
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1_000, 10_000])]
    streams: Vec<u64>,
    /// How many levels the tree has, for the schemes with classes; 1 is without classes
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6],
          value_parser = clap::value_parser!(u32).range(1..=9))]
    depths: Vec<u32>,
    /// Which schemes and stand-ins [default: all]
    #[arg(long, value_delimiter = ',')]
    names: Vec<Name>,
    /// What happens between two decisions
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Workload::ALL)]
    workloads: Vec<Workload>,
    /// How often everything is measured
    #[arg(long, default_value_t = 41)]
    rounds: usize,
    /// Less of everything, for a first look
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

/// What happens between two decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Nothing: every stream always has more to send
    Backlogged,
    /// The stream that was served stops and starts again
    Pauses,
    /// The stream that was served is over, and a new one takes its place
    Replaced,
}

impl Workload {
    const ALL: [Self; 3] = [Self::Backlogged, Self::Pauses, Self::Replaced];
}

/// A subject with its measurements so far.
struct Running {
    subject: Box<dyn Subject>,
    /// Decisions of one measurement.
    decisions: u32,
    measurement: Measurement,
}

impl Running {
    /// Finds how many decisions take at least `slice`, and give each stream about two turns. The search also
    /// warms up the caches.
    fn new(
        name: Name,
        workload: Workload,
        streams: u64,
        depth: u32,
        slice: Duration,
    ) -> Result<Self, Error> {
        let mut subject = name.build(streams, depth)?;
        let mut decisions = u32::try_from(2 * streams).unwrap_or(u32::MAX).clamp(64, 1 << 24);
        loop {
            let time = subject.run(workload, decisions);
            if time >= slice || decisions >= 1 << 24 {
                break;
            }
            decisions *= 2;
        }
        let nanoseconds = Vec::new();
        let measurement = Measurement { name, workload, streams, depth, nanoseconds };
        Ok(Self { subject, decisions, measurement })
    }

    fn measure(&mut self) {
        let time = self.subject.run(self.measurement.workload, self.decisions);
        let nanoseconds = time.as_secs_f64() * 1e9 / f64::from(self.decisions);
        self.measurement.nanoseconds.push(nanoseconds);
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let (rounds, slice) = if options.quick { (5, 100) } else { (options.rounds.max(1), 500) };
    let slice = Duration::from_micros(slice);
    let names =
        if options.names.is_empty() { Name::all().collect() } else { options.names.clone() };
    let start = Instant::now();
    let mut measurements = Vec::new();
    for &workload in &options.workloads {
        for &streams in &options.streams {
            let streams = streams.max(1);
            let mut running = Vec::new();
            for &name in &names {
                let depths: &[u32] = if name.has_classes() { &options.depths } else { &[1] };
                for &depth in depths {
                    running.push(Running::new(name, workload, streams, depth, slice)?);
                }
            }
            for round in 0..rounds {
                let first = round % running.len().max(1);
                let (late, early) = running.split_at_mut(first);
                early.iter_mut().chain(late).for_each(Running::measure);
            }
            measurements.extend(running.into_iter().map(|running| running.measurement));
        }
    }
    let results = Results { rounds, seconds: start.elapsed().as_secs_f64(), measurements };
    options.output.write("schedule", &results.report(), &results)
}

fn main() -> ExitCode {
    exit_code("schedule", run(&Options::parse()))
}
