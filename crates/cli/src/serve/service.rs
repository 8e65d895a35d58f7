//! What the servers of both versions of HTTP share.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use hyper::StatusCode;
use sutura::http::Priority;

use super::rules::Rules;
use super::site::Site;
use crate::fec::Fec;
use crate::output;

/// What is served, and how.
#[derive(Debug)]
pub struct Service {
    pub site: Site,
    /// Priorities of responses, whatever the request says.
    pub rules: Rules,
    /// Protection of responses whose request says nothing about it.
    pub fec: Option<Fec>,
    /// The `alt-svc` field of HTTP/1.1 responses.
    pub alt_svc: Option<String>,
    pub log: Log,
}

/// Where requests are written down, if they are.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    pub enabled: bool,
}

impl Log {
    /// Writes a line about a connection.
    pub fn connection(self, remote: SocketAddr, event: &dyn fmt::Display) {
        if self.enabled {
            output::note(&format!("{remote} {event}"));
        }
    }
}

/// A request and what becomes of it. When it is dropped, it is written to the log.
#[derive(Debug)]
pub struct Access {
    pub log: Log,
    pub remote: SocketAddr,
    pub version: &'static str,
    pub method: String,
    pub target: String,
    pub start: Instant,
    pub status: StatusCode,
    /// Bytes of the response's body that were passed on.
    pub bytes: u64,
    /// The priority of the response, where there is one.
    pub priority: Option<Priority>,
    /// How the response ended: passed on, or aborted for some reason. `None` until then.
    pub end: Option<Result<(), String>>,
}

impl Drop for Access {
    fn drop(&mut self) {
        if !self.log.enabled {
            return;
        }
        let Self { remote, version, method, target, status, bytes, .. } = self;
        let (status, millis) = (status.as_u16(), output::millis(self.start.elapsed()));
        let mut line =
            format!("{remote} {version} {method} {target} {status} {bytes} B {millis:.1} ms");
        if let Some(priority) = &self.priority {
            line += &format!(", {priority}");
        }
        match &self.end {
            Some(Ok(())) => {}
            Some(Err(error)) => line += &format!(", aborted: {error}"),
            None => line += ", aborted: the server stopped",
        }
        output::note(&line);
    }
}
