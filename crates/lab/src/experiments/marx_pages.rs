//! How the order of service affects a page (Marx 2020, Table 2 and Fig. 14): each scheme on real
//! page loads, with send buffers of several sizes, by ByteIndex against round robin.

use sutura_analysis::interval::Estimate;
use sutura_research::marx::{
    Kind, bucket, bucket_html, dfifo, fifo, firefox, firefox_measured, pplus, rr, spdyrr, splus,
    wrr, wrr_critical, zeroweight, zeroweight_atf,
};
use sutura_schedule::Scheme;

use super::marx_figures::{self, load};
use crate::comparison::{Values, mean_within};
use crate::pages::{Load, Page, PageResource, Timing, Weighting, byte_index};
use crate::report::{Axis, Cell, Chart, Panel, Report, Series, Table};
use crate::{Error, Options, parallel};

/// Sizes of the buffer between scheduler and wire, in bytes.
pub const BUFFERS: [usize; 4] = [0, 14_000, 280_000, 1_000_000];
/// No buffer, and the largest one, by their places.
const NONE: usize = 0;
const LARGEST: usize = 3;

/// A scheme to compare.
#[derive(Clone, Copy, Debug)]
pub struct Entrant {
    /// Its name in tables.
    pub name: &'static str,
    /// The scheme that decides which stream is next.
    pub scheme: Scheme,
    /// Whether the scheme treats all resources above the fold like the document.
    pub promoted: bool,
    /// The paper's mean speed-ups: of all resources, of resources above the fold, and with a send buffer of
    /// 1000 kB.
    pub paper: Option<[f64; 3]>,
}

impl Entrant {
    const fn new(scheme: Scheme, paper: Option<[f64; 3]>) -> Self {
        Self { name: scheme.name(), scheme, promoted: false, paper }
    }

    /// The page as the server knows it.
    #[must_use]
    pub fn view(&self, page: &Page) -> Page {
        let mut page = page.clone();
        for resource in &mut page.resources {
            resource.resource.main |= self.promoted && resource.resource.above_the_fold;
        }
        page
    }
}

/// The schemes; round robin is the first.
///
/// A figure of the paper gives the weights of `zeroweight`. There are three readings of it: the weights of
/// the published code; the weights of [`zeroweight_atf`]; and the weights of the published code with 255 for
/// everything above the fold.
///
/// There are two readings of `wrr`: the weights of the published code, and [`wrr_critical`].
pub const ENTRANTS: [Entrant; 16] = [
    Entrant::new(rr::SCHEME, None),
    Entrant::new(wrr::SCHEME, WEIGHTED),
    Entrant::new(wrr_critical::SCHEME, WEIGHTED),
    Entrant::new(fifo::SCHEME, Some([1.27, 1.93, 1.57])),
    Entrant::new(dfifo::SCHEME, Some([1.27, 2.30, 1.72])),
    Entrant::new(firefox::SCHEME, Some([1.07, 1.22, 1.25])),
    Entrant::new(firefox_measured::SCHEME, Some([1.07, 1.22, 1.25])),
    Entrant::new(pplus::SCHEME, Some([1.17, 2.20, 1.64])),
    Entrant::new(splus::SCHEME, Some([1.14, 1.45, 1.56])),
    Entrant::new(spdyrr::SCHEME, Some([1.14, 1.96, 1.57])),
    Entrant::new(bucket::SCHEME, Some([1.20, 2.13, 1.82])),
    Entrant::new(bucket_html::SCHEME, Some([1.20, 2.49, 1.83])),
    Entrant::new(zeroweight::SCHEME, ZERO_WEIGHT),
    Entrant::new(zeroweight_atf::SCHEME, ZERO_WEIGHT),
    Entrant {
        name: "zeroweight, ATF 255",
        scheme: zeroweight::SCHEME,
        promoted: true,
        paper: ZERO_WEIGHT,
    },
    Entrant::new(Scheme::EPS, None),
];
const WEIGHTED: Option<[f64; 3]> = Some([1.05, 1.49, 1.28]);
const ZERO_WEIGHT: Option<[f64; 3]> = Some([1.15, 2.8, 1.9]);

