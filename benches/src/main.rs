//! Bulk goodput, CPU time and memory of Sutura beside quinn, over the loopback device.
//!
//! Server and client are processes of their own: this program starts itself with `--child`. Each round
//! measures every stack once, so that other load on the machine meets all of them alike; only numbers of one
//! round are compared with each other.

mod child;
mod job;
mod parent;
mod report;
mod usage;
mod workers;

use clap::Parser;
use job::Subject;
use report::Load;
use std::process::ExitCode;
use sutura_benches::output::Output;
use sutura_benches::stack::Name;
use sutura_benches::{Error, exit_code};

/// Loopback goodput, CPU time and memory of Sutura beside quinn.
#[derive(Debug, Parser)]
struct Options {
    /// Interleaved rounds
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Bytes of each bulk download
    #[arg(long, default_value_t = 256 << 20)]
    bytes: u64,
    /// UDP payload sizes of the bulk downloads
    #[arg(long, value_delimiter = ',', default_values_t = [1452, 1200])]
    payload: Vec<u16>,
    /// Stacks to measure
    #[arg(long, value_delimiter = ',', default_values = ["sutura", "quinn"])]
    stacks: Vec<Name>,
    /// A redundancy policy for Sutura's streams, as `sutura policies` lists them, or `none`. Give this
    /// several times to compare policies with the first one, instead of stacks
    #[arg(long = "policy", value_name = "NAME")]
    policies: Vec<String>,
    /// Compare policies also with the first one and this many per cent more packets of plain data
    #[arg(long, value_name = "PER_CENT", default_value_t = 0)]
    extra: u64,
    /// Idle connections to measure the memory of; 0 skips that
    #[arg(long, default_value_t = 1000)]
    idle: usize,
    /// Connections that download 1 MB at the same time for the peak of memory; 0 skips that
    #[arg(long, default_value_t = 100)]
    concurrent: usize,
    /// Small requests for each number at a time; 0 skips them
    #[arg(long, default_value_t = 50_000)]
    requests: u64,
    /// How many small requests are sent at a time
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100])]
    at_once: Vec<u64>,
    /// Handshakes, one after another; 0 skips them
    #[arg(long, default_value_t = 1000)]
    handshakes: u64,
    /// Measure instead how many small requests and handshakes a server with one worker and one with this many
    /// can do, each worker on a core of its own, together with a part of the client
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=64))]
    workers: Option<u8>,
    /// With --workers: connections, each from a port of its own
    #[arg(long, default_value_t = 256)]
    connections: usize,
    /// With --workers: accept and serve all connections in one task, not those of each worker on its thread
    #[arg(long)]
    accept_together: bool,
    #[command(flatten)]
    output: Output,
    /// Serve a job that the parent process writes to the standard input
    #[arg(long, hide = true)]
    child: bool,
}

impl Options {
    /// The small loads that are measured, and how many operations of each.
    fn loads(&self) -> Vec<(Load, u64)> {
        let requests = self
            .at_once
            .iter()
            .map(|at_once| (Load::Requests { at_once: *at_once }, self.requests));
        let all = requests.chain([(Load::Handshakes, self.handshakes)]);
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The subjects that are compared, each with the first subject.
    fn subjects(&self) -> Vec<Subject> {
        if self.policies.is_empty() {
            return self.stacks.iter().copied().map(Subject::from).collect();
        }
        let sutura = |policy: &String, extra| Subject {
            stack: Name::Sutura,
            policy: Some(policy.clone()),
            extra,
        };
        let plain = self.policies.iter().map(|policy| sutura(policy, 0));
        let more = self.policies.iter().take(usize::from(self.extra > 0));
        plain.chain(more.map(|policy| sutura(policy, self.extra))).collect()
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = if options.child { child::run() } else { parent::run(&options) };
    exit_code("loopback", result)
}
