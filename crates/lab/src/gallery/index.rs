//! The first page.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::Exhibited;
use super::document::{document, inline};
use super::paper::{anchor, finding};
use crate::papers::{Exhibit, Finding, PAPERS, Paper, Place};

/// How many figures and tables of a paper have each finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(pub BTreeMap<Finding, usize>);

impl Findings {
    /// The findings of a paper. Figures of experiments that were not run do not count.
    #[must_use]
    pub fn of(paper: &Paper, all: &[Exhibited]) -> Self {
        let mut tally = Self::default();
        for found in paper.exhibits.iter().filter_map(|exhibit| found(paper, exhibit, all)) {
            *tally.0.entry(found).or_default() += 1;
        }
        tally
    }
}

/// The finding of a figure or table; `None` if its experiment was not run.
pub(super) fn found(paper: &Paper, exhibit: &Exhibit, all: &[Exhibited]) -> Option<Finding> {
    let Place::Experiment(shown) = &exhibit.place else { return Some(Finding::Elsewhere) };
    let run = all.iter().find(|run| run.name == shown.by)?;
    run.judged(paper, exhibit).map(|judged| judged.finding)
}

/// The first page, which `command` made on what `machine` says.
pub fn index(all: &[Exhibited], command: &str, machine: &str) -> String {
    let seconds: f64 = all.iter().map(|run| run.seconds).sum();
    let body = html! {
        h1 { "Five papers, figure by figure" }
        p {
            "Every figure and table of the five papers that Sutura grew out of, beside what its experiments show: "
            "our own client and server over a simulated link, in virtual time, so that the same seed gives the same "
            "figures on every machine. A verdict follows from the claims below a figure, each of which compares a "
            "sentence of the paper with a cell of a table."
        }
        @if all.iter().any(|run| run.one_in > 1) {
            p {
                "Most experiments ran a part of their repetitions, so that chance decides more than in full: "
                code { "--full" } " runs all."
            }
        }
        p.about { "Made by " code { (command) } " in " (minutes(seconds)) " on " (machine) "." }
        @for paper in PAPERS { (overview(paper, all)) }
        h2 { "Experiments" }
        p { "Each experiment, also those that belong to no paper, with all of its tables and figures." }
        (experiments(all))
    };
    document("Five papers, figure by figure", "", &body)
}

fn minutes(seconds: f64) -> String {
    format!("{:.0} min {:02.0} s", (seconds / 60.0).floor(), (seconds % 60.0).floor())
}

fn overview(paper: &Paper, all: &[Exhibited]) -> Markup {
    let page = format!("papers/{}.html", paper.name);
    let tally = Findings::of(paper, all);
    html! {
        h2 { a href=(page) { (paper.title()) } }
        p.about { (paper.reference) }
        p { (paper.about) }
        p { @for (index, (of, count)) in tally.0.iter().enumerate() {
            @if index > 0 { ", " } (count) " " (finding(*of))
        } }
        div.scroll {
            table {
                thead { tr { th scope="col" { "number" } th scope="col" { "contents" } th scope="col" { "here" } } }
                tbody { @for exhibit in paper.exhibits {
                    tr {
                        td { a href={ (page) "#" (anchor(exhibit.number)) } { (exhibit.number) } }
                        td { (inline(exhibit.about)) }
                        td { @match found(paper, exhibit, all) { Some(of) => (finding(of)), None => "not run" } }
                    }
                } }
            }
        }
    }
}

fn experiments(all: &[Exhibited]) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr {
                    th scope="col" { "experiment" } th scope="col" { "contents" } th scope="col" { "took" }
                    th scope="col" { "command" }
                } }
                tbody { @for run in all {
                    tr {
                        td { a href={ "experiments/" (run.name) "/index.html" } { (run.name) } }
                        td { (run.about) @if run.failures > 0 { " " span.no { (run.failures) " failures" } } }
                        td.number { (format!("{:.1} s", run.seconds)) }
                        td { code { (run.command) } }
                    }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paper_and_figure_has_a_line() {
        let page = index(&[], "sutura lab all", "a machine");
        for paper in PAPERS {
            assert!(page.contains(&format!("papers/{}.html", paper.name)));
            for exhibit in paper.exhibits {
                let link = format!("papers/{}.html#{}", paper.name, anchor(exhibit.number));
                assert!(page.contains(&link), "{link}");
            }
        }
        assert!(page.contains("not run"));
    }

    #[test]
    fn times_have_minutes_and_seconds() {
        assert_eq!((minutes(59.9), minutes(125.0)), ("0 min 59 s".into(), "2 min 05 s".into()));
    }
}
