//! The pages of [`marx_pages`](super::marx_pages) over HTTP/3 and a link with round trips and loss,
//! which the paper left out.

use std::sync::Arc;

use sutura_analysis::statistics::millis;

use super::marx_pages::{ENTRANTS, Entrant, Set, chosen, source};
use super::paper_path::transport;
use crate::comparison::{Runs, mean_within, seed};
use crate::own::OwnPath;
use crate::pages::{Load, Page, Timing, Weighting};
use crate::report::{Cell, Report, Table, report_of};
use crate::web::load_over;
use crate::{Error, Options};

/// The paths, unless the options describe some, with a queue of one and a half bandwidth-delay products: what tells
/// them apart, and their link.
const PATHS: [(&str, &str); 2] = [
    ("0 % of packets lost", "rate=5mbit delay=25ms queue=46875b loss=bern:0%"),
    ("2 % of packets lost", "rate=5mbit delay=25ms queue=46875b loss=bern:2%"),
];

/// The loads of all pages, from small to large, with a scheme over the path in this place.
pub type SchemeLoads = Runs<(Entrant, usize), Load>;

/// The paths, each with what tells it apart.
///
/// # Errors
/// None, as long as the link crate knows the paths.
fn paths(options: &Options) -> Result<Vec<(String, OwnPath)>, Error> {
    if options.links.is_empty() {
        let usual = PATHS.map(|(name, link)| Ok((name.to_owned(), OwnPath::read(link)?)));
        return usual.into_iter().collect();
    }
    Ok(options.links.iter().map(|path| (format!("`{}`", path.text), path.clone())).collect())
}

/// Loads each page once with each of `entrants` over each path. A page gets the same seed each time.
///
/// # Errors
/// A simulation fails.
pub fn measure(
    pages: &[Page],
    entrants: &[Entrant],
    options: &Options,
) -> Result<Vec<SchemeLoads>, Error> {
    let paths = paths(options)?;
    let setups = (0..paths.len()).flat_map(|path| entrants.iter().map(move |e| (*e, path)));
    let setups: Vec<(Entrant, usize)> = setups.collect();
    Runs::measure(options, &setups, pages.len() as u64, |(entrant, path), page| {
        let (_, OwnPath { up, down, .. }) = &paths[*path];
        let config = transport().with_scheduler(Arc::new(entrant.scheme));
        let view = Arc::new(entrant.view(&pages[page as usize]));
        Ok(load_over(&view, [up, down], &config, seed(options.seed, page))?)
    })
}

experiment! {
    "marx-link": "The same pages over HTTP/3 and a link, without and with loss" (Pages, Corpus, Links),
    one in 4 takes 10 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let pages = chosen(Timing::Dependencies, options)?;
    let outcomes = measure(&pages, &ENTRANTS, options)?;
    let path = match options.links.len() {
        0 => "5 Mbit/s, 25 ms one way, a queue of 47 kB, losses in both directions",
        _ => "over the paths that the tables name",
    };
    let tables: Vec<Table> = (0..)
        .zip(paths(options)?)
        .map(|(place, (name, _))| table(&pages, &outcomes, place, name))
        .collect();
    Ok(report_of(
        "The order of service over a link with round trips and loss",
        &[
            &format!(
                "The pages of marx-pages ({} of them{}) over HTTP/3 from end to end, each on a \
                 connection of its own: {path}, BBR. Times are since the first request.",
                pages.len(),
                source(options)
            ),
            "Means over the pages, with the interval that holds the mean nineteen times in twenty if such pages are \
             drawn anew. The index is the ByteIndex in milliseconds, smaller is better; \
             speed-ups are over round robin with the same loss. ATF is what is above the fold, and \
             complete is when the last of it has arrived.",
        ],
        tables,
        [],
    ))
}

fn table(pages: &[Page], outcomes: &[SchemeLoads], place: usize, name: String) -> Table {
    let outcomes: Vec<&SchemeLoads> = outcomes.iter().filter(|o| o.setup.1 == place).collect();
    let index =
        |outcome: &SchemeLoads, set| Cell::MillisWithin(mean_within(indices(pages, outcome, set)));
    let speed_up = |outcome: &SchemeLoads, set| {
        let base = outcomes.first().map(|base| indices(pages, base, set)).unwrap_or_default();
        let pairs = base.into_iter().zip(indices(pages, outcome, set));
        Cell::NumberWithin(mean_within(pairs.map(|(base, index)| base / index)))
    };
    let complete = |outcome: &SchemeLoads, above_the_fold| {
        Cell::MillisWithin(mean_within(completions(pages, outcome, above_the_fold)))
    };
    Table::of(
        name,
        outcomes.iter().copied(),
        &[
            ("scheme", &|outcome| outcome.setup.0.name.into()),
            ("index, all", &|outcome| index(outcome, Set::All)),
            ("speed-up, all", &|outcome| speed_up(outcome, Set::All)),
            ("index, ATF", &|outcome| index(outcome, Set::AboveTheFold)),
            ("speed-up, ATF", &|outcome| speed_up(outcome, Set::AboveTheFold)),
            ("ATF complete", &|outcome| complete(outcome, true)),
            ("page complete", &|outcome| complete(outcome, false)),
        ],
    )
}

fn indices(pages: &[Page], outcome: &SchemeLoads, set: Set) -> Vec<f64> {
    let pairs = pages.iter().zip(&outcome.runs);
    pairs.map(|(page, load)| set.index(page, load, Weighting::Bytes)).collect()
}

/// When the last resource of each page was complete, or the last above the fold; milliseconds.
fn completions<'a>(
    pages: &'a [Page],
    outcome: &'a SchemeLoads,
    above_the_fold: bool,
) -> impl Iterator<Item = f64> + 'a {
    pages.iter().zip(&outcome.runs).map(move |(page, load)| {
        let resources = page.resources.iter().zip(&load.completed);
        let counted = resources.filter(|(r, _)| r.resource.above_the_fold || !above_the_fold);
        counted.map(|(_, at)| millis(*at)).fold(0.0, f64::max)
    })
}
