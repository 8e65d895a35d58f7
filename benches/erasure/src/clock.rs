//! Wall clock and the CPU time of this thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// CPU time that this thread has used.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Measures the CPU time of this thread, less the cost of reading the clock.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock {
    overhead: Duration,
}

impl CpuClock {
    pub fn new() -> Self {
        let between = |_| {
            let start = cpu();
            cpu().saturating_sub(start)
        };
        Self { overhead: (0..1000).map(between).min().unwrap_or_default() }
    }

    /// The CPU time of `work`.
    pub fn time<R>(self, work: impl FnOnce() -> R) -> (Duration, R) {
        let start = cpu();
        let result = work();
        (cpu().saturating_sub(start).saturating_sub(self.overhead), result)
    }
}

/// The wall time of `work`.
pub fn wall<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}
