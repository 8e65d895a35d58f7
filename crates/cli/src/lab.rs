//! `sutura lab`: the experiments.

use std::fs;
use std::path::{Path, PathBuf};

use sutura_lab::{EXPERIMENTS, Error, Options, Plot};

use crate::failure::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Without a name, the experiments are listed. They run over a simulated network with a clock of its
own: the same seed always gives the same result.

Examples:
  sutura lab
  sutura lab holzinger-bulk --reduce 100
  sutura lab holzinger-bulk --json > bulk.json
  sutura lab marx-stacks --plots pictures";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The experiment to run
    name: Option<String>,
    /// Decides all that is random
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    seed: u64,
    /// Do only one in so many of the repetitions, for a quick look
    #[arg(long, value_name = "N", default_value_t = Options::default().reduce)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    reduce: u32,
    /// How many configurations run at the same time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print the report as JSON instead of Markdown
    #[arg(long)]
    json: bool,
    /// Write the experiment's pictures there as SVG files; the directory is made if need be
    #[arg(long, value_name = "DIR", requires = "name")]
    plots: Option<PathBuf>,
}

/// Runs an experiment, or lists them.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let Some(name) = &args.name else {
        for experiment in EXPERIMENTS {
            output::line(&format!("{:24}{}", experiment.name, experiment.about))?;
        }
        return Ok(Exit::Success);
    };
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let options = Options {
        seed: args.seed,
        reduce: args.reduce,
        threads: args.threads.map_or_else(processors, usize::from),
    };
    let report = sutura_lab::run(name, &options).map_err(|error| match error {
        Error::Unknown { .. } => Failure::usage(error.to_string()),
        error => Failure::new(Exit::Other, format!("{name}: {error}")),
    })?;
    if let Some(directory) = &args.plots {
        let pictures = report.pictures();
        let pictures = pictures.map_err(|e| Failure::new(Exit::Other, format!("{name}: {e}")))?;
        write_pictures(directory, &pictures)?;
    }
    let text = if args.json {
        report.to_json().map_err(|e| Failure::new(Exit::Other, format!("{name}: {e}")))?
    } else {
        report.to_markdown()
    };
    output::line(text.trim_end())?;
    Ok(Exit::Success)
}

fn write_pictures(directory: &Path, pictures: &[Plot]) -> Result<(), Failure> {
    let failed = |path: &Path, error: &std::io::Error| {
        Failure::local(format!("cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(directory).map_err(|e| failed(directory, &e))?;
    for picture in pictures {
        let path = directory.join(format!("{}.svg", picture.name));
        fs::write(&path, &picture.svg).map_err(|e| failed(&path, &e))?;
    }
    Ok(())
}
