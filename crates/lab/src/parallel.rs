//! Independent jobs on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `work` makes of each job, in the order of the jobs.
///
/// # Errors
/// The error of the first job that has one; jobs that were not begun by then are left out.
pub fn map<J: Sync, R: Send, E: Send>(
    threads: usize,
    jobs: &[J],
    work: impl Fn(&J) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    let result = work(job);
                    if result.is_err() {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    // A thread that panics is told of by the scope.
                    if let Ok(mut results) = results.lock() {
                        results.push((index, result));
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
    use super::*;

    #[test]
    fn results_keep_the_order_of_their_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 3, 200] {
            let results = map(threads, &jobs, |n| Ok::<_, ()>(n * n));
            assert_eq!(results, Ok(jobs.iter().map(|n| n * n).collect()));
        }
        assert_eq!(map(2, &[], |_: &u8| Ok::<u8, ()>(1)), Ok(vec![]));
    }

    #[test]
    fn an_error_ends_it() {
        let result = map(2, &[1, 2, 3, 4], |n| if *n == 3 { Err("three") } else { Ok(*n) });
        assert_eq!(result, Err("three"));
    }
}
