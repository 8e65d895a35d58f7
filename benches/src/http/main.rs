//! HTTP/3 of `sutura serve` beside that of caddy, over the loopback device.
//!
//! The servers are processes of their own with the same files and the same certificate; the client, which is the same
//! for both, is this process. Each round measures both, so that other load on the machine meets them alike; only
//! numbers of one round are compared with each other.

mod client;
mod report;
mod server;

use clap::Parser;
use report::{Load, Measurements, Run};
use server::{Kind, Site};
use std::path::PathBuf;
use std::process::ExitCode;
use sutura_benches::output::Output;
use sutura_benches::{Error, exit_code};

/// HTTP/3 of `sutura serve` beside that of caddy, over the loopback device.
#[derive(Debug, Parser)]
struct Options {
    /// Interleaved rounds
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// GETs of a small file, for each number at a time
    #[arg(long, default_value_t = 20_000)]
    requests: u64,
    /// How many small files are asked for at a time, on one connection
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100])]
    at_once: Vec<u64>,
    /// GETs of a large file in each round, one after another
    #[arg(long, default_value_t = 4)]
    downloads: u64,
    /// Bytes of the large file
    #[arg(long, default_value_t = 100_000_000)]
    bytes: u64,
    /// The binary of sutura
    #[arg(long, value_name = "PATH", default_value = "target/release/sutura")]
    sutura: PathBuf,
    /// The binary of caddy
    #[arg(long, value_name = "PATH", default_value = "caddy")]
    caddy: PathBuf,
    #[command(flatten)]
    output: Output,
}

impl Options {
    /// What is measured.
    fn loads(&self) -> impl Iterator<Item = Load> {
        let small = self.at_once.iter().map(|at_once| Load::Small { at_once: *at_once });
        small.chain([Load::Large]).filter(|load| self.count(*load) > 0)
    }

    /// How many GETs of a load.
    fn count(&self, load: Load) -> u64 {
        match load {
            Load::Small { .. } => self.requests,
            Load::Large => self.downloads,
        }
    }

    fn binary(&self, kind: Kind) -> &PathBuf {
        match kind {
            Kind::Sutura => &self.sutura,
            Kind::Caddy => &self.caddy,
        }
    }
}

/// Measures all loads on a new server of this kind.
fn round(kind: Kind, site: &Site, options: &Options) -> Result<Vec<Run>, Error> {
    let server = server::start(kind, options.binary(kind), site)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = client::Client::new(server.address, &site.identity).await?;
        let mut runs = Vec::new();
        for load in options.loads() {
            let costs = client.measure(&server, site, load, options.count(load)).await?;
            runs.push(Run { kind, load, costs });
        }
        client.close().await;
        Ok(runs)
    })
}

/// Measures and prints.
fn run(options: &Options) -> Result<(), Error> {
    let site = Site::new(options.bytes)?;
    let versions = [Kind::Sutura, Kind::Caddy].map(|kind| kind.version(options.binary(kind)));
    let [sutura, caddy] = versions;
    let versions = [sutura?, caddy?];
    let mut measurements = Measurements::default();
    for number in 0..options.rounds {
        let mut order = [Kind::Sutura, Kind::Caddy];
        // The order should not matter, so the rounds begin with one and with the other by turns.
        order.rotate_left(number % 2);
        for kind in order {
            measurements.runs.extend(round(kind, &site, options)?);
        }
        eprintln!("round {} of {}", number + 1, options.rounds);
    }
    options.output.write("http", &measurements.report(options, &versions), &measurements)
}

fn main() -> ExitCode {
    exit_code("http", run(&Options::parse()))
}
