//! What the servers of both versions of HTTP share.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

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

/// A request and what became of it.
#[derive(Debug)]
pub struct Access<'a> {
    pub remote: SocketAddr,
    pub version: &'a str,
    pub method: &'a str,
    pub target: &'a str,
    pub status: u16,
    /// Bytes of the response's body that were passed on.
    pub bytes: u64,
    /// The priority of the response, where there is one.
    pub priority: Option<Priority>,
    pub start: Instant,
    /// Why the response is not complete.
    pub error: Option<String>,
}

impl Log {
    /// Writes a line about a request.
    pub fn access(self, access: &Access<'_>) {
        if !self.enabled {
            return;
        }
        let Access { remote, version, method, target, status, bytes, priority, start, error } =
            access;
        let millis = output::millis(start.elapsed());
        let mut line =
            format!("{remote} {version} {method} {target} {status} {bytes} B {millis:.1} ms");
        if let Some(priority) = priority {
            line += &format!(", {priority}");
        }
        if let Some(error) = error {
            line += &format!(", broke off: {error}");
        }
        output::note(&line);
    }

    /// Writes a line about a connection.
    pub fn connection(self, remote: SocketAddr, event: &dyn fmt::Display) {
        if self.enabled {
            output::note(&format!("{remote} {event}"));
        }
    }
}
