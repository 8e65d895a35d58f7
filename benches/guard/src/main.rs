//! Compares the costs of connections with a table, and measures how they grow.

mod count;
mod fit;
mod growth;
mod table;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use sutura_guard::Error;
use table::Table;

/// Counts instructions, allocations and bytes, and compares them with the table of this repository.
///
/// Fails if a figure is more than 2 % above the table's, or a row is not in it. Needs
/// valgrind.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Write what was counted into the table
    #[arg(long)]
    update: bool,
    /// The table
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/baseline.csv"))]
    table: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures how costs grow with one thing at a time, without comparing them with anything
    Curves(growth::Options),
}

fn run(options: &Options) -> Result<bool, Error> {
    if let Some(Command::Curves(options)) = &options.command {
        return growth::run(options).map(|()| true);
    }
    let found = Table { toolchain: count::toolchain()?, rows: count::rows()? };
    print!("{found}");
    if options.update {
        std::fs::write(&options.table, found.to_string())?;
        return Ok(true);
    }
    let text = std::fs::read_to_string(&options.table)
        .map_err(|error| format!("{}: {error}", options.table.display()))?;
    let before: Table = text.parse()?;
    let verdict = table::compare(&before, &found);
    print!("\n{verdict}");
    Ok(verdict.holds())
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
