//! Charts: curves and points on axes.

use serde::Serialize;

use super::Axis;

/// Curves or points on axes, in one panel or in several with the same axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chart {
    /// A name, unique among the charts of its report.
    pub name: String,
    /// A heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// A horizontal line across every panel.
    pub baseline: Option<f64>,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// A panel of a chart. Series with the same index in different panels look the same and share a
/// legend entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Panel {
    /// A heading, if there are several panels.
    pub title: String,
    /// The data series.
    pub series: Vec<Series>,
}

impl Panel {
    /// A panel without a heading.
    pub fn of(series: impl IntoIterator<Item = Series>) -> Self {
        Self { title: String::new(), series: series.into_iter().collect() }
    }
}

/// A data series.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// The legend entry.
    pub label: String,
    /// How they are shown.
    pub mark: Mark,
    /// The points as (x, y). Points that the axes cannot place are left out.
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

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// As a line from each point to the next.
    #[default]
    Line,
    /// As circles.
    Points,
}
