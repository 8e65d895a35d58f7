//! The page of a paper: its figures and tables under their numbers.

use maud::{Markup, html};

use super::Exhibited;
use super::document::{document, inline, picture};
use super::strip::{legend, strip};
use crate::papers::{Exhibit, Finding, JudgedClaim, Paper, Place, Shown};

/// The page of a paper, for a file a folder below that of the index. `all` has the experiments that were run.
pub fn paper(paper: &Paper, all: &[Exhibited]) -> String {
    let body = html! {
        h1 { (paper.title()) }
        p.about { (paper.reference) }
        p { (paper.about) }
        (legend())
        @for exhibit in paper.exhibits { (section(paper, exhibit, all)) }
    };
    document(&paper.title(), "../", &body)
}

/// A finding in words, in its colour.
pub(super) fn finding(finding: Finding) -> Markup {
    let name = finding.name();
    html! { span class={ "finding " (name.replace(' ', "-")) } { (name) } }
}

fn section(paper: &Paper, exhibit: &Exhibit, all: &[Exhibited]) -> Markup {
    html! {
        h2 id=(anchor(exhibit.number)) { (exhibit.number) }
        p { (inline(exhibit.about)) }
        p { "The paper: " (inline(exhibit.concludes)) }
        @match &exhibit.place {
            Place::Elsewhere(reason) => { p { (finding(Finding::Elsewhere)) ": " (inline(reason)) } }
            Place::Experiment(shown) => {
                @match all.iter().find(|run| run.name == shown.by) {
                    Some(run) => (measured(paper, exhibit, shown, run)),
                    None => p { "Not run: " code { "sutura lab " (shown.by) } },
                }
            }
        }
    }
}

/// The name of a figure or table within its page.
pub(super) fn anchor(number: &str) -> String {
    number.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

fn measured(paper: &Paper, exhibit: &Exhibit, shown: &Shown, run: &Exhibited) -> Markup {
    let folder = format!("../experiments/{}/", run.name);
    html! {
        @if let Some(judged) = run.judged(paper, exhibit) {
            p {
                "Here: " (finding(judged.finding))
                @if run.one_in > 1 { ", by one in " (run.one_in) " of the repetitions" }
                "."
            }
            @if !judged.claims.is_empty() { (claims(&judged.claims)) }
        }
        @for name in run.pictures.iter().filter(|name| shown.has_chart(name)) {
            (picture(&format!("{folder}{}", run.file(name)), &format!("{}: {name}", exhibit.number)))
        }
        @for table in run.tables.iter().filter(|of| shown.has_table(&of.caption)) { (table.folded()) }
        p.about { a href={ (folder) "index.html" } { "The whole experiment" } ": " code { (run.command) } }
    }
}

fn claims(claims: &[JudgedClaim]) -> Markup {
    let has_bound = claims.iter().any(|claim| claim.bound.is_some());
    html! {
        div.scroll {
            table {
                thead { tr {
                    th scope="col" { "what the paper says" }
                    th scope="col" { "paper" }
                    th scope="col" { "" }
                    th scope="col" { "here" }
                    @if has_bound { th scope="col" { "ideal" } }
                    th scope="col" { "holds, if" }
                } }
                tbody { @for claim in claims { (row(claim, has_bound)) } }
            }
        }
    }
}

fn row(claim: &JudgedClaim, has_bound: bool) -> Markup {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
    html! {
        tr {
            td {
                (inline(&claim.says))
                @if let Some(because) = &claim.because {
                    br;
                    em { "It does not here, because " (inline(because)) }
                }
            }
            td { (inline(&claim.paper)) }
            td { @if let Some(scale) = &claim.scale { (strip(scale)) } }
            td.number { (text(&claim.ours)) }
            @if has_bound { td.number { (text(&claim.bound)) } }
            td {
                @match claim.holds {
                    Some(true) => span.yes { "yes" },
                    Some(false) => span.no { "no" },
                    None => "too small to tell",
                }
                ", " (claim.condition)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::PAPERS;

    #[test]
    fn figures_that_were_not_run_say_so() {
        for of in PAPERS {
            let page = paper(of, &[]);
            let shown = of.exhibits.iter().filter(|e| matches!(e.place, Place::Experiment(_)));
            assert_eq!(page.matches("Not run: ").count(), shown.count(), "{}", of.name);
            for exhibit in of.exhibits {
                assert!(page.contains(&format!("id=\"{}\"", anchor(exhibit.number))));
            }
        }
    }
}
