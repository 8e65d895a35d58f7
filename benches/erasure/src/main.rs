//! Sutura's erasure codes beside other libraries and beside the limits of the machine, in one run.
//!
//! Every round measures every entry once, and the entries of a race take turns in going first, so that other
//! load on the machine affects all entries alike. Every result that can be checked is compared with the
//! scalar kernel or the original symbols before it is timed.

mod args;
mod buffers;
mod cases;
mod clock;
mod field;
mod limits;
mod measure;
mod memory;
mod peers;
mod report;
mod results;
mod targets;

use args::Options;
use buffers::Symbols;
use cases::{Bout, Case};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use measure::Race;
use memory::Pages;
use results::Results;
use std::{collections::BTreeSet, process::ExitCode};
use sutura_analysis::report::{Origin, Place};

/// Any error; a bench only reports it.
type Error = Box<dyn std::error::Error>;

/// Source symbols of the largest window.
const SYMBOLS: usize = 2000;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let sections = options.sections();
    let criteria: Vec<_> = sections.iter().flat_map(|&s| targets::criteria(s)).collect();
    let mut bouts: BTreeSet<Bout> = sections.iter().flat_map(|&s| targets::tables(s)).collect();
    bouts.extend(criteria.iter().flat_map(targets::Criterion::bouts));
    bouts.extend([Pages::Ordinary, Pages::Huge].map(|pages| Bout { case: Case::Limits, pages }));

    let ordinary = Symbols::random(SYMBOLS, 1);
    let huge = in_huge_pages();
    if huge.is_none() {
        bouts.retain(|bout| bout.pages == Pages::Ordinary);
    }
    let sources = |pages| match pages {
        Pages::Ordinary => &ordinary,
        Pages::Huge => huge.as_ref().unwrap_or(&ordinary),
    };
    let progress = progress_bar();
    progress.set_length(bouts.len() as u64);
    progress.set_message("checking");
    let mut races = Vec::new();
    for bout in &bouts {
        let race = bout.pages.with(|| cases::race(*bout, sources(bout.pages)));
        races.push(race.map_err(|error| format!("{bout:?}: {error}"))?);
        progress.inc(1);
    }
    measure(&mut races, options.rounds, &progress)?;
    progress.finish_and_clear();

    let tables = races.into_iter().map(|race| race.table).collect();
    let results = Results { rounds: options.rounds, tables };
    let report = report::report(&results, &criteria, &sections);
    if let Some(path) = &options.report {
        let command = "cargo run --release --manifest-path benches/erasure/Cargo.toml --";
        report.save(path, &Origin::of_this_process(command, Place::this_machine()))?;
    }
    if options.json {
        return report::json::print(&results, &criteria);
    }
    print!("{}", report.to_markdown());
    Ok(())
}

/// The source symbols in huge pages; `None` if the kernel does not provide them.
fn in_huge_pages() -> Option<Symbols> {
    if !memory::reserve() {
        return None;
    }
    let symbols = Pages::Huge.with(|| Symbols::random(SYMBOLS, 1));
    let (resident, huge) = memory::resident()?;
    (huge * 10 >= resident * 9 && huge > 0).then_some(symbols)
}

fn measure(races: &mut [Race<'_>], rounds: usize, progress: &ProgressBar) -> Result<(), Error> {
    let entries: usize = races.iter().map(Race::len).sum();
    progress.reset();
    progress.set_length((rounds * entries) as u64);
    for round in 0..rounds {
        progress.set_message(format!("round {} of {rounds}", round + 1));
        for race in &mut *races {
            race.round(round, || progress.inc(1))?;
        }
    }
    Ok(())
}

/// On standard error, and only if that is a terminal.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} % {msg}, {eta} left");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
