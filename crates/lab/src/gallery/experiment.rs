//! The page of an experiment.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use sutura_analysis::figure::Picture;
use sutura_analysis::report::Report;

use super::document::{document, paragraph, picture, table};
use crate::Experiment;
use crate::papers::{Exhibit, Judged, PAPERS, Paper, Place};

/// An experiment that has been run: what other pages show of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exhibited {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub about: String,
    /// The command that runs it alone, with the same result.
    pub command: String,
    /// The names of its charts and pictures, without its own name. Their files are named after both.
    pub pictures: Vec<String>,
    /// Its tables.
    pub tables: Vec<ExhibitedTable>,
    /// How many of its expectations do not hold, if it is a test.
    pub failures: usize,
    /// The figures and tables of papers that it shows.
    pub judged: Vec<Judged>,
    /// It ran one in this many of its repetitions.
    pub one_in: u32,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// A table as HTML.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExhibitedTable {
    /// Its caption.
    pub caption: String,
    /// The table.
    pub html: String,
}

impl Exhibited {
    /// What is shown of the report of an experiment, which `command` made. `pictures` are all of the report.
    pub fn of(
        experiment: &Experiment,
        report: &Report,
        pictures: &[Picture],
        command: &str,
    ) -> Self {
        let prefix = format!("{}-", report.name);
        let own = |name: &str| name.strip_prefix(&prefix).unwrap_or(name).to_owned();
        let tables = report.tables.iter().map(|of| ExhibitedTable {
            caption: of.caption.clone(),
            html: table(of).into_string(),
        });
        let judged = PAPERS.iter().flat_map(|paper| {
            let shows = |place: &Place| match place {
                Place::Experiment(shown) => shown.by == experiment.name,
                Place::Elsewhere(_) => false,
            };
            let exhibits = paper.exhibits.iter().filter(move |exhibit| shows(&exhibit.place));
            exhibits.map(|exhibit| exhibit.judge(paper.name, report))
        });
        Self {
            name: experiment.name.to_owned(),
            about: experiment.about.to_owned(),
            command: command.to_owned(),
            pictures: pictures.iter().map(|of| own(&of.name)).collect(),
            tables: tables.collect(),
            failures: report.failures.len(),
            judged: judged.collect(),
            one_in: 1,
            seconds: 0.0,
        }
    }

    /// A figure or table of a paper beside what was measured here; `None` if this experiment does not show it.
    pub fn judged(&self, paper: &Paper, exhibit: &Exhibit) -> Option<&Judged> {
        let is_it = |of: &&Judged| of.paper == paper.name && of.number == exhibit.number;
        self.judged.iter().find(is_it)
    }

    /// The file of a chart or picture, in the folder of the experiment.
    pub fn file(&self, picture: &str) -> String {
        format!("{}-{picture}.svg", self.name)
    }
}

/// The page of an experiment, for a file two folders below that of the index.
pub fn experiment(shown: &Exhibited, report: &Report) -> String {
    let body = html! {
        h1 { (report.title) }
        p.about { "Experiment " code { (shown.name) } ", made by" }
        pre { code { (shown.command) } }
        p.about { "The same as " a href="report.md" { "Markdown" } ", " a href="report.json" { "JSON" }
            @for (number, _) in (1..).zip(&shown.tables) { ", " a href={ "table-" (number) ".csv" } { "CSV " (number) } }
            @if report.data.is_some() { ", " a href="data.csv" { "single results" } }
            "."
        }
        @for text in &report.text { (paragraph(text)) }
        @if !report.failures.is_empty() {
            h2 { "Failures" }
            @for failure in &report.failures { pre { code { (failure) } } }
        }
        @if !shown.pictures.is_empty() { h2 { "Figures" } }
        @for name in &shown.pictures { (picture(&shown.file(name), name)) }
        @if !shown.tables.is_empty() { h2 { "Tables" } }
        @for table in &shown.tables { (table.whole()) }
    };
    document(&report.title, "../../", &body)
}

impl ExhibitedTable {
    /// The table below its caption.
    fn whole(&self) -> Markup {
        html! { h3 { (self.caption) } (maud::PreEscaped(&self.html)) }
    }

    /// The table behind its caption, to be opened.
    pub(super) fn folded(&self) -> Markup {
        html! { details { summary { (self.caption) } (maud::PreEscaped(&self.html)) } }
    }
}

#[cfg(test)]
mod tests {
    use sutura_analysis::table::Table;

    use super::*;
    use crate::EXPERIMENTS;
    use crate::report::{Axis, Series, chart_of, report_of};

    #[test]
    fn a_page_has_what_the_report_has() {
        let axes = [Axis::linear("a"), Axis::linear("b")];
        let chart = chart_of("by size", "By size", axes, [Series::line("x", vec![(0.0, 1.0)])]);
        let mut rows = Table::new("Times", ["name"]);
        rows.row(["first"]);
        let report = Report {
            name: EXPERIMENTS[0].name.to_owned(),
            failures: vec!["seed 7".to_owned()],
            ..report_of("Title", &["Text of `it`."], [rows], [chart])
        };
        let pictures = report.all_pictures().unwrap();
        let shown = Exhibited::of(&EXPERIMENTS[0], &report, &pictures, "sutura lab x");
        assert_eq!((&shown.pictures[..], shown.failures), (&["by-size".to_owned()][..], 1));
        let page = experiment(&shown, &report);
        let file = format!("{}-by-size.svg", EXPERIMENTS[0].name);
        for part in ["Title", "<code>it</code>", "Times", "first", "seed 7", "sutura lab x", &file]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
