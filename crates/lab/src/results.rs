//! Results of jobs that outlive the process, so that an experiment goes on where it was stopped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A place for results, each under a name of letters, digits and hyphens. Names and results are the same whoever
/// runs an experiment with the same options.
pub trait ResultStore: Send + Sync + std::fmt::Debug {
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
    /// The store in this directory, which is made if it does not exist.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        fs::create_dir_all(&path)?;
        Ok(Self(path))
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

/// Where the results of an experiment's jobs are kept. The default keeps none.
///
/// A job's name follows from its round and its place in it: an experiment asks for the same rounds of the same jobs
/// in the same order whenever it runs with the same options. A store therefore serves one experiment with one set
/// of options.
#[derive(Clone, Debug, Default)]
pub struct Results {
    store: Option<Arc<dyn ResultStore>>,
    rounds: Arc<AtomicUsize>,
}

impl Results {
    /// Results that are kept in this store.
    #[must_use]
    pub fn kept_in(store: Arc<dyn ResultStore>) -> Self {
        Self { store: Some(store), rounds: Arc::default() }
    }

    /// The next round of jobs.
    pub(crate) fn round(&self) -> Round<'_> {
        let number = self.rounds.fetch_add(1, Ordering::Relaxed);
        Round { store: self.store.as_deref(), number }
    }
}

/// A round of jobs that are independent of each other.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    store: Option<&'a dyn ResultStore>,
    number: usize,
}

impl Round<'_> {
    fn name(self, job: usize) -> String {
        format!("{}-{job}", self.number)
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
    /// The result has no serialised form, which is a bug.
    #[error("a result cannot be written: {0}")]
    Encode(#[from] rmp_serde::encode::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(path: &Path) -> Results {
        Results::kept_in(Arc::new(ResultFolder::new(path).unwrap()))
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
