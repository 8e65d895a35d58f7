//! What is held back over time.

use std::time::Duration;

use super::canvas::{Area, Canvas};
use super::step;
use crate::blocking::Blocking;
use crate::limits::MAX_DRAWN_FRAMES;
use crate::millis;
use crate::text::short;

const LEFT: f64 = 90.0;
const WIDTH: f64 = 900.0;
const TOP: f64 = 44.0;
const HEIGHT: f64 = 260.0;
const QUIC: &str = "#2471d6";
const TCP: &str = "#d66b24";

/// Bytes held back over time, in QUIC and in the simulated TCP. Of a long history, only every n-th
/// change is drawn, with the largest values between.
pub fn blocking(blocking: &Blocking, duration: Duration, title: &str) -> String {
    let mut canvas = Canvas::default();
    let ratio = blocking.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
    let title = short(title, 120);
    canvas.text(10.0, 18.0, &format!("{title}: bytes held back by gaps; ratio {ratio}"));
    for (x, fill, name) in [(LEFT, QUIC, "QUIC"), (LEFT + 80.0, TCP, "simulated TCP")] {
        canvas.area(Area { x, y: 26.0, width: 10.0, height: 10.0 }, fill, None);
        canvas.text(x + 14.0, 35.0, name);
    }
    let length = millis::of(duration).max(1e-3);
    let bottom = TOP + HEIGHT;
    canvas.milliseconds(LEFT, bottom, WIDTH, length, HEIGHT);
    let top = blocking.tcp.peak.max(blocking.quic.peak).max(1) as f64;
    let unit = step(top, 5.0).max(1.0);
    for n in 0..12 {
        let value = f64::from(n) * unit;
        if value > top {
            break;
        }
        let y = bottom - HEIGHT * value / top;
        canvas.line([(LEFT, y), (LEFT + WIDTH, y)], "#ddd");
        canvas.text_before(LEFT - 6.0, y + 4.0, &format!("{value}"));
    }
    type Value = fn(&(Duration, u64, u64)) -> u64;
    let lines: [(Value, &str); 2] = [(|h| h.2, TCP), (|h| h.1, QUIC)];
    for (value, stroke) in lines {
        canvas.line(steps(blocking, length, top, value), stroke);
    }
    canvas.finish(LEFT + WIDTH + 60.0, bottom + 24.0)
}

fn steps(
    blocking: &Blocking,
    length: f64,
    top: f64,
    value: fn(&(Duration, u64, u64)) -> u64,
) -> Vec<(f64, f64)> {
    let x = |at: Duration| LEFT + WIDTH * millis::of(at) / length;
    let y = |bytes: u64| TOP + HEIGHT - HEIGHT * bytes as f64 / top;
    let mut points = vec![(LEFT, y(0))];
    let mut before = 0;
    let every = blocking.history.len().div_ceil(MAX_DRAWN_FRAMES).max(1);
    for group in blocking.history.chunks(every) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let most = group.iter().map(value).max().unwrap_or(0);
        points.extend([(x(first.0), y(before)), (x(first.0), y(most))]);
        before = value(last);
        if every > 1 {
            points.extend([(x(last.0), y(most)), (x(last.0), y(before))]);
        }
    }
    points.push((LEFT + WIDTH, y(before)));
    points
}
