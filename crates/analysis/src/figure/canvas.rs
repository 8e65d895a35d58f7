//! Pictures made of boxes and text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{printable, step};

/// Text with XML's special characters escaped.
fn escaped(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A picture under construction. Lengths are in pixels, measured from the upper left corner.
/// Colours must be from this crate's palette. Boxes of different colours must not overlap.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    body: String,
    /// Boxes without a tooltip, by colour. Each colour becomes a single path, which takes a
    /// fraction of the space.
    paths: BTreeMap<String, String>,
}

/// A box.
#[derive(Debug, Clone, Copy)]
pub(super) struct CanvasArea {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A length rounded to a hundredth of a pixel.
fn rounded(length: f64) -> f64 {
    (length * 100.0).round() / 100.0
}

impl Canvas {
    /// Draws a box, with `about` as its tooltip.
    pub(super) fn area(&mut self, area: CanvasArea, fill: &str, about: Option<&str>) {
        let [x, y, height] = [area.x, area.y, area.height].map(rounded);
        let width = rounded(area.width.max(0.2));
        // Writing to a string cannot fail.
        let _ = match about {
            Some(about) => writeln!(
                self.body,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\">\
                 <title>{}</title></rect>",
                escaped(about)
            ),
            None => {
                let path = self.paths.entry(fill.to_owned()).or_default();
                write!(path, "M{x} {y}h{width}v{height}h-{width}z")
            }
        };
    }

    /// Draws text whose baseline begins at `x`, `y`.
    pub(super) fn text(&mut self, x: f64, y: f64, text: &str) {
        let _ = writeln!(self.body, r#"<text x="{x:.2}" y="{y:.2}">{}</text>"#, escaped(text));
    }

    /// Draws text whose baseline ends at `x`, `y`.
    pub(super) fn text_before(&mut self, x: f64, y: f64, text: &str) {
        let text = escaped(text);
        let _ =
            writeln!(self.body, r#"<text x="{x:.2}" y="{y:.2}" text-anchor="end">{text}</text>"#);
    }

    /// Draws a scale of `length` milliseconds below `y`, from `x` on and `width` wide.
    pub(super) fn milliseconds(&mut self, x: f64, y: f64, width: f64, length: f64, height: f64) {
        let step = step(length, 10.0);
        // There are fewer than 30 ticks for any length.
        for n in 0..30 {
            let time = f64::from(n) * step;
            if time > length {
                break;
            }
            let at = x + width * time / length.max(1e-9);
            let top = y - height;
            let _ = writeln!(self.body, r##"<path d="M{at:.2} {y:.2}V{top:.2}" stroke="#ddd"/>"##);
            self.text(at + 2.0, y + 12.0, &format!("{} ms", (time * 1e6).round() / 1e6));
        }
    }

    /// The finished picture.
    pub(super) fn finish(mut self, width: f64, height: f64) -> String {
        for (fill, path) in std::mem::take(&mut self.paths) {
            let _ = writeln!(self.body, r#"<path fill="{fill}" d="{path}"/>"#);
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
            self.body
        )
    }
}
