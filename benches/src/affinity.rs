//! The cores that this process may use.

use crate::Error;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps this thread, and all that it starts from now on, on the core with this number among those that it may use.
pub fn stay_on(core: usize) -> Result<(), Error> {
    let allowed = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let core = cores.nth(core).ok_or_else(|| format!("there is no core {core}"))?;
    let mut own = CpuSet::new();
    own.set(core);
    Ok(sched_setaffinity(None, &own)?)
}
