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

/// The time between two looks at a process.
const INTERVAL: Duration = Duration::from_millis(20);

/// The exit code for a test case that the stack does not support.
const UNSUPPORTED: i32 = 127;

/// A program to run, and the directory in which it writes.
#[derive(Debug)]
pub struct Program<'a> {
    pub path: PathBuf,
    pub role: &'static str,
    pub case: &'static str,
    pub address: SocketAddr,
    pub certificates: &'a Path,
    /// The directory for its output, qlog files and keys.
    pub logs: &'a Path,
}

/// The ending of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Done,
    Unsupported,
    Failed,
}

/// A process, which ends when this value is dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Program<'_> {
    /// Starts the program with further variables.
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

    /// The directory of the program's qlog files.
    pub fn qlog(&self) -> PathBuf {
        self.logs.join(format!("{}-qlog", self.role))
    }

    /// The standard output of the program.
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
    /// Waits until the process ends; `None` if it does not end in time.
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

    /// Waits until the process listens at the port. If it ends before, returns its ending.
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

    /// Asks the process to end, and kills it if it does not.
    pub fn stop(mut self) -> Result<(), Error> {
        // The signal is sent by kill(1), because the standard library can send only SIGKILL.
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

/// A port of `host` that no socket uses.
pub fn free_port(host: std::net::IpAddr) -> Result<SocketAddr, Error> {
    Ok(UdpSocket::bind((host, 0))?.local_addr()?)
}
