//! `sutura lab`: runs the experiments.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use sutura_analysis::report::{Origin, Place, Report};
use sutura_lab::link_trace::LinkTrace;
use sutura_lab::{EXPERIMENTS, Error, Options, Progress};

use crate::failure::{Exit, Failure};
use crate::file;
use crate::output;

mod all;

const EXAMPLES: &str = "\
Without a name, the experiments are listed. They run over a simulated network with a clock of its
own: the same seed always gives the same result. `all` runs all of them and makes pages for a browser:
each figure and table of the five papers under its number, beside what is measured here. What was done is
kept, so that it may be stopped and goes on where it was.

Examples:
  sutura lab
  sutura lab all --out report
  sutura lab holzinger-bulk --reduce 100
  sutura lab holzinger-bulk --json > bulk.json
  sutura lab marx-pages --plots .
  sutura lab marx-stacks --plots pictures
  sutura lab marx-link --pages 10
  sutura lab marx-link --corpus pages.jsonl.gz
  sutura lab eghbal-2022 --seeds 1000
  sutura lab controllers --reduce 10
  sutura lab campaign --seed 1000 --seeds 400
  sutura lab meetings --report meetings.md
  sutura lab controllers-shared --plots pictures
  sutura lab controllers-paths --paths 5 --seconds 60
  sutura lab auto-zoo --paths 50
  sutura lab auto-zoo --policy auto --policy auto:budget=0.1 --csv zoo.csv
  sutura lab auto-zoo --paths 50 --trace lte.down --trace wifi.down
  sutura lab auto-zoo --only 17 --policy auto --policy tail:burst=2";

/// The name that stands for all experiments.
const ALL: &str = "all";
/// Experiments that take less time show no progress.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct LabArgs {
    /// The experiment to run, or `all`
    name: Option<String>,
    /// Write the pages of all experiments to this directory, with `all`
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Run all repetitions, with `all`, and not only as many as fit into a quarter of an hour on two
    /// processors
    #[arg(long)]
    full: bool,
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
    /// A redundancy policy to compare, in auto-zoo; may be repeated [default: the experiment's own]
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,
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
    /// Load the pages of this file in marx-pages and marx-link: one JSON object per line, plain or
    /// compressed with gzip, in the format described in docs/experiments-pages.md
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
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
    /// Print the report as JSON instead of Markdown
    #[arg(long)]
    json: bool,
}

/// Runs an experiment, or lists them.
pub fn run(args: &LabArgs) -> Result<Exit, Failure> {
    let Some(name) = &args.name else {
        for experiment in EXPERIMENTS {
            output::line(&format!("{:24}{}", experiment.name, experiment.about))?;
        }
        return Ok(Exit::Success);
    };
    if name == ALL {
        return run_all(args);
    }
    if args.out.is_some() || args.full {
        return Err(Failure::usage(format!("--out and --full belong to `{ALL}`, not to {name}")));
    }
    let bar = bar();
    let traces: Result<Vec<LinkTrace>, _> =
        args.traces.iter().map(|file| LinkTrace::read(file)).collect();
    let options = Options {
        seed: args.seed,
        reduce: args.reduce,
        threads: threads(args.threads),
        pages: args.pages.map(usize::from),
        corpus: args.corpus.clone(),
        progress: progress(bar.clone()),
        seeds: args.seeds,
        paths: args.paths,
        only: args.only,
        seconds: args.seconds,
        policies: args.policies.clone(),
        traces: traces.map_err(|error| Failure::local(error.to_string()))?,
        ..Options::default()
    };
    let report = sutura_lab::run(name, &options);
    bar.finish_and_clear();
    let report = report.map_err(|error| match error {
        Error::Unknown { .. } => Failure::usage(error.to_string()),
        Error::Pages(error) => Failure::local(error.to_string()),
        error => Failure::new(Exit::Other, format!("{name}: {error}")),
    })?;
    if args.json {
        output::json(&report)?;
    } else {
        output::line(report.to_markdown().trim_end())?;
    }
    if let Some(directory) = &args.plots {
        write_plots(&report, directory)?;
    }
    if let Some(path) = &args.report {
        let origin = Origin::of_this_process("sutura", Place::VirtualTime);
        output::write_file(path, &report.to_page(&origin))?;
    }
    if let Some(path) = &args.csv {
        let none = || Failure::usage(format!("{name} has no single results for --csv"));
        output::write_file(path, &report.data.as_ref().ok_or_else(none)?.to_csv())?;
    }
    match report.failures.len() {
        0 => Ok(Exit::Success),
        failures => Err(Failure::new(Exit::Other, format!("{name}: {failures} failures"))),
    }
}

/// Runs all experiments. Options of single ones are refused.
fn run_all(args: &LabArgs) -> Result<Exit, Failure> {
    let Some(out) = &args.out else {
        return Err(Failure::usage(format!("{ALL} needs --out and a directory for its pages")));
    };
    let of_one = [
        ("--reduce", args.reduce != Options::default().reduce),
        ("--seeds", args.seeds.is_some()),
        ("--paths", args.paths.is_some()),
        ("--only", args.only.is_some()),
        ("--seconds", args.seconds.is_some()),
        ("--policy", !args.policies.is_empty()),
        ("--trace", !args.traces.is_empty()),
        ("--pages", args.pages.is_some()),
        ("--corpus", args.corpus.is_some()),
        ("--plots", args.plots.is_some()),
        ("--report", args.report.is_some()),
        ("--csv", args.csv.is_some()),
    ];
    if let Some((option, _)) = of_one.into_iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{option} belongs to a single experiment, not to {ALL}"
        )));
    }
    all::run(&all::All {
        out,
        full: args.full,
        seed: args.seed,
        threads: threads(args.threads),
        json: args.json,
    })
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
