//! The CPU time of the calling thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// User and system time of the calling thread so far.
pub fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The clock starts at zero and its nanoseconds are below a billion.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
