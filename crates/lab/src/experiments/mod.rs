//! One module per experiment.

pub mod holzinger_bulk;
pub mod holzinger_stream;
pub mod marx_stacks;
mod paper_path;

pub use paper_path::Channel;

use crate::{Error, Options, Report};

/// An experiment by its name.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(&Options) -> Result<Report, Error>,
}

/// All experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "holzinger-bulk",
        about: "Completion times of 32 kB and 1 MB over a path with bursts of loss",
        run: holzinger_bulk::run,
    },
    Experiment {
        name: "holzinger-stream",
        about: "Delay of the bytes of a steady stream over a path with bursts of loss",
        run: holzinger_stream::run,
    },
    Experiment {
        name: "marx-stacks",
        about: "How ten stacks multiplex ten files of 1 MB, and what loss holds up",
        run: marx_stacks::run,
    },
];
