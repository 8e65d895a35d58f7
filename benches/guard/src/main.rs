//! Compares the costs of connections with a table.

mod count;
mod table;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use sutura_guard::Error;
use table::Table;

/// Counts instructions, allocations and bytes, and compares them with the table of this repository.
///
/// Fails if a figure is more than 2 % above the table's, or a row is not in it. Needs
/// valgrind.
#[derive(Debug, Parser)]
struct Options {
    /// Write what was counted into the table
    #[arg(long)]
    update: bool,
    /// The table
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/baseline.csv"))]
    table: PathBuf,
}

fn run(options: &Options) -> Result<bool, Error> {
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
