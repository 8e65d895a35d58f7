//! The command line.

use clap::{Parser, ValueEnum, builder::RangedU64ValueParser};
use std::{fmt, path::PathBuf};

const EXAMPLES: &str = "\
Examples:
  cargo run --release --manifest-path benches/erasure/Cargo.toml
      Everything; a minute or two
  cargo run --release --manifest-path benches/erasure/Cargo.toml -- --only E1,D2 --rounds 9
      Two targets, measured more often
  cargo run --release --manifest-path benches/erasure/Cargo.toml -- --only tiers --rounds 1
      A quick look at all kernels that run here
  cargo run --release --manifest-path benches/erasure/Cargo.toml -- --json > erasure.json
      Every round of everything, for other programs";

/// Erasure codes: Sutura's beside other libraries and beside the limits of the machine.
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Targets and tables to measure [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', ignore_case = true)]
    only: Vec<Section>,
    /// Interleaved rounds
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub rounds: usize,
    /// Print all measurements as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the tables into this file as well, with the command and the machine at its head
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

impl Options {
    /// What to measure, in the order of printing, each once.
    pub fn sections(&self) -> Vec<Section> {
        let all = Section::value_variants().iter().copied();
        all.filter(|section| self.only.is_empty() || self.only.contains(section)).collect()
    }
}

/// A target, or a table without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// Encode one repair symbol, coefficients ready
    E1,
    /// Encode one repair symbol, coefficients included
    E2,
    /// Encode one repair symbol over 10
    E3,
    /// Encode one repair symbol over 2000
    E4,
    /// Against scalar code
    E5,
    /// AVX2 without GFNI
    E6,
    /// AVX2 with GFNI
    E7,
    /// Several repair symbols at a time over 100
    M1,
    /// Several repair symbols at a time over 1000
    M2,
    /// Several repair symbols at a time over 2000
    M3,
    /// From the last repair symbol until all is recovered
    D1,
    /// CPU time of decoding 1000
    D2,
    /// Decoding against other solvers
    D3,
    /// Early, late and spread losses
    D4,
    /// The last repair symbol in windows of other sizes
    D5,
    /// Decoding 2000 in bursts
    D6,
    /// Reed-Solomon encoding
    R1,
    /// Reed-Solomon decoding
    R2,
    /// XOR parity
    X1,
    /// LDPC-Staircase encoding
    X2,
    /// Block codes without a target
    Block,
    /// Repair symbols that are open while symbols are pushed
    Push,
    /// The paper's own cases
    Paper,
    /// All kernels that run here
    Tiers,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn names_have_no_case_and_come_in_the_order_of_the_targets() {
        let options = Options::try_parse_from(["erasure", "--only", "tiers,d2,E1"]).unwrap();
        assert_eq!(options.sections(), [Section::E1, Section::D2, Section::Tiers]);
        let all = Options::try_parse_from(["erasure"]).unwrap();
        assert_eq!(all.sections().len(), 24);
        assert!(Options::try_parse_from(["erasure", "--only", "E8"]).is_err());
        assert!(Options::try_parse_from(["erasure", "--rounds", "0"]).is_err());
    }
}
