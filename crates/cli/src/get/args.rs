//! The options of `sutura get`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sutura::http;
use sutura_research::stacks::Preset;

use super::range::ContinueAt;
use super::retry::{RetryArgs, count};
use super::template::TemplateArgs;
use super::through::ThroughArgs;
use crate::dial::DialArgs;
use crate::failure::Failure;
use crate::fec::Fec;
use crate::qlog::QlogArgs;
use crate::seconds;
use crate::transport::TransportArgs;
use crate::trust::TrustArgs;
use crate::url::Url;

const EXAMPLES: &str = "\
Examples:
  sutura get https://example.org/
  sutura get -o page.html --fec 3,25 https://example.org/
  sutura get -o pages/ --create-dirs --json https://example.org/a.css https://example.org/b.js
  sutura get --stats --fec 3 -o video.mp4 https://example.org/video.mp4
  sutura get --fingerprint 9f86d0...0a08 --priority 'u=1, i' -o - https://localhost:4433/
  sutura get --priority 'u=1, exp_p=(web;u=1)' --priority 'u=5, i, exp_w=0.5' \\
    https://example.org/a.css https://example.org/b.jpg

As with curl:
  sutura get -I https://example.org/
  sutura get -L -C - --retry 5 -O https://example.org/image.iso
  sutura get -d name=value -d @form.txt https://example.org/form
  sutura get -X PUT -H 'Content-Type: application/json' --data-binary @a.json https://example.org/a
  sutura get -T backup.tar -u me:secret https://example.org/backups/
  sutura get --proxy proxy.example.org --proxy-token-file token.txt https://example.org/
  sutura get -kv --resolve example.org:443:127.0.0.1 -o - https://example.org/

A response is written under another name and renamed when it is whole. Symbolic links are followed, and
pipes, devices, files with several names (hard links) and files in directories that may not be written are
written in place, as are files that -C continues.

SSLKEYLOGFILE names a file for the secrets of connections, with which Wireshark decrypts them; RUST_LOG, such
as sutura=debug, shows messages of the libraries.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct GetArgs {
    /// URLs to fetch, all at once, over one connection per server; https:// may be left out
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<Url>,
    #[command(flatten)]
    pub template: TemplateArgs,
    /// Priority of the responses (RFC 9218), such as 'u=1, i'; given once for all URLs, or once for
    /// each in their order
    #[arg(long, value_name = "FIELD", default_value = "u=3", help_heading = "Request")]
    pub priority: Vec<http::Priority>,
    #[command(flatten)]
    pub save: SaveArgs,
    #[command(flatten, next_help_heading = "Redirections and further attempts")]
    pub follow: FollowArgs,
    #[command(flatten, next_help_heading = "Redirections and further attempts")]
    pub retry: RetryArgs,
    #[command(flatten, next_help_heading = "Connection")]
    pub dial: DialArgs,
    #[command(flatten, next_help_heading = "Connection")]
    pub reach: ReachArgs,
    #[command(flatten, next_help_heading = "Proxy")]
    pub proxy: ThroughArgs,
    #[command(flatten, next_help_heading = "Trust")]
    pub trust: TrustArgs,
    /// Ask for erasure coding: repair symbols on each occasion, and for how many milliseconds they
    /// may be delayed
    #[arg(long, value_name = "BLT[,RDT]", help_heading = "Redundancy and congestion")]
    pub fec: Option<Fec>,
    /// Do not offer erasure coding to the server
    #[arg(long, conflicts_with = "fec", help_heading = "Redundancy and congestion")]
    pub no_fec: bool,
    #[command(flatten, next_help_heading = "Redundancy and congestion")]
    pub transport: TransportArgs,
    #[command(flatten, next_help_heading = "Diagnosis")]
    pub show: ShowArgs,
    #[command(flatten, next_help_heading = "Diagnosis")]
    pub qlog: QlogArgs,
}

/// Where responses are written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct SaveArgs {
    /// Directory or file to write to, or - for standard output, which gets the responses one after the
    /// other [default: the current directory; with -I, -i, -d and -T standard output]
    #[arg(short, long, visible_alias = "output", value_name = "DIR|FILE|-")]
    out: Option<PathBuf>,
    /// Write to the current directory under the name in the URL
    #[arg(short = 'O', long, conflicts_with = "out")]
    remote_name: bool,
    /// Make the directories of --out that do not exist
    #[arg(long)]
    pub create_dirs: bool,
    /// Write the heads of responses before their bodies
    #[arg(short, long, conflicts_with = "continue_at")]
    pub include: bool,
    /// Write what the server says about a failure, such as the page of a 404; standard output gets it in
    /// any case
    #[arg(long, conflicts_with = "continue_at")]
    pub content_on_error: bool,
    /// Go on where the existing file ends, or at this byte
    #[arg(short = 'C', long, value_name = "-|BYTE")]
    pub continue_at: Option<ContinueAt>,
}

