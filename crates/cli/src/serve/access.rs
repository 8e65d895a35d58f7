//! The log of requests.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::header::{HeaderMap, HeaderName, REFERER, USER_AGENT};
use hyper::http::request::Parts;
use hyper::{StatusCode, Version};
use serde_json::{Value, json};
use sutura::http::{DefaultProtection, Priority};
use sutura_research::marx::Resource;
use time::OffsetDateTime;
use time::format_description::StaticFormatDescription;
use time::macros::format_description;

use crate::failure::Failure;
use crate::output;

const RFC_3339: StaticFormatDescription =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
/// As in the logs of NCSA's server, which many programs read.
const COMMON_TIME: StaticFormatDescription =
    format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000");

/// How a request is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people: with times, priorities, protections and why a response was aborted
    Text,
    /// As the Common Log Format of many servers
    Common,
    /// The same with Referer and User-Agent
    Combined,
    /// An object for each request
    Json,
}

/// The options of the log.
#[derive(Debug, Clone, clap::Args)]
pub struct LogArgs {
    /// Write a line for each request, as --log text
    #[arg(short, long, help_heading = "Log")]
    verbose: bool,
    /// Write a line for each request
    #[arg(long, value_name = "FORMAT", help_heading = "Log")]
    log: Option<LogFormat>,
    /// Write the log to the end of this file, which is opened again on SIGHUP [default: standard error]
    #[arg(long, value_name = "FILE", help_heading = "Log")]
    log_file: Option<PathBuf>,
}

impl LogArgs {
    /// The log.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn open(&self) -> Result<Arc<Log>, Failure> {
        if self.log_file.is_some() && self.log.is_none() && !self.verbose {
            return Err(Failure::usage(
                "--log-file takes a format: say --log text, common, combined or json",
            ));
        }
        let format = self.log.or(self.verbose.then_some(LogFormat::Text));
        let file =
            self.log_file.clone().map(|path| open(&path).map(|file| (path, file))).transpose()?;
        let (path, file) = file.unzip();
        Ok(Arc::new(Log { format, path, file: Mutex::new(file) }))
    }
}

fn open(path: &PathBuf) -> Result<File, Failure> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| crate::file::cannot_write(path, &error))
}

/// The log of requests, if there is one.
#[derive(Debug)]
pub struct Log {
    format: Option<LogFormat>,
    path: Option<PathBuf>,
    /// Standard error if `None`.
    file: Mutex<Option<File>>,
}

impl Log {
    /// Writes a line about a connection, in formats that have a place for such.
    pub fn connection(&self, remote: SocketAddr, event: &dyn fmt::Display) {
        let (now, remote) = (OffsetDateTime::now_utc(), plain(remote));
        match self.format {
            Some(LogFormat::Text) => self.write(&format!("{} {remote} {event}", text_time(now))),
            Some(LogFormat::Json) => self.write(
                &json!({
                    "time": text_time(now),
                    "remote": remote.to_string(),
                    "event": event.to_string(),
                })
                .to_string(),
            ),
            Some(LogFormat::Common | LogFormat::Combined) | None => {}
        }
    }

    /// Opens the file again, which somebody may have moved away.
    ///
    /// # Errors
    /// It cannot be opened; then the old one is written further.
    pub fn reopen(&self) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        let new = open(path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(new);
        Ok(())
    }

    fn write(&self, line: &str) {
        match &mut *self.file.lock().unwrap_or_else(PoisonError::into_inner) {
            // A disk that is full costs lines of the log and no responses.
            Some(file) => drop(file.write_all(format!("{}\n", output::clean(line)).as_bytes())),
            None => output::note(line),
        }
    }
}

/// A request and its outcome. It is logged when dropped.
#[derive(Debug)]
pub struct Access {
    pub log: Arc<Log>,
    pub remote: SocketAddr,
    version: Version,
    method: String,
    target: String,
    referer: Option<String>,
    user_agent: Option<String>,
    at: OffsetDateTime,
    start: Instant,
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

impl Access {
    /// The record of a request that has arrived now.
    pub fn of(log: Arc<Log>, remote: SocketAddr, request: &Parts) -> Self {
        Self {
            log,
            remote,
            version: request.version,
            method: request.method.to_string(),
            target: request.uri.path_and_query().map_or("", |target| target.as_str()).to_owned(),
            referer: text_of(&request.headers, &REFERER),
            user_agent: text_of(&request.headers, &USER_AGENT),
            at: OffsetDateTime::now_utc(),
            start: Instant::now(),
            status: StatusCode::INTERNAL_SERVER_ERROR,
            bytes: 0,
            priority: None,
            resource: None,
            protection: None,
            end: None,
        }
    }

    /// Why the response is not complete.
    fn aborted(&self) -> Option<&str> {
        match &self.end {
            Some(Ok(())) => None,
            Some(Err(error)) => Some(error),
            None => Some("the server stopped"),
        }
    }

    fn text(&self) -> String {
        let Self { method, target, status, bytes, .. } = self;
        let (time, remote, version) = (text_time(self.at), plain(self.remote), short(self.version));
        let (status, millis) = (status.as_u16(), output::millis(self.start.elapsed()));
        let mut line = format!(
            "{time} {remote} {version} {method} {target} {status} {bytes} B {millis:.1} ms"
        );
        if let Some(priority) = &self.priority {
            line += &format!(", {priority}");
        }
        if let Some(protection) = &self.protection {
            line += &format!("; protect {protection}");
        }
        if let Some(resource) = &self.resource {
            line += &format!(", {resource}");
        }
        if let Some(why) = self.aborted() {
            line += &format!(", aborted: {why}");
        }
        line
    }

