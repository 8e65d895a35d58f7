//! The environment of an endpoint.

use std::env;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use crate::{TestCase, http09};

/// Which end to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Fetches.
    Client,
    /// Serves.
    Server,
}

/// A file to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The path of the URL, from its `/` on.
    pub path: String,
    /// The name of the saved file.
    pub name: String,
    /// The URL's host and port.
    pub authority: String,
}

/// The task of an endpoint.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Which end to be.
    pub role: Role,
    /// The test case.
    pub case: TestCase,
    /// The address at which the server listens, or to which the client connects.
    pub address: SocketAddr,
    /// The directory with `cert.pem`, `priv.key` and `ca.pem`.
    pub certificates: PathBuf,
    /// The directory that a server serves.
    pub www: PathBuf,
    /// A server's preferred address.
    pub preferred: Option<SocketAddr>,
    /// The files that a client fetches.
    pub requests: Vec<Request>,
    /// The directory in which a client saves the files.
    pub downloads: PathBuf,
    /// Whether requests use HTTP/3.
    pub http3: bool,
    /// The directory for qlog files.
    pub qlog: Option<PathBuf>,
}

/// Why an environment's task cannot be done.
#[derive(Debug)]
pub enum Problem {
    /// The test case is not known.
    Unsupported(String),
    /// A variable is missing or malformed.
    Malformed(String),
}

fn variable(name: &str) -> Result<String, Problem> {
    env::var(name).map_err(|_| Problem::Malformed(format!("{name} is not set")))
}

fn malformed(name: &str, text: &str) -> Problem {
    Problem::Malformed(format!("{name}={text} is malformed"))
}

fn request(url: &str) -> Result<Request, Problem> {
    let rest = url.strip_prefix("https://").ok_or_else(|| malformed("REQUESTS", url))?;
    let (authority, name) = rest.split_once('/').ok_or_else(|| malformed("REQUESTS", url))?;
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.is_empty() {
        return Err(malformed("REQUESTS", url));
    }
    Ok(Request { path: format!("/{name}"), name: last.into(), authority: authority.into() })
}

impl Environment {
    /// Reads the environment.
    ///
    /// # Errors
    /// The test case is unknown, or a variable is missing or malformed.
    pub fn read() -> Result<Self, Problem> {
        let role = match &*variable("ROLE")? {
            "client" => Role::Client,
            "server" => Role::Server,
            other => return Err(malformed("ROLE", other)),
        };
        let case = variable("TESTCASE")?;
        let case = case.parse().map_err(|()| Problem::Unsupported(case))?;
        let address = variable("ADDRESS")?;
        let address = address.parse().map_err(|_| malformed("ADDRESS", &address))?;
        let preferred = env::var("PREFERRED").ok();
        let parse = |text: String| text.parse().map_err(|_| malformed("PREFERRED", &text));
        let path = |name| env::var_os(name).map(PathBuf::from);
        let requests = env::var("REQUESTS").unwrap_or_default();
        Ok(Self {
            role,
            case,
            address,
            certificates: variable("CERTS")?.into(),
            www: path("WWW").unwrap_or_default(),
            preferred: preferred.map(parse).transpose()?,
            requests: requests.split_whitespace().map(request).collect::<Result<_, _>>()?,
            downloads: path("DOWNLOADS").unwrap_or_default(),
            http3: case == TestCase::Http3 || env::var("ALPN").is_ok_and(|alpn| alpn == "h3"),
            qlog: path("QLOGDIR"),
        })
    }

    /// The address to which a client's socket is bound.
    #[must_use]
    pub fn any_address(&self) -> SocketAddr {
        match self.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }

    /// The requests of each of a client's connections, which it makes one after the other, and whether
    /// they go in 0-RTT.
    #[must_use]
    pub fn connections(&self) -> Vec<(&[Request], bool)> {
        match self.case {
            TestCase::MultiConnect => self.requests.chunks(1).map(|one| (one, false)).collect(),
            TestCase::Resumption | TestCase::ZeroRtt => {
                let (first, rest) = self.requests.split_at(self.requests.len().min(1));
                vec![(first, false), (rest, self.case == TestCase::ZeroRtt)]
            }
            TestCase::Handshake
            | TestCase::Transfer
            | TestCase::Multiplexing
            | TestCase::ChaCha20
            | TestCase::Retry
            | TestCase::Http3
            | TestCase::KeyUpdate
            | TestCase::Ecn
            | TestCase::V2
            | TestCase::ConnectionMigration => vec![(&self.requests, false)],
        }
    }

    /// The application protocol (RFC 7301).
    #[must_use]
    pub fn protocol(&self) -> &'static [u8] {
        if self.http3 { b"h3" } else { http09::ALPN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let found = request("https://localhost:443/some/where").unwrap();
        assert_eq!((&*found.path, &*found.name), ("/some/where", "where"));
        assert_eq!(found.authority, "localhost:443");
        for url in ["http://localhost/a", "https://localhost", "https://localhost/"] {
            assert!(request(url).is_err(), "{url}");
        }
    }
}
