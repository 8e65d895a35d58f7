//! The processes at both ends.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::Error;

/// How long a server may take to listen, and to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often to look whether something has happened.
const INTERVAL: Duration = Duration::from_millis(20);

/// The exit code for a test case that the stack does not support.
const UNSUPPORTED: i32 = 127;

/// What to run, and where it writes.
#[derive(Debug)]
pub struct Program<'a> {
    pub path: PathBuf,
    pub role: &'static str,
    pub case: &'static str,
    pub address: SocketAddr,
    pub certificates: &'a Path,
    /// Where its output, qlog and keys go.
    pub logs: &'a Path,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Done,
    Unsupported,
    Failed,
}

/// A process that ends with this value.
#[derive(Debug)]
pub struct Process(Child);

impl Program<'_> {
    /// Starts it with further variables.
    pub fn start(&self, variables: &[(&str, &OsStr)]) -> Result<Process, Error> {
        let file = |name: &str| File::create(self.logs.join(format!("{}.{name}", self.role)));
        let qlog = self.qlog();
        fs::create_dir_all(&qlog)?;
        let child = Command::new(&self.path)
            .env("ROLE", self.role)
            .env("TESTCASE", self.case)
            .env("ADDRESS", self.address.to_string())
            .env("CERTS", self.certificates)
            .env("QLOGDIR", qlog)
            .env("SSLKEYLOGFILE", self.logs.join(format!("{}.keys", self.role)))
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(file("out")?)
            .stderr(file("err")?)
            .spawn()
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok(Process(child))
    }

    /// Where its qlog files are.
    pub fn qlog(&self) -> PathBuf {
        self.logs.join(format!("{}-qlog", self.role))
    }

    /// What it printed.
    pub fn output(&self) -> Result<String, Error> {
        Ok(fs::read_to_string(self.logs.join(format!("{}.out", self.role)))?)
    }
}

fn ending(status: ExitStatus) -> Ending {
    match status.code() {
        Some(0) => Ending::Done,
        Some(UNSUPPORTED) => Ending::Unsupported,
        _ => Ending::Failed,
    }
}

impl Process {
    /// Waits until it ends; `None` if it does not in time.
    pub fn wait(&mut self, patience: Duration) -> Result<Option<Ending>, Error> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(ending(status)));
            }
            if start.elapsed() > patience {
                return Ok(None);
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// Waits until it listens. Otherwise says how it ended.
    pub fn listens(&mut self, port: u16) -> Result<Option<Ending>, Error> {
        let start = Instant::now();
        while !is_bound(port)? {
            if let Some(ending) = self.wait(Duration::ZERO)? {
                return Ok(Some(ending));
            }
            if start.elapsed() > PATIENCE {
                return Err("the server does not listen".into());
            }
            std::thread::sleep(INTERVAL);
        }
        Ok(None)
    }

    /// Asks it to end, and makes it.
    pub fn stop(mut self) -> Result<(), Error> {
        // Sent by kill(1), because the standard library only has SIGKILL.
        Command::new("kill").arg(self.0.id().to_string()).status()?;
        self.wait(PATIENCE)?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether any process has bound this UDP port.
pub fn is_bound(port: u16) -> Result<bool, Error> {
    let wanted = format!(":{port:04X}");
    for table in ["/proc/net/udp", "/proc/net/udp6"] {
        let sockets = fs::read_to_string(table)?;
        let mut local = sockets.lines().filter_map(|line| line.split_whitespace().nth(1));
        if local.any(|address| address.ends_with(&wanted)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A port of `host` that nobody uses.
pub fn free_port(host: std::net::IpAddr) -> Result<SocketAddr, Error> {
    Ok(UdpSocket::bind((host, 0))?.local_addr()?)
}
