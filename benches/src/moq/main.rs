//! A Media over QUIC broadcast to several viewers over lossy links: the same program, of the crate `moq-net`, on Sutura
//! and on quinn.
//!
//! Each viewer has a connection and a link of its own, a `sutura-relay` on the loopback device. All peers meet the same
//! seeds at the same time, in a thread each, so that other load on the machine meets all of them alike.

mod broadcast;
mod outcome;
mod over_quinn;
mod over_sutura;
mod plan;
mod report;
mod video;

use broadcast::Place;
use clap::Parser;
use outcome::Outcome;
use plan::{Job, Peer};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use sutura_benches::output::Output;
use sutura_benches::parallel::do_all;
use sutura_benches::tls::Identity;
use sutura_benches::{Error, exit_code};

/// A Media over QUIC broadcast over lossy links, on Sutura and on quinn.
#[derive(Debug, Parser)]
struct Options {
    /// One short round, for a first look
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
    /// Decides what the links lose
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Broadcasts of each peer over each link
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Viewers of a broadcast
    #[arg(long, default_value_t = 3)]
    viewers: u64,
    /// Seconds of a broadcast that count
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Broadcasts at a time: by default one of each peer
    #[arg(long, default_value_t = Peer::ALL.len())]
    parallel: usize,
    /// Run only broadcasts whose label contains this, such as `quinn BBR` or `bursts`
    #[arg(long)]
    only: Option<String>,
    /// Write qlog files of Sutura's connections to this directory
    #[arg(long)]
    qlog: Option<PathBuf>,
}

/// Makes a broadcast in the calling thread, and says on standard error that it is over.
fn run_job(job: &Job, identity: &Identity, options: &Options) -> Result<Outcome, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let place = Place { job, identity, qlog: options.qlog.as_deref() };
    let outcome = match job.peer {
        Peer::Quinn | Peer::QuinnBbr => local.block_on(&runtime, over_quinn::run(&place)),
        Peer::SuturaBare | Peer::SuturaLess | Peer::Sutura | Peer::SuturaWithin => {
            local.block_on(&runtime, over_sutura::run(&place))
        }
    };
    eprintln!("moq: {job}");
    outcome
}

fn run(options: &Options) -> Result<(), Error> {
    let (rounds, seconds) = if options.quick { (1, 4) } else { (options.rounds, options.seconds) };
    let mut jobs = plan::jobs(options.seed, rounds, options.viewers, seconds)?;
    if let Some(only) = &options.only {
        jobs.retain(|job| job.to_string().contains(only));
    }
    let identity = Identity::new()?;
    let start = Instant::now();
    let outcomes = do_all(&jobs, options.parallel, |job| run_job(job, &identity, options))?;
    let took = Duration::from_secs(start.elapsed().as_secs());
    let report = report::report(&jobs, &outcomes, options.seed, took);
    options.output.write("moq", &report, &report)
}

fn main() -> ExitCode {
    exit_code("moq", run(&Options::parse()))
}