    fn common(&self) -> String {
        let Self { method, target, status, bytes, .. } = self;
        let time = self.at.format(COMMON_TIME).unwrap_or_default();
        let (host, version, status) =
            (plain(self.remote).ip(), long(self.version), status.as_u16());
        format!("{host} - - [{time}] \"{method} {} {version}\" {status} {bytes}", quoted(target))
    }

    fn combined(&self) -> String {
        let quote = |text: &Option<String>| quoted(text.as_deref().unwrap_or("-"));
        let (referer, user_agent) = (quote(&self.referer), quote(&self.user_agent));
        format!("{} \"{referer}\" \"{user_agent}\"", self.common())
    }

    fn json(&self) -> Value {
        json!({
            "time": text_time(self.at),
            "remote": plain(self.remote).to_string(),
            "protocol": long(self.version),
            "method": self.method,
            "target": self.target,
            "status": self.status.as_u16(),
            "bytes": self.bytes,
            "duration_ms": output::millis(self.start.elapsed()),
            "referer": self.referer,
            "user_agent": self.user_agent,
            "priority": self.priority.as_ref().map(ToString::to_string),
            "protection": self.protection.as_ref().map(ToString::to_string),
            "resource": self.resource.as_ref().map(ToString::to_string),
            "aborted": self.aborted(),
        })
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        let Some(format) = self.log.format else { return };
        self.log.write(&match format {
            LogFormat::Text => self.text(),
            LogFormat::Common => self.common(),
            LogFormat::Combined => self.combined(),
            LogFormat::Json => self.json().to_string(),
        });
    }
}

/// The value of a field, whatever bytes it has.
fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn text_time(at: OffsetDateTime) -> String {
    at.format(RFC_3339).unwrap_or_default()
}

/// An address without the clothes of IPv6 in which sockets for both families have those of IPv4.
fn plain(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr = address.ip().to_canonical();
    (ip, address.port()).into()
}

/// A text between quotation marks.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn short(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "h3",
        Version::HTTP_2 => "h2",
        _ => "h1",
    }
}

fn long(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "HTTP/3",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use hyper::Request;

    fn access(log: &Arc<Log>) -> Access {
        let request = Request::get("https://a/x%20y?q=1")
            .version(Version::HTTP_3)
            .header("user-agent", "curl \"8\"\u{e4}")
            .body(())
            .unwrap();
        let remote = "[::ffff:192.0.2.1]:4000".parse().unwrap();
        let mut access = Access::of(log.clone(), remote, &request.into_parts().0);
        access.at = datetime!(2026-03-04 05:06:07.089 UTC);
        access.status = StatusCode::OK;
        access.bytes = 7;
        access.end = Some(Ok(()));
        access
    }

    fn log(format: Option<LogFormat>, file: Option<PathBuf>) -> Arc<Log> {
        LogArgs { verbose: false, log: format, log_file: file }.open().unwrap()
    }

    #[test]
    fn a_request_is_written_in_each_format() {
        let mut access = access(&log(None, None));
        let text = access.text();
        let head = "2026-03-04T05:06:07.089Z 192.0.2.1:4000 h3 GET /x%20y?q=1 200 7 B ";
        assert!(text.starts_with(head) && text.ends_with(" ms"), "{text}");
        let common = "192.0.2.1 - - [04/Mar/2026:05:06:07 +0000] \
                      \"GET /x%20y?q=1 HTTP/3\" 200 7";
        assert_eq!(access.common(), common);
        let combined = format!("{common} \"-\" \"curl \\\"8\\\"\u{e4}\"");
        assert_eq!(access.combined(), combined);
        let json = access.json();
        assert_eq!(json["time"], "2026-03-04T05:06:07.089Z");
        assert_eq!((&json["status"], &json["aborted"]), (&200.into(), &Value::Null));
        access.end = Some(Err("gone".into()));
        assert_eq!(access.json()["aborted"], "gone");
        assert!(access.text().ends_with(", aborted: gone"));
        access.end = None;
        assert!(access.text().ends_with(", aborted: the server stopped"));
    }

    #[test]
    fn a_file_that_was_moved_away_is_opened_again() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, moved) = (scratch.path().join("log"), scratch.path().join("log.1"));
        let log = log(Some(LogFormat::Common), Some(path.clone()));
        drop(access(&log));
        std::fs::rename(&path, &moved).unwrap();
        drop(access(&log));
        log.reopen().unwrap();
        drop(access(&log));
        let lines = |path| std::fs::read_to_string(path).unwrap().lines().count();
        assert_eq!((lines(moved), lines(path)), (2, 1));
        log.connection("192.0.2.1:1".parse().unwrap(), &"nothing in this format");
    }

    #[test]
    fn a_file_without_a_format_or_a_directory_is_refused() {
        let file = Some(PathBuf::from("/none/log"));
        let args = LogArgs { verbose: false, log: None, log_file: file.clone() };
        assert!(args.open().unwrap_err().message.contains("say --log text"));
        let args = LogArgs { verbose: true, log: None, log_file: file };
        assert!(args.open().unwrap_err().message.contains("/none does not exist"));
    }
}
