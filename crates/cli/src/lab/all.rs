//! `sutura lab all`: runs all experiments, and makes pages of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use sutura_analysis::report::{Origin, Place};
use sutura_lab::gallery::Findings;
use sutura_lab::papers::PAPERS;
use sutura_lab::survey::{Survey, SurveyStep, Surveyed};
use sutura_lab::{EXPERIMENTS, Options};

use super::{program, threads};
use crate::failure::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Each figure and table of the five papers is under its number, beside what is measured here, and whether what
the paper says of it holds. Experiments run as many repetitions as fit into a quarter of an hour on two
processors. What was done is kept: stopped, also in the middle of an experiment, it goes on where it was,
and only what another program or other options made is done again.

Examples:
  sutura lab all --out report
  sutura lab all --out report --full
  sutura lab all --out report --seed 7 --json > found.json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct AllArgs {
    /// The directory for the pages
    #[arg(long, value_name = "DIRECTORY")]
    out: PathBuf,
    /// Run all repetitions
    #[arg(long)]
    full: bool,
    /// Seed for everything random
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    seed: u64,
    /// Number of jobs to run in parallel [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// Runs what was not run before, and says what was found.
pub fn run(args: &AllArgs) -> Result<Exit, Failure> {
    let survey = Survey {
        out: args.out.clone(),
        full: args.full,
        seed: args.seed,
        threads: threads(args.threads),
        program: program()?,
        command: Origin::of_this_process("sutura", Place::VirtualTime).command,
    };
    let bar = output::bar(1000, "{bar:40} {msg}");
    let watch = Mutex::new(Watch::new(bar.clone(), args.full));
    let watch: Arc<dyn Fn(SurveyStep<'_>) + Send + Sync> = Arc::new(move |step| {
        if let Ok(mut watch) = watch.lock() {
            watch.take(step);
        }
    });
    let surveyed = survey.run(&watch);
    bar.finish_and_clear();
    let surveyed = surveyed.map_err(|error| Failure::local(error.to_string()))?;
    if args.json {
        output::json(&surveyed.all)?;
    } else {
        output::line(summary(&surveyed, &args.out).trim_end())?;
    }
    failures(&surveyed)
}

/// The names of the experiments that failed, with the reasons.
fn failures(surveyed: &Surveyed) -> Result<Exit, Failure> {
    let failed = surveyed.failed.iter().map(|(name, error)| format!("{name}: {error}"));
    let wrong = surveyed.all.iter().filter(|run| run.failures > 0);
    let all: Vec<_> =
        failed.chain(wrong.map(|run| format!("{}: {} failures", run.name, run.failures))).collect();
    match all.is_empty() {
        true => Ok(Exit::Success),
        false => Err(Failure::new(Exit::Other, all.join("; "))),
    }
}

fn summary(surveyed: &Surveyed, out: &Path) -> String {
    let mut text = String::new();
    for paper in PAPERS {
        let Findings(counts) = Findings::of(paper, &surveyed.all);
        let counts = counts.iter().map(|(finding, count)| format!("{count} {}", finding.name()));
        let counts = counts.collect::<Vec<_>>().join(", ");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:16}{counts}", paper.name);
    }
    let all = surveyed.all.len();
    let kept = surveyed.kept;
    let index = out.join("index.html");
    let _ = writeln!(text, "{all} experiments, {kept} of them done before: {}", index.display());
    text
}

/// What is known of how far a survey is.
struct Watch {
    bar: ProgressBar,
    full: bool,
    began: Instant,
    /// The expected seconds of all experiments that are still to be done, the present one included.
    left: f64,
    /// Those of experiments that are done, and were not before.
    done: f64,
    /// The expected seconds of the present experiment, and its name with its place.
    present: f64,
    name: String,
}

impl Watch {
    fn new(bar: ProgressBar, full: bool) -> Self {
        let mut watch = Self {
            bar,
            full,
            began: Instant::now(),
            left: 0.0,
            done: 0.0,
            present: 0.0,
            name: String::new(),
        };
        watch.left = EXPERIMENTS.iter().map(|experiment| watch.expected(experiment)).sum();
        watch
    }

    fn expected(&self, experiment: &sutura_lab::Experiment) -> f64 {
        let portion = experiment.portion;
        let times = if self.full { portion.one_in } else { 1 };
        f64::from(portion.seconds.max(1)) * f64::from(times)
    }

    fn take(&mut self, step: SurveyStep<'_>) {
        match step {
            SurveyStep::Begins { experiment, index } => {
                self.present = self.expected(experiment);
                self.name = format!("{} ({} of {})", experiment.name, index + 1, EXPERIMENTS.len());
                self.show(0.0);
            }
            SurveyStep::Jobs { done, total } => self.show(done as f64 / total.max(1) as f64),
            SurveyStep::Ends { kept } => {
                self.left -= self.present;
                if !kept {
                    self.done += self.present;
                }
                self.present = 0.0;
                self.show(0.0);
            }
        }
    }

    /// Shows how far the survey is when this share of the present experiment's jobs is done.
    fn show(&self, share: f64) {
        let done = self.done + share * self.present;
        let left = (self.left - share * self.present).max(0.0);
        self.bar.set_position((1000.0 * done / (done + left).max(1.0)) as u64);
        let left = left_after(self.began.elapsed(), done, left);
        self.bar.set_message(format!("{}, {left}", self.name));
    }
}

/// How long it will still take in words, if what took `elapsed` was expected to take `done` seconds, and the rest is
/// expected to take `left`.
fn left_after(elapsed: Duration, done: f64, left: f64) -> String {
    // What the first seconds tell is too little.
    let pace = if done < 5.0 { 1.0 } else { elapsed.as_secs_f64() / done };
    match (left * pace / 60.0).round() as u64 {
        0 => "less than a minute left".to_owned(),
        minutes => format!("{minutes} min left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_goes_by_the_pace_so_far() {
        let left = |elapsed, done, left| left_after(Duration::from_secs(elapsed), done, left);
        assert_eq!(left(0, 0.0, 600.0), "10 min left");
        assert_eq!(left(100, 200.0, 600.0), "5 min left");
        assert_eq!(left(400, 200.0, 600.0), "20 min left");
        assert_eq!(left(400, 200.0, 10.0), "less than a minute left");
    }

    #[test]
    fn what_was_done_before_takes_no_time() {
        let bar = ProgressBar::hidden();
        let mut watch = Watch::new(bar.clone(), false);
        let half = EXPERIMENTS.len() / 2;
        for (index, experiment) in EXPERIMENTS.iter().enumerate() {
            watch.take(SurveyStep::Begins { experiment, index });
            watch.take(SurveyStep::Ends { kept: index < half });
            assert!(index >= half || bar.position() == 0, "{}", experiment.name);
        }
        assert_eq!((bar.position(), watch.left), (1000, 0.0));
        let last = format!("({0} of {0})", EXPERIMENTS.len());
        assert!(bar.message().contains(&last), "{}", bar.message());
    }

    #[test]
    fn failures_are_told_together() {
        let failed = vec![("a", "x".to_owned()), ("b", "y".to_owned())];
        let error = failures(&Surveyed { failed, ..Surveyed::default() }).unwrap_err();
        assert_eq!(error.message, "a: x; b: y");
        assert!(failures(&Surveyed::default()).is_ok());
    }
}
