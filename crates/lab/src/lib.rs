//! Experiments: workloads over the simulator, and reports.
//!
//! Each experiment is one module of [`experiments`] and has a name, by which [`run`] runs it. The answer is a
//! [`Report`] of `sutura-analysis`, which also has the statistics, tables and figures.
#![forbid(unsafe_code)]

#[macro_use]
mod named;

pub mod columns;
pub mod comparison;
pub mod demo;
pub mod design;
pub mod experiments;
pub mod gallery;
mod hosts;
pub mod ideal;
pub mod link_trace;
pub mod message_trace;
pub mod own;
pub mod pages;
pub mod papers;
mod parallel;
mod progress;
mod recorder;
mod report;
pub mod results;
pub mod screens;
pub mod survey;
pub mod web;

pub use experiments::{EXPERIMENTS, Experiment, Taken};
pub use progress::Progress;
use sutura_analysis::report::Report;

/// How to run an experiment.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed from which all randomness derives.
    pub seed: u64,
    /// Divides the number of repetitions by this, for a quick look.
    pub reduce: u32,
    /// How many configurations run at the same time.
    pub threads: usize,
    /// How many seeds to run, for experiments that repeat all runs with each seed. `None` leaves the number
    /// to the experiment.
    pub seeds: Option<u64>,
    /// How many pages to load, for experiments that load several; all of them if `None`.
    pub pages: Option<usize>,
    /// A file with [pages](pages::Page::read_file) to load instead of the shipped ones, where an experiment
    /// loads real pages.
    pub corpus: Option<std::path::PathBuf>,
    /// How many random cases to run, for experiments that draw them. `None` leaves the number to the
    /// experiment.
    pub paths: Option<u64>,
    /// Runs only the random case with this number.
    pub only: Option<u64>,
    /// How many seconds of virtual time each run takes, for experiments that let one choose. `None` leaves the
    /// time to the experiment.
    pub seconds: Option<u64>,
    /// The redundancy policies to compare, for experiments that compare some; the experiment's own if empty.
    pub policies: Vec<String>,
    /// The paths to run over, for experiments that take some; the experiment's own if empty.
    pub links: Vec<own::OwnPath>,
    /// The applications to run, for experiments that take some, as `own-paths` describes them; the experiment's own if
    /// empty.
    pub apps: Vec<String>,
    /// Connections that were recorded, for experiments that show such beside their own.
    pub recorded: Vec<own::OwnTrace>,
    /// Policies of one's own, which may be named among [`policies`](Self::policies).
    pub own: own::OwnPolicies,
    /// When bottlenecks could send, for experiments that draw paths: one for each path, in turn. Random rates if
    /// empty.
    pub traces: Vec<link_trace::LinkTrace>,
    /// Receives the progress of the experiment.
    pub progress: Progress,
    /// Where the results of single jobs are kept.
    pub results: results::Results,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            reduce: 1,
            threads: 2,
            seeds: None,
            pages: None,
            corpus: None,
            paths: None,
            only: None,
            seconds: None,
            policies: Vec::new(),
            links: Vec::new(),
            apps: Vec::new(),
            recorded: Vec::new(),
            own: own::OwnPolicies::default(),
            traces: Vec::new(),
            progress: Progress::default(),
            results: results::Results::default(),
        }
    }
}

impl Options {
    /// `count` repetitions divided by [`reduce`](Self::reduce); at least one.
    #[must_use]
    pub fn reduced(&self, count: u64) -> u64 {
        (count / u64::from(self.reduce.max(1))).max(1)
    }

    /// The names of the policies to compare: those that the options name, or else `usual`.
    #[must_use]
    pub fn policies_or<'a>(&'a self, usual: &[&'a str]) -> Vec<&'a str> {
        if self.policies.is_empty() {
            return usual.to_vec();
        }
        self.policies.iter().map(String::as_str).collect()
    }

    /// The redundancy policy `name`, one's own or a built-in one, or none.
    ///
    /// # Errors
    /// There is no such policy.
    pub fn redundancy(&self, name: Option<&str>) -> Result<comparison::Policy, Error> {
        match name.and_then(|name| self.own.redundancy(name)) {
            Some(own) => Ok(Some(own)),
            None => comparison::redundancy(name),
        }
    }

    /// How many seeds to run: the number in the options, or else `count`, [reduced](Self::reduced).
    #[must_use]
    pub fn seeds(&self, count: u64) -> u64 {
        self.seeds.map_or_else(|| self.reduced(count), |seeds| seeds.max(1))
    }
}

/// Why an experiment failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No experiment has this name.
    #[error("no experiment `{name}`; there are {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// A simulation failed.
    #[error("simulation: {0}")]
    Simulation(#[from] sutura_sim::Failure),
    /// The pages cannot be read.
    #[error("pages: {0}")]
    Pages(#[from] pages::CorpusError),
    /// A scheduler stopped before a page was complete.
    #[error("page `{page}` is never complete with scheme `{scheme}`")]
    Incomplete {
        /// The page.
        page: String,
        /// The scheme.
        scheme: sutura_schedule::Scheme,
    },
    /// A priority of an experiment cannot be read.
    #[error("priorities `{name}`: {error}")]
    Priority {
        /// The set that it belongs to.
        name: &'static str,
        /// Why.
        error: sutura_h3::PriorityError,
    },
    /// A trace of messages cannot be read.
    #[error("messages: {0}")]
    Trace(#[from] message_trace::TraceError),
    /// A trace of a link cannot be used.
    #[error(transparent)]
    LinkTrace(#[from] link_trace::LinkTraceError),
    /// A recording of a screen cannot be read.
    #[error(transparent)]
    Recording(#[from] screens::RecordingError),
    /// A policy of an experiment cannot be read.
    #[error("policy: {0}")]
    Policy(#[from] sutura_proto::registry::UnknownPolicy),
    /// An experiment has no use for an option.
    #[error("{name} does not take {option}; {takers}")]
    NotTaken {
        /// The experiment.
        name: &'static str,
        /// The option, as it is written on a command line.
        option: &'static str,
        /// Which experiments take it.
        takers: String,
    },
    /// A link's description is wrong.
    #[error("link: {0}")]
    Link(#[from] sutura_link::ParseError),
    /// The result of a job cannot be kept.
    #[error(transparent)]
    Result(#[from] results::ResultError),
}

fn names() -> String {
    EXPERIMENTS.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")
}

/// Runs the experiment `name`.
///
/// # Errors
/// No experiment has this name, or it fails.
pub fn run(name: &str, options: &Options) -> Result<Report, Error> {
    let unknown = || Error::Unknown { name: name.to_owned() };
    let experiment = EXPERIMENTS.iter().find(|e| e.name == name).ok_or_else(unknown)?;
    experiment.check(options)?;
    let report = (experiment.run)(options)?;
    Ok(Report { name: name.to_owned(), ..report })
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
