//! `sutura qlog`: analyses records of connections.

pub mod load;
mod report;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::json;
use sutura_analysis::{Direction, Vantage, text};

use crate::failure::{Exit, Failure};
use crate::{file, output};
use load::Record;
use report::TraceReport;

const EXAMPLES: &str = "\
Reads qlog of this and of other implementations: JSON, JSON-SEQ and lines of JSON. Times are in
milliseconds since a record's first event. With the records of both ends of a connection, what
erasure coding recovered and the order of sending are known. Several records are compared with the
first.

Examples:
  sutura qlog client.sqlog
  sutura qlog --out figures/ logs/*.sqlog
  sutura qlog --only blocking,byte-index --vantage client plain.sqlog fec.sqlog
  sutura qlog --only byte-index --visible 0,4,12 page.qlog
  sutura qlog --json --only streams page.qlog | jq '.traces[0].streams'

Exit codes: 0 done; 2 wrong usage; 3 a file cannot be read or written, is not qlog, or there is no
record that was asked for.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct AnalyseArgs {
    /// Qlog files to analyse
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Analyses to run [default: all]
    #[arg(long, value_name = "ANALYSIS,...", value_delimiter = ',')]
    only: Vec<Analysis>,
    /// Write figures (SVG) of multiplexing, waterfall and blocking to this directory, overwriting
    /// existing ones
    #[arg(short, long, visible_alias = "svg-dir", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only traces recorded by this end of a connection
    #[arg(long, value_name = "END")]
    vantage: Option<End>,
    /// Which packets to look at [default: those with more stream data]
    #[arg(long, value_name = "WAY")]
    direction: Option<Way>,
    /// Streams that ByteIndex covers, such as those of what is visible first [default: all
    /// requests]
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    visible: Option<Vec<u64>>,
    /// Print everything as JSON; single frames only with --only multiplexing
    #[arg(long)]
    json: bool,
}

/// An analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Analysis {
    /// How streams took turns
    Multiplexing,
    /// How their frames are bundled in packets
    Bundling,
    /// Summary of each stream
    Streams,
    /// Streams over time
    Waterfall,
    /// Head-of-line blocking, compared with TCP
    Blocking,
    /// How early the bytes arrived
    ByteIndex,
}

impl Analysis {
    const fn title(self) -> &'static str {
        match self {
            Self::Multiplexing => "Multiplexing",
            Self::Bundling => "Bundling",
            Self::Streams => "Streams",
            Self::Waterfall => "Waterfall",
            Self::Blocking => "Head-of-line blocking",
            Self::ByteIndex => "ByteIndex",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum End {
    Client,
    Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    Sent,
    Received,
}

impl AnalyseArgs {
    fn wants(&self, analysis: Analysis) -> bool {
        self.only.is_empty() || self.only.contains(&analysis)
    }

    fn is_wanted(&self, record: &Record) -> bool {
        self.vantage.is_none_or(|end| {
            record.trace.vantage
                == match end {
                    End::Client => Vantage::Client,
                    End::Server => Vantage::Server,
                }
        })
    }
}

/// Analyses the files.
pub fn run(args: &AnalyseArgs) -> Result<Exit, Failure> {
    let mut records = load::load(&args.files)?;
    // The record of one end completes the other end's, even if it is not reported itself.
    load::resolve(&mut records);
    records.retain(|record| args.is_wanted(record));
    if records.is_empty() {
        return Err(Failure::local("no record of a connection is there that was asked for"));
    }
    let visible: Option<BTreeSet<u64>> =
        args.visible.as_ref().map(|ids| ids.iter().copied().collect());
    let mut reports: Vec<TraceReport> = Vec::with_capacity(records.len());
    for record in records {
        let direction = match args.direction {
            Some(Way::Sent) => Direction::Sent,
            Some(Way::Received) => Direction::Received,
            None => Direction::busiest(&record.trace),
        };
        let report = TraceReport::new(record, direction, visible.as_ref());
        report.complain();
        reports.push(report);
    }
    let mut figures = Vec::new();
    if let Some(directory) = &args.out {
        file::make_directory(directory)?;
        for report in &reports {
            figures.extend(report.write_figures(args, directory)?);
        }
    }
    print(args, &reports, &figures)
}

fn print(
    args: &AnalyseArgs,
    reports: &[TraceReport],
    figures: &[PathBuf],
) -> Result<Exit, Failure> {
    let first = reports.first().map(TraceReport::byte_index).unwrap_or_default();
    let compared: Vec<_> = reports.iter().map(|report| report.compared(first)).collect();
    if args.json {
        let traces: Vec<_> = reports.iter().map(|report| report.to_json(args)).collect();
        output::json(&json!({ "traces": traces, "comparison": compared, "figures": figures }))?;
        return Ok(Exit::Success);
    }
    let mut whole = String::new();
    for report in reports {
        whole += &report.to_text(args);
        whole.push('\n');
    }
    if compared.len() > 1 {
        whole += "== Comparison\n";
        whole += &text::comparison(&compared);
    }
    for figure in figures {
        whole += &format!("wrote {}\n", figure.display());
    }
    let lines: Vec<String> = whole.trim_end().lines().map(output::clean).collect();
    output::line(&lines.join("\n"))?;
    Ok(Exit::Success)
}
