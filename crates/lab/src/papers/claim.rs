//! What a paper says, and the cell of a table that tells whether it holds here.

use sutura_analysis::interval::{Estimate, Interval};
use sutura_analysis::report::Report;
use sutura_analysis::table::Cell;

/// A statement of a paper that a table of an experiment can confirm or not.
#[derive(Debug)]
pub struct Claim {
    /// The statement.
    pub says: &'static str,
    /// The paper's figure, as it prints it; empty if it gives none.
    pub paper: &'static str,
    /// The same here.
    pub ours: Quantity,
    /// A bound that nobody can beat, or what an ideal has.
    pub bound: Option<Quantity>,
    /// When the statement holds here.
    pub holds: Condition,
    /// Why it does not hold, if that is known.
    pub because: Option<&'static str>,
}

/// A number from the tables of a report: as in its JSON, shares from 0 to 1 and times in milliseconds.
#[derive(Clone, Copy, Debug)]
pub enum Quantity {
    /// A cell.
    Of(CellAt),
    /// A cell divided by another.
    Ratio(CellAt, CellAt),
    /// A cell less another.
    Difference(CellAt, CellAt),
}

/// Columns and the texts in them that single out a row: the first that has them all.
pub type RowTexts = &'static [(&'static str, &'static str)];

/// A cell of a table of a report.
#[derive(Clone, Copy, Debug)]
pub struct CellAt {
    /// The beginning of the table's caption.
    pub table: &'static str,
    /// The row.
    pub row: RowTexts,
    /// The column.
    pub column: &'static str,
}

/// What a number must be. Both ends belong to it.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// From one to the other.
    Between(f64, f64),
}

impl CellAt {
    /// The cell in a report; `None` if it is not there.
    pub fn find(self, report: &Report) -> Option<&Cell> {
        let table = report.tables.iter().find(|table| table.caption.starts_with(self.table))?;
        let column = |name| table.columns.iter().position(|column| column == name);
        let wanted = self.row.iter().map(|(name, text)| Some((column(*name)?, *text)));
        let wanted = wanted.collect::<Option<Vec<_>>>()?;
        let is_it = |row: &&Vec<Cell>| {
            wanted.iter().all(|(at, text)| row.get(*at).is_some_and(|c| c.to_string() == *text))
        };
        table.rows.iter().find(is_it)?.get(column(self.column)?)
    }

    fn number(self, report: &Report) -> Option<f64> {
        self.find(report)?.number()
    }
}

impl Quantity {
    /// The cells that it is made of.
    pub fn cells(self) -> impl Iterator<Item = CellAt> {
        let (cell, other) = match self {
            Self::Of(cell) => (cell, None),
            Self::Ratio(cell, other) | Self::Difference(cell, other) => (cell, Some(other)),
        };
        std::iter::once(cell).chain(other)
    }

    /// The number in a report; `None` if a cell is not there or has none.
    pub fn number(self, report: &Report) -> Option<f64> {
        let number = match self {
            Self::Of(cell) => cell.number(report)?,
            Self::Ratio(cell, other) => cell.number(report)? / other.number(report)?,
            Self::Difference(cell, other) => cell.number(report)? - other.number(report)?,
        };
        number.is_finite().then_some(number)
    }

    /// The number with its interval: where it may be as well if the experiment is repeated with other seeds. `None` if
    /// no cell of it has one; a cell without an interval counts as known beside one that has it.
    fn estimate(self, report: &Report) -> Option<Estimate> {
        let is_known = |cell: CellAt| cell.find(report).is_some_and(|of| of.interval().is_none());
        if self.cells().all(is_known) {
            return None;
        }
        let estimate = |cell: CellAt| {
            let cell = cell.find(report)?;
            let value = cell.number()?;
            Some(
                cell.interval().map_or(Estimate::exact(value), |within| Estimate { value, within }),
            )
        };
        match self {
            Self::Of(cell) => estimate(cell),
            Self::Ratio(cell, other) => Some(estimate(cell)?.over(estimate(other)?)),
            Self::Difference(cell, other) => Some(estimate(cell)?.minus(estimate(other)?)),
        }
    }

    /// The interval of the number, of which an end may be missing.
    pub fn interval(self, report: &Report) -> Option<Interval> {
        Some(self.estimate(report)?.within)
    }

    /// The number as people read it, with its unit and interval.
    pub fn text(self, report: &Report) -> Option<String> {
        let number = self.number(report)?;
        let estimate = self.estimate(report);
        match self {
            Self::Of(cell) => cell.find(report).map(Cell::to_string),
            Self::Difference(cell, _) => {
                let unit = cell.find(report)?.like(number);
                Some(estimate.map_or(unit.clone(), |of| unit.within(of)).to_string())
            }
            Self::Ratio(..) => {
                let cell = estimate.map_or(Cell::Number(number), Cell::NumberWithin);
                Some(format!("{cell} times"))
            }
        }
    }

    /// Another number in the same unit.
    pub fn with_unit(self, report: &Report, number: f64) -> String {
        match self {
            Self::Of(cell) | Self::Difference(cell, _) => cell
                .find(report)
                .map_or_else(|| number.to_string(), |of| of.like(number).to_string()),
            Self::Ratio(..) => format!("{number:.3} times"),
        }
    }
}

impl Condition {
    /// Whether a number within an interval fulfils it.
    pub fn may_hold(self, within: Interval) -> bool {
        let low = within.low.unwrap_or(f64::NEG_INFINITY);
        let high = within.high.unwrap_or(f64::INFINITY);
        match self {
            Self::AtMost(most) => low <= most,
            Self::AtLeast(least) => high >= least,
            Self::Between(least, most) => low <= most && high >= least,
        }
    }

