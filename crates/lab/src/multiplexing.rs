//! The multiplexing graph of Marx 2020, Fig. 1: which stream each received frame belongs to, and
//! which frames were sent again.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::charts::colour;

/// A frame in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The stream.
    pub stream: u64,
    /// Whether it filled a gap.
    pub retransmitted: bool,
}

/// Frames in a row of the graph, a unit each: one row for all would show no single frame.
const FRAMES: usize = 1000;
/// The height of the streams' band, of the retransmissions' band below it, and of a whole row.
const BAND: usize = 22;
const BAND_BELOW: usize = 8;
const ROW: usize = 40;
/// What is left free at the edges, and above the rows for the title.
const MARGIN: usize = 10;
const HEAD: usize = 34;

/// The graph of `frames` as an SVG document. They are in the order of arrival, from left to right
/// and top to bottom; time does not show. What was sent again has a black mark below.
#[must_use]
pub fn graph(title: &str, frames: &[Mark]) -> String {
    let mut bands: BTreeMap<u64, String> = BTreeMap::new();
    let mut below = String::new();
    let mut start = 0;
    // Neighbours that look the same are one rectangle.
    for run in frames.chunk_by(|a, b| a == b) {
        let Some(mark) = run.first() else { continue };
        let band = bands.entry(mark.stream).or_default();
        rectangles(band, start, run.len(), 0, BAND);
        if mark.retransmitted {
            rectangles(&mut below, start, run.len(), BAND, BAND_BELOW);
        }
        start += run.len();
    }
    let width = FRAMES + 2 * MARGIN;
    let height = HEAD + frames.len().div_ceil(FRAMES).max(1) * ROW + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" shape-rendering=\"crispEdges\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"22\" font-family=\"sans-serif\" font-size=\"14\">{}</text>\n",
        escape(title)
    );
    for (index, path) in bands.values().enumerate() {
        let (r, g, b) = colour(index);
        // Writing to a string cannot fail.
        let _ = writeln!(svg, "<path fill=\"#{r:02x}{g:02x}{b:02x}\" d=\"{path}\"/>");
    }
    let _ = writeln!(svg, "<path fill=\"#000\" d=\"{below}\"/>\n</svg>");
    svg
}

/// Adds rectangles for the frames from `start` on to a path, one for each row that they touch.
fn rectangles(path: &mut String, start: usize, count: usize, top: usize, height: usize) {
    let (mut at, end) = (start, start + count);
    while at < end {
        let (row, column) = (at / FRAMES, at % FRAMES);
        let width = (end - at).min(FRAMES - column);
        let (x, y) = (MARGIN + column, HEAD + row * ROW + top);
        let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
        at += width;
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_for_each_stream_and_one_for_what_was_sent_again() {
        let mark = |stream, retransmitted| Mark { stream, retransmitted };
        let frames = [mark(0, false), mark(0, false), mark(4, false), mark(0, true)];
        let svg = graph("a & b", &frames);
        let paths: Vec<_> = svg.lines().filter_map(|line| line.split(" d=").nth(1)).collect();
        let expected = [
            "\"M10 34h2v22h-2zM13 34h1v22h-1z\"/>",
            "\"M12 34h1v22h-1z\"/>",
            "\"M13 56h1v8h-1z\"/>",
        ];
        assert_eq!(paths, expected);
        assert!(svg.contains("a &amp; b"));
    }

    #[test]
    fn long_runs_go_on_in_the_next_row() {
        let frames = vec![Mark { stream: 0, retransmitted: false }; FRAMES + 5];
        let svg = graph("", &frames);
        assert!(svg.contains("M10 34h1000v22h-1000zM10 74h5v22h-5z"), "{svg}");
        assert!(graph("nothing", &[]).ends_with("</svg>\n"));
    }
}
