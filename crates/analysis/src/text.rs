//! Results as text, for terminals.
//!
//! Text from files is in it without control characters, and nothing else is there that could steer
//! a terminal.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::blocking::{Blocking, Held};
use crate::byte_index::ByteIndex;
use crate::limits::MAX_DRAWN_BARS;
use crate::millis;
use crate::multiplexing::Multiplexing;
use crate::overview::Overview;
use crate::streams::StreamSummary;

/// Characters of a path that are shown.
const PATH_WIDTH: usize = 40;

/// Characters that a waterfall's time is wide.
const WATERFALL_WIDTH: u32 = 60;

/// Text from a file without control characters.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The beginning of a long text.
pub(crate) fn short(text: &str, width: usize) -> String {
    let text = plain(text);
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn time(duration: Option<Duration>) -> String {
    duration.map_or_else(|| "-".to_owned(), |d| format!("{:.1}", millis::of(d)))
}

/// Columns of cells: the first ones to the left, the others to the right.
struct Table {
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(left: usize, head: &[&str]) -> Self {
        Self { left, rows: vec![head.iter().map(|s| (*s).to_owned()).collect()] }
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column > 0 { "  " } else { "" };
                let _ = match column < self.left {
                    true => write!(line, "{gap}{cell:<width$}"),
                    false => write!(line, "{gap}{cell:>width$}"),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// What a trace holds.
pub fn overview(overview: &Overview) -> String {
    let way = match overview.direction {
        crate::Direction::Sent => "sent",
        crate::Direction::Received => "received",
    };
    let (sent, received) = (&overview.sent, &overview.received);
    let mut text = format!(
        "recorded by {}, qlog {} ({}), {:.1} ms\n",
        overview.vantage,
        plain(&overview.version),
        overview.format,
        millis::of(overview.duration),
    );
    let _ = writeln!(
        text,
        "stream data {way}: {} bytes on {} streams, {} retransmitted, {} recovered",
        overview.bytes, overview.streams, overview.retransmitted, overview.recovered,
    );
    for (name, counts) in [("sent", sent), ("received", received)] {
        let _ = write!(text, "packets {name}: {}, {} bytes", counts.packets, counts.bytes);
        if counts.source_symbols + counts.repair_symbols > 0 {
            let (source, repair) = (counts.source_symbols, counts.repair_symbols);
            let _ = write!(text, ", {source} source symbols, {repair} repair symbols");
        }
        text.push('\n');
    }
    let _ = write!(text, "packets declared lost: {}", overview.lost);
    let symbols = &overview.symbols;
    if symbols.recovered + symbols.by_peer > 0 {
        let (here, there) = (symbols.recovered, symbols.by_peer);
        let _ = write!(text, "; symbols recovered: {here} here, {there} by the peer");
    }
    text.push('\n');
    text
}

/// How streams took turns.
pub fn multiplexing(multiplexing: &Multiplexing) -> String {
    format!(
        "{} STREAM frames, {} changes of stream, {:.1} frames in a row on average, {} at most\n",
        multiplexing.arrivals.len(),
        multiplexing.switches,
        multiplexing.mean_run(),
        multiplexing.longest_run,
    )
}

/// A row for each stream. Times are in milliseconds since the first event.
pub fn streams(streams: &[StreamSummary]) -> String {
    let mut table = Table::new(
        2,
        &[
            "stream",
            "path",
            "bytes",
            "packets",
            "again",
            "twice",
            "recovered",
            "request",
            "TTFB",
            "first",
            "last",
            "complete",
            "blocked",
        ],
    );
    for row in streams {
        table.row([
            row.stream.to_string(),
            row.path.as_deref().map_or_else(|| "-".to_owned(), |path| short(path, PATH_WIDTH)),
            row.bytes.to_string(),
            row.packets.to_string(),
            row.retransmitted.to_string(),
            row.duplicate.to_string(),
            row.recovered.to_string(),
            time(row.requested),
            time(row.time_to_first_byte()),
            time(row.first_byte),
            time(row.last_byte),
            time(row.completed),
            time(row.blocked),
        ]);
    }
    table.render()
}

/// Head-of-line blocking, QUIC's next to TCP's.
pub fn blocking(blocking: &Blocking) -> String {
    let mut table = Table::new(1, &["", "QUIC", "TCP"]);
    let (quic, tcp) = (&blocking.quic, &blocking.tcp);
    let mut row = |name: &str, of: &dyn Fn(&Held) -> String| {
        table.row([name.to_owned(), of(quic), of(tcp)]);
    };
    row("largest release, bytes", &|h| h.largest_release.to_string());
    row("bytes held back", &|h| h.bytes.to_string());
    row("most held back at once, bytes", &|h| h.peak.to_string());
    row("time with something held back, ms", &|h| time(Some(h.time)));
    row("still held back at the end, bytes", &|h| h.left.to_string());
    let delays = blocking.mean_delays().map(|delay| format!("{:.3}", millis::of(delay)));
    let [a, b] = delays;
    table.row(["mean delay of a byte, ms".to_owned(), a, b]);
    let ratio = match blocking.ratio() {
        Some(ratio) => format!("ratio of the largest releases: {ratio:.3}"),
        None => "nothing held back, no ratio".to_owned(),
    };
    format!("{}{} gaps; {ratio}\n", table.render(), blocking.gaps)
}

/// ByteIndex of the page and of each stream.
pub fn byte_index(index: &ByteIndex) -> String {
    let whole = &index.index;
    let mut text = format!(
        "ByteIndex {:.1} ms; of whole streams every {} ms: by bytes {:.1} ms, by streams {:.1} ms\n\
         {} streams, {} bytes, from {:.1} ms on\n",
        millis::of(whole.progressive),
        crate::SAMPLING_INTERVAL.as_millis(),
        millis::of(whole.sampled),
        millis::of(whole.objects),
        index.streams.len(),
        index.bytes,
        millis::of(index.start),
    );
    if index.unfinished > 0 {
        let count = index.unfinished;
        let _ = writeln!(text, "{count} streams are not complete: counted to the end of the trace");
    }
    let mut table = Table::new(1, &["stream", "bytes", "complete", "ByteIndex"]);
    for row in &index.streams {
        let own = time(Some(row.progressive));
        table.row([row.stream.to_string(), row.bytes.to_string(), time(row.completed), own]);
    }
    text + &table.render()
}

/// The part of time that a waterfall shows: from the first request or byte to the last byte.
pub(crate) fn span(streams: &[StreamSummary]) -> (Duration, Duration) {
    let times = || streams.iter().flat_map(|row| [row.requested, row.first_byte, row.last_byte]);
    let start = times().flatten().min().unwrap_or_default();
    let end = times().flatten().max().unwrap_or_default();
    (start, end)
}

/// A line for each stream: `.` from the request on, `=` from the first byte to the last.
pub fn waterfall(streams: &[StreamSummary]) -> String {
    let (start, end) = span(streams);
    let length = end.saturating_sub(start).as_secs_f64();
    let place = |at: Duration| {
        let share = at.saturating_sub(start).as_secs_f64() / length.max(1e-9);
        (share * f64::from(WATERFALL_WIDTH - 1)).clamp(0.0, f64::from(WATERFALL_WIDTH - 1)) as usize
    };
    let mut table = Table::new(2, &["stream", "", "request", "first", "last", "path"]);
    let since = |at: Option<Duration>| time(at.map(|at| at.saturating_sub(start)));
    for row in streams.iter().take(MAX_DRAWN_BARS) {
        let mut bar = vec![' '; WATERFALL_WIDTH as usize];
        let mut draw = |from: Option<Duration>, to: Option<Duration>, mark: char| {
            let Some((from, to)) = from.zip(to) else { return };
            bar.iter_mut().take(place(to) + 1).skip(place(from)).for_each(|c| *c = mark);
        };
        draw(row.requested, row.first_byte.or(row.requested), '.');
        draw(row.first_byte, row.last_byte, '=');
        table.row([
            row.stream.to_string(),
            format!("|{}|", bar.into_iter().collect::<String>()),
            since(row.requested),
            since(row.first_byte),
            since(row.last_byte),
            row.path.as_deref().map_or_else(|| "-".to_owned(), |path| short(path, PATH_WIDTH)),
        ]);
    }
    let mut text = table.render();
    if streams.len() > MAX_DRAWN_BARS {
        let _ = writeln!(text, "and {} more streams", streams.len() - MAX_DRAWN_BARS);
    }
    text
}

/// A trace among others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The trace's name.
    pub name: String,
    /// Its overview.
    pub overview: Overview,
    /// [`Blocking::ratio`], if it is about what was received.
    pub blocking_ratio: Option<f64>,
    /// ByteIndex in milliseconds.
    pub byte_index_ms: f64,
    /// The first trace's ByteIndex over this one's: above 1 is better than the first.
    pub speedup: Option<f64>,
}

impl Compared {
    /// Puts a trace next to others, the first of which has the ByteIndex `first`.
    pub fn new(
        name: String,
        overview: Overview,
        blocking: Option<&Blocking>,
        index: &ByteIndex,
        first: Duration,
    ) -> Self {
        let own = index.index.progressive;
        Self {
            name,
            overview,
            blocking_ratio: blocking.and_then(Blocking::ratio),
            byte_index_ms: millis::of(own),
            speedup: (!own.is_zero()).then(|| first.as_secs_f64() / own.as_secs_f64()),
        }
    }
}

/// A row for each trace.
pub fn comparison(traces: &[Compared]) -> String {
    let mut table = Table::new(
        2,
        &[
            "trace",
            "by",
            "streams",
            "bytes",
            "time",
            "lost",
            "again",
            "recovered",
            "HOL ratio",
            "ByteIndex",
            "speed-up",
        ],
    );
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"));
    for row in traces {
        let overview = &row.overview;
        table.row([
            plain(&row.name),
            overview.vantage.to_owned(),
            overview.streams.to_string(),
            overview.bytes.to_string(),
            time(Some(overview.duration)),
            overview.lost.to_string(),
            overview.retransmitted.to_string(),
            overview.recovered.to_string(),
            number(row.blocking_ratio),
            format!("{:.1}", row.byte_index_ms),
            number(row.speedup),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Build, frame, last};
    use crate::{Direction, head_of_line_blocking, stream_table};

    #[test]
    fn a_waterfall_is_to_scale() {
        // From 0 to 590 ms, 60 characters: 10 ms each. Waits 0..290, data 300..590.
        let trace = Build::default()
            .sent(0, 0, &[last(0, 0, 1)])
            .received(300, 0, &[frame(0, 0, 1)])
            .received(590, 1, &[last(0, 1, 1)])
            .trace();
        let text = waterfall(&stream_table(&trace, Direction::Received));
        let bar = format!("|{}{}|", ".".repeat(30), "=".repeat(30));
        assert!(text.contains(&bar), "{text}");
        assert_eq!(waterfall(&[]).lines().count(), 1);
    }

    #[test]
    fn tables_are_aligned() {
        let trace = Build::default()
            .received(1, 1, &[frame(0, 100, 100)])
            .received(3, 2, &[frame(4000, 0, 100), last(0, 0, 100)])
            .trace();
        let text = streams(&stream_table(&trace, Direction::Received));
        let ends: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
        assert!(ends.len() == 3 && ends.iter().all(|end| *end == ends[0]), "{text}");
        let text = blocking(&head_of_line_blocking(&trace, &[]));
        assert!(text.contains("ratio of the largest releases: 0.667"), "{text}");
    }

    #[test]
    fn text_of_files_does_not_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(short("äöü…x", 4), "äöü…");
        assert_eq!(short("abcd", 4), "abcd");
    }
}
