//! Tables, rendered as Markdown, as aligned text, as CSV, and as JSON (by `serde`).

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::interval::{Estimate, Interval};
use crate::statistics::{Distribution, Spread, millis};

/// A table of figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// A title for the contents.
    pub caption: String,
    /// The column headings.
    pub columns: Vec<String>,
    /// The rows, with one cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column heading, and how to make the column's cell from an item.
pub type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> Cell);

/// A cell. In JSON it is a bare number or text, in the unit given here, or an object of three numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A label, or a figure that is already formatted.
    Text(String),
    /// A count.
    Count(u64),
    /// A share, 0 to 1. Text shows a percentage.
    Share(f64),
    /// Milliseconds.
    Millis(f64),
    /// A mean or a ratio.
    Number(f64),
    /// A quantile in milliseconds, with its interval.
    MillisWithin(Estimate),
    /// A quantile, a mean or a ratio, with its interval.
    NumberWithin(Estimate),
    /// A share, 0 to 1, with its interval. Text shows percentages.
    ShareWithin(Estimate),
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Millis,
    /// A share from 0 to 1.
    Share,
    /// None: a count, a mean or a ratio.
    Plain,
}

impl Cell {
    /// The unit of its number; `None` for text.
    pub const fn unit(&self) -> Option<Unit> {
        match self {
            Self::Text(_) => None,
            Self::Millis(_) | Self::MillisWithin(_) => Some(Unit::Millis),
            Self::Share(_) | Self::ShareWithin(_) => Some(Unit::Share),
            Self::Count(_) | Self::Number(_) | Self::NumberWithin(_) => Some(Unit::Plain),
        }
    }

    /// An empty cell.
    pub fn none() -> Self {
        Self::from("-")
    }

    /// The number in it, as in JSON: shares from 0 to 1, times in milliseconds. `None` for text.
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Text(_) => None,
            Self::Count(count) => Some(*count as f64),
            Self::Share(number) | Self::Millis(number) | Self::Number(number) => Some(*number),
            Self::MillisWithin(estimate)
            | Self::NumberWithin(estimate)
            | Self::ShareWithin(estimate) => Some(estimate.value),
        }
    }

    /// A cell with another number in the same unit.
    #[must_use]
    pub fn like(&self, number: f64) -> Self {
        match self {
            Self::Count(_) if number >= 0.0 && number.fract() == 0.0 => Self::Count(number as u64),
            Self::Share(_) | Self::ShareWithin(_) => Self::Share(number),
            Self::Millis(_) | Self::MillisWithin(_) => Self::Millis(number),
            Self::Text(_) | Self::Count(_) | Self::Number(_) | Self::NumberWithin(_) => {
                Self::Number(number)
            }
        }
    }

    /// A cell with an estimate in the same unit.
    #[must_use]
    pub const fn within(&self, estimate: Estimate) -> Self {
        match self {
            Self::Share(_) | Self::ShareWithin(_) => Self::ShareWithin(estimate),
            Self::Millis(_) | Self::MillisWithin(_) => Self::MillisWithin(estimate),
            Self::Text(_) | Self::Count(_) | Self::Number(_) | Self::NumberWithin(_) => {
                Self::NumberWithin(estimate)
            }
        }
    }

    /// Median and spread with this many decimal places.
    pub fn spread(spread: Option<Spread>, digits: usize) -> Self {
        spread.map(|spread| format!("{spread:.digits$}")).into()
    }
}

impl Distribution {
    /// The quantile `q`, from 0 to 1, and its interval, as a cell of a table.
    pub fn cell(&self, q: f64) -> Cell {
        Cell::MillisWithin(self.estimate(q))
    }

    /// The share above `limit` and its interval, as a cell of a table.
    pub fn cell_above(&self, limit: Duration) -> Cell {
        Cell::ShareWithin(self.estimate_above(limit))
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Cell {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<Duration> for Cell {
    fn from(duration: Duration) -> Self {
        Self::Millis(millis(duration))
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Self::none, Into::into)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(n) => write!(f, "{n}"),
            Self::Share(share) => write!(f, "{} %", percent(*share)),
            Self::Millis(ms) => write!(f, "{ms:.1} ms"),
            Self::Number(number) => write!(f, "{number:.3}"),
            Self::MillisWithin(Estimate { value, within }) => {
                write!(f, "{value:.1} ms")?;
                write_interval(f, *within, |end| format!("{end:.1}"))
            }
            Self::NumberWithin(Estimate { value, within }) => {
                write!(f, "{value:.3}")?;
                write_interval(f, *within, |end| format!("{end:.3}"))
            }
            Self::ShareWithin(Estimate { value, within }) => {
                write!(f, "{} %", percent(*value))?;
                write_interval(f, *within, percent)
            }
        }
    }
}

/// A share from 0 to 1 as a percentage, without the sign.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent >= 10.0 || percent == 0.0 { 1 } else { 3 };
    format!("{percent:.digits$}")
}

