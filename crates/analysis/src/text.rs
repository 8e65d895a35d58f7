//! Results as text, for terminals.
//!
//! Control characters are removed from text that comes from files, so that a file cannot control
//! the terminal.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::blocking::{Blocking, Held};
use crate::bundling::Bundling;
use crate::byte_index::ByteIndex;
use crate::limits::MAX_DRAWN_BARS;
use crate::multiplexing::Multiplexing;
use crate::overview::Overview;
use crate::statistics::millis;
use crate::streams::StreamSummary;
use crate::table::{Cell, Table};
use crate::trace::LossEstimate;

/// Characters of a path that are shown at most.
const PATH_WIDTH: usize = 40;

/// Width of a waterfall's time axis, in characters.
const WATERFALL_WIDTH: u32 = 60;

/// Text from a file, without control characters.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Truncates a long text.
pub(crate) fn short(text: &str, width: usize) -> String {
    let text = plain(text);
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Milliseconds; the unit is named elsewhere.
fn time(duration: Option<Duration>) -> Cell {
    duration.map(|d| format!("{:.1}", millis(d))).into()
}

/// The summary of a trace.
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
        millis(overview.duration),
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
    if let Some(loss) = &overview.loss {
        text += &loss_estimate(loss);
    }
    for redundancy in &overview.redundancy {
        let _ = write!(text, "session {}: {}", redundancy.session, plain(&redundancy.policy));
        if let Some(reason) = &redundancy.reason {
            let _ = write!(text, ", {}", plain(reason));
        }
        if let Some(repairs) = redundancy.repairs {
            let _ = write!(text, " with {repairs} repair symbols");
        }
        text.push('\n');
    }
    text
}

/// A line about losses that do not depend on the rate.
fn loss_estimate(loss: &LossEstimate) -> String {
    let [rate, low, high] = [loss.rate, loss.low, loss.high].map(|share| share * 100.0);
    let burst = loss.burst;
    let time = loss.burst_ms.map(|time| format!(" for {time:.1} ms")).unwrap_or_default();
    format!("loss {rate:.1} % ({low:.1} to {high:.1} %), {burst:.1} packets in a row{time}\n")
}

/// How streams took turns.
pub fn multiplexing(multiplexing: &Multiplexing) -> String {
    format!(
        "{} STREAM frames, {} changes of stream, {:.1} frames in a row on average, {} at most\n",
        multiplexing.arrivals.len(),
        multiplexing.switches(),
        multiplexing.mean_run(),
        multiplexing.longest_run(),
    )
}

/// How frames are bundled in packets.
pub fn bundling(bundling: &Bundling) -> String {
    let Bundling { packets, by_frames: [one, two, three, more], most_frames, .. } = bundling;
    format!(
        "{packets} packets with stream data: {one} with one STREAM frame, {two} with two, {three} with three, \
         {more} with more ({most_frames} at most)\n\
         {} with several frames of one stream, {} with several streams, {} short although no stream ended\n",
        bundling.split, bundling.mixed, bundling.short,
    )
}

/// A row for each stream. Times are in milliseconds since the first event.
pub fn streams(streams: &[StreamSummary]) -> String {
    let path = |row: &StreamSummary| row.path.as_deref().map(|path| short(path, PATH_WIDTH));
    let table = Table::of(
        "Streams",
        streams,
        &[
            ("stream", &|row| row.stream.into()),
            ("path", &|row| path(row).into()),
            ("bytes", &|row| row.bytes.into()),
            ("packets", &|row| row.packets.into()),
            ("again", &|row| row.retransmitted.into()),
            ("twice", &|row| row.duplicate.into()),
            ("recovered", &|row| row.recovered.into()),
            ("request", &|row| time(row.requested)),
            ("TTFB", &|row| time(row.time_to_first_byte())),
            ("first", &|row| time(row.first_byte)),
            ("last", &|row| time(row.last_byte)),
            ("complete", &|row| time(row.completed)),
            ("blocked", &|row| time(row.blocked)),
        ],
    );
    table.to_text(2)
}

/// Head-of-line blocking, QUIC beside TCP.
pub fn blocking(blocking: &Blocking) -> String {
    let mut table = Table::new("Blocking", ["", "QUIC", "TCP"]);
    let (quic, tcp) = (&blocking.quic, &blocking.tcp);
    let mut row = |name: &str, of: &dyn Fn(&Held) -> Cell| {
        table.row([name.into(), of(quic), of(tcp)]);
    };
    row("largest release, bytes", &|h| h.largest_release.into());
    row("bytes held back", &|h| h.bytes.into());
    row("most held back at once, bytes", &|h| h.peak.into());
    row("time with something held back, ms", &|h| time(Some(h.time)));
    row("still held back at the end, bytes", &|h| h.left.into());
    let [quic, tcp] = blocking.mean_delays().map(|delay| Cell::Number(millis(delay)));
    table.row(["mean delay of a byte, ms".into(), quic, tcp]);
    let ratio = match blocking.ratio() {
        Some(ratio) => format!("ratio of the largest releases: {ratio:.3}"),
        None => "nothing held back, no ratio".to_owned(),
    };
    format!("{}{} gaps; {ratio}\n", table.to_text(1), blocking.gaps)
}

