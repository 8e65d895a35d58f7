//! The parent's requests to its children, and their answers: a line of JSON each.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;
use sutura_analysis::statistics::Distribution;
use sutura_benches::stack::{Name, Setting};
use sutura_benches::tls::Identity;

/// The subject of a measurement: a stack, and the protection of its streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub stack: Name,
    /// The redundancy policy of all streams as text, or `none`; `None` for the default.
    pub policy: Option<String>,
    /// Per cent of the bytes of a bulk download that are downloaded in addition and do not count.
    #[serde(default)]
    pub extra: u64,
    pub setting: Setting,
}

impl From<Name> for Subject {
    fn from(stack: Name) -> Self {
        Self { stack, policy: None, extra: 0, setting: Setting::Tuned }
    }
}

impl Subject {
    /// Whether it is measured with this size of datagrams, or with what it finds itself.
    pub fn takes(&self, payload: Option<u16>) -> bool {
        payload.is_some() == (self.setting == Setting::Tuned)
    }

    pub fn is_floor(&self) -> bool {
        self.stack == Name::Floor
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.policy {
            Some(policy) => f.write_str(policy)?,
            None => write!(f, "{}", self.stack)?,
        }
        if self.extra > 0 {
            write!(f, ", {} % more packets", self.extra)?;
        }
        Ok(())
    }
}

/// The settings of both ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Settings {
    pub subject: Subject,
    /// Bytes of UDP payload per datagram; `None` if each stack finds its own.
    pub payload: Option<u16>,
    pub identity: Identity,
}

/// A child's job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    pub settings: Settings,
    pub role: Role,
    /// The only core that the process may use.
    pub core: Option<usize>,
}

/// The end that the child is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Prints its address, then an [`Account`] for every line that it reads.
    Server,
    Client {
        server: SocketAddr,
        task: Task,
    },
    /// A server with this many workers, each on a core of its own, which prints its address, then a
    /// [`Served`] for every line that it reads. If `together`, all connections are accepted by one task.
    Workers {
        workers: usize,
        together: bool,
    },
    /// A client for it, with this many threads, each on a core of its own, and this many connections.
    Clients {
        server: SocketAddr,
        threads: usize,
        connections: usize,
        /// Whether each connection goes over to another port before the measurement.
        moves: bool,
        task: Task,
    },
}

/// The task of a client.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// One connection, one download.
    Bulk { bytes: u64 },
    /// Opens this many connections, prints a line, and holds them until it reads another line.
    Idle { connections: usize },
    /// This many connections, one download each, all at the same time.
    Concurrent { connections: usize, bytes: u64 },
    /// This many requests with answers of [`ANSWER`] bytes on one connection, `at_once` at a time.
    Requests { count: u64, at_once: u64 },
    /// This many handshakes.
    Handshakes { count: u64 },
}

/// The size of the answer to a small request.
pub const ANSWER: u64 = 1000;

/// The address at which a server listens.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Listening {
    pub address: SocketAddr,
}

/// The resources that a process has used.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Usage {
    /// User and system time of all its threads, in seconds.
    pub cpu_seconds: f64,
    /// Resident memory in KiB, and its maximum so far.
    pub resident_kib: u64,
    pub peak_kib: u64,
}

/// What a server answers for each line that it reads.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Account {
    pub usage: Usage,
    /// Repair symbols that the newest connection has sent.
    pub repairs: u64,
}

/// What a server with several workers has done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Served {
    pub usage: Usage,
    /// How many connections each worker has accepted.
    pub connections: Vec<u64>,
}

/// The result of a client.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Done {
    /// Seconds from the first request to the last byte.
    pub seconds: f64,
    /// Bytes of streams received; for handshakes, their number.
    pub amount: u64,
    /// The resources that the task used, without the setup of the process.
    pub usage: Usage,
    /// Repair symbols received.
    pub repairs: u64,
    /// How long each of its operations took, if they are small.
    pub latency: Option<Latency>,
    /// Seconds of CPU time of the server's part, if the client's process has done that too.
    pub server_cpu: Option<f64>,
}

impl Done {
    /// The result of a task of one or a few large operations.
    pub fn new(seconds: f64, amount: u64, usage: Usage) -> Self {
        Self { seconds, amount, usage, repairs: 0, latency: None, server_cpu: None }
    }

    /// The result of a task of many small operations, which took these times.
    pub fn of_many(seconds: f64, amount: u64, usage: Usage, times: Vec<Duration>) -> Self {
        Self { latency: Some(Latency::of(times)), ..Self::new(seconds, amount, usage) }
    }
}

/// Quantiles of the times of single operations, in seconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
}

impl Latency {
    fn of(times: Vec<Duration>) -> Self {
        let times = Distribution::of(times);
        let [p50, p99] = [0.5, 0.99].map(|q| times.quantile(q).as_secs_f64());
        Self { p50, p99 }
    }
}

/// Prints an answer.
pub fn say(answer: &impl Serialize) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
