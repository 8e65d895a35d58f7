//! Independent jobs on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Options;

/// Runs `work` on each job and returns the results in the order of the jobs. The options set the
/// number of threads and receive the progress.
///
/// # Errors
/// The error of the first job that fails. Jobs that have not begun by then are skipped.
pub fn map<J: Sync, R: Send, E: Send>(
    options: &Options,
    jobs: &[J],
    work: impl Fn(&J) -> Result<R, E> + Sync,
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
                    let result = work(job);
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
    use crate::Progress;

    #[test]
    fn results_keep_the_order_of_their_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 3, 200] {
            let options = Options { threads, ..Options::default() };
            let results = map(&options, &jobs, |n| Ok::<_, ()>(n * n));
            assert_eq!(results, Ok(jobs.iter().map(|n| n * n).collect()));
        }
        assert_eq!(map(&Options::default(), &[], |_: &u8| Ok::<u8, ()>(1)), Ok(vec![]));
    }

    #[test]
    fn an_error_ends_it() {
        let work = |n: &u8| if *n == 3 { Err("three") } else { Ok(*n) };
        assert_eq!(map(&Options::default(), &[1, 2, 3, 4], work), Err("three"));
    }

    #[test]
    fn progress_is_told_after_every_job() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let teller = told.clone();
        let progress = Progress::new(move |done, total| teller.lock().unwrap().push((done, total)));
        let options = Options { progress, threads: 3, ..Options::default() };
        map(&options, &[1, 2, 3], |n| Ok::<u8, ()>(*n)).unwrap();
        assert_eq!(*told.lock().unwrap(), [(0, 3), (1, 3), (2, 3), (3, 3)]);
    }
}
