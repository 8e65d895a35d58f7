//! The figures and tables of the five papers: which experiment shows each of them, what the paper says of it, and
//! whether that holds here.
//!
//! A paper is a file with a list of its [exhibits](Exhibit). An exhibit names an experiment and the charts and tables
//! of its report that show it, and has [claims](Claim): statements of the paper, each with a cell of a table that
//! tells whether it holds here. [`Exhibit::judge`] compares them with a report; nothing of a verdict is written by hand
//! but the reason why something differs.

mod claim;
mod eghbal_2022;
mod eghbal_2025;
mod holzinger_2025;
mod judge;
mod marx_2020;
mod michel_2022;
mod scale;

use sutura_analysis::report::Report;

pub use claim::{CellAt, Claim, Condition, Quantity, RowTexts};
pub use judge::{Finding, Judged, JudgedClaim};
pub use scale::Scale;

/// The papers, the newest first.
pub const PAPERS: [&Paper; 5] = [
    &holzinger_2025::PAPER,
    &eghbal_2025::PAPER,
    &eghbal_2022::PAPER,
    &michel_2022::PAPER,
    &marx_2020::PAPER,
];

/// A paper.
#[derive(Debug)]
pub struct Paper {
    /// A short name, for files: letters, digits and hyphens.
    pub name: &'static str,
    /// Its authors, title and place.
    pub reference: &'static str,
    /// Its purpose, in a line.
    pub about: &'static str,
    /// Its figures and tables, in their order.
    pub exhibits: &'static [Exhibit],
}

/// A figure or a table of a paper, or several that belong together.
#[derive(Debug)]
pub struct Exhibit {
    /// Its number, as in "Fig. 4" or "Table I".
    pub number: &'static str,
    /// Its contents.
    pub about: &'static str,
    /// What the paper concludes from it.
    pub concludes: &'static str,
    /// Where it is here.
    pub place: Place,
}

/// Where a figure or table is here.
#[derive(Debug)]
pub enum Place {
    /// In the report of an experiment.
    Experiment(Shown),
    /// Elsewhere, with the reason why no experiment shows it: a program that measures time, or a test.
    Elsewhere(&'static str),
}

/// The parts of a report that show a figure or table.
#[derive(Debug)]
pub struct Shown {
    /// The name of the experiment.
    pub by: &'static str,
    /// The names of its charts and pictures, as in the names of files: `32000-bytes`. One that ends with a hyphen
    /// stands for all that begin so.
    pub charts: &'static [&'static str],
    /// The beginnings of the captions of its tables.
    pub tables: &'static [&'static str],
    /// What the paper says, to be compared.
    pub claims: &'static [Claim],
}

impl Paper {
    /// Its first author and year: the name for people.
    #[must_use]
    pub fn title(&self) -> String {
        let words = self.name.split('-').filter_map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

impl Shown {
    /// The cells that its claims name.
    pub fn cells(&self) -> impl Iterator<Item = CellAt> {
        let quantities = self.claims.iter().flat_map(|claim| [Some(claim.ours), claim.bound]);
        quantities.flatten().flat_map(Quantity::cells)
    }

    /// Which of the names and beginnings of names of its charts and tables stand for none of the report.
    pub fn missing(&self, report: &Report) -> Vec<&'static str> {
        let prefix = format!("{}-", self.by);
        let pictures = report.all_pictures().unwrap_or_default();
        let own = |name: &str| name.strip_prefix(&prefix).map(str::to_owned);
        let names: Vec<String> = pictures.iter().filter_map(|of| own(&of.name)).collect();
        let chart = |wanted: &&&str| !names.iter().any(|name| is_chart(wanted, name));
        let table = |wanted: &&&str| !report.tables.iter().any(|t| t.caption.starts_with(**wanted));
        let charts = self.charts.iter().filter(chart);
        charts.chain(self.tables.iter().filter(table)).copied().collect()
    }

    /// Whether a chart or picture of the experiment shows it.
    pub fn has_chart(&self, name: &str) -> bool {
        self.charts.iter().any(|wanted| is_chart(wanted, name))
    }

    /// Whether a table of the experiment, by its caption, shows it.
    pub fn has_table(&self, caption: &str) -> bool {
        self.tables.iter().any(|wanted| caption.starts_with(wanted))
    }
}

/// Whether `wanted`, a name or, with a hyphen at its end, the beginning of one, stands for the chart `name`.
fn is_chart(wanted: &str, name: &str) -> bool {
    if wanted.ends_with('-') { name.starts_with(wanted) } else { name == wanted }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::EXPERIMENTS;

    #[test]
    fn charts_have_whole_names_or_beginnings() {
        let shown = Shown { by: "x", charts: &["fig-1", "gaps-"], tables: &["Late"], claims: &[] };
        let has = ["fig-1", "fig-10", "gaps-1", "gaps"].map(|name| shown.has_chart(name));
        assert_eq!(has, [true, false, true, false]);
        assert!(shown.has_table("Late bytes") && !shown.has_table("Bytes"));
        assert_eq!(shown.missing(&Report::default()), ["fig-1", "gaps-", "Late"]);
    }

    #[test]
    fn exhibits_are_of_experiments_that_exist_and_have_numbers_of_their_own() {
        for paper in PAPERS {
            let numbers: BTreeSet<&str> = paper.exhibits.iter().map(|of| of.number).collect();
            assert_eq!(numbers.len(), paper.exhibits.len(), "{}", paper.name);
            assert!(paper.reference.starts_with(paper.title().split(' ').next().unwrap()));
            for exhibit in paper.exhibits {
                let Place::Experiment(shown) = &exhibit.place else { continue };
                assert!(EXPERIMENTS.iter().any(|of| of.name == shown.by), "{}", shown.by);
                assert!(!shown.charts.is_empty() || !shown.tables.is_empty(), "{}", exhibit.number);
            }
        }
    }
}
