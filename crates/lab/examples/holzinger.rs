//! Runs experiments and prints their reports.
//!
//! `cargo run --release -p sutura-lab --example holzinger [experiment] [reduce] [seed] [--seeds=N] [--json]`

use sutura_lab::{EXPERIMENTS, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let json = flags.iter().any(|flag| flag == "--json");
    let mut words = words.into_iter().peekable();
    let name = words.next_if(|word| word.parse::<u32>().is_err());
    let mut options = Options::default();
    if let Some(seeds) = flags.iter().find_map(|flag| flag.strip_prefix("--seeds=")) {
        options.seeds = Some(seeds.parse()?);
    }
    if let Some(reduce) = words.next() {
        options.reduce = reduce.parse()?;
    }
    if let Some(seed) = words.next() {
        options.seed = seed.parse()?;
    }
    let names: Vec<&str> = match &name {
        Some(name) => vec![name],
        None => EXPERIMENTS.iter().map(|e| e.name).collect(),
    };
    for name in names {
        let report = sutura_lab::run(name, &options)?;
        println!("{}", if json { report.to_json()? } else { report.to_markdown() });
    }
    Ok(())
}
