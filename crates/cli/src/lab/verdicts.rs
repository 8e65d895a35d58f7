//! `sutura lab verdicts`: what several runs of `sutura lab all` found, beside each other.

use std::path::PathBuf;

use sutura_lab::gallery;
use sutura_lab::survey::shown_in;

use super::{OutputArgs, print};
use crate::failure::{Exit, Failure};

const EXAMPLES: &str = "\
A row for each figure and table of the papers, with the command that shows it and a column for each run.

Examples:
  for seed in 1 2 3; do sutura lab all --out seed-$seed --seed $seed; done
  sutura lab verdicts seed-1 seed-2 seed-3";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct VerdictsArgs {
    /// The directories of the runs
    #[arg(value_name = "DIRECTORY", required = true)]
    runs: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Prints the verdicts.
pub fn run(args: &VerdictsArgs) -> Result<Exit, Failure> {
    let survey = |path: &PathBuf| {
        let all = shown_in(path).map_err(|error| Failure::local(error.to_string()))?;
        if all.is_empty() {
            let none = format!("{}: no experiment of `sutura lab all` is here", path.display());
            return Err(Failure::local(none));
        }
        Ok((path.display().to_string(), all))
    };
    let surveys = args.runs.iter().map(survey).collect::<Result<Vec<_>, Failure>>()?;
    print("verdicts", &gallery::verdicts(&surveys), &args.output)
}
