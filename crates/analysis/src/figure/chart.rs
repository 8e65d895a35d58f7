//! Charts: curves and points on axes.

use serde::Serialize;

use super::Axis;

/// Curves or points on axes, in one panel or in several with the same axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chart {
    /// What tells it from the other charts of its report.
    pub name: String,
    /// A heading.
    pub title: String,
    /// What goes from left to right.
    pub x: Axis,
    /// What goes up.
    pub y: Axis,
    /// A line across every panel.
    pub baseline: Option<f64>,
    /// What is shown.
    pub panels: Vec<Panel>,
}

/// One of the panels of a chart. The series of all panels that are at the same place in them look
/// the same, and have one entry in the legend.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Panel {
    /// A heading, if there are several panels.
    pub title: String,
    /// What is shown.
    pub series: Vec<Series>,
}

impl Panel {
    /// A panel without a heading.
    pub fn of(series: impl IntoIterator<Item = Series>) -> Self {
        Self { title: String::new(), series: series.into_iter().collect() }
    }
}

/// Points that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// What they are.
    pub label: String,
    /// How they are shown.
    pub mark: Mark,
    /// Each as x and y. What the axes have no place for is left out.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A curve.
    pub fn line(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), mark: Mark::Line, points }
    }

    /// Points.
    pub fn points(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), mark: Mark::Points, points }
    }
}

/// How points are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// By a line from each to the next.
    #[default]
    Line,
    /// Each by a circle.
    Points,
}