impl SaveArgs {
    /// Where responses go, if they go to standard output unless the user says otherwise (`shows`).
    pub fn place(&self, shows: bool) -> &Path {
        match &self.out {
            Some(out) => out,
            None if shows && !self.remote_name => Path::new("-"),
            None => Path::new("."),
        }
    }
}

/// Whether and how far redirections are followed.
#[derive(Debug, clap::Args)]
pub struct FollowArgs {
    /// Follow redirections
    #[arg(short = 'L', long)]
    location: bool,
    /// Follow so many redirections at most [default: 30]
    #[arg(long, value_name = "N", value_parser = count)]
    max_redirs: Option<u16>,
}

/// How many redirections are followed unless the user says otherwise.
const MAX_REDIRECTIONS: u16 = 30;

impl FollowArgs {
    /// How many redirections are followed; `None` if they are what the user wants.
    pub fn limit(&self) -> Option<u16> {
        self.location.then_some(self.max_redirs.unwrap_or(MAX_REDIRECTIONS))
    }

    /// Checks that all options have an effect.
    ///
    /// # Errors
    /// A number of redirections is named, and none are followed.
    pub fn check(&self) -> Result<(), Failure> {
        if self.max_redirs.is_some() && !self.location {
            let message = "--max-redirs is for redirections that are followed: add -L";
            return Err(Failure::usage(message));
        }
        Ok(())
    }
}

/// Connections, and how long anything may take.
#[derive(Debug, clap::Args)]
pub struct ReachArgs {
    /// Give up on a server that is silent for this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds::limit)]
    pub timeout: Duration,
    /// Give up on everything after this many seconds
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds::limit)]
    pub max_time: Option<Duration>,
    /// Fetch the first URL of each server alone, and then the others on a second connection, whose first
    /// packets bring their requests (0-RTT), if the server permits that
    #[arg(long)]
    pub early: bool,
    /// Requests under way at the same time
    #[arg(long, value_name = "N", default_value = "64")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub parallel: u16,
    /// Offer the flow control windows of the client with which a stack of 2020 was measured: with
    /// mvfst-alt a response gets a quarter of what all may take, with the others as much as all
    #[arg(long, value_name = "STACK", value_parser = stack)]
    pub windows_of: Option<&'static Preset>,
}

/// What is told besides the responses.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Show addresses, connections, certificates, and the heads of requests (>) and responses (<)
    #[arg(short, long)]
    pub verbose: bool,
    /// Show no progress and no notes; errors are told
    #[arg(short, long)]
    pub silent: bool,
    /// Show while it runs, and at the end, what is lost on the way and what redundancy does about it
    #[arg(long)]
    pub stats: bool,
    /// Print times and counters as JSON to standard output
    #[arg(long)]
    pub json: bool,
}

/// The defaults of the stack with this name.
fn stack(name: &str) -> Result<&'static Preset, String> {
    Preset::by_name(name).ok_or_else(|| {
        let names: Vec<_> = Preset::ALL.iter().map(|preset| preset.name).collect();
        format!("expected one of: {}", names.join(", "))
    })
}

impl GetArgs {
    /// Whether responses go to standard output unless the user says otherwise.
    pub fn shows(&self) -> bool {
        self.template.head || self.save.include || self.template.sends()
    }

    /// The priority of each URL, with the requested protection.
    ///
    /// # Errors
    /// There are neither one nor as many as there are URLs.
    pub fn priorities(&self) -> Result<Vec<http::Priority>, Failure> {
        let all = match self.priority.as_slice() {
            [one] => vec![one.clone(); self.urls.len()],
            each if each.len() == self.urls.len() => each.to_vec(),
            some => {
                return Err(Failure::usage(format!(
                    "{} priorities for {} URLs: give one for all, or one for each",
                    some.len(),
                    self.urls.len()
                )));
            }
        };
        Ok(all.into_iter().map(|priority| with_protection(priority, self.fec)).collect())
    }
}

/// A request's priority with the requested protection.
fn with_protection(priority: http::Priority, fec: Option<Fec>) -> http::Priority {
    match fec {
        Some(Fec { burst, delay }) => priority.with_burst(Some(burst)).with_delay(delay),
        None => priority,
    }
}
