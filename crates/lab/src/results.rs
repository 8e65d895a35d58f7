//! Results of jobs that outlive the process, so that an experiment goes on where it was stopped, and that several
//! processes may make.
//!
//! An experiment is a list of independent jobs, or several of which each needs the results of those before: *rounds*.
//! Whoever has a job's [`JobId`] can do it alone ([`Share::One`]), on any machine with the same program, and who has
//! the results of all jobs makes the report ([`Share::Nothing`]).

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A place for results, each under a name of letters, digits and hyphens. Names and results are the same whoever
/// runs an experiment with the same options.
pub trait ResultStore: Send + Sync + fmt::Debug {
    /// The result of this name; `None` if there is none.
    ///
    /// # Errors
    /// The place cannot be read.
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Saves a result, all of it or, if that fails or the process ends, nothing.
    ///
    /// # Errors
    /// The place cannot be written.
    fn save(&self, name: &str, result: &[u8]) -> io::Result<()>;
}

/// A directory as a store: a file for each result.
#[derive(Clone, Debug)]
pub struct ResultFolder(PathBuf);

impl ResultFolder {
    /// The store in this directory, which is made if it does not exist. `key` is what the results depend on: the
    /// program, the experiment and its options.
    ///
    /// # Errors
    /// It cannot be made, or has the results of another key.
    pub fn new(path: impl Into<PathBuf>, key: &str) -> io::Result<Self> {
        let path = path.into();
        fs::create_dir_all(&path)?;
        let file = path.join("key");
        match fs::read_to_string(&file) {
            Ok(old) if old == key => Ok(Self(path)),
            Ok(old) => Err(io::Error::other(format!("it has the results of another run: {old}"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write_whole(&file, key.as_bytes())?;
                Ok(Self(path))
            }
            Err(error) => Err(error),
        }
    }

    /// The same, without the results of another key if there are some.
    ///
    /// # Errors
    /// It cannot be made or emptied.
    pub fn anew(path: impl Into<PathBuf>, key: &str) -> io::Result<Self> {
        let path = path.into();
        if path.exists() && !fs::read_to_string(path.join("key")).is_ok_and(|old| old == key) {
            fs::remove_dir_all(&path)?;
        }
        Self::new(path, key)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.msgpack"))
    }
}

impl ResultStore for ResultFolder {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.file(name)) {
            Ok(result) => Ok(Some(result)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn save(&self, name: &str, result: &[u8]) -> io::Result<()> {
        write_whole(&self.file(name), result)
    }
}

/// Writes a file by way of another that takes its place, so that nobody ever sees a part of it.
///
/// # Errors
/// It cannot be written.
pub fn write_whole(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let written = fs::write(&part, contents).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// A job of an experiment: an experiment asks for the same rounds of the same jobs in the same order whenever it runs
/// with the same options. As text it is `ROUND-PLACE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct JobId {
    /// The round, from 0.
    pub round: usize,
    /// Its place in the round, from 0.
    pub place: usize,
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.round, self.place)
    }
}

/// A text is not the name of a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a job: expected a round and a place in it, such as 0-17")]
pub struct NotAJob(String);

impl FromStr for JobId {
    type Err = NotAJob;

    fn from_str(text: &str) -> Result<Self, NotAJob> {
        let number = |text: &str| text.parse().ok();
        let both = text
            .split_once('-')
            .and_then(|(round, place)| Some(Self { round: number(round)?, place: number(place)? }));
        both.ok_or_else(|| NotAJob(text.to_owned()))
    }
}

/// Which jobs of an experiment a run does. All others must be kept already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// All that are not kept.
    #[default]
    All,
    /// This one alone. The run ends with [`ResultError::Done`].
    One(JobId),
    /// None: it makes the report of what is kept.
    Nothing,
}

/// Where the results of an experiment's jobs are kept, and which of them a run makes. The default makes all and keeps
/// none. A store serves one experiment with one set of options.
#[derive(Clone, Debug, Default)]
pub struct Results {
    store: Option<Arc<dyn ResultStore>>,
    share: Share,
    rounds: Arc<AtomicUsize>,
}

impl Results {
    /// Results that are kept in this store.
    #[must_use]
    pub fn kept_in(store: Arc<dyn ResultStore>) -> Self {
        Self { store: Some(store), ..Self::default() }
    }

    /// The same for a run that does this share of the jobs.
    #[must_use]
    pub fn share(self, share: Share) -> Self {
        Self { share, ..self }
    }

    /// The next round of jobs.
    pub(crate) fn round(&self) -> Round<'_> {
        let number = self.rounds.fetch_add(1, Ordering::Relaxed);
        Round { store: self.store.as_deref(), share: self.share, number }
    }
}

/// A round of jobs that are independent of each other.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    store: Option<&'a dyn ResultStore>,
    share: Share,
    number: usize,
}

