//! The costs that hostile clients cause at a server.
//!
//! The server is a process of its own, by default the release binary `sutura serve`. It is attacked over the
//! loopback device and measured from outside, while honest clients visit it. Each attack is bounded in time
//! and rate.

mod attacks;
mod fleet;
mod honest;
mod measure;
mod puppet;
mod quinn;
mod report;
mod request;
mod security;
mod target;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use sutura_benches::output::Output;
use sutura_benches::{Error, exit_code};

use attacks::Attack;
use target::{Site, Stack};

/// The command that runs the bench.
const COMMAND: &str = "cargo run --release --manifest-path benches/hostile/Cargo.toml --";

/// The price of hostile clients: CPU time, memory, and the patience of others.
#[derive(Debug, Parser)]
struct Options {
    /// Only these attacks, as --list names them
    #[arg(long = "attack", value_name = "NAME", value_delimiter = ',')]
    attacks: Vec<String>,
    /// List the attacks
    #[arg(long)]
    list: bool,
    /// Which servers are attacked
    #[arg(long, value_delimiter = ',', value_enum, default_values = ["sutura", "quinn"])]
    stacks: Vec<Stack>,
    /// The binary of sutura
    #[arg(long, value_name = "PATH", default_value = "target/release/sutura")]
    server: PathBuf,
    /// A further argument of `sutura serve`; may be given several times
    #[arg(long = "server-argument", value_name = "ARG", allow_hyphen_values = true)]
    server_arguments: Vec<String>,
    /// How long each attack lasts, instead of its own time; at most 120
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=120))]
    seconds: Option<u64>,
    /// Events or bits in a second, instead of the attack's own pace
    #[arg(long)]
    rate: Option<u64>,
    /// Seconds that the server gets after an attack to come back to one and a half times the memory
    /// that it had before; nobody waits for longer than it takes
    #[arg(long, default_value_t = 60)]
    after: u64,
    /// Renew the prices in this document, which is SECURITY.md
    #[arg(long, value_name = "FILE")]
    security: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    /// Be the server of quinn for the site in this directory
    #[arg(long, hide = true, value_name = "DIR")]
    serve: Option<PathBuf>,
    /// Let that server answer every client by a Retry
    #[arg(long, hide = true, requires = "serve")]
    retry: bool,
}

fn run(options: &Options) -> Result<(), Error> {
    if let Some(site) = &options.serve {
        return quinn::serve(site, options.retry);
    }
    let all = attacks::all();
    let is_known = |name: &&String| all.iter().any(|attack| attack.name == **name);
    if let Some(unknown) = options.attacks.iter().find(|name| !is_known(name)) {
        return Err(format!("there is no attack {unknown}; see --list").into());
    }
    let is_chosen = |attack: &&Attack| {
        options.attacks.is_empty() || options.attacks.iter().any(|name| name == attack.name)
    };
    let chosen: Vec<&Attack> = all.iter().filter(is_chosen).collect();
    if options.list {
        print!("{}", report::list(&chosen).to_markdown());
        return Ok(());
    }
    let site = Site::new()?;
    let mut measurements = Vec::new();
    let mut failures = Vec::new();
    for attack in &chosen {
        for stack in &options.stacks {
            if *stack != Stack::Sutura && !attack.plain {
                continue;
            }
            match measure::measure(attack, *stack, &site, options) {
                Ok(measured) => measurements.push(measured),
                Err(error) => {
                    failures.push(format!("{} on {}: {error}", attack.name, stack.name()));
                }
            }
        }
    }
    let mut report = report::report(&chosen, &measurements, options.after);
    report.failures.clone_from(&failures);
    options.output.write_as(COMMAND, &report, &measurements)?;
    if let Some(path) = &options.security {
        let text = std::fs::read_to_string(path)?;
        std::fs::write(path, security::renew(&text, &security::prices(&measurements)))?;
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ").into()) }
}

fn main() -> ExitCode {
    exit_code("hostile", run(&Options::parse()))
}
