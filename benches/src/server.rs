//! Servers that are processes of their own.

use crate::Error;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server's process; it ends with this value.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// Whether it is asked to end, so that it ends the processes that it has started.
    has_children: bool,
}

impl Drop for Server {
    fn drop(&mut self) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if self.has_children
            && let Some(id) = id
            && kill_process(id, Signal::TERM).is_ok()
        {
            let _ = self.child.wait();
            return;
        }
        // The process has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// A process that listens there, now or soon.
    pub fn new(child: Child, address: SocketAddr) -> Self {
        Self { child, address, has_children: false }
    }

    /// The same, which has processes of its own, and ends them when it is asked to end.
    pub fn with_children(mut self) -> Self {
        self.has_children = true;
        self
    }

    /// Starts a server whose first line of output says in JSON where it listens, as `sutura serve --json` does.
    pub fn start(command: &mut Command) -> Result<Self, Error> {
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| {
            format!("cannot start {}: {error}", command.get_program().display())
        })?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let mut server = Self::new(child, ([127, 0, 0, 1], 0).into());
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let said: serde_json::Value = serde_json::from_str(&line)
            .map_err(|error| format!("the server does not say where it listens: {error}"))?;
        let address = said.get("listening").and_then(|value| value.as_str());
        server.address = address.ok_or("the server does not say where it listens")?.parse()?;
        Ok(server)
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// `sutura serve` of what is in the directory `www` of `site`, with `certificate.pem` and `key.pem` of `site`, on a port
/// of its choice.
pub fn sutura(binary: &Path, site: &Path) -> Command {
    let mut command = Command::new(binary);
    command.arg("serve").arg(site.join("www")).args(["--listen", "127.0.0.1:0", "--json"]);
    command.arg("--cert").arg(site.join("certificate.pem"));
    command.arg("--key").arg(site.join("key.pem"));
    command.arg("--state-dir").arg(site.join("state"));
    command
}
