//! Writing SVG: boxes, lines and text.

use std::fmt::Write as _;

use super::step;
use crate::text::plain;

/// Text with the characters of XML written out.
fn escaped(text: &str) -> String {
    // XML 1.0 has no control characters, and neither of these two.
    let text = plain(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A figure in the making. Lengths are in pixels, from the upper left corner on. Colours must be
/// this crate's own.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    body: String,
}

/// A box.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Canvas {
    /// A box, and what is shown to whoever points at it.
    pub(super) fn area(&mut self, area: Area, fill: &str, about: Option<&str>) {
        let Area { x, y, width, height } = area;
        let width = width.max(0.2);
        let _ = write!(
            self.body,
            r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" fill="{fill}""#
        );
        let _ = match about {
            Some(about) => writeln!(self.body, "><title>{}</title></rect>", escaped(about)),
            None => writeln!(self.body, "/>"),
        };
    }

    /// Text whose baseline begins at `x`, `y`.
    pub(super) fn text(&mut self, x: f64, y: f64, text: &str) {
        let _ = writeln!(self.body, r#"<text x="{x:.2}" y="{y:.2}">{}</text>"#, escaped(text));
    }

    /// Text whose baseline ends at `x`, `y`.
    pub(super) fn text_before(&mut self, x: f64, y: f64, text: &str) {
        let text = escaped(text);
        let _ =
            writeln!(self.body, r#"<text x="{x:.2}" y="{y:.2}" text-anchor="end">{text}</text>"#);
    }

    /// A line through points.
    pub(super) fn line(&mut self, points: impl IntoIterator<Item = (f64, f64)>, stroke: &str) {
        self.body.push_str("<polyline points=\"");
        for (x, y) in points {
            let _ = write!(self.body, "{x:.2},{y:.2} ");
        }
        let _ = writeln!(self.body, "\" fill=\"none\" stroke=\"{stroke}\"/>");
    }

    /// A scale of milliseconds below `y`: `length` of them from `x` on, `width` wide.
    pub(super) fn milliseconds(&mut self, x: f64, y: f64, width: f64, length: f64, height: f64) {
        let step = step(length, 10.0);
        // There are fewer than 30 whatever the length is.
        for n in 0..30 {
            let time = f64::from(n) * step;
            if time > length {
                break;
            }
            let at = x + width * time / length.max(1e-9);
            self.line([(at, y), (at, y - height)], "#ddd");
            self.text(at + 2.0, y + 12.0, &format!("{} ms", (time * 1e6).round() / 1e6));
        }
    }

    /// The figure.
    pub(super) fn finish(self, width: f64, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
            self.body
        )
    }
}
