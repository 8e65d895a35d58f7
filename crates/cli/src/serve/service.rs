//! State shared by the servers of both HTTP versions.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use hyper::StatusCode;
use sutura::http::{DefaultProtection, Priority};
use sutura_research::marx::{Kind, Resource};

use super::rules::Rules;
use super::site::Site;
use crate::output;

/// The site and how it is served.
#[derive(Debug)]
pub struct Service {
    pub site: Site,
    /// Priorities of responses, overriding those of the requests.
    pub rules: Rules,
    /// Settings of HTTP/3, with the protection of responses for which neither rule nor request sets one.
    pub http: sutura::http::Config,
    /// The `alt-svc` field of HTTP/1.1 responses.
    pub alt_svc: Option<String>,
    pub log: Log,
    /// Whether the scheduler goes by the kinds of resources.
    pub describes: bool,
}

impl Service {
    /// The properties that the scheduler goes by, of a response of type `content_type` to a request for
    /// `target`: its kind by its type, and descriptions in the rules. If the response comes `first` on its
    /// connection and is a document, it is the page's document. `None` if the scheduler goes by no such
    /// properties.
    pub fn resource(&self, target: &str, content_type: &str, first: bool) -> Option<Resource> {
        let mut resource = Resource::from_mime(content_type);
        resource.main = first && resource.kind == Kind::Html;
        self.rules.describe(target, content_type, &mut resource);
        self.describes.then_some(resource)
    }
}

/// The request log, if enabled.
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

/// A request and its outcome. It is logged when dropped.
#[derive(Debug)]
pub struct Access {
    pub log: Log,
    pub remote: SocketAddr,
    pub version: &'static str,
    pub method: String,
    pub target: String,
    pub start: Instant,
    pub status: StatusCode,
    /// Bytes of the response's body sent so far.
    pub bytes: u64,
    /// The priority of the response, if it has one.
    pub priority: Option<Priority>,
    /// The properties that its scheduler goes by, if there are any.
    pub resource: Option<Resource>,
    /// Its default protection, if neither a rule nor the request sets one.
    pub protection: Option<DefaultProtection>,
    /// How the response ended: complete, or aborted for a reason. `None` until then.
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
        if let Some(protection) = &self.protection {
            line += &format!("; protect {protection}");
        }
        if let Some(resource) = &self.resource {
            line += &format!(", {resource}");
        }
        match &self.end {
            Some(Ok(())) => {}
            Some(Err(error)) => line += &format!(", aborted: {error}"),
            None => line += ", aborted: the server stopped",
        }
        output::note(&line);
    }
}
