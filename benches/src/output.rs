//! The output of the results of a bench.

use crate::Error;
use serde::Serialize;
use std::path::PathBuf;
use sutura_analysis::report::{Origin, Place, Report};

/// What the command lines of all benches have in common.
#[derive(Debug, Clone, clap::Args)]
pub struct Output {
    /// Print one JSON object with every single measurement instead of tables
    #[arg(long)]
    json: bool,
    /// Write the tables into this file as well, with the command and the machine at its head
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Output {
    /// Prints the report of the bench `name`, or its measurements as JSON, and writes the file.
    pub fn write(
        &self,
        name: &str,
        report: &Report,
        measurements: &impl Serialize,
    ) -> Result<(), Error> {
        let command = format!(
            "cargo run --release --manifest-path benches/Cargo.toml{} --bin {name} --",
            features()
        );
        self.write_as(&command, report, measurements)
    }

    /// Prints and writes the report of a bench of another workspace, which `command` starts.
    pub fn write_as(
        &self,
        command: &str,
        report: &Report,
        measurements: &impl Serialize,
    ) -> Result<(), Error> {
        if let Some(path) = &self.report {
            report.save(path, &Origin::of_this_process(command, Place::this_machine()))?;
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(measurements)?);
        } else {
            print!("{}", report.to_markdown());
        }
        Ok(())
    }
}

/// The option with which the bench was built.
fn features() -> String {
    let built_in = [
        ("peers", cfg!(feature = "peers")),
        ("quiche", cfg!(all(feature = "quiche", not(feature = "peers")))),
        ("s2n-quic", cfg!(all(feature = "s2n-quic", not(feature = "peers")))),
        ("aws-lc-rs", cfg!(feature = "aws-lc-rs")),
    ];
    let names: Vec<_> = built_in.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    if names.is_empty() { String::new() } else { format!(" --features {}", names.join(",")) }
}
