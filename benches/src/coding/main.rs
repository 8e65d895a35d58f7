//! The share of a transfer's CPU time that erasure coding takes.
//!
//! A server and a client, in a thread each, and a `sutura-relay` between them that behaves like a link. The
//! CPU time of both threads is measured over one download without and with repair symbols. The source and
//! repair symbols of one more download are written down and given to the encoder and the decoder alone, which
//! tells how much of that time coding takes.

mod case;
mod measure;
mod replay;
mod report;
mod trace;
mod transfer;

use case::Case;
use clap::Parser;
use measure::Measurement;
use std::process::ExitCode;
use std::time::Duration;
use sutura::Algorithm;
use sutura_benches::output::Output;
use sutura_benches::tls::Identity;
use sutura_benches::{Error, exit_code};
use sutura_link::{Probability, Rate};

const EXAMPLES: &str = "\
Examples:
  coding                                     all cases, about five minutes
  coding --quick                             one round of short downloads
  coding --rtt 20 --loss 0 --rounds 7        one case, more often
  coding --rtt 50 --window 1024              with a larger coding window than the default
  coding --payload 1200 --delay 25 --json    other packets and delay, every single figure
  coding --rtt 20 --burst 10                 a number of repair symbols instead of a share";

/// What share of a transfer's CPU time erasure coding takes.
#[derive(Debug, Clone, Parser)]
#[command(after_help = EXAMPLES)]
struct Options {
    /// One short round of each case, for a first look
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
    /// Round-trip times of the path in milliseconds
    #[arg(long, value_delimiter = ',', default_values_t = [10, 20, 50])]
    rtt: Vec<u64>,
    /// Shares of packets lost at random, both ways, such as 1%
    #[arg(long, value_delimiter = ',', default_value = "0,1%")]
    loss: Vec<Probability>,
    /// Rate of the link
    #[arg(long, default_value = "100mbit")]
    rate: Rate,
    /// Bytes of each download
    #[arg(long, default_value_t = 60_000_000)]
    bytes: u64,
    /// Bytes of UDP payload per datagram
    #[arg(long, default_value_t = 1452)]
    payload: u16,
    /// Congestion control: bbr, cubic or newreno
    #[arg(long, default_value = "bbr", value_parser = algorithm)]
    congestion: Algorithm,
    /// Repair symbols to reach, as a share of source symbols: the burst is chosen for it
    #[arg(long, default_value = "10%")]
    repair: Probability,
    /// Repair delay tolerance in milliseconds
    #[arg(long, default_value_t = 10)]
    delay: u64,
    /// Repair symbols per occasion (burst loss tolerance) instead of a share
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=32))]
    burst: Option<u32>,
    /// Source symbols that the receiver allows in the coding window
    #[arg(long, default_value_t = 256)]
    window: u32,
    /// Interleaved rounds of each case
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Decides what the links lose
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// An algorithm by its name.
fn algorithm(name: &str) -> Result<Algorithm, &'static str> {
    let all = [Algorithm::BBR, Algorithm::CUBIC, Algorithm::NEW_RENO];
    all.into_iter().find(|known| known.name() == name).ok_or("expected bbr, cubic or newreno")
}

impl Options {
    fn shortened(mut self) -> Self {
        if self.quick {
            self.bytes = self.bytes.min(15_000_000);
            self.rounds = 1;
        }
        self
    }

    fn cases(&self) -> impl Iterator<Item = Case> + '_ {
        self.rtt.iter().flat_map(move |rtt| {
            self.loss.iter().map(move |loss| Case {
                rtt: Duration::from_millis(*rtt),
                loss: *loss,
                rate: self.rate,
                payload: self.payload,
                congestion: self.congestion,
                window: self.window,
            })
        })
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let identity = Identity::new()?;
    let mut all: Vec<Measurement> = Vec::new();
    for case in options.cases() {
        let measured = measure::measure(&case, options, &identity);
        all.push(measured.map_err(|error| format!("{case}: {error}"))?);
    }
    options.output.write("coding", &report::report(&all, options), &all)
}

fn main() -> ExitCode {
    if cfg!(debug_assertions) {
        eprintln!("coding: built without optimisation, the figures mean nothing");
    }
    exit_code("coding", run(&Options::parse().shortened()))
}
