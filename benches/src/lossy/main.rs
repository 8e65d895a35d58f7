//! Downloads and a steady stream over a lossy link, of Sutura beside quinn, through real sockets.
//!
//! The link is a `sutura-relay` on the loopback device. Each job has a relay, a server and a client of its
//! own, in two threads, and a few jobs run at a time: they take 10 Mbit/s each. All peers meet the same
//! seeds, one after the other, so that other load on the machine meets all of them alike.

mod download;
mod plan;
mod report;
mod session;
mod stream;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use sutura_benches::output::Output;
use sutura_benches::parallel::do_all;
use sutura_benches::tls::Identity;
use sutura_benches::{Error, exit_code};

/// Downloads and a stream over a lossy link, of Sutura beside quinn.
#[derive(Debug, Parser)]
struct Options {
    /// Less of everything, for a first look
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
    /// Decides what the links lose
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Jobs at a time
    #[arg(long, default_value_t = 14)]
    parallel: usize,
    /// Run only jobs whose label contains this, such as `sutura BBR` or `stream`
    #[arg(long)]
    only: Option<String>,
    /// Write qlog files of Sutura's connections to this directory
    #[arg(long)]
    qlog: Option<PathBuf>,
}

fn run(options: &Options) -> Result<(), Error> {
    let mut jobs = plan::jobs(options.seed, options.quick);
    if let Some(only) = &options.only {
        jobs.retain(|job| job.to_string().contains(only));
    }
    let identity = Identity::new()?;
    let start = std::time::Instant::now();
    let work = |job: &_| session::run(job, &identity, options.qlog.as_deref());
    let outcomes = do_all(&jobs, options.parallel, work)?;
    let took = Duration::from_secs(start.elapsed().as_secs());
    let report = report::report(&jobs, &outcomes, options, took);
    options.output.write("lossy", &report, &report)
}

fn main() -> ExitCode {
    exit_code("lossy", run(&Options::parse()))
}
