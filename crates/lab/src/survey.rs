//! All experiments in a row, with a [gallery] of what they show. What was done is not done again, also after the
//! process was stopped in the middle of an experiment.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sutura_analysis::figure::{ChartError, Picture};
use sutura_analysis::report::{Origin, Place, Report, machine};

#[cfg(feature = "parquet")]
use crate::columns::{Columns, ParquetError};
use crate::gallery::{self, Exhibited};
use crate::papers::PAPERS;
use crate::results::{ResultFolder, Results, write_whole};
use crate::{EXPERIMENTS, Error, Experiment, Options, Progress};

/// The folders of experiments, of papers, and of the results of jobs until their experiment is done.
const FOLDERS: [&str; 3] = ["experiments", "papers", ".jobs"];
/// What the folder of an experiment has last, when everything else is there.
const DONE: &str = "done.json";

/// How to run all experiments.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The folder for pages and data. What other programs put there is left alone, but for the folders of
    /// experiments.
    pub out: PathBuf,
    /// Whether to run experiments in full, and not only as [many repetitions](Experiment::portion) as fit into a
    /// quarter of an hour on two processors.
    pub full: bool,
    /// The seed of all of them.
    pub seed: u64,
    /// How many jobs run at the same time.
    pub threads: usize,
    /// Identifies the program. What another one did is done again.
    pub program: String,
    /// The command that runs all of it.
    pub command: String,
}

/// What a survey tells while it runs.
#[derive(Clone, Copy, Debug)]
pub enum SurveyStep<'a> {
    /// An experiment begins. It is the `index`-th of all, from 0.
    Begins {
        /// The experiment.
        experiment: &'a Experiment,
        /// Its place.
        index: usize,
    },
    /// So many of the jobs of a round of the present experiment are done.
    Jobs {
        /// How many are done.
        done: usize,
        /// Of so many.
        total: usize,
    },
    /// The present experiment is done.
    Ends {
        /// Whether it was done before.
        kept: bool,
    },
}

/// What came of a survey.
#[derive(Debug, Default)]
pub struct Surveyed {
    /// The experiments that were run, now or before.
    pub all: Vec<Exhibited>,
    /// How many of them were run before.
    pub kept: usize,
    /// The experiments that failed, and why.
    pub failed: Vec<(&'static str, String)>,
}

/// A survey cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// A file or folder cannot be written or read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// An experiment fails.
    #[error(transparent)]
    Experiment(#[from] Error),
    /// A chart cannot be drawn.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The data of an experiment has no serialised form, which is a bug.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The same for Parquet.
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    Parquet(#[from] ParquetError),
}

/// What says that an experiment is done.
#[derive(Serialize, Deserialize)]
struct Done {
    key: String,
    shown: Exhibited,
}

fn at(path: &Path) -> impl Fn(io::Error) -> SurveyError + '_ {
    |error| SurveyError::File { path: path.to_owned(), error }
}

/// What a survey has shown in this folder, by whichever program, in the order of the experiments.
///
/// # Errors
/// What says that an experiment is done cannot be read.
pub fn shown_in(out: &Path) -> Result<Vec<Exhibited>, SurveyError> {
    let mut all = Vec::new();
    for experiment in EXPERIMENTS {
        let done = done_in(&out.join(FOLDERS[0]).join(experiment.name))?;
        all.extend(done.map(|done| done.shown));
    }
    Ok(all)
}

/// What says that the experiment of this folder is done, if it is.
fn done_in(folder: &Path) -> Result<Option<Done>, SurveyError> {
    let path = folder.join(DONE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(&path)(error)),
    };
    let done =
        serde_json::from_slice(&bytes).map_err(|error| at(&path)(io::Error::other(error)))?;
    Ok(Some(done))
}

