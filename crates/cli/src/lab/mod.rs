//! `sutura lab`: runs the experiments.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use ring::digest::{SHA256, digest};
use sutura_analysis::report::{Origin, Place, Report};
use sutura_lab::results::Results;
use sutura_lab::{EXPERIMENTS, Progress};

use crate::failure::{Exit, Failure};
use crate::file;
use crate::output;

mod all;
mod experiment;
mod jobs;
#[cfg(any(test, feature = "cloud"))]
mod objects;
mod place;
mod tables;
mod verdicts;

use experiment::ExperimentArgs;

const EXAMPLES: &str = "\
Without a name, the experiments are listed. They run over a simulated network with a clock of its
own: the same seed always gives the same result. `all` runs all of them and makes pages for a browser.

Examples:
  sutura lab
  sutura lab all --out report
  sutura lab holzinger-bulk --reduce 100
  sutura lab holzinger-bulk --json > bulk.json
  sutura lab marx-pages --plots .
  sutura lab marx-stacks --plots pictures
  sutura lab marx-stacks --qlog client.sqlog --plots pictures
  sutura lab marx-link --pages 10
  sutura lab marx-link --corpus pages.jsonl.gz
  sutura lab eghbal-2022 --seeds 1000
  sutura lab controllers --reduce 10
  sutura lab campaign --seed 1000 --seeds 400
  sutura lab meetings --report meetings.md
  sutura lab controllers-shared --plots pictures
  sutura lab controllers-paths --paths 5 --seconds 60
  sutura lab own-paths --path 'rate=20mbit delay=30ms loss=bern:1%' --policy auto --policy tail:burst=2
  sutura lab own-paths --path 'trace=@lte.down delay=20ms | back trace=@lte.up delay=20ms'
  sutura lab own-paths --path paper --app 'messages=3kb every=20ms count=500 within=150ms'
  sutura lab auto-zoo --paths 50
  sutura lab auto-zoo --paths 50 --tables zoo
  sutura lab auto-zoo --policy auto --policy auto:budget=0.1 --csv zoo.csv
  sutura lab auto-zoo --paths 50 --trace lte.down --trace wifi.down
  sutura lab auto-zoo --only 17 --policy auto --policy tail:burst=2";

/// Experiments that take less time show no progress.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct LabArgs {
    #[command(subcommand)]
    command: Option<LabCommand>,
    /// The experiment to run
    name: Option<String>,
    #[command(flatten)]
    experiment: ExperimentArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, clap::Subcommand)]
enum LabCommand {
    /// Run all experiments, and make pages of them
    All(all::AllArgs),
    /// Compare what several runs of `all` found, such as those of several seeds
    Verdicts(verdicts::VerdictsArgs),
    /// List the jobs of an experiment that have no result yet
    Jobs(jobs::JobsArgs),
    /// Do single jobs of an experiment, and keep their results
    Run(jobs::RunArgs),
    /// Make the report of an experiment whose jobs have all been done
    Merge(jobs::MergeArgs),
}

/// What becomes of a report.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// Write the report's figures to this directory, as SVG, overwriting existing ones
    #[arg(long, value_name = "DIRECTORY")]
    plots: Option<PathBuf>,
    /// Write the report as Markdown to this file too, with the command that made it, overwriting an
    /// existing one
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write a row for each case and policy to this file too, as CSV, in auto-zoo, overwriting an
    /// existing one
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the report's tables to this directory, as CSV and as Parquet, overwriting existing ones
    #[arg(long, value_name = "DIRECTORY")]
    tables: Option<PathBuf>,
    /// Print the report as JSON instead of Markdown
    #[arg(long)]
    json: bool,
}

/// Runs an experiment or a part of it, or all, or lists them.
pub fn run(args: &LabArgs) -> Result<Exit, Failure> {
    match &args.command {
        Some(LabCommand::All(all)) => return all::run(all),
        Some(LabCommand::Verdicts(verdicts)) => return verdicts::run(verdicts),
        Some(LabCommand::Jobs(jobs)) => return jobs::list(jobs),
        Some(LabCommand::Run(run)) => return jobs::run(run),
        Some(LabCommand::Merge(merge)) => return jobs::merge(merge),
        None => {}
    }
    let Some(name) = &args.name else {
        for experiment in EXPERIMENTS {
            output::line(&format!("{:24}{}", experiment.name, experiment.about))?;
        }
        return Ok(Exit::Success);
    };
    let bar = bar();
    let options = args.experiment.options(progress(bar.clone()), Results::default())?;
    let report = sutura_lab::run(name, &options);
    bar.finish_and_clear();
    print(name, &report.map_err(|error| experiment::failure(name, error))?, &args.output)
}

/// Prints the report of an experiment, and writes what else is wanted of it.
fn print(name: &str, report: &Report, output: &OutputArgs) -> Result<Exit, Failure> {
    if output.json {
        output::json(report)?;
    } else {
        output::line(report.to_markdown().trim_end())?;
    }
    if let Some(directory) = &output.plots {
        write_plots(report, directory)?;
    }
    if let Some(path) = &output.report {
        let origin = Origin::of_this_process("sutura", Place::VirtualTime);
        output::write_file(path, &report.to_page(&origin))?;
    }
    if let Some(path) = &output.csv {
        let none = || Failure::usage(format!("{name} has no single results for --csv"));
        output::write_file(path, &report.data.as_ref().ok_or_else(none)?.to_csv())?;
    }
    if let Some(directory) = &output.tables {
        tables::write(report, directory)?;
    }
    match report.failures.len() {
        0 => Ok(Exit::Success),
        failures => Err(Failure::new(Exit::Other, format!("{name}: {failures} failures"))),
    }
}

/// What this program is: its version, and a digest of its file, so that results of another build are told apart.
fn program() -> Result<String, Failure> {
    let read = std::env::current_exe().and_then(std::fs::read);
    let file = read.map_err(|e| Failure::local(format!("cannot read this program: {e}")))?;
    let digest = hex::encode(digest(&SHA256, &file));
    Ok(format!("sutura {} {digest}", env!("CARGO_PKG_VERSION")))
}

/// How many threads to use: the number that was asked for, or one per processor.
pub fn threads(threads: Option<u16>) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    threads.map_or_else(processors, usize::from)
}

/// A bar for the progress of an experiment.
pub fn bar() -> ProgressBar {
    output::bar(0, "{bar:40} {pos:>5}/{len} {elapsed:>4}")
}

/// Moves the bar, but only once the experiment has taken longer than [`PATIENCE`].
pub fn progress(bar: ProgressBar) -> Progress {
    let start = Instant::now();
    Progress::new(move |done, total| {
        if start.elapsed() > PATIENCE {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
    })
}

/// Draws the figures of a report into a directory.
///
/// # Errors
/// A chart cannot be drawn, or a file cannot be written.
pub fn write_plots(report: &Report, directory: &Path) -> Result<(), Failure> {
    let pictures = report.all_pictures();
    let pictures = pictures.map_err(|e| Failure::new(Exit::Other, e.to_string()))?;
    file::make_directory(directory)?;
    for picture in pictures {
        output::write_file(&directory.join(format!("{}.svg", picture.name)), &picture.svg)?;
    }
    Ok(())
}
