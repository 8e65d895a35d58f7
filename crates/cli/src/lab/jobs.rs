//! `sutura lab jobs`, `run` and `merge`: an experiment as independent jobs, for several processes or machines that share
//! a directory or an object store.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use sutura_analysis::report::Report;
use sutura_lab::columns::Remembering;
use sutura_lab::results::{JobId, ResultError, ResultStore, Results, Share};
use sutura_lab::{Error, Progress};

use super::experiment::{ExperimentArgs, failure};
use super::place::KeptAt;
use super::{OutputArgs, print, program, tables};
use crate::failure::{Exit, Failure};
use crate::output;

const JOBS_EXAMPLES: &str = "\
Prints the names of the jobs that have no result yet, a line each. An experiment may have several rounds
of jobs, of which each needs the results of those before: once all jobs of a round are done, those of the
next are listed; nothing is listed when all is done.

Examples:
  sutura lab jobs flec-bulk --out results
  sutura lab jobs flec-bulk --out results | xargs -n 1 sutura lab run flec-bulk --out results --job
  sutura lab merge flec-bulk --out results --report flec-bulk.md
  sutura lab merge flec-bulk --out results --results flec-bulk.parquet
  sutura lab jobs flec-bulk --out s3://bucket/flec-bulk";

/// An experiment, and where the results of its jobs are.
#[derive(Debug, clap::Args)]
struct KeptArgs {
    /// The experiment
    name: String,
    /// Where the results are, one place for each experiment and its options: a directory, or the URL of a prefix in
    /// an object store (s3://, gs://, az://) with settings in the environment, if the program has the feature `cloud`
    #[arg(long, value_name = "DIRECTORY|URL")]
    out: KeptAt,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = JOBS_EXAMPLES)]
pub struct JobsArgs {
    #[command(flatten)]
    kept: KeptArgs,
    /// Print the round, its jobs that have no result, and how many jobs it has, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    kept: KeptArgs,
    /// The job, as `jobs` names it; may be repeated
    #[arg(long = "job", value_name = "JOB", required = true)]
    jobs: Vec<JobId>,
}

#[derive(Debug, clap::Args)]
pub struct MergeArgs {
    #[command(flatten)]
    kept: KeptArgs,
    /// Write each number and text in the results of the jobs to this file too, as a table in Parquet of job, path
    /// within the result, number and text, overwriting an existing one
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

impl KeptArgs {
    /// Runs a share of the experiment.
    fn run(&self, share: Share) -> Result<Result<Report, Error>, Failure> {
        self.run_with(self.store()?, share)
    }

    fn run_with(
        &self,
        store: Arc<dyn ResultStore>,
        share: Share,
    ) -> Result<Result<Report, Error>, Failure> {
        let results = Results::kept_in(store).share(share);
        let options = self.experiment.options(Progress::default(), results)?;
        Ok(sutura_lab::run(&self.name, &options))
    }

    fn store(&self) -> Result<Arc<dyn ResultStore>, Failure> {
        self.out.open(&format!("{} {}, by {}", self.name, self.experiment.key(), program()?))
    }
}

/// The jobs of a round that have no result.
#[derive(Debug, Serialize)]
struct Listed {
    round: usize,
    jobs: Vec<String>,
    of: usize,
}

/// Lists the jobs that have no result.
pub fn list(args: &JobsArgs) -> Result<Exit, Failure> {
    let listed = match args.kept.run(Share::Nothing)? {
        Err(Error::Result(ResultError::Missing { round, missing, of })) => {
            Some(Listed { round, jobs: missing.iter().map(ToString::to_string).collect(), of })
        }
        outcome => outcome.map(|_| None).map_err(|error| failure(&args.kept.name, error))?,
    };
    if args.json {
        output::json(&listed)?;
    } else {
        for job in listed.iter().flat_map(|listed| &listed.jobs) {
            output::line(job)?;
        }
    }
    Ok(Exit::Success)
}

/// Does some jobs.
pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    for job in &args.jobs {
        match args.kept.run(Share::One(*job))? {
            Err(Error::Result(ResultError::Done(_))) => {}
            Err(Error::Result(error @ ResultError::NoSuchJob { .. })) => {
                return Err(Failure::usage(error.to_string()));
            }
            Err(error) => return Err(failure(&args.kept.name, error)),
            Ok(_) => return Err(Failure::usage(format!("there is no job {job}: no such round"))),
        }
    }
    Ok(Exit::Success)
}

/// Makes the report of what all jobs have done.
pub fn merge(args: &MergeArgs) -> Result<Exit, Failure> {
    let store = Remembering::new(args.kept.store()?);
    let report = args.kept.run_with(Arc::new(store.clone()), Share::Nothing)?;
    let report = report.map_err(|error| match error {
        Error::Result(error @ ResultError::Missing { .. }) => {
            Failure::local(format!("{}: {error}: `sutura lab jobs` lists them", args.kept.name))
        }
        error => failure(&args.kept.name, error),
    })?;
    if let Some(path) = &args.results {
        tables::write_results(&store.loaded(), path)?;
    }
    print(&args.kept.name, &report, &args.output)
}
