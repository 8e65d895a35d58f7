//! Every experiment at a small size: it reports, papers find in it what they name, and its figures are those of its page.

use std::collections::BTreeSet;
use std::path::Path;

use sutura_analysis::report::{Origin, Place::VirtualTime, Report};
use sutura_lab::papers::{CellAt, Claim, PAPERS, Place, Shown};
use sutura_lab::{EXPERIMENTS, Error, Experiment, Options, Taken};

/// One repetition in so many runs here, which is one of nearly all.
const SMALL: u32 = 1000;
/// The reports of that size.
const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/small");

/// Compares a report with its page: a change of behaviour shows in figures, and then the page has to be renewed.
/// Returns the name and the first line that differs, unless the page is renewed.
fn compare_with_page(name: &str, report: &Report) -> Option<(String, String)> {
    let command = format!("sutura lab {name} --reduce {SMALL}");
    let page = report.to_page(&Origin { command, place: VirtualTime });
    let path = Path::new(PAGES).join(format!("{name}.md"));
    if std::env::var_os("RENEW").is_some() {
        std::fs::create_dir_all(PAGES).unwrap();
        std::fs::write(path, page).unwrap();
        return None;
    }
    let old = std::fs::read_to_string(path).unwrap_or_default();
    let line = page.lines().zip(old.lines().chain(std::iter::repeat(""))).find(|(a, b)| a != b);
    (old != page).then(|| (name.to_owned(), line.map_or("", |(new, _)| new).to_owned()))
}

/// What papers have of an experiment.
fn shown_by(name: &str) -> Vec<(&'static str, &'static Shown)> {
    let exhibits = PAPERS.iter().flat_map(|of| of.exhibits.iter().map(|e| (of.name, &e.place)));
    let shown = exhibits.filter_map(|(paper, place)| match place {
        Place::Experiment(shown) if shown.by == name => Some((paper, shown)),
        Place::Experiment(_) | Place::Elsewhere(_) => None,
    });
    shown.collect()
}

/// Whether a claim about a figure that differs with the seed has an interval. The worst of all runs has none, as it is
/// not an estimate of anything, and a single run in which nothing happens by chance has none.
fn has_interval(experiment: &Experiment, claim: &Claim, report: &Report) -> bool {
    let is_known = |cell: CellAt| {
        cell.column.starts_with("worst") || cell.table == "Multiplexing without loss"
    };
    !experiment.takes.contains(&Taken::Seeds)
        || claim.ours.cells().all(is_known)
        || claim.ours.interval(report).is_some()
}

#[test]
fn every_experiment_reports() {
    let options = Options { reduce: SMALL, ..Options::default() };
    let mut stale = Vec::new();
    let mut without_interval = Vec::new();
    for experiment in EXPERIMENTS {
        let report = sutura_lab::run(experiment.name, &options).unwrap();
        stale.extend(compare_with_page(experiment.name, &report));
        assert_eq!(report.name, experiment.name);
        let columns = report.tables[0].columns.len();
        assert!(report.tables[0].rows.iter().all(|row| row.len() == columns));
        assert!(report.to_markdown().lines().count() > 8);
        let pictures = report.all_pictures().unwrap();
        let names: BTreeSet<&str> = pictures.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names.len(), pictures.len(), "a picture overwrites another: {names:?}");
        for picture in &pictures {
            assert!(picture.name.starts_with(experiment.name), "{}", picture.name);
            assert!(picture.svg.trim_end().ends_with("</svg>"), "{}", picture.name);
        }
        for chart in report.charts.iter().filter(|chart| chart.panels.len() == 1) {
            assert!(chart.panels[0].series.len() <= 12, "{} is crowded", chart.name);
        }
        for (paper, shown) in shown_by(experiment.name) {
            assert_eq!(shown.missing(&report), [""; 0], "{paper} and {}", experiment.name);
            for cell in shown.cells() {
                assert!(cell.find(&report).is_some(), "{paper}, {}: no {cell:?}", experiment.name);
            }
            let bare =
                shown.claims.iter().filter(|claim| !has_interval(experiment, claim, &report));
            without_interval.extend(bare.map(|claim| (paper, experiment.name, claim.ours)));
        }
    }
    assert!(without_interval.is_empty(), "no interval: {without_interval:?}");
    assert!(stale.is_empty(), "other figures than in {PAGES}, RENEW=1 renews them: {stale:?}");
    let error = sutura_lab::run("nothing", &options).unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }));
    assert!(error.to_string().contains("holzinger-bulk"), "{error}");
}
