//! The options of experiments.

use std::path::PathBuf;
use std::sync::Arc;

use sutura_lab::link_trace::LinkTrace;
use sutura_lab::own::{OwnPath, OwnPolicies, OwnTrace};
use sutura_lab::results::Results;
use sutura_lab::{Error, Options, Progress};

use super::threads;
use crate::analyse::load::{Record, load, resolve};
use crate::failure::{Exit, Failure};

/// What a single experiment does. Results depend on all of it but the number of threads.
#[derive(Clone, Debug, clap::Args)]
pub struct ExperimentArgs {
    /// Seed for everything random
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    seed: u64,
    /// Run only one in this many repetitions, for a quick look
    #[arg(long, value_name = "N", default_value_t = Options::default().reduce)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    reduce: u32,
    /// Number of seeds, for experiments that repeat everything for each seed [default: the
    /// experiment's own number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Number of random cases, in auto-zoo and controllers-paths [default: the experiment's own
    /// number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    paths: Option<u64>,
    /// Run only this random case, in auto-zoo
    #[arg(long, value_name = "N", conflicts_with = "paths")]
    only: Option<u64>,
    /// Virtual seconds of each run, in controllers-paths [default: the experiment's own number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// A redundancy policy to compare, in own-paths, auto-zoo, vnc-scenes and flec-bulk, -buffer, -buffer-design and
    /// -starlink; may be repeated [default: the experiment's own]
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,
    /// A path of your own, in own-paths: a link in both directions as `sutura link` has it, or LINK | back LINK; may
    /// be repeated
    #[arg(long = "path", value_name = "LINK", value_parser = read_path)]
    links: Vec<OwnPath>,
    /// An application of your own, in own-paths; may be repeated
    #[arg(long = "app", value_name = "APPLICATION")]
    apps: Vec<String>,
    /// A qlog file of your own, in marx-stacks: how its streams took turns, and what losses held up, beside the stacks;
    /// may be repeated
    #[arg(long = "qlog", value_name = "FILE")]
    qlogs: Vec<PathBuf>,
    /// A trace of the times at which the bottleneck sends, in the form of Mahimahi, in auto-zoo: milliseconds,
    /// one for each 1500 bytes; may be repeated [default: random rates]
    #[arg(long = "trace", value_name = "FILE")]
    traces: Vec<PathBuf>,
    /// Number of configurations to run in parallel [default: one per processor]
    #[arg(long, visible_alias = "jobs", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Load only this many pages, in experiments that load pages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pages: Option<u16>,
    /// Load the pages of this file in marx-pages and marx-link: an archive of a browser (HAR), or one JSON object per
    /// line in the format of docs/experiments-pages.md, plain or compressed with gzip
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
}

impl ExperimentArgs {
    /// The options for a run that tells its progress to `progress` and keeps its results in `results`.
    ///
    /// # Errors
    /// A trace cannot be read.
    pub fn options(&self, progress: Progress, results: Results) -> Result<Options, Failure> {
        let traces: Result<Vec<LinkTrace>, _> =
            self.traces.iter().map(|file| LinkTrace::read(file)).collect();
        Ok(Options {
            seed: self.seed,
            reduce: self.reduce,
            threads: threads(self.threads),
            pages: self.pages.map(usize::from),
            corpus: self.corpus.clone(),
            progress,
            seeds: self.seeds,
            paths: self.paths,
            only: self.only,
            seconds: self.seconds,
            policies: self.policies.clone(),
            links: self.links.clone(),
            apps: self.apps.clone(),
            recorded: recorded(&self.qlogs)?,
            own: OwnPolicies::default(),
            traces: traces.map_err(|error| Failure::local(error.to_string()))?,
            results,
        })
    }

    /// What results depend on, in words: two runs with the same words have the same results.
    pub fn key(&self) -> String {
        format!("{:?}", Self { threads: None, ..self.clone() })
    }
}

/// The connections in qlog files, each with what its other end sent if that is among them.
fn recorded(files: &[PathBuf]) -> Result<Vec<OwnTrace>, Failure> {
    let mut records = load(files)?;
    resolve(&mut records);
    let own = |Record { name, trace, order, .. }| OwnTrace {
        name,
        trace: Arc::new(trace),
        order: order.unwrap_or_default().into(),
    };
    Ok(records.into_iter().map(own).collect())
}

fn read_path(text: &str) -> Result<OwnPath, String> {
    OwnPath::read(text).map_err(|error| error.to_string())
}

/// What a failed experiment tells the user.
pub fn failure(name: &str, error: Error) -> Failure {
    match error {
        Error::Unknown { .. } | Error::NotTaken { .. } => Failure::usage(error.to_string()),
        Error::Pages(error) => Failure::local(error.to_string()),
        error => Failure::new(Exit::Other, format!("{name}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: ExperimentArgs,
    }

    #[test]
    fn results_depend_on_all_options_but_the_threads() {
        let key = |args: &[&str]| Command::parse_from(std::iter::once(&"x").chain(args)).args.key();
        assert_eq!(key(&["--threads", "7"]), key(&[]));
        for args in [["--seed", "2"], ["--seeds", "2"], ["--policy", "auto"], ["--corpus", "x"]] {
            assert_ne!(key(&args), key(&[]), "{args:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_qlog_is_named() {
        let args = Command::parse_from(["x", "--qlog", "Cargo.toml"]).args;
        let failure = args.options(Progress::default(), Results::default()).unwrap_err();
        assert!(failure.message.contains("cannot read Cargo.toml: "), "{failure:?}");
    }
}
