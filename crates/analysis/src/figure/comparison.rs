//! The share of a quantity that is left after a change, as bars.

use super::canvas::{Canvas, CanvasArea};

/// A change, and quantities of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// A heading.
    pub title: String,
    /// The quantities.
    pub rows: Vec<Compared>,
}

/// A quantity before and after a change. Less is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its name.
    pub label: String,
    /// How much it was.
    pub before: f64,
    /// How much it is. The part beyond `MOST` times `before` is cut off.
    pub after: f64,
    /// Both in words.
    pub text: String,
}

/// How many times the quantity before a bar can show.
const MOST: f64 = 1.2;
const WIDTH: f64 = 800.0;
/// Where bars begin, and the width of the bar of the quantity before.
const BAR: (f64, f64) = (110.0, 320.0);
/// The height of a line of text and of a bar.
const HEIGHT: f64 = 20.0;
const MARGIN: f64 = 14.0;
const BEFORE: &str = "#bbbbbb";
const AFTER: &str = "#0072b2";

/// Draws bars on a common scale: each quantity is compared with the quantity before, the grey bar. The
/// background is white, so that the figure can be read on dark pages too.
#[must_use]
pub fn comparison(title: &str, comparisons: &[Comparison]) -> String {
    let mut canvas = Canvas::default();
    let mut y = MARGIN + HEIGHT;
    canvas.text(MARGIN, y - 6.0, title);
    for comparison in comparisons {
        y += HEIGHT * 1.3;
        canvas.text(MARGIN, y - 6.0, &comparison.title);
        for row in &comparison.rows {
            draw(&mut canvas, y, row);
            y += HEIGHT;
        }
    }
    canvas.finish(WIDTH, y + MARGIN)
}

fn draw(canvas: &mut Canvas, y: f64, row: &Compared) {
    let (x, full) = BAR;
    let share = if row.before > 0.0 { (row.after / row.before).clamp(0.0, MOST) } else { 0.0 };
    let (y_bar, height) = (y + 3.0, HEIGHT - 6.0);
    canvas.text_before(x - 8.0, y + HEIGHT - 6.0, &row.label);
    let mut bar = |x, width, fill| {
        if width > 0.0 {
            canvas.area(CanvasArea { x, y: y_bar, width, height }, fill, None);
        }
    };
    bar(x, full * share, AFTER);
    bar(x + full * share, full * (1.0 - share), BEFORE);
    canvas.text(x + full * share.max(1.0) + 12.0, y + HEIGHT - 6.0, &row.text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_what_is_left() {
        let row = |before, after| Compared {
            label: "a & b".to_owned(),
            before,
            after,
            text: "less".to_owned(),
        };
        let draw = |before, after| {
            let rows = vec![row(before, after)];
            comparison("title", &[Comparison { title: "kind".to_owned(), rows }])
        };
        let quarter = draw(4.0, 1.0);
        assert!(quarter.contains("h80v") && quarter.contains("h240v"), "{quarter}");
        assert!(quarter.contains("a &amp; b"), "{quarter}");
        // The quantity falls to zero, stays the same, and was zero before.
        assert!(!draw(4.0, 0.0).contains(AFTER));
        assert!(!draw(4.0, 4.0).contains(BEFORE));
        assert!(draw(0.0, 0.0).contains("h320v"));
        // More than a bar can show.
        assert!(draw(1.0, 9.0).contains("h384v"));
    }
}
