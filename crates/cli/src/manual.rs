//! What comes with the command: manual pages, and completions for shells.

use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Cli;
use crate::failure::{Exit, Failure};
use crate::file::{self, cannot_write};
use crate::output;

/// The name of the command.
const NAME: &str = "sutura";

const COMPLETIONS: &str = "\
Examples:
  sutura completions bash > /etc/bash_completion.d/sutura
  sutura completions zsh > \"${fpath[1]}/_sutura\"
  sutura completions fish > ~/.config/fish/completions/sutura.fish";

const MANUAL: &str = "\
Examples:
  sutura manual --out /usr/local/share/man/man1
  man sutura-serve";

#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Debug, clap::Args)]
#[command(after_help = MANUAL)]
pub struct ManualArgs {
    /// Directory for the pages, which is made if needed
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Prints what a shell runs to complete the command's words.
pub fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut text);
    output::line(String::from_utf8_lossy(&text).trim_end())?;
    Ok(Exit::Success)
}

/// Writes a page for each command.
pub fn manual(args: &ManualArgs) -> Result<Exit, Failure> {
    file::make_directory(&args.out)?;
    clap_mangen::generate_to(Cli::command(), &args.out)
        .map_err(|error| cannot_write(&args.out, &error))?;
    Ok(Exit::Success)
}