/// What a run has to do in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToDo {
    /// All jobs that are not kept.
    All,
    /// The job in this place.
    One(usize),
    /// Nothing.
    Nothing,
}

impl Round<'_> {
    fn name(self, place: usize) -> String {
        self.job(place).to_string()
    }

    pub(crate) const fn job(self, place: usize) -> JobId {
        JobId { round: self.number, place }
    }

    pub(crate) fn to_do(self) -> ToDo {
        match self.share {
            Share::All => ToDo::All,
            Share::One(job) if job.round == self.number => ToDo::One(job.place),
            Share::One(_) | Share::Nothing => ToDo::Nothing,
        }
    }

    /// The result of a job, if it is kept and can be read: one that cannot is computed again.
    pub(crate) fn load<R: DeserializeOwned>(self, job: usize) -> Result<Option<R>, ResultError> {
        let Some(store) = self.store else { return Ok(None) };
        let name = self.name(job);
        let kept = store.load(&name).map_err(|error| ResultError::Store { name, error })?;
        Ok(kept.and_then(|bytes| rmp_serde::from_slice(&bytes).ok()))
    }

    pub(crate) fn save(self, job: usize, result: &impl Serialize) -> Result<(), ResultError> {
        let Some(store) = self.store else { return Ok(()) };
        let name = self.name(job);
        let bytes = rmp_serde::to_vec_named(result)?;
        store.save(&name, &bytes).map_err(|error| ResultError::Store { name, error })
    }
}

/// A result cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The store fails.
    #[error("the result of job {name}: {error}")]
    Store {
        /// The job.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// Results of jobs are missing that the rest needs.
    #[error("{} of {of} jobs of round {round} have no result yet", missing.len())]
    Missing {
        /// The round.
        round: usize,
        /// The jobs.
        missing: Vec<JobId>,
        /// How many the round has.
        of: usize,
    },
    /// The round has no such job.
    #[error("there is no job {job}: the round has {of}, from 0 on")]
    NoSuchJob {
        /// The job.
        job: JobId,
        /// How many jobs the round has.
        of: usize,
    },
    /// The job that was to be done alone is done.
    #[error("job {0} is done")]
    Done(JobId),
    /// The result has no serialised form, which is a bug.
    #[error("a result cannot be written: {0}")]
    Encode(#[from] rmp_serde::encode::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(path: &Path) -> Results {
        Results::kept_in(Arc::new(ResultFolder::new(path, "key").unwrap()))
    }

    #[test]
    fn a_folder_is_for_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs");
        ResultFolder::new(&path, "a").unwrap().save("0-0", b"x").unwrap();
        assert!(ResultFolder::new(&path, "a").unwrap().load("0-0").unwrap().is_some());
        let error = ResultFolder::new(&path, "b").unwrap_err();
        assert!(error.to_string().ends_with("another run: a"), "{error}");
        assert!(ResultFolder::anew(&path, "a").unwrap().load("0-0").unwrap().is_some());
        assert_eq!(ResultFolder::anew(&path, "b").unwrap().load("0-0").unwrap(), None);
    }

    #[test]
    fn jobs_have_names() {
        let job = JobId { round: 1, place: 17 };
        assert_eq!((job.to_string().as_str(), "1-17".parse()), ("1-17", Ok(job)));
        for wrong in ["", "1", "1-", "-1", "1-x", "1-2-3"] {
            let error = wrong.parse::<JobId>().unwrap_err();
            assert!(error.to_string().contains("such as 0-17"), "{error}");
        }
    }

    #[test]
    fn results_are_found_again_by_round_and_place() {
        let folder = tempfile::tempdir().unwrap();
        let write = kept(folder.path());
        let (first, second) = (write.round(), write.round());
        first.save(3, &(f64::INFINITY, "a")).unwrap();
        second.save(3, &(1.5, "b")).unwrap();
        let read = kept(folder.path());
        let load = |round: Round<'_>, job| round.load::<(f64, String)>(job).unwrap();
        let (first, second) = (read.round(), read.round());
        assert_eq!(load(first, 3), Some((f64::INFINITY, "a".to_owned())));
        assert_eq!(load(second, 3), Some((1.5, "b".to_owned())));
        assert_eq!((load(first, 0), load(read.round(), 3)), (None, None));
    }

    #[test]
    fn what_cannot_be_read_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        kept(folder.path()).round().save(0, &7u64).unwrap();
        fs::write(folder.path().join("0-0.msgpack"), b"\xc1").unwrap();
        assert_eq!(kept(folder.path()).round().load::<u64>(0).unwrap(), None);
    }

    #[test]
    fn nothing_is_left_of_a_file_that_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        fs::create_dir_all(taken.join("inner")).unwrap();
        assert!(write_whole(&taken, b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_store_that_fails_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let results = kept(folder.path());
        drop(folder);
        let error = results.round().save(0, &1u64).unwrap_err();
        assert!(error.to_string().starts_with("the result of job 0-0: "), "{error}");
    }
}
