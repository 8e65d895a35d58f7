//! The waterfall: streams over time.

use super::canvas::{Canvas, CanvasArea};
use super::stream_colour;
use crate::limits::MAX_DRAWN_BARS;
use crate::statistics::millis;
use crate::streams::StreamSummary;
use crate::text::{short, span};

const LEFT: f64 = 230.0;
const WIDTH: f64 = 900.0;
const TOP: f64 = 30.0;
const ROW: f64 = 16.0;

/// A bar for each stream: pale from the request to the first byte, full from there to the last.
/// Nothing is drawn beyond [`MAX_DRAWN_BARS`], and the figure says so.
pub fn waterfall(streams: &[StreamSummary], title: &str) -> String {
    let (start, end) = span(streams);
    let length = millis(end.saturating_sub(start)).max(1e-3);
    let drawn = streams.get(..streams.len().min(MAX_DRAWN_BARS)).unwrap_or_default();
    let height = drawn.len() as f64 * ROW;
    let mut canvas = Canvas::default();
    let cut = if drawn.len() < streams.len() { ", the first of them shown" } else { "" };
    let title = short(title, 120);
    canvas.text(10.0, 18.0, &format!("{title}: {} streams{cut}", streams.len()));
    canvas.milliseconds(LEFT, TOP + height + 2.0, WIDTH, length, height + 2.0);
    for (rank, row) in drawn.iter().enumerate() {
        let y = TOP + rank as f64 * ROW;
        let path = short(row.path.as_deref().unwrap_or_default(), 30);
        canvas.text_before(LEFT - 8.0, y + 11.0, &format!("{path} {}", row.stream));
        let place =
            |at: std::time::Duration| LEFT + WIDTH * millis(at.saturating_sub(start)) / length;
        let mut bar = |from: std::time::Duration, to, fill: &str, about: &str| {
            let (x, to) = (place(from), place(to));
            let area = CanvasArea { x, y: y + 2.0, width: (to - x).max(1.0), height: ROW - 4.0 };
            canvas.area(area, fill, Some(about));
        };
        if let Some((requested, first)) = row.requested.zip(row.first_byte) {
            let about = format!("waits for {} ms", millis(first.saturating_sub(requested)));
            bar(requested, first.max(requested), "#d8d8d8", &about);
        }
        if let Some((first, last)) = row.first_byte.zip(row.last_byte) {
            let took = millis(last.saturating_sub(first));
            let blocked = row.blocked.map(|b| format!(", blocked for {} ms", millis(b)));
            let blocked = blocked.unwrap_or_default();
            let about = format!("{} bytes in {took} ms{blocked}", row.bytes);
            bar(first, last, &stream_colour(rank), &about);
        }
    }
    canvas.finish(LEFT + WIDTH + 60.0, TOP + height + 24.0)
}