/// The resources of a page over which an index is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// All.
    All,
    /// Resources that are seen first, and resources that are needed to see anything.
    AboveTheFold,
}

impl Set {
    /// The ByteIndex of the set, in milliseconds.
    #[must_use]
    pub fn index(self, page: &Page, load: &Load, by: Weighting) -> f64 {
        let is_counted = |i: usize| self == Self::All || page.resources[i].resource.above_the_fold;
        byte_index(page, load, by, is_counted)
    }
}

/// Loads of pages with all schemes and buffers.
#[derive(Debug)]
pub struct Loads {
    /// The pages.
    pub pages: Vec<Page>,
    /// By scheme, then by buffer, then by page.
    loads: Vec<Vec<Vec<Load>>>,
}

impl Loads {
    /// Plays all pages back with all schemes and buffers.
    ///
    /// # Errors
    /// A scheme leaves a stream without service.
    pub fn of(pages: Vec<Page>, options: &Options) -> Result<Self, Error> {
        let jobs: Vec<(Entrant, usize)> =
            ENTRANTS.iter().flat_map(|e| BUFFERS.map(|buffer| (*e, buffer))).collect();
        let loads = parallel::map(options, &jobs, |(entrant, buffer)| {
            let load = |page: &Page| Ok(load(&entrant.view(page), entrant.scheme, *buffer)?.0);
            pages.iter().map(load).collect::<Result<Vec<Load>, Error>>()
        })?;
        Ok(Self { pages, loads: loads.chunks(BUFFERS.len()).map(<[_]>::to_vec).collect() })
    }

    /// How many times smaller the index of each page is than with round robin and a buffer of size
    /// `base`. Schemes and buffers go by their places in [`ENTRANTS`] and [`BUFFERS`].
    #[must_use]
    pub fn speed_ups(
        &self,
        scheme: usize,
        buffer: usize,
        base: usize,
        set: Set,
        by: Weighting,
    ) -> Vec<f64> {
        let pairs = self.loads[scheme][buffer].iter().zip(&self.loads[0][base]);
        let pages = self.pages.iter().zip(pairs);
        let ratio = |(page, (load, base)): (&Page, (&Load, &Load))| {
            set.index(page, base, by) / set.index(page, load, by)
        };
        pages.map(ratio).collect()
    }

    /// The mean speed-up, with its interval if such pages are drawn anew.
    fn estimate(&self, scheme: usize, buffer: usize, base: usize, set: Set) -> Estimate {
        mean_within(self.speed_ups(scheme, buffer, base, set, Weighting::Bytes))
    }

    /// The values of a scheme in the paper's Table 2: the mean speed-up of all resources, of resources above
    /// the fold, and with a send buffer of 1000 kB for both this scheme and round robin.
    #[must_use]
    pub fn table_2(&self, scheme: usize) -> [f64; 3] {
        self.estimates(scheme).map(|estimate| estimate.value)
    }

    fn estimates(&self, scheme: usize) -> [Estimate; 3] {
        [
            self.estimate(scheme, NONE, NONE, Set::All),
            self.estimate(scheme, NONE, NONE, Set::AboveTheFold),
            self.estimate(scheme, LARGEST, LARGEST, Set::AboveTheFold),
        ]
    }
}

/// The pages that the options select, from small to large.
pub(super) fn chosen(timing: Timing, options: &Options) -> Result<Vec<Page>, Error> {
    let pages = match &options.corpus {
        Some(file) => Page::read_file(file, timing)?,
        None => Page::corpus(timing)?,
    };
    let all = pages.len();
    let count = options.pages.unwrap_or(options.reduced(all as u64) as usize).clamp(1, all.max(1));
    let is_chosen = |i: usize| i * count / all != (i + 1) * count / all;
    Ok(pages.into_iter().enumerate().filter(|(i, _)| is_chosen(*i)).map(|(_, page)| page).collect())
}

