//! Drawing charts.

use std::fmt::Display;

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::axis::Extent;
use super::{Chart, ChartError, Mark, PALETTE, Panel, Series, printable};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The size of a panel: alone, and as one of several.
const SINGLE: (u32, u32) = (760, 460);
const ONE_OF_SEVERAL: (u32, u32) = (260, 220);
const COLUMNS: usize = 4;
/// The height of the heading, and of a line of the legend.
const HEAD: u32 = 40;
const LINE: usize = 22;
/// The length of a line sample in the legend, and where the text after it begins.
const SAMPLE: i32 = 30;
const TEXT: i32 = 38;
/// The width of a letter in the legend, rounded up.
const LETTER: usize = 8;

/// Dash patterns: lengths of dashes and gaps. When the colours run out, series use the next
/// pattern.
const DASHES: [Option<(i32, i32)>; 4] = [None, Some((8, 5)), Some((2, 4)), Some((14, 4))];

/// The colour and the dashes of the `index`-th series.
fn style(index: usize) -> (RGBColor, Option<(i32, i32)>) {
    let (r, g, b) = PALETTE.get(index % PALETTE.len()).copied().unwrap_or_default();
    let dashes = DASHES.get(index / PALETTE.len() % DASHES.len()).copied().flatten();
    (RGBColor(r, g, b), dashes)
}

/// The line width of the `index`-th series: wide enough to remain visible below later series with
/// the very same points.
fn width(series: &[Series], index: usize) -> u32 {
    let own = series.get(index).map(|series| &series.points);
    let later = series.iter().skip(index + 1).filter(|other| Some(&other.points) == own);
    2 + 3 * later.count().min(5) as u32
}

fn failed(error: impl Display) -> ChartError {
    ChartError(error.to_string())
}

impl Chart {
    /// The chart as an SVG document.
    ///
    /// # Errors
    /// The chart cannot be drawn.
    pub fn to_svg(&self) -> Result<String, ChartError> {
        let mut svg = String::new();
        let layout = Layout::of(self);
        {
            let root = SVGBackend::with_string(&mut svg, layout.size()).into_drawing_area();
            root.fill(&WHITE).map_err(failed)?;
            let text = Text::new(printable(&self.title), (14, 12), ("sans-serif", 17));
            root.draw(&text).map_err(failed)?;
            let (_, below) = root.split_vertically(HEAD);
            self.draw_legend(&layout, &root)?;
            self.draw_panels(&layout, &below)?;
            root.present().map_err(failed)?;
        }
        Ok(svg)
    }

