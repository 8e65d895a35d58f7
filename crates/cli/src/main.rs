//! The sutura command.
#![forbid(unsafe_code)]

mod analyse;
mod cert;
mod config_file;
mod connect;
mod content_type;
mod demo;
mod dial;
mod doors;
mod failure;
mod fec;
mod file;
mod get;
mod guesses;
mod interrupt;
mod keylog;
mod lab;
mod link;
mod listen;
mod logging;
mod manual;
mod memory;
mod monitor;
mod open_files;
mod output;
mod passed;
mod policies;
mod qlog;
mod quic_server;
mod seconds;
mod secrets;
mod serve;
mod stats;
mod token;
mod transport;
mod trust;
mod tunnel;
mod url;
mod vnc;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};

use failure::{Exit, Failure};

/// The usual allocator of Linux never gives back the memory that a flood of clients took.
#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Threads that wait for files and names. A client that asks for many files at once must not bring about
/// hundreds: each thread takes memory of its own, and time from threads that send.
const BLOCKING_THREADS: usize = 16;

const EXAMPLES: &str = "\
Examples:
  sutura demo
  sutura serve ./public
  sutura link --listen 127.0.0.1:5000 --to 127.0.0.1:4433 --profile paper --seed 7
  sutura get https://127.0.0.1:5000/ --insecure --fec 3 --out page.html
  sutura qlog --out figures/ client.sqlog";

/// HTTP/3 over a QUIC that mends its own losses with erasure coding.
#[derive(Debug, Parser)]
#[command(name = "sutura", version, after_help = format!("{EXAMPLES}\n\n{}", failure::EXIT_CODES))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a directory over HTTP/3, and over HTTPS for browsers to find it
    Serve(Box<serve::ServeArgs>),
    /// Fetch URLs over HTTP/3
    Get(Box<get::GetArgs>),
    /// Relay UDP through an emulated lossy link
    Link(Box<link::LinkArgs>),
    /// Show what redundancy gains and costs: four applications on simulated links
    Demo(demo::DemoArgs),
    /// Analyse qlog files: multiplexing, head-of-line blocking, waterfall, ByteIndex
    Qlog(analyse::AnalyseArgs),
    /// Bring a remote desktop over a lossy path
    #[command(subcommand)]
    Vnc(Box<vnc::VncCommand>),
    /// Carry programs as they are over a lossy path: TCP and UDP through a proxy
    #[command(subcommand)]
    Tunnel(Box<tunnel::TunnelCommand>),
    /// Run the experiments
    Lab(Box<lab::LabArgs>),
    /// List the built-in policies: schedulers, redundancy, loss reactions, congestion control
    Policies(policies::PoliciesArgs),
    /// Print completions for a shell
    Completions(manual::CompletionsArgs),
    /// Write manual pages
    Manual(manual::ManualArgs),
}

fn main() -> ExitCode {
    let started = logging::begin().and_then(|()| line());
    let result = started.and_then(|line| run(Cli::parse_from(line).command));
    result.unwrap_or_else(|failure| output::report(&failure)).into()
}

fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Serve(args) => block_on(serve::run(*args)),
        Command::Get(args) => block_on(get::run(*args)),
        Command::Link(args) => block_on(link::run(*args)),
        Command::Demo(args) => demo::run(&args),
        Command::Qlog(args) => analyse::run(&args),
        Command::Vnc(command) => block_on(vnc::run(*command)),
        Command::Tunnel(command) => {
            command.give_up_root()?;
            block_on_with(tunnel::BLOCKING_THREADS, tunnel::run(*command))
        }
        Command::Lab(args) => lab::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Manual(args) => manual::manual(&args),
    }
}

/// The command line, with what the file that it names adds to it.
fn line() -> Result<Vec<OsString>, Failure> {
    let line: Vec<OsString> = std::env::args_os().collect();
    let mut command = Cli::command();
    command.build();
    // What is missing may be in the file.
    let lenient = command.clone().ignore_errors(true);
    let Ok(matches) = lenient.try_get_matches_from(&line) else { return Ok(line) };
    let (mut command, mut matches) = (&command, &matches);
    while let Some((name, below)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { return Ok(line) };
        (command, matches) = (found, below);
    }
    config_file::expand(command, matches, line)
}

/// Runs a command to its end, and drops everything that it left behind.
fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    block_on_with(BLOCKING_THREADS, command)
}

/// The same, with so many threads for what blocks.
fn block_on_with(
    blocking_threads: usize,
    command: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(blocking_threads)
        .build()
        .map_err(|e| Failure::local(format!("cannot start: {e}")))?;
    let result = runtime.block_on(command);
    // A name lookup or a write to a full pipe may block forever, so it is not waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
