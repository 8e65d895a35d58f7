//! Plots of points on logarithmic axes, as SVG.

use std::fmt::Write;

use serde::Serialize;

/// Several panels with the same axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plot {
    /// Its name, which can be that of a file.
    pub name: String,
    /// A heading.
    pub title: String,
    /// What `x` is, with its unit.
    pub x_label: String,
    /// What `y` is, with its unit.
    pub y_label: String,
    /// A line across every panel.
    pub baseline: Option<f64>,
    /// What is plotted.
    pub panels: Vec<Panel>,
}

/// One of the panels of a plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Panel {
    /// A heading.
    pub title: String,
    /// What is plotted.
    pub points: Vec<Points>,
}

/// Points that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Points {
    /// What they are.
    pub label: String,
    /// Each as x and y. What is not above zero is left out.
    pub at: Vec<(f64, f64)>,
}

const COLUMNS: usize = 4;
const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 170.0;
/// Room around the panels, left and bottom, and between them.
const LEFT: f64 = 50.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 44.0;
const GAP: f64 = 26.0;
const COLOURS: [&str; 6] = ["#4c61b9", "#e17426", "#6cad58", "#c72737", "#914ca8", "#7d787a"];

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Axis {
    /// Covers `values`, with ticks at `steps` of each decade.
    fn new(values: impl Iterator<Item = f64>, steps: &[f64]) -> Self {
        let values = values.filter(|value| *value > 0.0 && value.is_finite());
        let (low, high) =
            values.fold((f64::MAX, 0.0), |(low, high), value| (value.min(low), value.max(high)));
        let (low, high) = if low <= high { (low * 0.9, high * 1.1) } else { (0.9, 1.1) };
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let ticks = decades.flat_map(|e| steps.iter().map(move |step| step * 10f64.powi(e)));
        let ticks = ticks.filter(|tick| (low..=high).contains(tick)).collect();
        Self { low, high, ticks }
    }

    /// Where a value is, 0 to 1.
    fn place(&self, value: f64) -> f64 {
        (value / self.low).ln() / (self.high / self.low).ln()
    }
}

impl Plot {
    /// The plot as an SVG document.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let all = || {
            let points = self.panels.iter().flat_map(|panel| &panel.points);
            points
                .flat_map(|points| points.at.iter().copied())
                .filter(|(x, y)| *x > 0.0 && *y > 0.0)
        };
        let x = Axis::new(all().map(|(x, _)| x), &[1.0, 3.0]);
        let y = Axis::new(all().map(|(_, y)| y).chain(self.baseline), &[1.0, 2.0, 3.0, 5.0]);
        let columns = self.panels.len().clamp(1, COLUMNS);
        let rows = self.panels.len().div_ceil(COLUMNS).max(1);
        let width = LEFT + columns as f64 * (WIDTH + GAP);
        let height = TOP + rows as f64 * (HEIGHT + GAP) + BOTTOM - GAP;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
        );
        text(&mut out, (LEFT, 18.0), "start", 14, &self.title);
        self.write_legend(&mut out);
        let middle = LEFT + (width - LEFT - GAP) / 2.0;
        text(&mut out, (middle, height - 8.0), "middle", 12, &self.x_label);
        // Writing to a string cannot fail.
        let _ = write!(out, "<g transform=\"translate(12 {}) rotate(-90)\">", TOP + height / 3.0);
        text(&mut out, (0.0, 0.0), "middle", 12, &self.y_label);
        out.push_str("</g>\n");
        for (index, panel) in self.panels.iter().enumerate() {
            let left = LEFT + (index % COLUMNS) as f64 * (WIDTH + GAP);
            let top = TOP + (index / COLUMNS) as f64 * (HEIGHT + GAP);
            let _ = writeln!(out, "<g transform=\"translate({left} {top})\">");
            write_frame(
                &mut out,
                &x,
                &y,
                index % COLUMNS == 0,
                index + columns >= self.panels.len(),
            );
            if let Some(baseline) = self.baseline {
                let at = HEIGHT * (1.0 - y.place(baseline));
                line(&mut out, (0.0, at), (WIDTH, at), "#333");
            }
            write_points(&mut out, &x, &y, panel);
            text(&mut out, (4.0, -4.0), "start", 12, &panel.title);
            out.push_str("</g>\n");
        }
        out.push_str("</svg>\n");
        out
    }

    fn write_legend(&self, out: &mut String) {
        let labels = self.panels.first().into_iter().flat_map(|panel| &panel.points);
        for (index, points) in labels.enumerate() {
            let at = LEFT + 4.0 + index as f64 * 200.0;
            mark(out, index, (at, 34.0));
            text(out, (at + 10.0, 38.0), "start", 12, &points.label);
        }
    }
}

