//! Goodput, CPU time, latency and memory of Sutura beside other stacks, over the loopback device.
//!
//! Server and client are processes of their own: this program starts itself with `--child`. Each round
//! measures every stack once, so that other load on the machine meets all of them alike; only numbers of one
//! round are compared with each other.

mod affinity;
mod child;
mod floor;
mod job;
mod parent;
mod profile;
mod report;
mod usage;
mod workers;

use clap::Parser;
use job::Subject;
use report::Load;
use std::path::PathBuf;
use std::process::ExitCode;
use sutura_benches::output::Output;
use sutura_benches::stack::{Name, Setting};
use sutura_benches::{Error, exit_code};

/// Loopback goodput, CPU time, latency and memory of Sutura beside other stacks.
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
    /// Stacks to measure; all that are built in unless this is given
    #[arg(long, value_delimiter = ',', default_values_t = Name::built_in())]
    stacks: Vec<Name>,
    /// Where their settings come from
    #[arg(long, value_delimiter = ',', default_value = "tuned")]
    settings: Vec<Setting>,
    /// Measure in the same rounds the least that any stack has to do
    #[arg(long, conflicts_with = "policies")]
    floors: bool,
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
    /// Handshakes, one after another, once with all cores and once with one for both ends; 0 skips them
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
    /// The core that both ends share: its number among those that the process may use
    #[arg(long, default_value_t = 0)]
    core: usize,
    /// Run the servers under `perf record`, which leaves a file for each measurement in this directory
    #[arg(long, value_name = "DIRECTORY")]
    profile: Option<PathBuf>,
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
        let handshakes = [Load::Handshakes, Load::HandshakesOnOneCore];
        let all = requests.chain(handshakes.map(|load| (load, self.handshakes)));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The subjects that are compared, each with the first subject of the same settings.
    fn subjects(&self) -> Vec<Subject> {
        if !self.policies.is_empty() {
            let sutura = |policy: &String, extra| Subject {
                policy: Some(policy.clone()),
                extra,
                ..Name::Sutura.into()
            };
            let plain = self.policies.iter().map(|policy| sutura(policy, 0));
            let more = self.policies.iter().take(usize::from(self.extra > 0));
            return plain.chain(more.map(|policy| sutura(policy, self.extra))).collect();
        }
        let stacks = self.settings.iter().flat_map(|&setting| {
            self.stacks.iter().map(move |&stack| Subject { setting, ..stack.into() })
        });
        stacks.chain(self.floors.then(|| Name::Floor.into())).collect()
    }

    /// The sizes of datagrams of downloads; `None` is what each stack finds itself.
    fn payloads(&self) -> Vec<Option<u16>> {
        self.payload.iter().copied().map(Some).chain([None]).collect()
    }

    /// All that is measured of downloads.
    fn downloads(&self) -> Vec<(Option<u16>, Subject)> {
        let (payloads, subjects) = (self.payloads(), self.subjects());
        let all = payloads.iter().flat_map(|payload| subjects.iter().map(move |s| (*payload, s)));
        let takes = all.filter(|(payload, subject)| subject.takes(*payload));
        takes.map(|(payload, subject)| (payload, subject.clone())).collect()
    }

    /// All that is measured of small loads.
    fn small(&self) -> Vec<(Load, Subject)> {
        let (loads, subjects) = (self.loads(), self.subjects());
        let all = loads.iter().flat_map(|(load, _)| subjects.iter().map(move |s| (*load, s)));
        let takes = all.filter(|(load, subject)| load.suits(subject));
        takes.map(|(load, subject)| (load, subject.clone())).collect()
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = if options.child { child::run() } else { parent::run(&options) };
    exit_code("loopback", result)
}
