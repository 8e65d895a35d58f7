//! Independent jobs on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Options;
use crate::results::ResultError;

/// Runs `work` on each job and returns the results in the order of the jobs. The options set the
/// number of threads and receive the progress. Results that they keep from an earlier run are taken from there, and
/// others are kept as soon as they are known.
///
/// # Errors
/// The error of the first job that fails, or whose result cannot be kept. Jobs that have not begun by then are skipped.
pub fn map<J, R, E>(
    options: &Options,
    jobs: &[J],
    work: impl Fn(&J) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E>
where
    J: Sync,
    R: Serialize + DeserializeOwned + Send,
    E: From<ResultError> + Send,
{
    let round = options.results.round();
    numbered(options, jobs, |index, job| {
        if let Some(kept) = round.load(index)? {
            return Ok(kept);
        }
        let result = work(job)?;
        round.save(index, &result)?;
        Ok(result)
    })
}

/// The same for results that are not kept, since it is quicker to make them anew than to read them.
///
/// # Errors
/// The error of the first job that fails.
pub fn map_anew<J: Sync, R: Send, E: Send>(
    options: &Options,
    jobs: &[J],
    work: impl Fn(&J) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    numbered(options, jobs, |_, job| work(job))
}

fn numbered<J: Sync, R: Send, E: Send>(
    options: &Options,
    jobs: &[J],
    work: impl Fn(usize, &J) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    options.progress.tell(0, jobs.len());
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    let result = work(index, job);
                    if result.is_err() {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    // If another thread has panicked, the scope reports it.
                    if let Ok(mut results) = results.lock() {
                        results.push((index, result));
                        options.progress.tell(results.len(), jobs.len());
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::results::{ResultFolder, Results};
    use crate::{Error, Progress};

    #[test]
    fn results_keep_the_order_of_their_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 3, 200] {
            let options = Options { threads, ..Options::default() };
            let results = map(&options, &jobs, |n| Ok::<_, Error>(n * n));
            assert_eq!(results.unwrap(), jobs.iter().map(|n| n * n).collect::<Vec<_>>());
        }
        let none = map(&Options::default(), &[], |_: &u8| Ok::<u8, Error>(1));
        assert!(none.unwrap().is_empty());
    }

    #[test]
    fn an_error_ends_it() {
        let three = || Error::Unknown { name: "three".to_owned() };
        let work = |n: &u8| if *n == 3 { Err(three()) } else { Ok(*n) };
        let error = map(&Options::default(), &[1, 2, 3, 4], work).unwrap_err();
        assert_eq!(error.to_string(), three().to_string());
    }

    #[test]
    fn what_was_done_before_it_was_stopped_is_not_done_again() {
        let folder = tempfile::tempdir().unwrap();
        let run = |stop_at: u64| {
            let store = Arc::new(ResultFolder::new(folder.path()).unwrap());
            let options =
                Options { results: Results::kept_in(store), threads: 1, ..Options::default() };
            let done = AtomicUsize::new(0);
            let results = map(&options, &[0u64, 1, 2, 3], |n| {
                if *n == stop_at {
                    return Err(Error::Unknown { name: n.to_string() });
                }
                done.fetch_add(1, Ordering::Relaxed);
                Ok(n * n)
            });
            (results.ok(), done.into_inner())
        };
        assert_eq!(run(2), (None, 2));
        assert_eq!(run(9), (Some(vec![0, 1, 4, 9]), 2));
        assert_eq!(run(9), (Some(vec![0, 1, 4, 9]), 0));
    }

    #[test]
    fn progress_is_told_after_every_job() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let teller = told.clone();
        let progress = Progress::new(move |done, total| teller.lock().unwrap().push((done, total)));
        let options = Options { progress, threads: 3, ..Options::default() };
        map(&options, &[1, 2, 3], |n| Ok::<u8, Error>(*n)).unwrap();
        assert_eq!(*told.lock().unwrap(), [(0, 3), (1, 3), (2, 3), (3, 3)]);
    }
}