    fn points<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = (f64, f64)> + Clone + 'a {
        series.points.iter().copied().filter(|(x, y)| self.x.has(*x) && self.y.has(*y))
    }

    fn draw_legend(&self, layout: &Layout, root: &Area) -> Result<(), ChartError> {
        for (index, series) in layout.legend.iter().enumerate() {
            let at = layout.place_in_legend(index);
            let (colour, dashes) = style(index);
            let line = colour.stroke_width(width(layout.legend, index));
            let ends = [at, (at.0 + SAMPLE, at.1)];
            match (series.mark, dashes) {
                (Mark::Line, None) => {
                    root.draw(&PathElement::new(ends, line)).map_err(failed)?;
                }
                (Mark::Line, Some((length, gap))) => {
                    let line = DashedPathElement::new(ends, length, gap, line);
                    root.draw(&line).map_err(failed)?;
                }
                (Mark::Points, _) => {
                    let centre = (at.0 + SAMPLE - 6, at.1);
                    root.draw(&Circle::new(centre, 3, filling(index, colour))).map_err(failed)?;
                }
            }
            let place = (at.0 + TEXT, at.1 - 7);
            let text = Text::new(printable(&series.label), place, ("sans-serif", 13));
            root.draw(&text).map_err(failed)?;
        }
        Ok(())
    }

    fn draw_panels(&self, layout: &Layout, below: &Area) -> Result<(), ChartError> {
        let all = || {
            let series = self.panels.iter().flat_map(|panel| &panel.series);
            series.flat_map(|series| self.points(series))
        };
        let x = self.x.over(all().map(|(x, _)| x));
        let y = self.y.over(all().map(|(_, y)| y).chain(self.baseline));
        let (columns, rows) = layout.grid;
        let (width, height) = (layout.panel.0 * columns as u32, layout.panel.1 * rows as u32);
        let (left, _) = below.split_horizontally(width);
        // With several panels, the legend takes a line above them.
        let top = if layout.is_single() { 0 } else { LINE as u32 };
        let (area, _) = left.split_vertically(top).1.split_vertically(height);
        for (index, (panel, area)) in
            self.panels.iter().zip(area.split_evenly((rows, columns))).enumerate()
        {
            let labels = (
                if index + columns >= self.panels.len() { self.x.label.as_str() } else { "" },
                if index.is_multiple_of(columns) { self.y.label.as_str() } else { "" },
            );
            self.draw_panel(panel, &area, (x.clone(), y.clone()), labels)?;
        }
        Ok(())
    }

    fn draw_panel(
        &self,
        panel: &Panel,
        area: &Area,
        (x, y): (Extent, Extent),
        (x_label, y_label): (&str, &str),
    ) -> Result<(), ChartError> {
        let across = x.range();
        let mut builder = ChartBuilder::on(area);
        builder.margin(8).margin_right(14).x_label_area_size(42).y_label_area_size(60);
        if !panel.title.is_empty() {
            builder.caption(printable(&panel.title), ("sans-serif", 13));
        }
        let mut chart = builder.build_cartesian_2d(x, y).map_err(failed)?;
        let mut mesh = chart.configure_mesh();
        mesh.bold_line_style(RGBColor(221, 221, 221)).axis_style(RGBColor(120, 120, 120));
        mesh.label_style(("sans-serif", 11)).axis_desc_style(("sans-serif", 13));
        mesh.x_desc(printable(x_label)).y_desc(printable(y_label)).draw().map_err(failed)?;
        if let Some(at) = self.baseline {
            let ends = [(across.start, at), (across.end, at)];
            chart.draw_series(LineSeries::new(ends, RGBColor(60, 60, 60))).map_err(failed)?;
        }
        for (index, series) in panel.series.iter().enumerate() {
            let (colour, dashes) = style(index);
            let line = colour.stroke_width(width(&panel.series, index));
            let points = self.points(series);
            match (series.mark, dashes) {
                (Mark::Line, None) => {
                    chart.draw_series(LineSeries::new(points, line)).map_err(failed)?;
                }
                (Mark::Line, Some((length, gap))) => {
                    let line = DashedLineSeries::new(points, length, gap, line);
                    chart.draw_series(line).map_err(failed)?;
                }
                (Mark::Points, _) => {
                    let circles = points.map(|at| Circle::new(at, 3, filling(index, colour)));
                    chart.draw_series(circles).map_err(failed)?;
                }
            }
        }
        Ok(())
    }
}

/// Every other series of points is hollow, so that they can be told apart without colours.
fn filling(index: usize, colour: RGBColor) -> ShapeStyle {
    if index.is_multiple_of(2) { colour.filled() } else { colour.stroke_width(1) }
}

/// The size of everything, in pixels.
struct Layout<'a> {
    /// Columns and rows of panels.
    grid: (usize, usize),
    panel: (u32, u32),
    /// The series in the legend: beside a single panel, above several.
    legend: &'a [Series],
}

impl<'a> Layout<'a> {
    fn of(chart: &'a Chart) -> Self {
        let count = chart.panels.len();
        let panel = if count > 1 { ONE_OF_SEVERAL } else { SINGLE };
        let columns = count.clamp(1, COLUMNS);
        let legend = chart.panels.first().map_or(&[][..], |panel| &panel.series);
        Self { grid: (columns, count.div_ceil(columns).max(1)), panel, legend }
    }

    fn is_single(&self) -> bool {
        self.grid == (1, 1)
    }

    /// Where the legend entry of a series begins.
    fn place_in_legend(&self, index: usize) -> (i32, i32) {
        if self.is_single() {
            return (self.panel.0 as i32 + 14, (HEAD as usize + 16 + index * LINE) as i32);
        }
        let before = self.legend.iter().take(index);
        let x: usize = before.map(|s| TEXT as usize + 22 + s.label.chars().count() * LETTER).sum();
        (x as i32 + 14, HEAD as i32 + 2)
    }

    /// The size of the whole picture.
    fn size(&self) -> (u32, u32) {
        let (columns, rows) = self.grid;
        let (width, height) = (self.panel.0 * columns as u32, self.panel.1 * rows as u32);
        if !self.is_single() {
            return (width, HEAD + LINE as u32 + height);
        }
        let longest = self.legend.iter().map(|s| s.label.chars().count()).max().unwrap_or(0);
        let legend = TEXT as usize + 28 + longest * LETTER;
        (width + legend as u32, HEAD + height.max((self.legend.len() * LINE) as u32 + 16))
    }
}
