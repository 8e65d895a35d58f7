//! The server under attack: a process of its own, watched from outside.

use serde::Serialize;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use sutura_benches::Error;
use sutura_benches::process;
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

/// The files of a [`Site`].
pub struct Files {
    pub www: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Site {
    pub fn new() -> Result<Self, Error> {
        let site = Self { directory: tempfile::tempdir()?, identity: Identity::new()? };
        let files = site.files();
        fs::create_dir(&files.www)?;
        fs::write(files.www.join(&SMALL[1..]), vec![b's'; SMALL_BYTES])?;
        fs::write(files.www.join(&LARGE[1..]), vec![b'l'; LARGE_BYTES])?;
        let (certificate, key) = site.identity.to_pem();
        fs::write(files.certificate, certificate)?;
        fs::write(files.key, key)?;
        Ok(site)
    }

    pub fn files(&self) -> Files {
        let at = |name: &str| self.directory.path().join(name);
        Files { www: at("www"), certificate: at("certificate.pem"), key: at("key.pem") }
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

/// The server's process; it ends with this value.
pub struct Target {
    child: Child,
    pub address: SocketAddr,
}

impl Drop for Target {
    fn drop(&mut self) {
        // The process has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Target {
    /// Starts a server of the site. `binary` is the binary of `sutura`, `extra` its further arguments.
    pub fn start(
        stack: Stack,
        needs: Needs,
        site: &Site,
        binary: &Path,
        extra: &[String],
    ) -> Result<Self, Error> {
        let files = site.files();
        let mut command = match stack {
            Stack::Sutura => {
                let mut command = Command::new(binary);
                command.arg("serve").arg(&files.www).args(["--listen", "127.0.0.1:0", "--json"]);
                command.arg("--cert").arg(&files.certificate).arg("--key").arg(&files.key);
                command.arg("--state-dir").arg(site.directory.path().join("state")).args(extra);
                command
            }
            Stack::Quinn => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("--serve").arg(site.directory.path());
                command
            }
        };
        if needs.retry {
            command.arg("--retry");
        }
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child =
            started.map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let mut target = Self { child, address: ([127, 0, 0, 1], 0).into() };
        let said: serde_json::Value = serde_json::from_str(&line)
            .map_err(|error| format!("the server does not say where it listens: {error}"))?;
        let address = said.get("listening").and_then(|value| value.as_str());
        target.address = address.ok_or("the server does not say where it listens")?.parse()?;
        Ok(target)
    }

    /// The resources that the process has used so far.
    pub fn usage(&self) -> Result<Usage, Error> {
        let id = self.child.id();
        let cpu = process::cpu_seconds(id)?;
        let resident_kib = kib(&process::read(id, "smaps_rollup")?, "Rss")
            .ok_or("/proc/…/smaps_rollup has no Rss")?;
        let peak_kib =
            kib(&process::read(id, "status")?, "VmHWM").ok_or("/proc/…/status has no VmHWM")?;
        // The kernel updates the peak in `status` only now and then.
        Ok(Usage { cpu, resident_kib, peak_kib: peak_kib.max(resident_kib) })
    }

    /// Whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
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
        let mut target = Target { child, address: ([127, 0, 0, 1], 1).into() };
        let usage = target.usage().unwrap();
        assert!(usage.resident_kib > 0 && usage.peak_kib >= usage.resident_kib, "{usage:?}");
        assert!(target.is_alive());
    }
}
