//! Which stream each packet carried, a row for each way of choosing (Marx 2020, Fig. 12).

use super::canvas::{Canvas, CanvasArea};
use super::stream_colour;
use crate::limits::{MAX_DRAWN_BARS, MAX_DRAWN_FRAMES};
use crate::text::short;

const LEFT: f64 = 170.0;
const WIDTH: f64 = 1200.0;
const TOP: f64 = 30.0;
const ROW: f64 = 16.0;
/// Width of an entry of the legend.
const ENTRY: f64 = 170.0;

/// The packets of one row: the stream that each carried, counted from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketRow {
    /// The label.
    pub label: String,
    /// The streams, in the order of the packets.
    pub streams: Vec<usize>,
}

/// A row of boxes for each of `rows`, one for each packet, coloured by stream; `names` are the names of the
/// streams. Nothing is drawn beyond [`MAX_DRAWN_BARS`] rows and [`MAX_DRAWN_FRAMES`] packets of a row.
pub fn packets(rows: &[PacketRow], names: &[String], title: &str) -> String {
    let rows = rows.get(..rows.len().min(MAX_DRAWN_BARS)).unwrap_or_default();
    let drawn = |row: &PacketRow| row.streams.len().min(MAX_DRAWN_FRAMES);
    let longest = rows.iter().map(drawn).max().unwrap_or(0).max(1);
    let slot = (WIDTH / longest as f64).min(12.0);
    let mut canvas = Canvas::default();
    canvas.text(10.0, 18.0, &short(title, 120));
    for (place, row) in rows.iter().enumerate() {
        let y = TOP + place as f64 * ROW;
        canvas.text_before(LEFT - 8.0, y + 11.0, &short(&row.label, 24));
        let packets = row.streams.get(..drawn(row)).unwrap_or_default();
        let mut start = 0;
        for run in packets.chunk_by(|a, b| a == b) {
            let Some(stream) = run.first() else { continue };
            let (x, width) = (LEFT + start as f64 * slot, run.len() as f64 * slot);
            let area = CanvasArea { x, y: y + 2.0, width, height: ROW - 4.0 };
            canvas.area(area, &stream_colour(*stream), None);
            start += run.len();
        }
    }
    let top = TOP + rows.len() as f64 * ROW + 12.0;
    let height = legend(&mut canvas, names, top);
    canvas.finish(LEFT + WIDTH + 10.0, top + height)
}

/// Draws the colour of each stream below `top`; returns the height.
fn legend(canvas: &mut Canvas, names: &[String], top: f64) -> f64 {
    let in_a_line = ((LEFT + WIDTH) / ENTRY) as usize;
    let names = names.get(..names.len().min(MAX_DRAWN_BARS)).unwrap_or_default();
    for (stream, name) in names.iter().enumerate() {
        let (line, column) = (stream / in_a_line, stream % in_a_line);
        let (x, y) = (10.0 + column as f64 * ENTRY, top + line as f64 * ROW);
        let area = CanvasArea { x, y: y + 2.0, width: 12.0, height: 12.0 };
        canvas.area(area, &stream_colour(stream), None);
        canvas.text(x + 18.0, y + 12.0, &short(name, 20));
    }
    names.len().div_ceil(in_a_line) as f64 * ROW + 12.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_packets_become_boxes() {
        let row = |label: &str, streams: &[usize]| PacketRow {
            label: label.to_owned(),
            streams: streams.to_vec(),
        };
        let rows = [row("in turns", &[0, 1, 0, 1]), row("one by one", &[0, 0, 1, 1])];
        let names = ["a.html".to_owned(), "b.css".to_owned()];
        let svg = packets(&rows, &names, "Packets");
        assert!(svg.contains("in turns") && svg.contains("b.css"), "{svg}");
        // Six runs, and two entries of the legend.
        assert_eq!(svg.matches('M').count(), 8, "{svg}");
        assert!(packets(&[], &[], "None").contains("None"));
    }
}