/// ByteIndex of the page and of each stream.
pub fn byte_index(index: &ByteIndex) -> String {
    let whole = &index.index;
    let mut text = format!(
        "ByteIndex {:.1} ms; of whole streams every {} ms: by bytes {:.1} ms, by streams {:.1} ms\n\
         {} streams, {} bytes, from {:.1} ms on\n",
        millis(whole.progressive),
        crate::SAMPLING_INTERVAL.as_millis(),
        millis(whole.sampled),
        millis(whole.objects),
        index.streams.len(),
        index.bytes,
        millis(index.start),
    );
    if index.unfinished > 0 {
        let count = index.unfinished;
        let _ = writeln!(text, "{count} streams are not complete: counted to the end of the trace");
    }
    let table = Table::of(
        "Streams",
        &index.streams,
        &[
            ("stream", &|row| row.stream.into()),
            ("bytes", &|row| row.bytes.into()),
            ("complete", &|row| time(row.completed)),
            ("ByteIndex", &|row| time(Some(row.progressive))),
        ],
    );
    text + &table.to_text(1)
}

/// The time span of a waterfall: from the first request or byte to the last byte.
pub(crate) fn span(streams: &[StreamSummary]) -> (Duration, Duration) {
    let times = || streams.iter().flat_map(|row| [row.requested, row.first_byte, row.last_byte]);
    let start = times().flatten().min().unwrap_or_default();
    let end = times().flatten().max().unwrap_or_default();
    (start, end)
}

/// A line for each stream: `.` from the request, `=` from the first byte to the last.
pub fn waterfall(streams: &[StreamSummary]) -> String {
    let (start, end) = span(streams);
    let length = end.saturating_sub(start).as_secs_f64();
    let place = |at: Duration| {
        let share = at.saturating_sub(start).as_secs_f64() / length.max(1e-9);
        (share * f64::from(WATERFALL_WIDTH - 1)).clamp(0.0, f64::from(WATERFALL_WIDTH - 1)) as usize
    };
    let since = |at: Option<Duration>| time(at.map(|at| at.saturating_sub(start)));
    let bar = |row: &StreamSummary| {
        let mut bar = vec![' '; WATERFALL_WIDTH as usize];
        let mut draw = |from: Option<Duration>, to: Option<Duration>, mark: char| {
            let Some((from, to)) = from.zip(to) else { return };
            bar.iter_mut().take(place(to) + 1).skip(place(from)).for_each(|c| *c = mark);
        };
        draw(row.requested, row.first_byte.or(row.requested), '.');
        draw(row.first_byte, row.last_byte, '=');
        format!("|{}|", bar.into_iter().collect::<String>())
    };
    let table = Table::of(
        "Waterfall",
        streams.iter().take(MAX_DRAWN_BARS),
        &[
            ("stream", &|row| row.stream.into()),
            ("", &|row| bar(row).into()),
            ("request", &|row| since(row.requested)),
            ("first", &|row| since(row.first_byte)),
            ("last", &|row| since(row.last_byte)),
            ("path", &|row| row.path.as_deref().map(|path| short(path, PATH_WIDTH)).into()),
        ],
    );
    let mut text = table.to_text(2);
    if streams.len() > MAX_DRAWN_BARS {
        let _ = writeln!(text, "and {} more streams", streams.len() - MAX_DRAWN_BARS);
    }
    text
}

/// A row in a comparison of traces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceRow {
    /// The trace's name.
    pub name: String,
    /// Its overview.
    pub overview: Overview,
    /// [`Blocking::ratio`], if received data was analysed.
    pub blocking_ratio: Option<f64>,
    /// ByteIndex in milliseconds.
    pub byte_index_ms: f64,
    /// The first trace's ByteIndex over this one's: above 1 is better than the first trace.
    pub speedup: Option<f64>,
}

impl TraceRow {
    /// Compares a trace with the first one, whose ByteIndex is `first`.
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
            byte_index_ms: millis(own),
            speedup: (!own.is_zero()).then(|| first.as_secs_f64() / own.as_secs_f64()),
        }
    }
}

/// A row for each trace.
pub fn comparison(traces: &[TraceRow]) -> String {
    let table = Table::of(
        "Comparison",
        traces,
        &[
            ("trace", &|row| plain(&row.name).into()),
            ("by", &|row| row.overview.vantage.into()),
            ("streams", &|row| row.overview.streams.into()),
            ("bytes", &|row| row.overview.bytes.into()),
            ("time", &|row| time(Some(row.overview.duration))),
            ("lost", &|row| row.overview.lost.into()),
            ("again", &|row| row.overview.retransmitted.into()),
            ("recovered", &|row| row.overview.recovered.into()),
            ("HOL ratio", &|row| row.blocking_ratio.map(Cell::Number).into()),
            ("ByteIndex", &|row| format!("{:.1}", row.byte_index_ms).into()),
            ("speed-up", &|row| row.speedup.map(Cell::Number).into()),
        ],
    );
    table.to_text(2)
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
    fn bundling_is_told_in_two_lines() {
        let trace =
            Build::default().received(0, 0, &[frame(0, 0, 100), frame(0, 100, 100)]).trace();
        let text = bundling(&crate::bundling(&trace, Direction::Received));
        assert!(
            text.starts_with("1 packets with stream data: 0 with one STREAM frame, 1 with two")
        );
        assert!(text.ends_with("1 with several frames of one stream, 0 with several streams, 0 short although no stream ended\n"), "{text}");
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
