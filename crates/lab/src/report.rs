//! The parts of reports, and the shapes that they share.

pub use sutura_analysis::figure::{Axis, Chart, Panel, Series};
pub use sutura_analysis::report::Report;
pub use sutura_analysis::table::{Cell, Column, Table};

/// What a report with intervals says of them.
const INTERVALS: &str = "In brackets behind a quantile is the interval that holds it nineteen times in twenty if the \
     runs are repeated with other seeds, or other paths are drawn; an end that is missing is not known from so few. \
     It is exact where the values are independent, one of each run or path; values of the same run are taken in parts.";

/// A report with these paragraphs, tables and charts.
pub fn report_of(
    title: &str,
    text: &[impl AsRef<str>],
    tables: impl Into<Vec<Table>>,
    charts: impl Into<Vec<Chart>>,
) -> Report {
    let (text, tables) = (text.iter().map(|paragraph| paragraph.as_ref()), tables.into());
    let intervals = tables.iter().any(Table::has_intervals).then_some(INTERVALS);
    Report {
        title: title.to_owned(),
        text: text.chain(intervals).map(str::to_owned).collect(),
        tables,
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
