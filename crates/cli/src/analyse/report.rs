//! The report about one record.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use sutura_analysis::text::{self, TraceRow};
use sutura_analysis::{
    Blocking, Bundling, ByteIndex, Direction, Multiplexing, Overview, StreamSummary, bundling,
    byte_index, figure, head_of_line_blocking, multiplexing, overview, stream_table,
};

use super::load::Record;
use super::{AnalyseArgs, Analysis};
use crate::failure::{Exit, Failure};
use crate::output::{self, millis};

/// The analyses of a record.
#[derive(Debug)]
pub struct TraceReport {
    record: Record,
    overview: Overview,
    multiplexing: Multiplexing,
    bundling: Bundling,
    streams: Vec<StreamSummary>,
    /// `None` if sent data is analysed: only the receiver sees blocking.
    blocking: Option<Blocking>,
    byte_index: ByteIndex,
}

impl TraceReport {
    pub fn new(record: Record, direction: Direction, visible: Option<&BTreeSet<u64>>) -> Self {
        let trace = &record.trace;
        let received = direction == Direction::Received;
        Self {
            overview: overview(trace, direction),
            multiplexing: multiplexing(trace, direction),
            bundling: bundling(trace, direction),
            streams: stream_table(trace, direction),
            blocking: received
                .then(|| head_of_line_blocking(trace, record.order.as_deref().unwrap_or_default())),
            byte_index: byte_index(trace, direction, visible),
            record,
        }
    }

    /// The page's ByteIndex.
    pub fn byte_index(&self) -> Duration {
        self.byte_index.index.progressive
    }

    pub fn compared(&self, first: Duration) -> TraceRow {
        let blocking = self.blocking.as_ref();
        let (name, overview) = (self.record.name.clone(), self.overview.clone());
        TraceRow::new(name, overview, blocking, &self.byte_index, first)
    }

    /// Warns about defects of the record.
    pub fn complain(&self) {
        let trace = &self.record.trace;
        let warn = |text: &str| {
            output::complain(&format!("{}: warning: {text}", self.record.file.display()));
        };
        if trace.truncated {
            warn("the file ends early");
        }
        if let Some(first) = trace.first_malformed {
            let count = trace.malformed;
            warn(&format!("{count} records are malformed and left out, the first at {first}"));
        }
        let unresolved = self.overview.symbols.unresolved;
        if unresolved > 0 && self.overview.direction == Direction::Received {
            warn(&format!(
                "what {unresolved} recovered symbols held is unknown and counts as missing; give \
                 the other end's record too"
            ));
        }
        if !self.byte_index.unknown.is_empty() {
            let unknown = &self.byte_index.unknown;
            warn(&format!("no data on the visible streams {unknown:?}"));
        }
    }

    pub fn to_text(&self, args: &AnalyseArgs) -> String {
        let mut text = format!("== {}\n{}", self.record.name, text::overview(&self.overview));
        let wanted = Analysis::value_variants().iter().copied();
        for analysis in wanted.filter(|&analysis| args.wants(analysis)) {
            let part = match analysis {
                Analysis::Multiplexing => text::multiplexing(&self.multiplexing),
                Analysis::Bundling => text::bundling(&self.bundling),
                Analysis::Streams => text::streams(&self.streams),
                Analysis::Waterfall => text::waterfall(&self.streams),
                Analysis::Blocking => self.blocking_text(),
                Analysis::ByteIndex => text::byte_index(&self.byte_index),
            };
            text += &format!("\n-- {}\n{part}", analysis.title());
        }
        text
    }

    fn blocking_text(&self) -> String {
        let Some(blocking) = &self.blocking else {
            return "only the receiver's record says\n".to_owned();
        };
        let order = match self.record.order {
            Some(_) => "the order of sending is from the other end's record",
            None => "the order of sending is a guess: give the other end's record too",
        };
        format!("{}{order}\n", text::blocking(blocking))
    }

    pub fn to_json(&self, args: &AnalyseArgs) -> Value {
        let wanted = |analysis, value: Value| args.wants(analysis).then_some(value);
        let multiplexing = &self.multiplexing;
        let arrivals =
            args.only.contains(&Analysis::Multiplexing).then_some(&multiplexing.arrivals);
        let multiplexing = json!({
            "frames": multiplexing.arrivals.len(),
            "switches": multiplexing.switches(),
            "mean_run": multiplexing.mean_run(),
            "longest_run": multiplexing.longest_run(),
            "arrivals": arrivals,
        });
        let blocking = self.blocking.as_ref().map(|blocking| {
            let [quic, tcp] = blocking.mean_delays().map(millis);
            json!({
                "ratio": blocking.ratio(),
                "order_of_sending_known": self.record.order.is_some(),
                "mean_delay_ms": { "quic": quic, "tcp": tcp },
                "held": blocking,
            })
        });
        json!({
            "file": self.record.file.display().to_string(),
            "name": self.record.name,
            "overview": self.overview,
            "multiplexing": wanted(Analysis::Multiplexing, multiplexing),
            "bundling": wanted(Analysis::Bundling, json!(self.bundling)),
            "streams": wanted(Analysis::Streams, json!(self.streams)),
            "blocking": wanted(Analysis::Blocking, json!(blocking)),
            "byte_index": wanted(Analysis::ByteIndex, json!(self.byte_index)),
        })
    }

    /// Writes the requested figures, and returns their names.
    ///
    /// # Errors
    /// A figure cannot be drawn, or a file cannot be written.
    pub fn write_figures(
        &self,
        args: &AnalyseArgs,
        directory: &Path,
    ) -> Result<Vec<PathBuf>, Failure> {
        let name = &self.record.name;
        let mut written = Vec::new();
        let mut write = |kind: &str, svg: String| {
            let path = directory.join(format!("{name}.{kind}.svg"));
            output::write_file(&path, &svg)?;
            written.push(path);
            Ok(())
        };
        if args.wants(Analysis::Multiplexing) {
            let svg = figure::multiplexing(&self.multiplexing, &self.streams, name);
            write("multiplexing", svg)?;
        }
        if args.wants(Analysis::Waterfall) {
            write("waterfall", figure::waterfall(&self.streams, name))?;
        }
        if let Some(blocking) = self.blocking.as_ref().filter(|_| args.wants(Analysis::Blocking)) {
            let chart = figure::blocking(blocking, self.record.trace.duration, name);
            let svg = chart.to_svg().map_err(|e| Failure::new(Exit::Other, e.to_string()))?;
            write("blocking", svg)?;
        }
        Ok(written)
    }
}
