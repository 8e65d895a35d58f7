//! Runs the cases of the QUIC interop runner between processes, with Sutura at one end of each:
//! `interop/README.md`.

mod case;
mod cell;
mod certificates;
mod check;
mod evidence;
mod header;
mod known;
mod network;
mod process;
mod record;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use case::{CASES, Case};
use cell::{Cell, Outcome, Side};

/// Errors of the matrix itself.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The stack with which every other stack is paired.
const OURS: &str = "sutura";

const EXAMPLES: &str = "\
Examples:
  interop-matrix --stacks target/interop --report docs/results/interop.md
  interop-matrix --stacks target/interop --peer quinn,aioquic --case handshake,retry
  interop-matrix --stacks target/interop --peer quinn --case zerortt --role client --logs /tmp/logs

Exits with 1 if a case fails that is not known to.";

/// Cases of the QUIC interop runner, between processes
#[derive(Debug, Parser)]
#[command(name = "interop-matrix", after_help = EXAMPLES)]
struct Options {
    /// The directory with a program for each stack, named as the stack
    #[arg(long, value_name = "DIR")]
    stacks: PathBuf,
    /// Only these peers
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    peer: Vec<String>,
    /// Only these cases
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    case: Vec<String>,
    /// Only this role of the peer
    #[arg(long, value_enum)]
    role: Option<Role>,
    /// Pair each peer with itself instead of us
    #[arg(long)]
    alone: bool,
    /// Cases that run at the same time; half as many where rates are measured
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// Seed for the contents of files and for losses
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where the output, qlog files and keys of both ends stay if a case fails
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
    /// Write a page with the results
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the outcomes as JSON
    #[arg(long)]
    json: bool,
}

/// The end that the peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    Client,
    Server,
}

/// The programs of all stacks.
#[derive(Debug)]
pub struct Stacks(PathBuf);

impl Stacks {
    /// The program of a stack.
    fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.0.join(name);
        if !path.exists() {
            return Err(format!("there is no {}", path.display()).into());
        }
        Ok(path)
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(|e| format!("{}: {e}", self.0.display()))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != OURS {
                names.push(name);
            }
        }
        names.sort_unstable();
        // Our own stack comes first: a failure with ourselves is not the peer's.
        names.insert(0, OURS.to_owned());
        Ok(names)
    }
}

/// All cells that the options ask for.
fn cells(options: &Options, stacks: &Stacks) -> Result<Vec<Cell>, Error> {
    let known = stacks.names()?;
    let unknown = options.peer.iter().find(|peer| !known.contains(peer));
    if let Some(unknown) = unknown {
        return Err(format!("no stack is called {unknown}").into());
    }
    if let Some(unknown) = options.case.iter().find(|name| CASES.iter().all(|c| c.name != **name)) {
        return Err(format!("no case is called {unknown}").into());
    }
    let mut cells = Vec::new();
    for case in
        CASES.iter().filter(|c| options.case.is_empty() || options.case.contains(&c.name.into()))
    {
        for peer in known.iter().filter(|p| options.peer.is_empty() || options.peer.contains(p)) {
            cells.extend(pairs(options, case, peer));
        }
    }
    Ok(cells)
}

/// The cells of one case with one peer.
fn pairs(options: &Options, case: &'static Case, peer: &str) -> Vec<Cell> {
    let cell = |client: &str, server: &str, ours| Cell {
        case,
        client: client.to_owned(),
        server: server.to_owned(),
        ours,
        seed: options.seed,
    };
    if options.alone || peer == OURS {
        return vec![cell(peer, peer, Side::Client)];
    }
    let wanted = |role| options.role.is_none_or(|only| only == role);
    let mut cells = Vec::new();
    if wanted(Role::Client) {
        cells.push(cell(peer, OURS, Side::Server));
    }
    if wanted(Role::Server) {
        cells.push(cell(OURS, peer, Side::Client));
    }
    cells
}

/// Runs all cells; those that measure a rate last.
fn run_all(options: &Options, stacks: &Stacks, logs: &Path, cells: &[Cell]) -> Vec<Outcome> {
    let bar = ProgressBar::new(cells.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    let outcomes = Mutex::new(vec![Outcome::Unsupported; cells.len()]);
    for (measured, jobs) in [(false, options.jobs), (true, options.jobs / 2)] {
        let wanted = |n: &usize| cells.get(*n).is_some_and(|c| c.case.is_measurement() == measured);
        let queue: Vec<usize> = (0..cells.len()).filter(wanted).collect();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                scope.spawn(|| {
                    while let Some(&n) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let Some(cell) = cells.get(n) else { continue };
                        bar.set_message(cell.name());
                        let outcome = cell.run(stacks, logs);
                        if let Outcome::Failed(problem) = &outcome {
                            bar.println(format!("FAIL {}: {problem}", cell.name()));
                        }
                        bar.inc(1);
                        if let Ok(mut outcomes) = outcomes.lock()
                            && let Some(slot) = outcomes.get_mut(n)
                        {
                            *slot = outcome;
                        }
                    }
                });
            }
        });
    }
    bar.finish_and_clear();
    outcomes.into_inner().unwrap_or_default()
}

fn run(options: &Options) -> Result<bool, Error> {
    let stacks = Stacks(options.stacks.clone());
    let cells = cells(options, &stacks)?;
    let temporary = tempfile::tempdir()?;
    let logs = options.logs.clone().unwrap_or_else(|| temporary.path().to_owned());
    let outcomes = run_all(options, &stacks, &logs, &cells);
    let versions = fs::read_to_string(options.stacks.with_extension("versions"));
    let versions = versions.unwrap_or_default().lines().collect::<Vec<_>>().join(", ");
    report::show(&cells, &outcomes, &versions, options.report.as_deref(), options.json)
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("interop-matrix: {error}");
            ExitCode::from(2)
        }
    }
}
