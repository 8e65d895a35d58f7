//! Data held back over time.

use std::time::Duration;

use super::{Axis, Chart, Panel, Series};
use crate::blocking::Blocking;
use crate::limits::MAX_DRAWN_FRAMES;
use crate::statistics::millis;
use crate::text::short;

/// Bytes held back over time, in QUIC and in the simulated TCP. In a long history only every n-th
/// change is drawn, with the largest values in between.
pub fn blocking(blocking: &Blocking, duration: Duration, title: &str) -> Chart {
    let ratio = blocking.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
    let title = short(title, 60);
    Chart {
        name: "blocking".to_owned(),
        title: format!("{title}: bytes held back by gaps; ratio {ratio}"),
        x: Axis::linear("time since the first event in ms"),
        y: Axis::linear("bytes held back"),
        baseline: None,
        panels: vec![Panel::of([
            Series::line("QUIC", steps(blocking, duration, |change| change.1)),
            Series::line("simulated TCP", steps(blocking, duration, |change| change.2)),
        ])],
    }
}

fn steps(
    blocking: &Blocking,
    duration: Duration,
    value: fn(&(Duration, u64, u64)) -> u64,
) -> Vec<(f64, f64)> {
    let point = |at: Duration, bytes: u64| (millis(at), bytes as f64);
    let mut points = vec![point(Duration::ZERO, 0)];
    let mut before = 0;
    let every = blocking.history.len().div_ceil(MAX_DRAWN_FRAMES).max(1);
    for group in blocking.history.chunks(every) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let most = group.iter().map(value).max().unwrap_or(0);
        points.extend([point(first.0, before), point(first.0, most)]);
        before = value(last);
        if every > 1 {
            points.extend([point(last.0, most), point(last.0, before)]);
        }
    }
    points.push(point(duration, before));
    points
}
