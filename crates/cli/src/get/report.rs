//! Reports the outcome of all connections and transfers.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use sutura::Connection;

use super::{Done, Outcome};
use crate::failure::{Exit, Failure};
use crate::output::{self, millis};
use crate::stats::{Statistics, peer};
use crate::url::{Authority, Url};

/// A closed connection.
#[derive(Debug)]
pub struct ConnectionReport {
    authority: Authority,
    json: Value,
    /// The statistics as text.
    summary: Vec<String>,
    connect: Option<Duration>,
}

impl ConnectionReport {
    pub fn of(authority: &Authority, connection: &Connection, took: Duration) -> Self {
        let statistics = Statistics::of(connection);
        let mut json = statistics.to_json();
        json["authority"] = authority.to_string().into();
        json["remote"] = peer(connection).into();
        json["connect_ms"] = millis(took).into();
        json["early_data"] = connection.zero_rtt_accepted().into();
        let summary = statistics.summary(&authority.to_string());
        Self { authority: authority.clone(), json, summary, connect: Some(took) }
    }

    pub fn failed(authority: &Authority, failure: &Failure) -> Self {
        let json = json!({ "authority": authority.to_string(), "error": failure.message });
        Self { authority: authority.clone(), json, summary: Vec::new(), connect: None }
    }
}

/// All connections, and all URLs in the order of the command line.
#[derive(Debug)]
pub struct Report<'a> {
    connections: Vec<ConnectionReport>,
    transfers: Vec<(&'a Url, Option<Result<Outcome, Failure>>)>,
}

impl<'a> Report<'a> {
    pub fn new(urls: &'a [Url], connections: Vec<ConnectionReport>, done: Vec<Done>) -> Self {
        let mut transfers: Vec<_> = urls.iter().map(|url| (url, None)).collect();
        for (index, result) in done {
            if let Some((_, slot)) = transfers.get_mut(index) {
                *slot = Some(result);
            }
        }
        Self { connections, transfers }
    }

    /// Reports every failure once, in the order of the URLs: a connection's failure is that of all of its URLs.
    pub fn complain(&self) {
        let mut told = HashSet::new();
        for (_, result) in &self.transfers {
            if let Some(Err(failure)) = result
                && told.insert(&failure.message)
            {
                output::report(failure);
            }
        }
    }

    /// Writes the statistics of all connections to standard error.
    pub fn tell(&self) {
        self.connections.iter().flat_map(|c| &c.summary).for_each(|line| output::note(line));
    }

    /// The exit code of the first URL that failed.
    pub fn exit(&self) -> Exit {
        let code = |(_, result): &(_, Option<Result<_, Failure>>)| match result {
            Some(Ok(_)) => None,
            Some(Err(failure)) => Some(failure.exit),
            None => Some(Exit::Other),
        };
        self.transfers.iter().find_map(code).unwrap_or(Exit::Success)
    }

    pub fn to_json(&self) -> Value {
        let transfers: Vec<Value> = self
            .transfers
            .iter()
            .map(|(url, result)| {
                let connect = self.connection(url).and_then(|c| c.connect).map(millis);
                match result {
                    Some(Ok(outcome)) => json!({
                        "url": url.to_string(),
                        "status": outcome.status,
                        "bytes": outcome.bytes,
                        "connect_ms": connect,
                        "first_byte_ms": millis(outcome.first_byte),
                        "total_ms": millis(outcome.total),
                    }),
                    Some(Err(failure)) => json!({
                        "url": url.to_string(),
                        "connect_ms": connect,
                        "error": failure.message,
                    }),
                    None => json!({ "url": url.to_string(), "error": "not fetched" }),
                }
            })
            .collect();
        let connections: Vec<&Value> = self.connections.iter().map(|c| &c.json).collect();
        json!({ "transfers": transfers, "connections": connections })
    }

    fn connection(&self, url: &Url) -> Option<&ConnectionReport> {
        self.connections.iter().find(|c| c.authority == url.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_decides_the_exit_code() {
        let urls: Vec<Url> = ["https://a/1", "https://a/2", "https://b/3"]
            .iter()
            .map(|u| u.parse().unwrap())
            .collect();
        assert_eq!(Report::new(&urls, Vec::new(), Vec::new()).exit(), Exit::Other);
        let good = Outcome {
            status: 200,
            bytes: 1,
            first_byte: Duration::from_millis(1),
            total: Duration::from_millis(2),
        };
        let lost = Failure::new(Exit::Broken, "lost");
        let unknown = Failure::new(Exit::UnknownHost, "unknown");
        let a = ConnectionReport {
            authority: urls[0].authority.clone(),
            json: Value::Null,
            summary: Vec::new(),
            connect: Some(Duration::from_millis(3)),
        };
        let b = ConnectionReport::failed(&urls[2].authority, &unknown);
        let done = vec![(2, Err(unknown)), (1, Err(lost)), (0, Ok(good))];
        let report = Report::new(&urls, vec![a, b], done);
        assert_eq!(report.exit(), Exit::Broken);
        let json = report.to_json();
        assert_eq!(json["transfers"][0]["total_ms"], 2.0);
        assert_eq!(json["transfers"][1]["error"], "lost");
        assert_eq!(json["transfers"][1]["connect_ms"], 3.0);
        assert_eq!(json["transfers"][2]["connect_ms"], Value::Null);
        assert_eq!(json["connections"][1]["error"], "unknown");
    }
}