/// Nothing if the interval is open at both ends, and nothing in place of an open end.
fn write_interval(
    f: &mut fmt::Formatter<'_>,
    within: Interval,
    text: impl Fn(f64) -> String,
) -> fmt::Result {
    let [low, high] = [within.low, within.high].map(|end| end.map(&text).unwrap_or_default());
    if low.is_empty() && high.is_empty() { Ok(()) } else { write!(f, " ({low}..{high})") }
}

impl Cell {
    /// A field of a line of CSV.
    fn to_csv(&self) -> String {
        match self {
            cell if *cell == Self::none() => String::new(),
            Self::Text(text) => quoted(text),
            Self::Count(count) => count.to_string(),
            Self::Share(number) | Self::Millis(number) | Self::Number(number) => bare(*number),
            Self::MillisWithin(estimate)
            | Self::NumberWithin(estimate)
            | Self::ShareWithin(estimate) => bare(estimate.value),
        }
    }

    /// The interval of a quantile, a mean, a ratio or a share, in the same unit; `None` if it has none.
    pub const fn interval(&self) -> Option<Interval> {
        match self {
            Self::Text(_) | Self::Count(_) | Self::Share(_) | Self::Millis(_) | Self::Number(_) => {
                None
            }
            Self::MillisWithin(estimate)
            | Self::NumberWithin(estimate)
            | Self::ShareWithin(estimate) => Some(estimate.within),
        }
    }
}

/// A number as a field of a line of CSV.
fn bare(number: f64) -> String {
    if number.is_finite() { number.to_string() } else { String::new() }
}

/// Text as a field of a line of CSV, in quotes where it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

impl Table {
    /// A table without rows.
    pub fn new<C: AsRef<str>>(
        caption: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
    ) -> Self {
        let columns = columns.into_iter().map(|column| column.as_ref().to_owned()).collect();
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    /// A table with a row for each of `items`.
    pub fn of<T>(
        caption: impl Into<String>,
        items: impl IntoIterator<Item = T>,
        columns: &[Column<'_, T>],
    ) -> Self {
        let mut table = Self::new(caption, columns.iter().map(|(head, _)| head));
        for item in items {
            table.row(columns.iter().map(|(_, cell)| cell(&item)));
        }
        table
    }

    /// Adds a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The rows as a Markdown table, with the caption above it.
    pub fn to_markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            // A bar would end the cell, also within code.
            cells.fold("|".to_owned(), |line, cell| line + " " + &cell.replace('|', "\\|") + " |")
                + "\n"
        };
        let mut out = format!("{}:\n\n", self.caption);
        out += &line(&mut self.columns.iter().cloned());
        out += &line(&mut self.columns.iter().map(|_| "---".to_owned()));
        for row in &self.rows {
            out += &line(&mut row.iter().map(Cell::to_string));
        }
        out
    }

    /// The headings and the rows as CSV (RFC 4180, but lines end with a line feed), without the caption: numbers
    /// are bare, as in JSON, and in the same units. A column with intervals is followed by columns of their lower and
    /// upper ends. Empty cells, open ends and numbers that are not finite are empty.
    pub fn to_csv(&self) -> String {
        let columns = 0..self.columns.len();
        let has_intervals: Vec<bool> = columns.map(|column| self.is_within(column)).collect();
        let line = |fields: Vec<[String; 3]>| {
            let with_ends = fields.into_iter().zip(&has_intervals);
            let fields =
                with_ends.flat_map(|(field, has)| field.into_iter().take(if *has { 3 } else { 1 }));
            fields.collect::<Vec<_>>().join(",") + "\n"
        };
        let heading = |column: &String| {
            [column.clone(), format!("{column} low"), format!("{column} high")]
                .map(|name| quoted(&name))
        };
        let fields = |cell: &Cell| {
            let ends =
                cell.interval().map(|Interval { low, high }| [low, high]).unwrap_or_default();
            let [low, high] = ends.map(|end| end.map(bare).unwrap_or_default());
            [cell.to_csv(), low, high]
        };
        let rows = self.rows.iter().map(|row| row.iter().map(fields).collect());
        std::iter::once(self.columns.iter().map(heading).collect()).chain(rows).map(line).collect()
    }

    /// Whether a cell has an interval.
    pub fn has_intervals(&self) -> bool {
        (0..self.columns.len()).any(|column| self.is_within(column))
    }

