//! One module per experiment.

/// Declares the experiment of a file, which its `run` runs: its name and its purpose, and how much of it a
/// [survey](crate::survey) runs: all, if it does not say.
macro_rules! experiment {
    ($name:literal: $about:literal) => {
        experiment! { $name: $about, one in 1 takes 5 s }
    };
    ($name:literal: $about:literal, one in $one_in:literal takes $seconds:literal s) => {
        pub(super) const EXPERIMENT: $crate::Experiment = $crate::Experiment {
            name: $name,
            about: $about,
            portion: $crate::experiments::Portion { one_in: $one_in, seconds: $seconds },
            run,
        };
    };
}

mod draw;
mod flec_path;
#[cfg(test)]
mod flec_targets;
mod holzinger_way;
mod marx_figures;
mod paper_path;
mod seeded;

pub use holzinger_way::Way;
pub use paper_path::Channel;

use crate::report::Report;
use crate::{Error, Options};

/// Declares the modules and lists their experiments.
macro_rules! experiments {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// All experiments.
        pub const EXPERIMENTS: &[Experiment] = &[$($module::EXPERIMENT),*];
    };
}

// A line for each experiment: the name of its file, which has an `experiment!`.
experiments! {
    auto_bulk,
    auto_shared,
    auto_zoo,
    campaign,
    controllers,
    controllers_paths,
    controllers_shared,
    eghbal_2022,
    eghbal_2025,
    eghbal_order,
    fec_bottleneck,
    flec_buffer,
    flec_buffer_design,
    flec_bulk,
    flec_controllers,
    flec_messages,
    flec_messages_design,
    holzinger_bulk,
    holzinger_http,
    holzinger_page,
    holzinger_stream,
    loss_floor,
    marx_pages,
    marx_link,
    marx_stacks,
    meetings,
    survival,
    vnc_scenes,
}

/// An experiment by its name.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub about: &'static str,
    /// How much of it a survey of all experiments runs.
    pub portion: Portion,
    /// Runs it.
    pub run: fn(&Options) -> Result<Report, Error>,
}

/// A part of an experiment that is large enough to show what it shows.
#[derive(Clone, Copy, Debug)]
pub struct Portion {
    /// Runs only one in this many repetitions ([`Options::reduce`]).
    pub one_in: u32,
    /// About how many seconds that takes on two processors, for those who wait.
    pub seconds: u32,
}
