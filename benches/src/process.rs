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
}
