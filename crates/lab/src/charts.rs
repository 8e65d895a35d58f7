//! Charts of a report's curves.

use std::fmt::Display;
use std::ops::Range;

use plotters::prelude::*;

use crate::{Error, Report, Series};

/// A picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// What to call it: lower-case letters, digits and hyphens.
    pub name: String,
    /// The picture as an SVG document.
    pub svg: String,
}

/// Colours that can be told apart, red, green and blue.
pub const COLOURS: [(u8, u8, u8); 12] = [
    (31, 119, 180),
    (230, 130, 20),
    (44, 150, 60),
    (205, 45, 50),
    (140, 95, 190),
    (125, 80, 65),
    (225, 110, 190),
    (115, 115, 115),
    (175, 180, 30),
    (20, 180, 200),
    (20, 30, 110),
    (150, 215, 120),
];

/// The colour of the `index`-th thing; they come again if there are many.
pub fn colour(index: usize) -> (u8, u8, u8) {
    COLOURS.get(index % COLOURS.len()).copied().unwrap_or_default()
}

/// The size of a chart in pixels, and where the legend begins.
const SIZE: (u32, u32) = (1100, 560);
const LEGEND: u32 = 780;
/// The height of a line of the legend.
const LINE: usize = 20;

/// A chart for each pair of axes that the report's curves have.
///
/// # Errors
/// A chart cannot be drawn.
pub fn charts(report: &Report) -> Result<Vec<Picture>, Error> {
    let mut groups: Vec<Vec<&Series>> = Vec::new();
    for series in &report.series {
        let axes = (&series.x_label, &series.y_label);
        let same = |group: &&mut Vec<&Series>| {
            group.first().is_some_and(|first| (&first.x_label, &first.y_label) == axes)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(series),
            None => groups.push(vec![series]),
        }
    }
    let picture = |group: &Vec<&Series>| {
        let label = group.first().map_or("", |first| first.x_label.as_str());
        Ok(Picture { name: slug(&format!("{} {label}", report.name)), svg: chart(report, group)? })
    };
    groups.iter().map(picture).collect()
}

/// `text` in lower-case letters, digits and single hyphens.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// The points that can be drawn.
fn points<'a>(series: &'a Series) -> impl Iterator<Item = (f64, f64)> + 'a {
    let points = series.x.iter().copied().zip(series.y.iter().copied());
    points.filter(|(x, y)| x.is_finite() && y.is_finite())
}

/// What all values lie in; never empty.
fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low < high {
        low..high
    } else if low == high {
        low - 0.5..high + 0.5
    } else {
        0.0..1.0
    }
}

fn failed(error: impl Display) -> Error {
    Error::Chart(error.to_string())
}

fn chart(report: &Report, group: &[&Series]) -> Result<String, Error> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let root = root.titled(&report.title, ("sans-serif", 18)).map_err(failed)?;
        let (left, right) = root.split_horizontally(LEGEND);
        let all = || group.iter().flat_map(|series| points(series));
        let mut chart = ChartBuilder::on(&left)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(range(all().map(|p| p.0)), range(all().map(|p| p.1)))
            .map_err(failed)?;
        let axes = group.first().map_or(("", ""), |s| (s.x_label.as_str(), s.y_label.as_str()));
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc(axes.0)
            .y_desc(axes.1)
            .draw()
            .map_err(failed)?;
        for (index, series) in group.iter().enumerate() {
            let (r, g, b) = colour(index);
            // Colours that come again are told apart by the width.
            let width = if index < COLOURS.len() { 2 } else { 1 };
            let style = RGBColor(r, g, b).stroke_width(width);
            chart.draw_series(LineSeries::new(points(series), style)).map_err(failed)?;
            let y = (16 + index * LINE) as i32;
            right.draw(&PathElement::new([(0, y), (24, y)], style)).map_err(failed)?;
            let text = Text::new(series.label.clone(), (30, y - 7), ("sans-serif", 13));
            right.draw(&text).map_err(failed)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(label: &str, x_label: &str, points: &[(f64, f64)]) -> Series {
        Series {
            label: label.to_owned(),
            x_label: x_label.to_owned(),
            y_label: "share".to_owned(),
            x: points.iter().map(|p| p.0).collect(),
            y: points.iter().map(|p| p.1).collect(),
        }
    }

    #[test]
    fn curves_of_the_same_axes_share_a_chart() {
        let report = Report {
            name: "x-y".to_owned(),
            title: "A < B".to_owned(),
            series: vec![
                series("first", "Time, in ms", &[(0.0, 0.0), (5.0, 1.0)]),
                series("second", "bytes", &[(1.0, 0.5), (f64::NAN, 2.0)]),
                series("third", "Time, in ms", &[(2.0, 0.1), (9.0, 0.7)]),
                series("empty", "nothing", &[]),
            ],
            ..Report::default()
        };
        let pictures = charts(&report).unwrap();
        let names: Vec<_> = pictures.iter().map(|picture| picture.name.as_str()).collect();
        assert_eq!(names, ["x-y-time-in-ms", "x-y-bytes", "x-y-nothing"]);
        let holds = |picture: &Picture, text: &str| picture.svg.contains(text);
        assert!(holds(&pictures[0], "first") && holds(&pictures[0], "third"));
        assert!(!holds(&pictures[0], "second") && holds(&pictures[1], "second"));
        for picture in &pictures {
            assert!(picture.svg.starts_with("<svg") && picture.svg.trim_end().ends_with("</svg>"));
            assert!(holds(picture, "A &lt; B") && !holds(picture, "NaN"));
        }
        // A line for each curve in the chart and another in the legend.
        let (r, g, b) = colour(1);
        let third = format!("stroke=\"#{r:02X}{g:02X}{b:02X}\"");
        assert_eq!(pictures[0].svg.matches(&third).count(), 2);
    }

    #[test]
    fn ranges_are_never_empty() {
        assert_eq!(range([3.0, 1.0, 2.0].into_iter()), 1.0..3.0);
        assert_eq!(range([3.0].into_iter()), 2.5..3.5);
        assert_eq!(range(std::iter::empty()), 0.0..1.0);
    }
}
