//! The resources that this process has used so far.

use crate::Error;
use crate::job::Usage;
use rustix::time::{ClockId, clock_gettime};

/// Reads the process's CPU clock and its memory from `/proc`.
pub fn now() -> Result<Usage, Error> {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = |field: &str| -> Result<u64, Error> {
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let value = line.and_then(|line| line.split_whitespace().next());
        Ok(value.ok_or_else(|| format!("/proc/self/status has no {field}"))?.parse()?)
    };
    Ok(Usage {
        cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        resident_kib: kib("VmRSS")?,
        peak_kib: kib("VmHWM")?,
    })
}

/// The CPU time since `before`, and the memory now.
pub fn since(before: Usage) -> Result<Usage, Error> {
    let mut now = now()?;
    now.cpu_seconds -= before.cpu_seconds;
    Ok(now)
}