/// The source of the pages, for the text of a report.
pub(super) fn source(options: &Options) -> String {
    options.corpus.as_ref().map_or_else(String::new, |file| format!(" from {}", file.display()))
}

experiment! {
    "marx-pages": "What each scheme and send buffer does to the resources of real pages" (Pages, Corpus),
    one in 1 takes 2 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let loads = |timing| Loads::of(chosen(timing, options)?, options);
    let main = loads(Timing::Dependencies)?;
    let recorded = loads(Timing::Recorded)?;
    let page = Page::synthetic()?;
    let synthetic = Loads::of(vec![page.clone()], options)?;
    let below = |r: &PageResource| !r.resource.above_the_fold;
    let scripts = |r: &PageResource| (below(r) && r.resource.kind == Kind::Js, below(r));
    let heroes = |r: &PageResource| (!below(r) && is_image(r), !below(r));
    let scripts = Halves::of(&main.pages, scripts, options)?;
    let heroes = Halves::of(&main.pages, heroes, options)?;
    let mut tables =
        vec![paper_table(&main), buffer_table(&main, "Above the fold, by send buffer")];
    tables.push(readings_table(&main, &recorded));
    tables.push(scripts.table("scripts among the bytes below the fold"));
    tables.push(heroes.table("images among the bytes above the fold"));
    tables.push(spread_table(&main));
    tables.push(buffer_table(&synthetic, "The synthetic page, above the fold, by send buffer"));
    Ok(Report {
        title: "The order of service and what people see of a page".to_owned(),
        text: vec![
            format!(
                "Marx 2020, Table 2 and Fig. 14: a packet of 1400 bytes every 10 ms, one stream a \
                 packet, no loss and no round trips, {} page loads{}. A resource is asked for when \
                 what names it has arrived. Figures are mean speed-ups: ByteIndex with round robin \
                 over ByteIndex with the scheme; above 1 is better. The pages are others than the \
                 paper's.",
                main.pages.len(),
                source(options)
            ),
            "ATF counts what is seen first and what is needed to see anything. Resources count by \
             their bytes unless it says by objects. Figures in kB are sizes of the buffer between \
             scheduler and wire. In the column ATF 1000 kB round robin has that buffer, too; \
             elsewhere it has none."
                .to_owned(),
        ],
        tables,
        charts: vec![figure_14(&main), marx_figures::curves(&page)?],
        pictures: vec![marx_figures::schedules(&page)?],
        ..Report::default()
    })
}

fn is_image(resource: &PageResource) -> bool {
    matches!(resource.resource.kind, Kind::Image | Kind::Svg)
}

/// The pages in which some kind of resource has a small share, and the pages in which it has a large one.
struct Halves {
    small: Loads,
    large: Loads,
}

impl Halves {
    /// `is_counted` says whether a resource belongs to the share, and whether to the whole.
    fn of(
        pages: &[Page],
        is_counted: impl Fn(&PageResource) -> (bool, bool),
        options: &Options,
    ) -> Result<Self, Error> {
        let share = |page: &Page| {
            let sums = page.resources.iter().fold((0, 0), |(part, whole), resource| {
                let (in_part, in_whole) = is_counted(resource);
                let bytes = |counts| if counts { resource.bytes } else { 0 };
                (part + bytes(in_part), whole + bytes(in_whole))
            });
            sums.0 as f64 / sums.1.max(1) as f64
        };
        let mut small = pages.to_vec();
        small.sort_by(|a, b| share(a).total_cmp(&share(b)));
        let large = small.split_off(small.len() / 2);
        Ok(Self { small: Loads::of(small, options)?, large: Loads::of(large, options)? })
    }

    fn table(&self, what: &str) -> Table {
        let columns = ["least: all", "ATF", "ATF 1000 kB", "most: all", "ATF", "ATF 1000 kB"];
        let caption =
            format!("The half of the pages with the least share of {what}, and the other");
        table(&caption, &columns, |scheme| {
            let halves = [self.small.estimates(scheme), self.large.estimates(scheme)];
            halves.into_iter().flatten().map(Cell::NumberWithin).collect()
        })
    }
}

