//! Jobs of which some are done at a time.

use crate::Error;
use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does `jobs` in their order, `parallel` at a time, each in a thread that does one job after the other. The outcomes are
/// in the order of the jobs.
///
/// # Errors
/// A job has failed; the text begins with the job.
pub fn do_all<J: Display + Sync, O: Send>(
    jobs: &[J],
    parallel: usize,
    work: impl Fn(&J) -> Result<O, Error> + Sync,
) -> Result<Vec<O>, Error> {
    let next = AtomicUsize::new(0);
    let in_turn = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return Ok(done) };
            let outcome = work(job).map_err(|error| format!("{job}: {error}"))?;
            done.push((index, outcome));
        }
    };
    let mut all = Vec::with_capacity(jobs.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..parallel.max(1)).map(|_| scope.spawn(in_turn)).collect();
        for thread in threads {
            let done: Result<Vec<_>, String> = thread.join().map_err(|_| "a job panicked")?;
            all.extend(done?);
        }
        Ok::<(), Error>(())
    })?;
    all.sort_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, outcome)| outcome).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        let squares = do_all(&jobs, 7, |job| Ok(job * job)).unwrap();
        assert!(squares.into_iter().eq(jobs.iter().map(|job| job * job)));
    }

    #[test]
    fn a_failure_says_which_job_it_was() {
        let fails = |job: &u64| if *job == 5 { Err("no".into()) } else { Ok(()) };
        let error = do_all(&[4, 5, 6], 2, fails).unwrap_err();
        assert_eq!(error.to_string(), "5: no");
    }
}