fn write_frame(out: &mut String, x: &Axis, y: &Axis, labels_left: bool, labels_below: bool) {
    for tick in &x.ticks {
        let at = WIDTH * x.place(*tick);
        line(out, (at, 0.0), (at, HEIGHT), "#ddd");
        if labels_below {
            text(out, (at, HEIGHT + 14.0), "middle", 10, &tick.to_string());
        }
    }
    for tick in &y.ticks {
        let at = HEIGHT * (1.0 - y.place(*tick));
        line(out, (0.0, at), (WIDTH, at), "#ddd");
        if labels_left {
            let label = (tick * 1000.0).round() / 1000.0;
            text(out, (-4.0, at + 3.0), "end", 10, &label.to_string());
        }
    }
    let _ = writeln!(
        out,
        "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#888\"/>"
    );
}

fn write_points(out: &mut String, x: &Axis, y: &Axis, panel: &Panel) {
    for (index, points) in panel.points.iter().enumerate() {
        for (px, py) in points.at.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0) {
            mark(out, index, (WIDTH * x.place(*px), HEIGHT * (1.0 - y.place(*py))));
        }
    }
}

/// Every other kind of points is hollow, so that they can be told apart without colours.
fn mark(out: &mut String, index: usize, (x, y): (f64, f64)) {
    let colour = COLOURS[index % COLOURS.len()];
    let fill = if index.is_multiple_of(2) { colour } else { "none" };
    let _ = writeln!(
        out,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{fill}\" stroke=\"{colour}\"/>"
    );
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, size: u32, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{text}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_where_their_logarithms_are() {
        let axis = Axis::new([10.0, 1000.0, -5.0, f64::NAN].into_iter(), &[1.0, 5.0]);
        assert!((axis.low - 9.0).abs() < 1e-9 && (axis.high - 1100.0).abs() < 1e-9);
        assert_eq!(axis.ticks, [10.0, 50.0, 100.0, 500.0, 1000.0]);
        assert!((axis.place(9.0) - 0.0).abs() < 1e-9 && (axis.place(1100.0) - 1.0).abs() < 1e-9);
        assert!((axis.place((9.0f64 * 1100.0).sqrt()) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn every_point_is_drawn_and_text_is_escaped() {
        let points = |n: u32| Points {
            label: "a<b".to_owned(),
            at: (0..n).map(|i| (f64::from(i), 2.0)).collect(),
        };
        let panel = |n| Panel { title: "p".to_owned(), points: vec![points(n), points(1)] };
        let plot = Plot {
            title: "x & y".to_owned(),
            baseline: Some(1.0),
            panels: (0..6).map(|_| panel(5)).collect(),
            ..Plot::default()
        };
        let svg = plot.to_svg();
        // Points at zero have no place; two marks are the legend's.
        assert_eq!(svg.matches("<circle").count(), 6 * 4 + 2);
        assert!(svg.contains("x &amp; y") && svg.contains("a&lt;b"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
    }

    #[test]
    fn a_plot_without_points_is_still_a_document() {
        let svg = Plot::default().to_svg();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    }
}
