//! The parts of reports, and the shapes that they share.

pub use sutura_analysis::figure::{Axis, Chart, Panel, Series};
pub use sutura_analysis::report::Report;
pub use sutura_analysis::table::{Cell, Column, Table};

/// A report with these paragraphs, tables and charts.
pub fn report_of(
    title: &str,
    text: &[impl AsRef<str>],
    tables: impl Into<Vec<Table>>,
    charts: impl Into<Vec<Chart>>,
) -> Report {
    Report {
        title: title.to_owned(),
        text: text.iter().map(|paragraph| paragraph.as_ref().to_owned()).collect(),
        tables: tables.into(),
        charts: charts.into(),
        ..Report::default()
    }
}

/// A chart with a single panel.
pub fn chart_of(
    name: impl Into<String>,
    title: impl Into<String>,
    axes: [Axis; 2],
    series: impl IntoIterator<Item = Series>,
) -> Chart {
    panels_of(name, title, axes, [Panel::of(series)])
}

/// A chart with several panels.
pub fn panels_of(
    name: impl Into<String>,
    title: impl Into<String>,
    [x, y]: [Axis; 2],
    panels: impl IntoIterator<Item = Panel>,
) -> Chart {
    let (name, title, panels) = (name.into(), title.into(), panels.into_iter().collect());
    Chart { name, title, x, y, baseline: None, panels }
}