    /// Whether a cell of a column has an interval.
    fn is_within(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.any(|cell| cell.interval().is_some())
    }

    /// The rows as aligned text for terminals, without the caption: the first `left` columns are
    /// left-aligned, the other columns right-aligned.
    pub fn to_text(&self, left: usize) -> String {
        let rows = self.rows.iter().map(|row| row.iter().map(Cell::to_string).collect());
        let rows: Vec<Vec<String>> = std::iter::once(self.columns.clone()).chain(rows).collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = String::new();
        for row in &rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            text += cells.collect::<Vec<_>>().join("  ").trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let items = [("a", 0.0123, Duration::from_micros(1500)), ("bcd", 0.5, Duration::ZERO)];
        Table::of(
            "Figures",
            items,
            &[
                ("name", &|item| item.0.into()),
                ("share", &|item| Cell::Share(item.1)),
                ("time", &|item| item.2.into()),
            ],
        )
    }

    #[test]
    fn markdown() {
        let expected = "Figures:\n\n| name | share | time |\n| --- | --- | --- |\n\
                        | a | 1.230 % | 1.5 ms |\n| bcd | 50.0 % | 0.0 ms |\n";
        assert_eq!(table().to_markdown(), expected);
    }

    #[test]
    fn a_bar_in_a_cell_does_not_end_it() {
        let mut table = Table::new("Bars", ["a"]);
        table.row(["`b | c`"]);
        assert!(table.to_markdown().ends_with("\n| `b \\| c` |\n"), "{}", table.to_markdown());
    }

    #[test]
    fn csv_has_bare_numbers_and_quotes_where_they_are_needed() {
        let mut table = table();
        let cells = ["a,b \"c\"".into(), Cell::none(), Cell::Number(f64::INFINITY)];
        table.row(cells);
        let expected = "name,share,time\na,0.0123,1.5\nbcd,0.5,0\n\"a,b \"\"c\"\"\",,\n";
        assert_eq!(table.to_csv(), expected);
    }

    #[test]
    fn text_is_aligned() {
        let expected = "name    share    time\n\
                        a     1.230 %  1.5 ms\n\
                        bcd    50.0 %  0.0 ms\n";
        assert_eq!(table().to_text(1), expected);
        let mut left = Table::new("", ["x", "y"]);
        left.row(["äö", ""]);
        assert_eq!(left.to_text(2), "x   y\näö\n");
    }

    #[test]
    fn a_quantile_has_its_interval_behind_it_and_columns_of_its_own_in_csv() {
        let of = |low, high| Estimate { value: 2.0, within: Interval { low, high } };
        let mut table = Table::new("", ["x", "time", "y"]);
        table.row([Cell::from("a"), Cell::MillisWithin(of(Some(1.0), Some(3.5))), Cell::Count(1)]);
        table.row([Cell::from("b"), Cell::NumberWithin(of(Some(1.0), None)), Cell::Count(2)]);
        table.row([Cell::from("c"), Cell::NumberWithin(of(None, None)), Cell::Count(3)]);
        let shown = table.rows.iter().map(|row| row[1].to_string()).collect::<Vec<_>>();
        assert_eq!(shown, ["2.0 ms (1.0..3.5)", "2.000 (1.000..)", "2.000"]);
        let share = Estimate { value: 0.0025, ..Estimate::exact(0.125) };
        assert_eq!(Cell::ShareWithin(share).to_string(), "0.250 % (12.5..12.5)");
        assert_eq!(Cell::ShareWithin(share).unit(), Some(Unit::Share));
        let csv = "x,time,time low,time high,y\na,2,1,3.5,1\nb,2,1,,2\nc,2,,,3\n";
        assert_eq!(table.to_csv(), csv);
        let json = serde_json::to_value(&table).unwrap();
        assert_eq!(json["rows"][1][1], serde_json::json!({"value": 2.0, "low": 1.0, "high": null}));
        assert!(table.has_intervals() && !self::table().has_intervals());
    }

    #[test]
    fn json_has_bare_numbers() {
        let json = serde_json::to_value(table()).unwrap();
        assert_eq!(json["rows"][0], serde_json::json!(["a", 0.0123, 1.5]));
    }

    #[test]
    fn what_is_not_there_is_a_dash() {
        assert_eq!([Cell::from(None::<u64>), Cell::spread(None, 1)], [Cell::none(), Cell::none()]);
        assert_eq!(Cell::from(Some(7u32)), Cell::Count(7));
        let spread = Cell::spread(Spread::of([1.0, 2.0, 4.0]), 1);
        assert_eq!(spread.to_string(), "2.0 [1.0 4.0]");
    }
}
