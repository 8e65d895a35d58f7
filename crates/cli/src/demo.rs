//! `sutura demo`: what redundancy gains and costs, on links that people know.

use std::path::PathBuf;

use sutura_lab::{Options, demo};

use crate::failure::{Exit, Failure};
use crate::{lab, output};

const EXAMPLES: &str = "\
A game stream, a message feed with deadlines and a download with a small buffer, each over a mobile, a
satellite and a crowded Wi-Fi link: as plain QUIC, with a fixed redundancy and with the policy that sets
itself, beside the best that could be. Everything runs on a virtual clock over simulated links: the same
seed always gives the same figures. It takes some seconds.

Examples:
  sutura demo
  sutura demo --seed 7 --connections 3
  sutura demo --json > demo.json
  sutura demo --plots pictures";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Seed for everything random
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    seed: u64,
    /// How long the stream and the feed run on each connection, in virtual seconds
    #[arg(long, value_name = "N", default_value_t = demo::SECONDS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Connections for each figure
    #[arg(long, value_name = "N", default_value_t = demo::CONNECTIONS)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1000))]
    connections: u64,
    /// Number of connections to simulate in parallel [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Draw the distributions into this directory, as SVG, overwriting existing ones
    #[arg(long, value_name = "DIRECTORY")]
    plots: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the demo.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let bar = lab::bar();
    let options = Options {
        seed: args.seed,
        seeds: Some(args.connections),
        threads: lab::threads(args.threads),
        progress: lab::progress(bar.clone()),
        ..Options::default()
    };
    let demo = demo::run(args.seconds, &options);
    bar.finish_and_clear();
    let demo = demo.map_err(|error| Failure::new(Exit::Other, format!("demo: {error}")))?;
    if args.json {
        output::json(&demo)?;
    } else {
        output::line(demo.to_text().trim_end())?;
    }
    if let Some(directory) = &args.plots {
        lab::write_plots(&demo.figures(), directory)?;
    }
    Ok(Exit::Success)
}
