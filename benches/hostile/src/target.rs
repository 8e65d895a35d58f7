//! The server under attack: a process of its own, watched from outside.

use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use sutura_benches::Error;
use sutura_benches::process;
use sutura_benches::server::{self, Server};
use sutura_benches::tls::Identity;
use tempfile::TempDir;

/// The resources for honest clients, and for slow readers.
pub const SMALL: &str = "/small";
pub const LARGE: &str = "/large";
const SMALL_BYTES: usize = 10_000;
const LARGE_BYTES: usize = 2 << 20;

/// What is attacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    Sutura,
    /// quinn with the crate h3, which answers as `sutura serve` does
    Quinn,
}

impl Stack {
    /// The name of the server.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sutura => "sutura",
            Self::Quinn => "quinn",
        }
    }
}

/// The requirements of an attack on the server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Needs {
    /// Every client answers a Retry first.
    pub retry: bool,
}

/// A directory with the certificate and the resources.
pub struct Site {
    directory: TempDir,
    pub identity: Identity,
}

impl Site {
    pub fn new() -> Result<Self, Error> {
        let site = Self { directory: tempfile::tempdir()?, identity: Identity::new()? };
        let at = |name: &str| site.directory.path().join(name);
        fs::create_dir(at("www"))?;
        fs::write(at("www").join(&SMALL[1..]), vec![b's'; SMALL_BYTES])?;
        fs::write(at("www").join(&LARGE[1..]), vec![b'l'; LARGE_BYTES])?;
        let (certificate, key) = site.identity.to_pem();
        fs::write(at("certificate.pem"), certificate)?;
        fs::write(at("key.pem"), key)?;
        Ok(site)
    }
}

/// The resources of a process.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Usage {
    /// User and system time in seconds.
    pub cpu: f64,
    pub resident_kib: u64,
    /// The largest resident memory so far.
    pub peak_kib: u64,
}

/// Starts a server of the site. `binary` is the binary of `sutura`, `extra` its further arguments.
pub fn start(
    stack: Stack,
    needs: Needs,
    site: &Site,
    binary: &Path,
    extra: &[String],
) -> Result<Server, Error> {
    let directory = site.directory.path();
    let mut command = match stack {
        Stack::Sutura => {
            let mut command = server::sutura(binary, directory);
            command.args(extra);
            command
        }
        Stack::Quinn => {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("--serve").arg(directory);
            command
        }
    };
    if needs.retry {
        command.arg("--retry");
    }
    Server::start(&mut command)
}

impl Usage {
    /// The resources that a process has used so far.
    pub fn of(id: u32) -> Result<Self, Error> {
        let cpu = process::cpu_seconds(id)?;
        let resident_kib = kib(&process::read(id, "smaps_rollup")?, "Rss")
            .ok_or("/proc/…/smaps_rollup has no Rss")?;
        let peak_kib =
            kib(&process::read(id, "status")?, "VmHWM").ok_or("/proc/…/status has no VmHWM")?;
        // The kernel updates the peak in `status` only now and then.
        Ok(Self { cpu, resident_kib, peak_kib: peak_kib.max(resident_kib) })
    }
}

/// The field of this name, which `/proc` gives in KiB.
fn kib(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// How long a new server gets before it counts as idle.
pub const SETTLE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_are_read() {
        assert_eq!(kib("VmPeak:\t 9 kB\nVmHWM:\t  1234 kB\n", "VmHWM"), Some(1234));
        assert_eq!(kib("Rss: x kB", "Rss"), None);
    }

    #[test]
    fn this_process_can_be_watched() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut target = Server::new(child, ([127, 0, 0, 1], 1).into());
        let usage = Usage::of(target.id()).unwrap();
        assert!(usage.resident_kib > 0 && usage.peak_kib >= usage.resident_kib, "{usage:?}");
        assert!(target.is_alive());
    }
}
