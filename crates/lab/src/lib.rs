//! Experiments: workloads over the simulator, metrics, and reports.
//!
//! Each experiment is one module of [`experiments`] and has a name, by which [`run`] runs it. It
//! answers with a [`Report`], which can be read as Markdown and as JSON, and
//! has pictures.
#![forbid(unsafe_code)]

mod arrivals;
mod blocking;
pub mod experiments;
mod metrics;
mod multiplexing;
mod parallel;
mod plot;
mod report;

pub use arrivals::Arrival;
pub use blocking::{Blocking, Chunk, Deliveries, Kind};
pub use experiments::{EXPERIMENTS, Experiment};
pub use metrics::Distribution;
pub use multiplexing::{Mark, graph};
pub use plot::{Plot, charts};
pub use report::{Cell, Report, Series, Table};

/// How to run an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Everything random follows from it.
    pub seed: u64,
    /// Only one in so many of the repetitions, for a quick look.
    pub reduce: u32,
    /// How many configurations run at the same time.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, reduce: 1, threads: 2 }
    }
}

impl Options {
    /// What is left of `count` repetitions; at least one.
    #[must_use]
    pub fn reduced(&self, count: u64) -> u64 {
        (count / u64::from(self.reduce.max(1))).max(1)
    }
}

/// An experiment came to nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// There is none of that name.
    #[error("no experiment `{name}`; there are {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// A simulation failed.
    #[error("simulation: {0}")]
    Simulation(#[from] sutura_sim::Failure),
    /// A link's description is wrong.
    #[error("link: {0}")]
    Link(#[from] sutura_link::ParseError),
    /// A chart cannot be drawn.
    #[error("chart: {0}")]
    Plot(String),
}

fn names() -> String {
    EXPERIMENTS.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")
}

/// Runs the experiment `name`.
///
/// # Errors
/// There is none of that name, or it fails.
pub fn run(name: &str, options: &Options) -> Result<Report, Error> {
    let unknown = || Error::Unknown { name: name.to_owned() };
    let experiment = EXPERIMENTS.iter().find(|e| e.name == name).ok_or_else(unknown)?;
    (experiment.run)(options)
}
