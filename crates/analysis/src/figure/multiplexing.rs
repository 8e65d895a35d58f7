//! The multiplexing graph: STREAM frames in their order.

use std::collections::BTreeMap;

use super::canvas::{Area, Canvas};
use super::colour;
use crate::arrivals::{Arrival, Class};
use crate::limits::{MAX_DRAWN_FRAMES, MAX_DRAWN_LANES};
use crate::multiplexing::Multiplexing;
use crate::streams::StreamSummary;
use crate::text::short;

const LEFT: f64 = 170.0;
const WIDTH: f64 = 1200.0;
const TOP: f64 = 30.0;
const ROW: f64 = 44.0;
const MARKS: f64 = 18.0;
const LANE: f64 = 12.0;

/// What a class is marked with below the row; what is simply new has no mark.
const fn mark(class: Class) -> Option<(&'static str, &'static str)> {
    match class {
        Class::New => None,
        Class::Future => Some(("#8e44ad", "after a gap")),
        Class::Retransmitted => Some(("black", "retransmitted")),
        Class::Reordered => Some(("#2471d6", "out of order")),
        Class::Recovered => Some(("#1e9e4a", "recovered")),
        Class::Duplicate => Some(("#d62728", "there already")),
    }
}

/// A row of boxes, one for each STREAM frame in the order of arrival, coloured by stream, with
/// marks below it for what is not simply new; then the same for each stream in a row of its own.
/// Beyond [`MAX_DRAWN_FRAMES`] and [`MAX_DRAWN_LANES`] nothing is drawn, and the figure says so.
pub fn multiplexing(multiplexing: &Multiplexing, streams: &[StreamSummary], title: &str) -> String {
    let all = &multiplexing.arrivals;
    let drawn = all.get(..all.len().min(MAX_DRAWN_FRAMES)).unwrap_or_default();
    let slot = (WIDTH / drawn.len().max(1) as f64).clamp(0.5, 12.0);
    let paths: BTreeMap<u64, &StreamSummary> =
        streams.iter().map(|row| (row.stream, row)).collect();
    let mut ranks: BTreeMap<u64, usize> = drawn.iter().map(|a| (a.frame.stream, 0)).collect();
    for (rank, value) in ranks.values_mut().enumerate() {
        *value = rank;
    }
    let mut canvas = Canvas::default();
    let title = short(title, 120);
    let cut = if drawn.len() < all.len() { ", the first of them shown" } else { "" };
    canvas.text(10.0, 18.0, &format!("{title}: {} STREAM frames in order{cut}", all.len()));
    canvas.text_before(LEFT - 8.0, TOP + ROW / 2.0, "all streams");
    canvas.text_before(LEFT - 8.0, TOP + ROW + MARKS - 4.0, "not new");
    let lanes = TOP + ROW + MARKS + 10.0;
    let mut start = 0;
    for run in drawn.chunk_by(|a, b| a.frame.stream == b.frame.stream) {
        let area = |from: usize, count: usize, y: f64, height: f64| Area {
            x: LEFT + from as f64 * slot,
            y,
            width: count as f64 * slot,
            height,
        };
        let Some(first) = run.first() else { continue };
        let rank = ranks.get(&first.frame.stream).copied().unwrap_or(0);
        let fill = colour(rank);
        canvas.area(area(start, run.len(), TOP, ROW), &fill, Some(&about(run, first)));
        if rank < MAX_DRAWN_LANES {
            canvas.area(
                area(start, run.len(), lanes + rank as f64 * LANE, LANE - 2.0),
                &fill,
                None,
            );
        }
        let mut at = start;
        for part in run.chunk_by(|a, b| a.class == b.class) {
            if let Some((fill, _)) = part.first().and_then(|a| mark(a.class)) {
                canvas.area(area(at, part.len(), TOP + ROW + 2.0, MARKS - 4.0), fill, None);
            }
            at += part.len();
        }
        start += run.len();
    }
    for (stream, rank) in ranks.iter().take(MAX_DRAWN_LANES) {
        let path = paths.get(stream).and_then(|row| row.path.as_deref()).unwrap_or_default();
        let y = lanes + *rank as f64 * LANE + LANE - 3.0;
        canvas.text_before(LEFT - 8.0, y, &format!("{} {stream}", short(path, 20)));
    }
    let mut bottom = lanes + ranks.len().min(MAX_DRAWN_LANES) as f64 * LANE + 14.0;
    if ranks.len() > MAX_DRAWN_LANES {
        let more = ranks.len() - MAX_DRAWN_LANES;
        canvas.text(LEFT, bottom, &format!("and {more} more streams without a row of their own"));
        bottom += 16.0;
    }
    legend(&mut canvas, bottom);
    canvas.finish(LEFT + (drawn.len() as f64 * slot).max(700.0) + 10.0, bottom + 12.0)
}

fn about(run: &[Arrival], first: &Arrival) -> String {
    let bytes: u64 = run.iter().map(|a| a.frame.length).fold(0, u64::saturating_add);
    let (stream, offset) = (first.frame.stream, first.frame.offset);
    let at = crate::millis::of(first.at);
    format!("stream {stream}, {} frames, {bytes} bytes, from {offset} on, at {at} ms", run.len())
}

fn legend(canvas: &mut Canvas, y: f64) {
    let classes =
        [Class::Future, Class::Retransmitted, Class::Reordered, Class::Recovered, Class::Duplicate];
    let mut x = LEFT;
    for (fill, name) in classes.into_iter().filter_map(mark) {
        canvas.area(Area { x, y: y - 9.0, width: 10.0, height: 10.0 }, fill, None);
        canvas.text(x + 14.0, y, name);
        x += 110.0;
    }
}