impl Survey {
    /// Runs what was not run before, and writes all pages. `watch` is told what happens, from any thread.
    ///
    /// # Errors
    /// A file cannot be written. That an experiment fails is told in the answer, and the others are run.
    pub fn run(
        &self,
        watch: &Arc<dyn Fn(SurveyStep<'_>) + Send + Sync>,
    ) -> Result<Surveyed, SurveyError> {
        self.run_these(EXPERIMENTS, watch)
    }

    fn run_these(
        &self,
        experiments: &'static [Experiment],
        watch: &Arc<dyn Fn(SurveyStep<'_>) + Send + Sync>,
    ) -> Result<Surveyed, SurveyError> {
        for folder in FOLDERS {
            let path = self.out.join(folder);
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        let mut surveyed = Surveyed::default();
        for (index, experiment) in experiments.iter().enumerate() {
            watch(SurveyStep::Begins { experiment, index });
            let kept = self.kept(experiment);
            let was_kept = kept.is_some();
            surveyed.kept += usize::from(was_kept);
            let shown = kept.map_or_else(|| self.measure(experiment, watch), Ok);
            watch(SurveyStep::Ends { kept: was_kept });
            match shown {
                Ok(shown) => surveyed.all.push(shown),
                Err(SurveyError::Experiment(error)) => {
                    surveyed.failed.push((experiment.name, error.to_string()));
                }
                Err(error) => return Err(error),
            }
            self.write_pages(&surveyed.all)?;
        }
        Ok(surveyed)
    }

    fn reduce(&self, experiment: &Experiment) -> u32 {
        if self.full { 1 } else { experiment.portion.one_in }
    }

    /// The command that runs an experiment alone.
    fn command(&self, experiment: &Experiment) -> String {
        let mut command = format!("sutura lab {}", experiment.name);
        let defaults = Options::default();
        if self.reduce(experiment) != defaults.reduce {
            command += &format!(" --reduce {}", self.reduce(experiment));
        }
        if self.seed != defaults.seed {
            command += &format!(" --seed {}", self.seed);
        }
        command
    }

    /// What the results of an experiment depend on.
    fn key(&self, experiment: &Experiment) -> String {
        format!("{}, by {}", self.command(experiment), self.program)
    }

    fn folder(&self, experiment: &Experiment) -> PathBuf {
        self.out.join(FOLDERS[0]).join(experiment.name)
    }

    /// What is there of an experiment, if it was done by this program with these options.
    fn kept(&self, experiment: &Experiment) -> Option<Exhibited> {
        // One that cannot be read is done again.
        let Done { key, shown } = done_in(&self.folder(experiment)).ok()??;
        (key == self.key(experiment)).then_some(shown)
    }

    fn measure(
        &self,
        experiment: &'static Experiment,
        watch: &Arc<dyn Fn(SurveyStep<'_>) + Send + Sync>,
    ) -> Result<Exhibited, SurveyError> {
        let jobs = self.out.join(FOLDERS[2]).join(experiment.name);
        let store = ResultFolder::anew(&jobs, &self.key(experiment)).map_err(at(&jobs))?;
        let told = watch.clone();
        let options = Options {
            seed: self.seed,
            reduce: self.reduce(experiment),
            threads: self.threads,
            progress: Progress::new(move |done, total| told(SurveyStep::Jobs { done, total })),
            results: Results::kept_in(Arc::new(store)),
            ..Options::default()
        };
        let start = Instant::now();
        let report = (experiment.run)(&options)?;
        let report = Report { name: experiment.name.to_owned(), ..report };
        let seconds = start.elapsed().as_secs_f64();
        let command = self.command(experiment);
        let one_in = self.reduce(experiment);
        let pictures = report.all_pictures()?;
        let shown = Exhibited::of(experiment, &report, &pictures, &command);
        let shown = Exhibited { one_in, seconds, ..shown };
        self.write(experiment, &report, &pictures, &shown)?;
        fs::remove_dir_all(&jobs).map_err(at(&jobs))?;
        Ok(shown)
    }

    /// Writes all of an experiment, and last of all that it is done.
    fn write(
        &self,
        experiment: &Experiment,
        report: &Report,
        pictures: &[Picture],
        shown: &Exhibited,
    ) -> Result<(), SurveyError> {
        let folder = self.folder(experiment);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(at(&folder))?;
        }
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let write_bytes = |name: &str, content: &[u8]| {
            let file = folder.join(name);
            fs::write(&file, content).map_err(at(&file))
        };
        let write = |name: &str, content: &str| write_bytes(name, content.as_bytes());
        let origin = Origin { command: shown.command.clone(), place: Place::VirtualTime };
        write("index.html", &gallery::experiment(shown, report))?;
        write("report.md", &report.to_page(&origin))?;
        write("report.json", &serde_json::to_string(report)?)?;
        for (name, table) in report.named_tables() {
            write(&format!("{name}.csv"), &table.to_csv())?;
            #[cfg(feature = "parquet")]
            write_bytes(&format!("{name}.parquet"), &Columns::of(table).to_parquet()?)?;
        }
        for picture in pictures {
            write(&format!("{}.svg", picture.name), &picture.svg)?;
        }
        let done = Done { key: self.key(experiment), shown: shown.clone() };
        write(DONE, &serde_json::to_string(&done)?)
    }

    /// Writes the pages that show several experiments.
    fn write_pages(&self, all: &[Exhibited]) -> Result<(), SurveyError> {
        let write = |name: &str, content: &str| {
            let file = self.out.join(name);
            write_whole(&file, content.as_bytes()).map_err(at(&file))
        };
        write("style.css", gallery::STYLE)?;
        for paper in PAPERS {
            let page = format!("{}/{}.html", FOLDERS[1], paper.name);
            write(&page, &gallery::paper(paper, all))?;
        }
        write("index.html", &gallery::index(all, &self.command, &machine()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use sutura_analysis::table::Table;

    use super::*;
    use crate::experiments::Portion;
    use crate::parallel;
    use crate::report::report_of;

    /// How many jobs were done, and which one fails.
    static DONE_JOBS: AtomicUsize = AtomicUsize::new(0);
    static FAILS: AtomicUsize = AtomicUsize::new(usize::MAX);

    fn squares(options: &Options) -> Result<Report, Error> {
        let squares = parallel::map(options, &[1usize, 2, 3], |n| {
            if *n == FAILS.load(Ordering::Relaxed) {
                return Err(Error::Unknown { name: "three".to_owned() });
            }
            DONE_JOBS.fetch_add(1, Ordering::Relaxed);
            Ok(n * n)
        })?;
        let mut table = Table::new("Squares", ["square"]);
        squares.into_iter().for_each(|square| table.row([square]));
        Ok(report_of("Squares", &["Of numbers."], [table], []))
    }

    const NUMBERS: &[Experiment] = &[Experiment {
        name: "squares",
        about: "Squares of numbers",
        takes: &[],
        portion: Portion { one_in: 2, seconds: 1 },
        run: squares,
    }];

    fn survey(out: &Path, seed: u64) -> (Surveyed, usize) {
        let survey = Survey {
            out: out.to_owned(),
            full: false,
            seed,
            threads: 1,
            program: "this".to_owned(),
            command: "sutura lab all".to_owned(),
        };
        // The jobs of an experiment are told between its beginning and its end.
        let within = AtomicUsize::new(0);
        let watch: Arc<dyn Fn(SurveyStep<'_>) + Send + Sync> = Arc::new(move |step| {
            let (before, after) = match step {
                SurveyStep::Begins { .. } => (0, 1),
                SurveyStep::Jobs { .. } => (1, 1),
                SurveyStep::Ends { .. } => (1, 0),
            };
            assert_eq!(within.swap(after, Ordering::Relaxed), before, "{step:?}");
        });
        DONE_JOBS.store(0, Ordering::Relaxed);
        let surveyed = survey.run_these(NUMBERS, &watch).unwrap();
        (surveyed, DONE_JOBS.load(Ordering::Relaxed))
    }

    /// The counters are of all tests, which therefore are one.
    #[test]
    fn what_was_done_is_not_done_again() {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock();
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        // The third job fails: the first two are kept.
        FAILS.store(3, Ordering::Relaxed);
        let (surveyed, done) = survey(out, 1);
        assert_eq!((surveyed.all.len(), surveyed.failed.len(), done), (0, 1, 2));
        FAILS.store(usize::MAX, Ordering::Relaxed);
        let (surveyed, done) = survey(out, 1);
        assert_eq!((surveyed.all.len(), surveyed.failed.len(), done), (1, 0, 1));
        assert_eq!(surveyed.all[0].command, "sutura lab squares --reduce 2");
        assert!(!out.join(".jobs/squares").exists(), "results of jobs go when they are shown");
        // All of it is kept, until an option differs.
        let (surveyed, done) = survey(out, 1);
        assert_eq!((surveyed.all.len(), surveyed.kept, done), (1, 1, 0));
        let (surveyed, done) = survey(out, 7);
        assert_eq!((surveyed.kept, done), (0, 3));
        assert_eq!(surveyed.all[0].command, "sutura lab squares --reduce 2 --seed 7");
        for file in ["index.html", "style.css", "papers/marx-2020.html"] {
            assert!(out.join(file).exists(), "{file}");
        }
        for file in ["index.html", "report.md", "report.json", "table-1.csv"] {
            assert!(out.join("experiments/squares").join(file).exists(), "{file}");
        }
        let parquet = out.join("experiments/squares/table-1.parquet");
        assert_eq!(parquet.exists(), cfg!(feature = "parquet"));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let survey = Survey {
            out: file.clone(),
            full: false,
            seed: 1,
            threads: 1,
            program: String::new(),
            command: String::new(),
        };
        let watch: Arc<dyn Fn(SurveyStep<'_>) + Send + Sync> = Arc::new(|_| ());
        let error = survey.run_these(&[], &watch).unwrap_err();
        assert!(error.to_string().starts_with(&file.display().to_string()), "{error}");
    }
}
