//! The table in the repository, and the comparison of its figures with new ones.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use sutura_guard::Error;

/// The largest increase over the table that is not a fault.
const TOLERANCE: f64 = 0.02;
/// The same where sockets and timers are real, so that a busy machine changes what goes together.
const TOLERANCE_OVER_SOCKETS: f64 = 0.05;
const HEADER: &str = "row,instructions,allocations,bytes allocated,bytes held";
const TOOLCHAIN: &str = "# ";

/// The costs of a row each time.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Counts {
    pub instructions: Option<f64>,
    pub allocations: Option<f64>,
    pub allocated: Option<f64>,
    pub held: Option<f64>,
}

impl Counts {
    /// Each figure with its name.
    fn named(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("instructions", self.instructions),
            ("allocations", self.allocations),
            ("bytes allocated", self.allocated),
            ("bytes held", self.held),
        ]
    }
}

/// The decimals of a written figure: an increase of 2 % should show even in small figures.
fn decimals(figure: &str) -> usize {
    match figure {
        // Many rows have less than one allocation.
        "allocations" => 4,
        "bytes allocated" => 1,
        _ => 0,
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub name: String,
    pub counts: Counts,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The tools on which the figures depend besides the sources.
    pub toolchain: String,
    pub rows: Vec<Line>,
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TOOLCHAIN}{}\n{HEADER}", self.toolchain)?;
        for line in &self.rows {
            write!(f, "{}", line.name)?;
            for (name, figure) in line.counts.named() {
                write!(f, ",")?;
                if let Some(figure) = figure {
                    write!(f, "{figure:.*}", decimals(name))?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl FromStr for Table {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut lines = text.lines();
        let toolchain = lines.next().and_then(|line| line.strip_prefix(TOOLCHAIN));
        let toolchain = toolchain.ok_or("the table does not begin with the toolchain")?.to_owned();
        if lines.next() != Some(HEADER) {
            return Err(format!("the table's columns are not `{HEADER}`").into());
        }
        let rows = lines.map(Line::parse).collect::<Result<_, _>>()?;
        Ok(Self { toolchain, rows })
    }
}

impl Line {
    fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || format!("this is no row of the table: `{text}`");
        let cells: Vec<_> = text.split(',').collect();
        let [name, figures @ ..] = &cells[..] else { return Err(wrong().into()) };
        let figure = |cell: &&str| match *cell {
            "" => Ok(None),
            number => number.parse().map(Some).map_err(|_| wrong()),
        };
        let figures = figures.iter().map(figure).collect::<Result<Vec<_>, _>>()?;
        let [instructions, allocations, allocated, held] = figures[..] else {
            return Err(wrong().into());
        };
        let counts = Counts { instructions, allocations, allocated, held };
        Ok(Self { name: (*name).to_owned(), counts })
    }
}

/// The differences from the table.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// The toolchains of the table and of this run, if they differ: then higher figures are not a fault.
    toolchains: Option<(String, String)>,
    dearer: Vec<String>,
    cheaper: Vec<String>,
    /// Rows and figures that only the table or only this run has.
    unmatched: Vec<String>,
}

impl Verdict {
    /// Whether there is no fault.
    pub fn holds(&self) -> bool {
        self.unmatched.is_empty() && (self.toolchains.is_some() || self.dearer.is_empty())
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some((before, now)) = &self.toolchains {
            writeln!(f, "the table is of {before},\nand this is {now}:\nfigures are not judged")?;
        }
        for (what, lines) in [
            ("DEARER by more than 2 % (over sockets 5 %)", &self.dearer),
            ("NOT in both, the table and what was counted (--update writes it)", &self.unmatched),
            ("cheaper by more than 2 %; write it down with --update", &self.cheaper),
        ] {
            if !lines.is_empty() {
                writeln!(f, "{what}:\n  {}", lines.join("\n  "))?;
            }
        }
        writeln!(f, "{}", if self.holds() { "the table holds" } else { "the table does NOT hold" })
    }
}

/// The largest increase of a row that is not a fault.
fn tolerance(row: &str) -> f64 {
    if row.contains("over sockets") { TOLERANCE_OVER_SOCKETS } else { TOLERANCE }
}

/// Compares the counted figures with the table.
pub fn compare(before: &Table, now: &Table) -> Verdict {
    let mut verdict = Verdict::default();
    if before.toolchain != now.toolchain {
        verdict.toolchains = Some((before.toolchain.clone(), now.toolchain.clone()));
    }
    for line in &now.rows {
        match before.rows.iter().find(|row| row.name == line.name) {
            Some(row) => verdict.judge(row, line),
            None => verdict.unmatched.push(format!("{} is new", line.name)),
        }
    }
    for row in &before.rows {
        if !now.rows.iter().any(|line| line.name == row.name) {
            verdict.unmatched.push(format!("{} is gone", row.name));
        }
    }
    verdict
}

impl Verdict {
    fn judge(&mut self, before: &Line, now: &Line) {
        let figures = before.counts.named().into_iter().zip(now.counts.named());
        let name = &now.name;
        let tolerance = tolerance(name);
        for ((figure, before), (_, after)) in figures {
            let (Some(before), Some(after)) = (before, after) else {
                if before.is_some() != after.is_some() {
                    self.unmatched.push(format!("{name}: {figure}"));
                }
                continue;
            };
            // The table's figures are rounded.
            let unit = 10.0_f64.powi(decimals(figure) as i32);
            let after = (after * unit).round() / unit;
            let change = if before == after { 0.0 } else { after / before - 1.0 };
            let text =
                || format!("{name}: {figure} {before} -> {after} ({:+.1} %)", change * 100.0);
            if after > before * (1.0 + tolerance) {
                self.dearer.push(text());
            } else if after < before * (1.0 - tolerance) {
                self.cheaper.push(text());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(toolchain: &str, name: &str, instructions: f64, held: Option<f64>) -> Table {
        let counts = Counts { instructions: Some(instructions), held, ..Counts::default() };
        let rows = vec![Line { name: name.to_owned(), counts }];
        Table { toolchain: toolchain.to_owned(), rows }
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let table = table("rustc 1", "a row", 12_345.0, Some(7.0));
        assert_eq!(table.to_string().parse::<Table>().unwrap(), table);
        for wrong in
            ["", "# rustc 1\n", "# rustc 1\nrow\n", "a,1,2,3,4", &format!("{table}a,1,2\n")]
        {
            assert!(wrong.parse::<Table>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_in_real_time_may_vary_more() {
        for (name, holds) in [("a row over sockets", true), ("a row", false)] {
            let before = table("rustc 1", name, 1000.0, None);
            let verdict = compare(&before, &table("rustc 1", name, 1050.0, None));
            assert_eq!(verdict.holds(), holds, "{name}");
        }
    }

    #[test]
    fn more_than_2_percent_is_a_fault_and_less_is_reported() {
        let before = table("rustc 1", "a row", 1000.0, None);
        for (instructions, holds, dearer, cheaper) in
            [(1020.0, true, 0, 0), (1021.0, false, 1, 0), (980.0, true, 0, 0), (979.0, true, 0, 1)]
        {
            let verdict = compare(&before, &table("rustc 1", "a row", instructions, None));
            assert_eq!(verdict.holds(), holds, "{verdict}");
            assert_eq!((verdict.dearer.len(), verdict.cheaper.len()), (dearer, cheaper));
        }
        let text = compare(&before, &table("rustc 1", "a row", 1100.0, None)).to_string();
        assert!(text.contains("a row: instructions 1000 -> 1100 (+10.0 %)"), "{text}");
    }

    #[test]
    fn something_instead_of_nothing_is_a_fault() {
        let before = table("rustc 1", "a row", 0.0, None);
        assert!(compare(&before, &before).holds());
        assert!(!compare(&before, &table("rustc 1", "a row", 1.0, None)).holds());
    }

    #[test]
    fn another_toolchain_is_reported_and_not_judged() {
        let before = table("rustc 1", "a row", 1000.0, None);
        let verdict = compare(&before, &table("rustc 2", "a row", 2000.0, None));
        assert!(verdict.holds());
        let text = verdict.to_string();
        assert!(text.contains("rustc 1") && text.contains("+100.0 %"), "{text}");
    }

    #[test]
    fn rows_and_figures_of_one_side_are_faults() {
        let before = table("rustc 1", "a row", 1000.0, None);
        let other = compare(&before, &table("rustc 1", "another", 1000.0, None));
        assert_eq!((other.holds(), other.unmatched.len()), (false, 2));
        assert!(!compare(&before, &table("rustc 1", "a row", 1000.0, Some(1.0))).holds());
    }
}