/// A table with a row for each scheme.
fn table(caption: &str, columns: &[&str], row: impl Fn(usize) -> Vec<Cell>) -> Table {
    let mut table = Table::new(caption, std::iter::once(&"scheme").chain(columns));
    for (index, entrant) in ENTRANTS.iter().enumerate() {
        table.row(std::iter::once(Cell::from(entrant.name)).chain(row(index)));
    }
    table
}

fn paper_table(loads: &Loads) -> Table {
    let columns = [
        "all",
        "paper",
        "ours/paper",
        "ATF",
        "paper",
        "ours/paper",
        "ATF 1000 kB",
        "paper",
        "ours/paper",
    ];
    table("Mean speed-up over round robin, and the paper's Table 2", &columns, |scheme| {
        let ours = loads.estimates(scheme);
        let cells = ours.into_iter().enumerate().map(|(column, ours)| {
            let paper = ENTRANTS[scheme].paper.map(|paper| paper[column]);
            let ratio = paper.map(|paper| Cell::NumberWithin(ours.over(Estimate::exact(paper))));
            [Cell::NumberWithin(ours), paper.map(Cell::Number).into(), ratio.into()]
        });
        cells.flatten().collect()
    })
}

fn buffer_table(loads: &Loads, caption: &str) -> Table {
    table(caption, &["0 kB", "14 kB", "280 kB", "1000 kB"], |scheme| {
        let estimate = |buffer| loads.estimate(scheme, buffer, NONE, Set::AboveTheFold);
        (0..BUFFERS.len()).map(|buffer| Cell::NumberWithin(estimate(buffer))).collect()
    })
}

fn readings_table(loads: &Loads, recorded: &Loads) -> Table {
    let columns = [
        "all, by objects",
        "ATF, by objects",
        "recorded waits: all",
        "recorded waits: ATF",
        "recorded waits: ATF 1000 kB",
        "ATF 1000 kB over rr without",
    ];
    table("Other readings of the paper", &columns, |scheme| {
        let by_objects =
            |set| mean_within(loads.speed_ups(scheme, NONE, NONE, set, Weighting::Objects));
        let [all, atf, large] = recorded.estimates(scheme);
        let figures = [
            by_objects(Set::All),
            by_objects(Set::AboveTheFold),
            all,
            atf,
            large,
            loads.estimate(scheme, LARGEST, NONE, Set::AboveTheFold),
        ];
        figures.map(Cell::NumberWithin).to_vec()
    })
}

fn spread_table(loads: &Loads) -> Table {
    let columns = [
        "all, smallest",
        "all, median",
        "all, largest",
        "ATF, smallest",
        "ATF, median",
        "ATF, largest",
    ];
    table("Single pages, without send buffer", &columns, |scheme| {
        let quantiles = |set| {
            let all = Values::of(loads.speed_ups(scheme, NONE, NONE, set, Weighting::Bytes));
            [0.0, 0.5, 1.0].map(|q| all.cell(q))
        };
        [Set::All, Set::AboveTheFold].into_iter().flat_map(quantiles).collect()
    })
}

fn figure_14(loads: &Loads) -> Chart {
    let points = |label, scheme, buffer| {
        let ratios = loads.speed_ups(scheme, buffer, buffer, Set::AboveTheFold, Weighting::Bytes);
        let sizes = loads.pages.iter().map(|page| page.bytes() as f64 / 1000.0);
        Series::points(label, sizes.zip(ratios).collect())
    };
    let panels = ENTRANTS.iter().enumerate().skip(1).map(|(index, entrant)| Panel {
        title: entrant.name.to_owned(),
        series: vec![
            points("without send buffer", index, NONE),
            points("send buffer of 1000 kB", index, LARGEST),
        ],
    });
    Chart {
        name: "speed-ups".to_owned(),
        title: "Speed-up over round robin, above the fold: a point is a page".to_owned(),
        x: Axis::log("bytes of the page in kB"),
        y: Axis::log("speed-up"),
        baseline: Some(1.0),
        panels: panels.collect(),
    }
}
