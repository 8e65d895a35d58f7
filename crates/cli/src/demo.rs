//! `sutura demo`: what redundancy gains and costs, on links that people know.

use std::path::PathBuf;

use sutura_lab::{Options, demo};

use crate::failure::{Exit, Failure};
use crate::{lab, output};

const EXAMPLES: &str = "\
A game over datagrams, a game stream, a message feed with deadlines and a download with a small buffer,
over mobile, satellite and crowded Wi-Fi links: as plain QUIC, with a fixed redundancy and with the policy
that sets itself. Prints a line for each; --details prints all figures, bounds, and where the links come
from. Everything runs on a virtual clock over simulated links: the same seed always gives the same figures.
It takes some seconds.

Examples:
  sutura demo
  sutura demo --details
  sutura demo --seed 7 --connections 3
  sutura demo --json > demo.json
  sutura demo --figure demo.svg
  sutura demo --plots pictures";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Seed for everything random
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    seed: u64,
    /// Print all figures before the summary
    #[arg(long, conflicts_with = "json")]
    details: bool,
    /// How long the game, the stream and the feed run on each connection, in virtual seconds
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
    /// Draw the summary into this file, as SVG, overwriting an existing one
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,
    /// Print all figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the demo.
pub fn run(args: &DemoArgs) -> Result<Exit, Failure> {
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
        let text = if args.details { demo.to_text() } else { demo.summary() };
        output::line(text.trim_end())?;
    }
    if let Some(file) = &args.figure {
        output::write_file(file, &demo.picture().svg)?;
    }
    if let Some(directory) = &args.plots {
        lab::write_plots(&demo.figures(), directory)?;
    }
    Ok(Exit::Success)
}
