//! All measurements as JSON.

use super::machine;
use crate::{
    Error,
    buffers::{SLOT, SYMBOL},
    peers::isal,
    results::{Results, Table},
    targets::{self, Criterion, Finding},
};
use serde::Serialize;
use std::io::{Write, stdout};

#[derive(Serialize)]
struct Report<'r> {
    machine: String,
    load: Option<String>,
    huge_pages: Option<String>,
    kernels: Vec<&'static str>,
    isal: Option<&'static str>,
    rounds: usize,
    symbol_bytes: usize,
    slot_bytes: usize,
    targets: Vec<Finding>,
    /// Times are in seconds.
    races: &'r [Table],
}

pub fn print(results: &Results, criteria: &[Criterion]) -> Result<(), Error> {
    let report = Report {
        machine: sutura_analysis::report::machine(),
        load: machine::load(),
        huge_pages: machine::huge_pages(),
        kernels: machine::kernels(),
        isal: isal::VERSION,
        rounds: results.rounds,
        symbol_bytes: SYMBOL,
        slot_bytes: SLOT,
        targets: criteria.iter().map(|criterion| targets::judge(results, criterion)).collect(),
        races: &results.tables,
    };
    let mut out = stdout().lock();
    serde_json::to_writer_pretty(&mut out, &report)?;
    writeln!(out)?;
    Ok(())
}
