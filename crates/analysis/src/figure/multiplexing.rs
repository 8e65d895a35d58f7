//! The multiplexing graph: STREAM frames in order.

use std::collections::{BTreeMap, BTreeSet};

use super::canvas::{Canvas, CanvasArea};
use super::stream_colour;
use crate::arrivals::{Arrival, Class};
use crate::limits::{MAX_DRAWN_FRAMES, MAX_DRAWN_LANES};
use crate::multiplexing::Multiplexing;
use crate::statistics::millis;
use crate::streams::StreamSummary;
use crate::text::short;

const LEFT: f64 = 170.0;
const WIDTH: f64 = 1200.0;
const TOP: f64 = 30.0;
const ROW: f64 = 36.0;
const MARKS: f64 = 16.0;
const LANE: f64 = 12.0;
/// The gap between two lines of frames.
const GAP: f64 = 18.0;

/// The mark of a class below the row and its label. The colours differ from the colours of all streams and
/// are distinguishable with any kind of colour vision. Plain new data has no mark.
const fn mark(class: Class) -> Option<(&'static str, &'static str)> {
    match class {
        Class::New => None,
        Class::Future => Some(("#aa4499", "after a gap")),
        Class::Retransmitted => Some(("#000", "retransmitted")),
        Class::Reordered => Some(("#332288", "out of order")),
        Class::Recovered => Some(("#117733", "recovered")),
        Class::Duplicate => Some(("#cc6677", "there already")),
    }
}

/// A row of boxes, one for each STREAM frame in the order of arrival, coloured by stream, with marks below
/// for all frames but plain new data; then a row for each stream. Rows that are too long continue on the next
/// line. Nothing is drawn beyond [`MAX_DRAWN_FRAMES`] and [`MAX_DRAWN_LANES`], and the figure says so.
pub fn multiplexing(multiplexing: &Multiplexing, streams: &[StreamSummary], title: &str) -> String {
    let all = &multiplexing.arrivals;
    let drawn = all.get(..all.len().min(MAX_DRAWN_FRAMES)).unwrap_or_default();
    let ids: BTreeSet<u64> = drawn.iter().map(|a| a.frame.stream).collect();
    let graph = Graph {
        slot: (WIDTH / drawn.len().max(1) as f64).clamp(1.0, 12.0),
        ranks: ids.into_iter().zip(0..).collect(),
        paths: streams.iter().filter_map(|row| Some((row.stream, row.path.as_deref()?))).collect(),
    };
    let mut canvas = Canvas::default();
    let title = short(title, 120);
    let cut = if drawn.len() < all.len() { ", the first of them shown" } else { "" };
    canvas.text(10.0, 18.0, &format!("{title}: {} STREAM frames in order{cut}", all.len()));
    let lines: Vec<&[Arrival]> = match drawn.chunks(graph.frames_in_a_line()).collect::<Vec<_>>() {
        none if none.is_empty() => vec![&[]],
        lines => lines,
    };
    // If frames fill several lines, they are too narrow to point at.
    let is_told = lines.len() == 1;
    let mut y = TOP;
    for line in &lines {
        graph.draw_line(&mut canvas, y, line, is_told);
        y += ROW + MARKS + graph.lanes() as f64 * LANE + GAP;
    }
    if graph.ranks.len() > MAX_DRAWN_LANES {
        let more = graph.ranks.len() - MAX_DRAWN_LANES;
        canvas.text(LEFT, y, &format!("and {more} more streams without a row of their own"));
        y += 16.0;
    }
    legend(&mut canvas, y);
    canvas.finish(LEFT + (drawn.len() as f64 * graph.slot).clamp(700.0, WIDTH) + 10.0, y + 12.0)
}

/// The data that all lines of a graph share.
struct Graph<'a> {
    /// The width of a frame, in pixels.
    slot: f64,
    /// The rank of each stream among all streams.
    ranks: BTreeMap<u64, usize>,
    /// The `:path` of streams.
    paths: BTreeMap<u64, &'a str>,
}

impl Graph<'_> {
    fn frames_in_a_line(&self) -> usize {
        (WIDTH / self.slot) as usize
    }

    /// Number of streams with a row of their own.
    fn lanes(&self) -> usize {
        self.ranks.len().min(MAX_DRAWN_LANES)
    }

    fn draw_line(&self, canvas: &mut Canvas, y: f64, frames: &[Arrival], is_told: bool) {
        canvas.text_before(LEFT - 8.0, y + ROW / 2.0, "all streams");
        canvas.text_before(LEFT - 8.0, y + ROW + MARKS - 5.0, "not new");
        let lanes = y + ROW + MARKS;
        for (stream, rank) in self.ranks.iter().take(MAX_DRAWN_LANES) {
            let path = self.paths.get(stream).copied().unwrap_or_default();
            let label = format!("{} {stream}", short(path, 20));
            canvas.text_before(LEFT - 8.0, lanes + (*rank as f64 + 1.0) * LANE - 3.0, &label);
        }
        let area = |from: usize, count: usize, y: f64, height: f64| CanvasArea {
            x: LEFT + from as f64 * self.slot,
            y,
            width: count as f64 * self.slot,
            height,
        };
        let mut start = 0;
        for run in frames.chunk_by(|a, b| a.frame.stream == b.frame.stream) {
            let Some(first) = run.first() else { continue };
            let rank = self.ranks.get(&first.frame.stream).copied().unwrap_or(0);
            let fill = stream_colour(rank);
            let about = is_told.then(|| about(run, first));
            canvas.area(area(start, run.len(), y, ROW), &fill, about.as_deref());
            if rank < MAX_DRAWN_LANES {
                let lane = lanes + rank as f64 * LANE;
                canvas.area(area(start, run.len(), lane, LANE - 2.0), &fill, None);
            }
            start += run.len();
        }
        let mut start = 0;
        for run in frames.chunk_by(|a, b| a.class == b.class) {
            if let Some((fill, _)) = run.first().and_then(|a| mark(a.class)) {
                canvas.area(area(start, run.len(), y + ROW + 2.0, MARKS - 6.0), fill, None);
            }
            start += run.len();
        }
    }
}

fn about(run: &[Arrival], first: &Arrival) -> String {
    let bytes: u64 = run.iter().map(|a| a.frame.length).fold(0, u64::saturating_add);
    let (stream, offset) = (first.frame.stream, first.frame.offset);
    let at = millis(first.at);
    format!("stream {stream}, {} frames, {bytes} bytes, from {offset} on, at {at} ms", run.len())
}

fn legend(canvas: &mut Canvas, y: f64) {
    let classes =
        [Class::Future, Class::Retransmitted, Class::Reordered, Class::Recovered, Class::Duplicate];
    let mut x = LEFT;
    for (fill, name) in classes.into_iter().filter_map(mark) {
        canvas.area(CanvasArea { x, y: y - 9.0, width: 10.0, height: 10.0 }, fill, None);
        canvas.text(x + 14.0, y, name);
        x += 110.0;
    }
}
