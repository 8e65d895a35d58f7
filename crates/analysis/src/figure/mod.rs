//! Results as SVG figures: [charts](Chart) with axes, and rows of boxes.

mod axis;
mod blocking;
mod canvas;
mod chart;
mod comparison;
mod multiplexing;
mod packets;
mod plot;
mod waterfall;

pub use axis::{Axis, Scale};
pub use blocking::blocking;
pub use chart::{Chart, Mark, Panel, Series};
pub use comparison::{Compared, Comparison, comparison};
pub use multiplexing::multiplexing;
pub use packets::{PacketRow, packets};
pub use waterfall::waterfall;

/// A figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Its name: lower-case letters, digits and hyphens.
    pub name: String,
    /// The figure as an SVG document.
    pub svg: String,
}

/// A figure cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot draw a chart: {0}")]
pub struct ChartError(String);

/// Red, green and blue.
type Colour = (u8, u8, u8);

/// Colours that people with any kind of colour vision can tell apart on white (Okabe and Ito 2008,
/// without yellow).
const PALETTE: [Colour; 7] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (230, 159, 0),
    (0, 0, 0),
];

/// The colour of the `rank`-th stream of a figure. After the last colour, they repeat in a paler
/// shade; black is left out, because it marks retransmissions.
fn stream_colour(rank: usize) -> String {
    let colours = PALETTE.len() - 1;
    let (r, g, b) = PALETTE.get(rank % colours).copied().unwrap_or_default();
    let pale = |value: u8| if (rank / colours).is_multiple_of(2) { value } else { 127 + value / 2 };
    format!("#{:02x}{:02x}{:02x}", pale(r), pale(g), pale(b))
}

/// A step of 1, 2 or 5 times a power of ten, so that about `count` steps cover `length`.
fn step(length: f64, count: f64) -> f64 {
    let rough = (length / count).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

/// `text` in lower-case letters, digits and single hyphens.
pub(crate) fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// Text from a file, with characters that XML 1.0 does not allow replaced: control characters and
/// two others.
fn printable(text: &str) -> String {
    crate::text::plain(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests;
