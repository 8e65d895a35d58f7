//! Tables of reports as columns.

use sutura_analysis::interval::Interval;
use sutura_analysis::table::{Cell, Table, Unit};

use super::{Cells, Columns, TypedColumn};

impl Columns {
    /// The columns of a table. Units are those of [`Cell::number`], and empty cells are empty. A column with text in it
    /// is text, and its numbers are as in CSV. One with intervals is followed by their lower and upper ends.
    #[must_use]
    pub fn of(table: &Table) -> Self {
        let mut columns = Self::default();
        for (index, name) in table.columns.iter().enumerate() {
            let cells: Vec<_> =
                table.rows.iter().map(|row| row.get(index).and_then(told)).collect();
            let unit = unit(&cells);
            columns.push(name.clone(), unit, typed(&cells));
            let ends: Vec<_> = cells.iter().map(|cell| cell.and_then(Cell::interval)).collect();
            if ends.iter().any(Option::is_some) {
                let end = |of: fn(Interval) -> Option<f64>| {
                    Cells::Numbers(ends.iter().map(|within| within.and_then(of)).collect())
                };
                columns.push(format!("{name} low"), unit, end(|within| within.low));
                columns.push(format!("{name} high"), unit, end(|within| within.high));
            }
        }
        columns
    }

    /// Adds a column. If its name is taken, it gets a number behind it.
    fn push(&mut self, name: String, unit: Option<&'static str>, cells: Cells) {
        let taken = |name: &String| self.0.iter().any(|column| column.name == *name);
        let numbered = (2..).map(|number| format!("{name} {number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name));
        self.0.push(TypedColumn { name: free.unwrap_or(name), unit, cells });
    }
}

/// A cell that tells something.
fn told(cell: &Cell) -> Option<&Cell> {
    (*cell != Cell::none() && *cell != Cell::from("")).then_some(cell)
}

/// The unit of all cells that have one, if it is the same.
fn unit(cells: &[Option<&Cell>]) -> Option<&'static str> {
    let of = |cell: &Cell| match cell.unit()? {
        Unit::Share => Some("share"),
        Unit::Millis => Some("ms"),
        Unit::Plain => None,
    };
    let mut units = cells.iter().flatten().map(|cell| of(cell));
    let first = units.next().flatten();
    first.filter(|_| units.all(|unit| unit == first))
}

/// The cells in the type that holds all of them.
fn typed(cells: &[Option<&Cell>]) -> Cells {
    let each = |holds: fn(&Cell) -> bool| cells.iter().flatten().all(|cell| holds(cell));
    let count = |cell: &Cell| match cell {
        Cell::Count(count) => i64::try_from(*count).ok(),
        Cell::Text(_) | Cell::Share(_) | Cell::Millis(_) | Cell::Number(_) => None,
        Cell::MillisWithin(_) | Cell::NumberWithin(_) | Cell::ShareWithin(_) => None,
    };
    let text = |cell: &Cell| match cell {
        Cell::Text(text) => text.clone(),
        cell => cell.number().map(|number| number.to_string()).unwrap_or_default(),
    };
    if cells.iter().flatten().next().is_none() || !each(|cell| cell.number().is_some()) {
        Cells::Texts(cells.iter().map(|cell| cell.map(text)).collect())
    } else if cells.iter().flatten().all(|cell| count(cell).is_some()) {
        Cells::Counts(cells.iter().map(|cell| cell.and_then(count)).collect())
    } else {
        Cells::Numbers(cells.iter().map(|cell| cell.and_then(Cell::number)).collect())
    }
}

#[cfg(test)]
mod tests {
    use sutura_analysis::interval::Estimate;

    use super::*;

    fn columns(names: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> Vec<TypedColumn> {
        let mut table = Table::new("x", names);
        rows.into_iter().for_each(|row| table.row(row));
        Columns::of(&table).0
    }

    #[test]
    fn a_column_has_the_type_and_unit_of_its_cells() {
        let found = columns(
            &["text", "count", "share", "time", "either", "many", "nothing"],
            [
                vec![
                    Cell::from("a"),
                    Cell::Count(1),
                    Cell::Share(0.5),
                    Cell::Millis(1.5),
                    Cell::Count(1),
                    Cell::Count(1),
                    Cell::none(),
                ],
                vec![
                    Cell::none(),
                    Cell::none(),
                    Cell::none(),
                    Cell::Millis(2.5),
                    Cell::Number(0.25),
                    Cell::Count(u64::MAX),
                ],
                vec![Cell::Count(7), Cell::Count(2), Cell::Share(1.0), Cell::none()],
            ],
        );
        let text = |text: &str| Some(text.to_owned());
        let expected = [
            Cells::Texts(vec![text("a"), None, text("7")]),
            Cells::Counts(vec![Some(1), None, Some(2)]),
            Cells::Numbers(vec![Some(0.5), None, Some(1.0)]),
            Cells::Numbers(vec![Some(1.5), Some(2.5), None]),
            Cells::Numbers(vec![Some(1.0), Some(0.25), None]),
            Cells::Numbers(vec![Some(1.0), Some(u64::MAX as f64), None]),
            Cells::Texts(vec![None; 3]),
        ];
        let units = [None, None, Some("share"), Some("ms"), None, None, None];
        assert_eq!(found.iter().map(|column| column.unit).collect::<Vec<_>>(), units);
        assert!(found.into_iter().map(|column| column.cells).eq(expected));
    }

    #[test]
    fn an_interval_is_two_more_columns() {
        let within =
            |low, high| Cell::MillisWithin(Estimate { value: 2.0, within: Interval { low, high } });
        let rows = [vec![within(Some(1.0), None), Cell::Count(1)], vec![Cell::none()]];
        let found = columns(&["time", "n"], rows);
        let names: Vec<_> =
            found.iter().map(|column| (column.name.as_str(), column.unit)).collect();
        let ms = Some("ms");
        assert_eq!(names, [("time", ms), ("time low", ms), ("time high", ms), ("n", None)]);
        assert_eq!(found[0].cells, Cells::Numbers(vec![Some(2.0), None]));
        assert_eq!(found[1].cells, Cells::Numbers(vec![Some(1.0), None]));
        assert_eq!(found[2].cells, Cells::Numbers(vec![None, None]));
    }

    #[test]
    fn names_are_of_one_column_each() {
        let found = columns(&["a", "a 2", "a"], [vec![Cell::Count(1); 3]]);
        assert!(found.iter().map(|column| column.name.as_str()).eq(["a", "a 2", "a 3"]));
    }
}
