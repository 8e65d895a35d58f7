//! The pages of [`marx_pages`](super::marx_pages) over HTTP/3 and a link with round trips and loss,
//! which the paper left out.

use std::sync::Arc;

use sutura_analysis::report::Report;
use sutura_analysis::statistics::{mean, millis};
use sutura_analysis::table::{Cell, Table};
use sutura_link::LinkConfig;
use sutura_proto::{Algorithm, TransportConfig};
use sutura_random::Rng;

use super::Experiment;
use super::marx_pages::{ENTRANTS, Entrant, Set, chosen, source};
use crate::pages::{Load, Page, Timing, Weighting};
use crate::web::load_over;
use crate::{Error, Options, parallel};

/// The path, with a queue of one and a half bandwidth-delay products.
const PATH: &str = "rate=5mbit delay=25ms queue=46875b";
/// Shares of packets that are lost in each direction, in percent.
const LOSSES: [u32; 2] = [0, 2];

/// The loads of all pages with one scheme on one path.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The scheme.
    pub entrant: Entrant,
    /// Packets lost, in percent.
    pub loss: u32,
    /// One for each page, from small to large.
    pub loads: Vec<Load>,
}

/// Loads each page once with each of `entrants` and losses. A page gets the same seed each time.
///
/// # Errors
/// A simulation fails.
pub fn measure(
    pages: &[Page],
    entrants: &[Entrant],
    options: &Options,
) -> Result<Vec<Outcome>, Error> {
    let setups: Vec<(Entrant, u32)> =
        LOSSES.iter().flat_map(|loss| entrants.iter().map(|e| (*e, *loss))).collect();
    let jobs: Vec<(Entrant, u32, usize)> = setups
        .iter()
        .flat_map(|(entrant, loss)| (0..pages.len()).map(|page| (*entrant, *loss, page)))
        .collect();
    let loads = parallel::map(options, &jobs, |&(entrant, loss, page)| -> Result<Load, Error> {
        let link: LinkConfig = format!("{PATH} loss=bern:{loss}%").parse()?;
        let config = TransportConfig {
            scheduler: Arc::new(entrant.scheme),
            congestion: Arc::new(Algorithm::BBR),
            redundancy: None,
            ..TransportConfig::default()
        };
        let seed = Rng::stream(options.seed, page as u64).next_u64();
        Ok(load_over(&Arc::new(entrant.view(&pages[page])), &link, &config, seed)?)
    })?;
    let mut loads = loads.into_iter();
    let outcome = |(entrant, loss)| Outcome {
        entrant,
        loss,
        loads: loads.by_ref().take(pages.len()).collect(),
    };
    Ok(setups.into_iter().map(outcome).collect())
}

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "marx-link",
    about: "The same pages over HTTP/3 and a link, without and with loss",
    run,
};

fn run(options: &Options) -> Result<Report, Error> {
    let pages = chosen(Timing::Dependencies, options)?;
    let outcomes = measure(&pages, &ENTRANTS, options)?;
    Ok(Report {
        title: "The order of service over a link with round trips and loss".to_owned(),
        text: vec![
            format!(
                "The pages of marx-pages ({} of them{}) over HTTP/3 from end to end, each on a \
                 connection of its own: 5 Mbit/s, 25 ms one way, a queue of 47 kB, BBR, losses in \
                 both directions. Times are since the first request.",
                pages.len(),
                source(options)
            ),
            "Means over the pages. The index is the ByteIndex in milliseconds, smaller is better; \
             speed-ups are over round robin with the same loss. ATF is what is above the fold, and \
             complete is when the last of it has arrived."
                .to_owned(),
        ],
        tables: LOSSES.map(|loss| table(&pages, &outcomes, loss)).to_vec(),
        ..Report::default()
    })
}

fn table(pages: &[Page], outcomes: &[Outcome], loss: u32) -> Table {
    let outcomes: Vec<&Outcome> = outcomes.iter().filter(|o| o.loss == loss).collect();
    let index = |outcome: &Outcome, set| Cell::Millis(mean(indices(pages, outcome, set)));
    let speed_up = |outcome: &Outcome, set| {
        let base = outcomes.first().map(|base| indices(pages, base, set)).unwrap_or_default();
        let pairs = base.into_iter().zip(indices(pages, outcome, set));
        Cell::Number(mean(pairs.map(|(base, index)| base / index)))
    };
    let complete = |outcome: &Outcome, above_the_fold| {
        Cell::Millis(mean(completions(pages, outcome, above_the_fold)))
    };
    Table::of(
        format!("{loss} % of packets lost"),
        outcomes.iter().copied(),
        &[
            ("scheme", &|outcome| outcome.entrant.name.into()),
            ("index, all", &|outcome| index(outcome, Set::All)),
            ("speed-up, all", &|outcome| speed_up(outcome, Set::All)),
            ("index, ATF", &|outcome| index(outcome, Set::AboveTheFold)),
            ("speed-up, ATF", &|outcome| speed_up(outcome, Set::AboveTheFold)),
            ("ATF complete", &|outcome| complete(outcome, true)),
            ("page complete", &|outcome| complete(outcome, false)),
        ],
    )
}

fn indices(pages: &[Page], outcome: &Outcome, set: Set) -> Vec<f64> {
    let pairs = pages.iter().zip(&outcome.loads);
    pairs.map(|(page, load)| set.index(page, load, Weighting::Bytes)).collect()
}

/// When the last resource of each page was complete, or the last above the fold; milliseconds.
fn completions<'a>(
    pages: &'a [Page],
    outcome: &'a Outcome,
    above_the_fold: bool,
) -> impl Iterator<Item = f64> + 'a {
    pages.iter().zip(&outcome.loads).map(move |(page, load)| {
        let resources = page.resources.iter().zip(&load.completed);
        let counted = resources.filter(|(r, _)| r.resource.above_the_fold || !above_the_fold);
        counted.map(|(_, at)| millis(*at)).fold(0.0, f64::max)
    })
}
