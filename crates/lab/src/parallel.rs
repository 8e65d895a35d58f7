//! Independent jobs on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Options;
use crate::results::{ResultError, Round, ToDo};

/// Runs `work` on each job and returns the results in the order of the jobs. The options set the
/// number of threads and receive the progress. Results that they keep from an earlier run are taken from there, and
/// others are kept as soon as they are known.
///
/// # Errors
/// The error of the first job that fails, or whose result cannot be kept. Jobs that have not begun by then are skipped.
/// If the options leave all jobs but one to others, or all, the results that are missing, or that this one is done.
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
    let make = |place: usize, job: &J| {
        let result = work(job)?;
        round.save(place, &result)?;
        Ok::<R, E>(result)
    };
    match round.to_do() {
        ToDo::All => numbered(options, jobs, |place, job| match round.load(place)? {
            Some(kept) => Ok(kept),
            None => make(place, job),
        }),
        ToDo::One(place) => {
            let (job, of) = (round.job(place), jobs.len());
            let work = jobs.get(place).ok_or(ResultError::NoSuchJob { job, of })?;
            make(place, work)?;
            Err(ResultError::Done(job).into())
        }
        ToDo::Nothing => Ok(all_kept(round, jobs.len())?),
    }
}

/// The results of all jobs of a round.
fn all_kept<R: DeserializeOwned>(round: Round<'_>, of: usize) -> Result<Vec<R>, ResultError> {
    let (mut results, mut missing) = (Vec::new(), Vec::new());
    for place in 0..of {
        match round.load(place)? {
            Some(kept) => results.push(kept),
            None => missing.push(round.job(place)),
        }
    }
    let round = round.job(0).round;
    if missing.is_empty() { Ok(results) } else { Err(ResultError::Missing { round, missing, of }) }
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
    use crate::results::{JobId, ResultFolder, Results, Share};
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
            let store = Arc::new(ResultFolder::new(folder.path(), "").unwrap());
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

    /// Two rounds, the second of which needs the first.
    fn sum_of_squares(options: &Options) -> Result<u64, Error> {
        let squares = map(options, &[1u64, 2, 3], |n| Ok::<_, Error>(n * n))?;
        let sums = map(options, &[squares.iter().sum::<u64>()], |sum| Ok::<_, Error>(sum + 1))?;
        Ok(sums[0])
    }

    #[test]
    fn jobs_can_be_done_one_by_one_by_several_processes() {
        let folder = tempfile::tempdir().unwrap();
        let run = |share| {
            let store = Arc::new(ResultFolder::new(folder.path(), "").unwrap());
            let results = Results::kept_in(store).share(share);
            sum_of_squares(&Options { results, ..Options::default() })
        };
        let mut done = Vec::new();
        let sum = loop {
            match run(Share::Nothing) {
                Ok(sum) => break sum,
                Err(Error::Result(ResultError::Missing { missing, .. })) => {
                    // The last one first: they are independent.
                    for job in missing.into_iter().rev() {
                        let outcome = run(Share::One(job)).unwrap_err();
                        assert!(
                            matches!(outcome, Error::Result(ResultError::Done(of)) if of == job)
                        );
                        done.push(job.to_string());
                    }
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!((sum, done.join(" ").as_str()), (15, "0-2 0-1 0-0 1-0"));
        assert_eq!(run(Share::All).unwrap(), sum);
        let error = run(Share::One(JobId { round: 1, place: 7 })).unwrap_err();
        assert!(error.to_string().contains("no job 1-7"), "{error}");
    }

    #[test]
    fn a_job_waits_for_the_rounds_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(ResultFolder::new(folder.path(), "").unwrap());
        let results = Results::kept_in(store).share(Share::One(JobId { round: 1, place: 0 }));
        let error = sum_of_squares(&Options { results, ..Options::default() }).unwrap_err();
        assert_eq!(error.to_string(), "3 of 3 jobs of round 0 have no result yet");
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
