//! The verdicts of several surveys beside each other, such as those of several seeds.

use super::Exhibited;
use super::index::found;
use crate::papers::{Exhibit, Finding, PAPERS, Place};
use crate::report::{Cell, Report, Table, report_of};

/// A survey: what tells it apart, such as its folder, and what was shown in it.
pub type NamedSurvey = (String, Vec<Exhibited>);

/// A report with a row for each figure and table of the papers, and what each survey found of it.
#[must_use]
pub fn verdicts(surveys: &[NamedSurvey]) -> Report {
    let names = surveys.iter().map(|(name, _)| name.as_str());
    let header = ["paper", "figure", "command"].into_iter().chain(names).chain(["agree"]);
    let mut table = Table::new("Verdicts", header);
    let mut counts = Counts::default();
    for paper in PAPERS {
        for exhibit in paper.exhibits {
            let found: Vec<Option<Finding>> =
                surveys.iter().map(|(_, all)| found(paper, exhibit, all)).collect();
            let cells = [Cell::from(paper.name), exhibit.number.into(), command(exhibit, surveys)];
            let verdicts = found.iter().map(|found| found.map(Finding::name).into());
            let agree = if agree(&found) { "yes" } else { "no" };
            table.row(cells.into_iter().chain(verdicts).chain([Cell::from(agree)]));
            counts.add(&found);
        }
    }
    report_of("Verdicts of several surveys", &[counts.text(surveys.len())], [table], [])
}

/// The command that shows it, as the first survey that ran it did.
fn command(exhibit: &Exhibit, surveys: &[NamedSurvey]) -> Cell {
    let Place::Experiment(shown) = &exhibit.place else { return Cell::none() };
    let mut runs = surveys.iter().flat_map(|(_, all)| all).filter(|run| run.name == shown.by);
    runs.next().map(|run| format!("`{}`", run.command)).into()
}

/// Whether all surveys found the same, but for those that were too small to tell.
fn agree(found: &[Option<Finding>]) -> bool {
    let known = || found.iter().flatten().filter(|found| **found != Finding::TooSmall);
    known().all(|found| Some(found) == known().next())
}

/// How many figures are shown, and how many have the same verdict everywhere.
#[derive(Default)]
struct Counts {
    shown: usize,
    missing: usize,
    agree: usize,
}

impl Counts {
    fn add(&mut self, found: &[Option<Finding>]) {
        if found.contains(&Some(Finding::Elsewhere)) {
            return;
        }
        self.shown += 1;
        self.missing += usize::from(found.iter().any(Option::is_none));
        self.agree += usize::from(agree(found));
    }

    fn text(&self, surveys: usize) -> String {
        let Self { shown, missing, agree } = self;
        format!(
            "{shown} figures and tables are shown by an experiment, in {surveys} surveys. {missing} are missing in one, \
             and {agree} have the same verdict in all, where a survey that is too small to tell contradicts none."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EXPERIMENTS;

    /// A survey of all experiments whose reports are empty.
    fn empty(name: &str) -> NamedSurvey {
        let all = EXPERIMENTS.iter().map(|of| {
            let report = Report { name: of.name.to_owned(), ..Report::default() };
            Exhibited::of(of, &report, &[], &format!("sutura lab {}", of.name))
        });
        (name.to_owned(), all.collect())
    }

    #[test]
    fn every_figure_has_a_row_and_every_survey_a_column() {
        let (one, mut other) = (empty("one"), empty("other"));
        other.1.retain(|run| run.name != "flec-bulk");
        let report = verdicts(&[one, other]);
        let [table] = &report.tables[..] else { panic!("{} tables", report.tables.len()) };
        let exhibits: usize = PAPERS.iter().map(|paper| paper.exhibits.len()).sum();
        assert_eq!(table.rows.len(), exhibits);
        assert_eq!(table.columns, ["paper", "figure", "command", "one", "other", "agree"]);
        let row = |figure: &str| {
            let is_it = |row: &&Vec<Cell>| {
                (row[0].to_string(), row[1].to_string()) == ("michel-2022".into(), figure.into())
            };
            let row = table.rows.iter().find(is_it).unwrap();
            row[2..].iter().map(Cell::to_string).collect::<Vec<_>>()
        };
        assert_eq!(row("Fig. 3"), ["`sutura lab flec-bulk`", "too small to tell", "-", "yes"]);
        assert_eq!(row("Fig. 1"), ["-", "elsewhere", "elsewhere", "yes"]);
        // Figs. 3 and 4 are of flec-bulk.
        assert!(report.text[0].contains("2 are missing"), "{}", report.text[0]);
    }

    #[test]
    fn surveys_that_are_too_small_contradict_none() {
        use Finding::{Contradicts, Differs, Reproduced, TooSmall};
        assert!(agree(&[Some(Reproduced), Some(TooSmall), None, Some(Reproduced)]));
        assert!(!agree(&[Some(Reproduced), Some(TooSmall), Some(Differs)]));
        assert!(!agree(&[Some(Contradicts), Some(Differs)]) && agree(&[Some(TooSmall)]));
    }
}
