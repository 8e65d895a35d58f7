//! `sutura serve` beside caddy and nginx in all versions of HTTP that they speak, over the loopback device.
//!
//! The servers are processes of their own with the same files and the same certificate; the client, which is the same
//! for all, is this process. Each round measures all of them, so that other load on the machine meets them alike; only
//! numbers of one round are compared with each other.

mod client;
mod report;
mod server;

use clap::Parser;
use client::{Client, Idle};
use report::{Load, Measurements, Rest, Run};
use server::{Kind, Site, Version};
use std::path::PathBuf;
use std::process::ExitCode;
use sutura_benches::output::Output;
use sutura_benches::{Error, exit_code};

/// `sutura serve` beside caddy and nginx over the loopback device.
#[derive(Debug, Parser)]
struct Options {
    /// Interleaved rounds
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// GETs of a small file, for each number at a time
    #[arg(long, default_value_t = 20_000)]
    requests: u64,
    /// How many small files are asked for at a time: on one connection, over HTTP/1.1 on as many
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100])]
    at_once: Vec<u64>,
    /// GETs of a large file in each round, one after another
    #[arg(long, default_value_t = 1000)]
    downloads: u64,
    /// Bytes of the large file
    #[arg(long, default_value_t = 1_000_000)]
    bytes: u64,
    /// Connections of HTTP/3 that are silent after one GET; 0 leaves them out
    #[arg(long, default_value_t = 2000)]
    idle: u64,
    /// The binary of sutura
    #[arg(long, value_name = "PATH", default_value = "target/release/sutura")]
    sutura: PathBuf,
    /// The binary of caddy
    #[arg(long, value_name = "PATH", default_value = "caddy")]
    caddy: PathBuf,
    /// The binary of nginx
    #[arg(long, value_name = "PATH", default_value = "nginx")]
    nginx: PathBuf,
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
            Kind::Nginx => &self.nginx,
        }
    }
}

/// Measures all loads in all versions of HTTP on a new server of this kind.
async fn loads(kind: Kind, site: &Site, options: &Options) -> Result<Vec<Run>, Error> {
    let server = server::start(kind, options.binary(kind), site)?;
    let mut runs = Vec::new();
    for version in Version::ALL.into_iter().filter(|version| kind.speaks(*version)) {
        let client = Client::new(server.address, &site.identity, version)?;
        for load in options.loads() {
            let costs = client.measure(&server, site, load, options.count(load)).await?;
            runs.push(Run { kind, version, load, costs });
        }
    }
    Ok(runs)
}

/// Measures silent connections of a new server of this kind.
async fn idle(kind: Kind, site: &Site, options: &Options) -> Result<Idle, Error> {
    let server = server::start(kind, options.binary(kind), site)?;
    let client = Client::new(server.address, &site.identity, Version::Three)?;
    client.idle(&server, site, options.idle).await
}

/// Measures and prints.
fn run(options: &Options) -> Result<(), Error> {
    let site = Site::new(options.bytes)?;
    let versions = Kind::ALL.map(|kind| kind.version(options.binary(kind)));
    let versions = versions.into_iter().collect::<Result<Vec<_>, _>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut measurements = Measurements::default();
    for number in 0..options.rounds {
        let (mut order, by) = (Kind::ALL, number % Kind::ALL.len());
        // The order should not matter, so each of them is the first one by turns.
        order.rotate_left(by);
        for kind in order {
            measurements.runs.extend(runtime.block_on(loads(kind, &site, options))?);
            if options.idle > 0 && kind.speaks(Version::Three) {
                let idle = runtime.block_on(idle(kind, &site, options))?;
                measurements.rests.push(Rest { kind, idle });
            }
        }
        eprintln!("round {} of {}", number + 1, options.rounds);
    }
    options.output.write("http", &measurements.report(options, &versions), &measurements)
}

fn main() -> ExitCode {
    exit_code("http", run(&Options::parse()))
}
