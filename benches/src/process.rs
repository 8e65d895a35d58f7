//! What the kernel says of other processes.

use crate::Error;

/// Ticks of a CPU's clock in a second, which Linux promises to programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// The text of a file of the process with this number under `/proc`.
pub fn read(id: u32, name: &str) -> Result<String, Error> {
    let path = format!("/proc/{id}/{name}");
    std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}").into())
}

/// User and system time of a process, in seconds, to a hundredth.
pub fn cpu_seconds(id: u32) -> Result<f64, Error> {
    Ok(cpu_of(&read(id, "stat")?).ok_or("/proc/…/stat is not understood")?)
}

/// User and system time of a process and of those that it has started and that run, in seconds.
pub fn family_cpu_seconds(id: u32) -> Result<f64, Error> {
    let own = cpu_seconds(id)?;
    let others = children(id)?.into_iter().map(family_cpu_seconds);
    Ok(own + others.sum::<Result<f64, Error>>()?)
}

/// Resident memory of a process and of those that it has started and that run, in bytes.
pub fn family_resident_bytes(id: u32) -> Result<u64, Error> {
    let status = read(id, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let own = kib.ok_or("/proc/…/status has no VmRSS")? * 1024;
    let others = children(id)?.into_iter().map(family_resident_bytes);
    Ok(own + others.sum::<Result<u64, Error>>()?)
}

/// The processes that the threads of a process have started and that run.
fn children(id: u32) -> Result<Vec<u32>, Error> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{id}/task"))? {
        // A thread may end while they are listed.
        let listed = std::fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        found.extend(listed.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Ok(found)
}

/// User and system time in a process's `stat`. The process's name, in parentheses, may contain any character.
fn cpu_of(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let stat = "17 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0";
        assert_eq!(cpu_of(stat), Some(3.0));
        assert!(cpu_seconds(std::process::id()).is_ok_and(|seconds| seconds >= 0.0));
    }

    #[test]
    fn children_count() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let family = children(std::process::id()).unwrap();
        let (all, alone) =
            (family_resident_bytes(std::process::id()), family_resident_bytes(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(family.contains(&child.id()));
        assert!(all.unwrap() > alone.unwrap());
    }
}