    /// It in words, for numbers that `text` writes.
    pub fn describe(self, text: impl Fn(f64) -> String) -> String {
        match self {
            Self::AtMost(most) => format!("at most {}", text(most)),
            Self::AtLeast(least) => format!("at least {}", text(least)),
            Self::Between(least, most) if least == most => format!("just {}", text(most)),
            Self::Between(least, most) => format!("{} to {}", text(least), text(most)),
        }
    }

    /// Whether a number fulfils it.
    pub fn holds(self, number: f64) -> bool {
        match self {
            Self::AtMost(most) => number <= most,
            Self::AtLeast(least) => number >= least,
            Self::Between(least, most) => (least..=most).contains(&number),
        }
    }
}

#[cfg(test)]
mod tests {
    use sutura_analysis::table::Table;

    use super::*;

    fn report() -> Report {
        let mut table = Table::new("Transfers of files", ["policy", "bytes", "late", "time"]);
        table.row([Cell::from("none"), 32u64.into(), Cell::Share(0.25), Cell::Millis(150.0)]);
        table.row([Cell::from("auto"), 32u64.into(), Cell::Share(0.05), Cell::Millis(100.0)]);
        table.row([Cell::from("auto"), 64u64.into(), Cell::Share(0.1), Cell::none()]);
        Report { tables: vec![Table::new("Others", ["policy"]), table], ..Report::default() }
    }

    const fn at(row: RowTexts, column: &'static str) -> CellAt {
        CellAt { table: "Transfers", row, column }
    }

    #[test]
    fn a_cell_is_found_by_the_texts_of_its_row() {
        let report = report();
        let late = |row| at(row, "late").find(&report).map(Cell::to_string);
        assert_eq!(late(&[("policy", "auto")]).as_deref(), Some("5.000 %"));
        assert_eq!(late(&[("policy", "auto"), ("bytes", "64")]).as_deref(), Some("10.0 %"));
        assert_eq!(late(&[("policy", "auto"), ("bytes", "65")]), None);
        assert_eq!(late(&[("nothing", "auto")]), None);
        assert_eq!(at(&[], "nothing").find(&report), None);
        assert_eq!(CellAt { table: "Nothing", row: &[], column: "late" }.find(&report), None);
    }

    #[test]
    fn quantities_have_the_unit_of_their_cells() {
        let report = report();
        let [none, auto] = [&[("policy", "none")][..], &[("policy", "auto")]];
        let text = |quantity: Quantity| quantity.text(&report);
        assert_eq!(text(Quantity::Of(at(none, "time"))).as_deref(), Some("150.0 ms"));
        let ratio = Quantity::Ratio(at(auto, "late"), at(none, "late"));
        assert_eq!(text(ratio).as_deref(), Some("0.200 times"));
        assert_eq!(ratio.interval(&report), None);
        let saved = Quantity::Difference(at(none, "time"), at(auto, "time"));
        assert_eq!((text(saved).as_deref(), saved.number(&report)), (Some("50.0 ms"), Some(50.0)));
        let missing = at(&[("bytes", "64")], "time");
        assert_eq!(Quantity::Of(missing).number(&report), None);
    }

    #[test]
    fn ratios_and_differences_have_the_intervals_of_their_cells() {
        let of = |value, low, high| {
            Cell::MillisWithin(Estimate {
                value,
                within: Interval { low: Some(low), high: Some(high) },
            })
        };
        let mut table = Table::new("Transfers", ["policy", "time"]);
        table.row([Cell::from("none"), of(200.0, 190.0, 210.0)]);
        table.row([Cell::from("auto"), of(100.0, 97.0, 103.0)]);
        table.row([Cell::from("ideal"), Cell::Millis(80.0)]);
        let report = Report { tables: vec![table], ..Report::default() };
        let rows: [RowTexts; 3] =
            [&[("policy", "none")], &[("policy", "auto")], &[("policy", "ideal")]];
        let [none, auto, ideal] = rows.map(|row| at(row, "time"));
        let text = |quantity: Quantity| quantity.text(&report).unwrap();
        assert_eq!(text(Quantity::Difference(none, ideal)), "120.0 ms (110.0..130.0)");
        assert_eq!(text(Quantity::Difference(none, auto)), "100.0 ms (89.6..110.4)");
        assert_eq!(text(Quantity::Ratio(auto, none)), "0.500 (0.472..0.530) times");
        assert_eq!(text(Quantity::Ratio(ideal, ideal)), "1.000 times");
    }

    #[test]
    fn conditions_include_their_ends() {
        for (condition, inside, outside) in [
            (Condition::AtMost(1.0), 1.0, 1.1),
            (Condition::AtLeast(1.0), 1.0, 0.9),
            (Condition::Between(1.0, 2.0), 2.0, 2.1),
        ] {
            assert!(condition.holds(inside) && !condition.holds(outside), "{condition:?}");
            let within = |low, high| condition.may_hold(Interval { low, high });
            assert!(within(Some(inside), Some(inside)), "{condition:?}");
            assert!(!within(Some(outside), Some(outside)), "{condition:?}");
            assert!(within(None, None), "{condition:?}: nothing is known");
            assert!(within(Some(outside.min(inside)), Some(outside.max(inside))), "{condition:?}");
        }
        let text = |condition: Condition| condition.describe(|number| format!("{number} ms"));
        assert_eq!(text(Condition::Between(1.0, 2.5)), "1 ms to 2.5 ms");
        assert_eq!(text(Condition::AtMost(1.0)), "at most 1 ms");
        assert_eq!(text(Condition::Between(2.0, 2.0)), "just 2 ms");
    }
}
