//! Tables, rendered as Markdown, as aligned text, as CSV, and as JSON (by `serde`).

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::statistics::{Spread, millis};

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

/// A cell. In JSON it is a bare number or text, in the unit given here.
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
}

impl Cell {
    /// An empty cell.
    pub fn none() -> Self {
        Self::from("-")
    }

    /// Median and spread with this many decimal places.
    pub fn spread(spread: Option<Spread>, digits: usize) -> Self {
        spread.map(|spread| format!("{spread:.digits$}")).into()
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
            Self::Share(share) => {
                let percent = share * 100.0;
                let digits = if percent >= 10.0 || percent == 0.0 { 1 } else { 3 };
                write!(f, "{percent:.digits$} %")
            }
            Self::Millis(ms) => write!(f, "{ms:.1} ms"),
            Self::Number(number) => write!(f, "{number:.3}"),
        }
    }
}

impl Cell {
    /// A field of a line of CSV.
    fn to_csv(&self) -> String {
        match self {
            cell if *cell == Self::none() => String::new(),
            Self::Text(text) => quoted(text),
            Self::Count(count) => count.to_string(),
            Self::Share(number) | Self::Millis(number) | Self::Number(number) => {
                if number.is_finite() { number.to_string() } else { String::new() }
            }
        }
    }
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
    /// are bare, as in JSON, and in the same units. Empty cells and numbers that are not finite are empty.
    pub fn to_csv(&self) -> String {
        let line =
            |fields: &mut dyn Iterator<Item = String>| fields.collect::<Vec<_>>().join(",") + "\n";
        let mut out = line(&mut self.columns.iter().map(|column| quoted(column)));
        for row in &self.rows {
            out += &line(&mut row.iter().map(Cell::to_csv));
        }
        out
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
