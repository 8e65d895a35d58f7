//! What the order of service does to a page (Marx 2020, Table 2 and Fig. 14): each scheme on real
//! page loads, with send buffers of several sizes, by ByteIndex against round robin.

use sutura_schedule::{Kind, Scheme};

use crate::pages::{Load, Page, Timing, Weighting, byte_index, play, priority};
use crate::{Cell, Error, Options, Panel, Plot, Points, Report, Table, parallel};

/// Sizes of the buffer between scheduler and wire, in bytes.
pub const BUFFERS: [usize; 4] = [0, 14_000, 280_000, 1_000_000];
/// No buffer, and the largest one, by their places.
const NONE: usize = 0;
const LARGEST: usize = 3;

/// The schemes, and the paper's mean speed-ups: all resources, those above the fold, and those with
/// a send buffer of 1000 kB. Round robin is the first.
pub const SCHEMES: [(Scheme, Option<[f64; 3]>); 14] = [
    (Scheme::Rr, None),
    (Scheme::Wrr, Some([1.05, 1.49, 1.28])),
    (Scheme::Fifo, Some([1.27, 1.93, 1.57])),
    (Scheme::Dfifo, Some([1.27, 2.30, 1.72])),
    (Scheme::Firefox, Some([1.07, 1.22, 1.25])),
    (Scheme::FirefoxMeasured, Some([1.07, 1.22, 1.25])),
    (Scheme::PPlus, Some([1.17, 2.20, 1.64])),
    (Scheme::SPlus, Some([1.14, 1.45, 1.56])),
    (Scheme::SpdyRr, Some([1.14, 1.96, 1.57])),
    (Scheme::Bucket, Some([1.20, 2.13, 1.82])),
    (Scheme::BucketHtml, Some([1.20, 2.49, 1.83])),
    (Scheme::ZeroWeight, Some([1.15, 2.8, 1.9])),
    (Scheme::ZeroWeightAtf, Some([1.15, 2.8, 1.9])),
    (Scheme::Eps, None),
];

/// The resources of a page that an index is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// All.
    All,
    /// Those that are seen first, and what is needed to see anything.
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
        let jobs: Vec<(Scheme, usize)> = SCHEMES
            .iter()
            .flat_map(|(scheme, _)| BUFFERS.map(|buffer| (*scheme, buffer)))
            .collect();
        let loads = parallel::map(options, &jobs, |&(scheme, buffer)| {
            pages.iter().map(|page| load(page, scheme, buffer)).collect::<Result<Vec<Load>, _>>()
        })?;
        Ok(Self { pages, loads: loads.chunks(BUFFERS.len()).map(<[_]>::to_vec).collect() })
    }

    /// How many times smaller the index of each page is than with round robin and a buffer of size
    /// `base`. Schemes and buffers go by their places in [`SCHEMES`] and [`BUFFERS`].
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

    fn mean(&self, scheme: usize, buffer: usize, base: usize, set: Set) -> f64 {
        mean(&self.speed_ups(scheme, buffer, base, set, Weighting::Bytes))
    }

    /// What the paper's Table 2 has of a scheme: the mean speed-up of all resources, of those above
    /// the fold, and of those where both this scheme and round robin have a send buffer of 1000 kB.
    #[must_use]
    pub fn table_2(&self, scheme: usize) -> [f64; 3] {
        [
            self.mean(scheme, NONE, NONE, Set::All),
            self.mean(scheme, NONE, NONE, Set::AboveTheFold),
            self.mean(scheme, LARGEST, LARGEST, Set::AboveTheFold),
        ]
    }
}

fn load(page: &Page, scheme: Scheme, buffer: usize) -> Result<Load, Error> {
    let load = play(page, &mut *scheme.build(), buffer, |i| priority(&page.resources[i]));
    load.ok_or_else(|| Error::Incomplete { page: page.id.clone(), scheme })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The pages that are asked for, from small to large.
pub(super) fn chosen(pages: Vec<Page>, options: &Options) -> Vec<Page> {
    let all = pages.len();
    let count = options.pages.unwrap_or(options.reduced(all as u64) as usize).clamp(1, all.max(1));
    let is_chosen = |i: usize| i * count / all != (i + 1) * count / all;
    pages.into_iter().enumerate().filter(|(i, _)| is_chosen(*i)).map(|(_, page)| page).collect()
}

/// The experiment.
///
/// # Errors
/// The shipped pages cannot be read.
pub fn run(options: &Options) -> Result<Report, Error> {
    let loads = |timing| Loads::of(chosen(Page::corpus(timing)?, options), options);
    let main = loads(Timing::Dependencies)?;
    let recorded = loads(Timing::Recorded)?;
    let synthetic = Loads::of(vec![Page::synthetic()?], options)?;
    let (scripts, images) = by_content(&main.pages);
    let scripts = Loads::of(scripts, options)?;
    let images = Loads::of(images, options)?;
    let mut tables =
        vec![paper_table(&main), buffer_table(&main, "Above the fold, by send buffer")];
    tables.push(readings_table(&main, &recorded));
    tables.push(content_table(&images, &scripts));
    tables.push(spread_table(&main));
    tables.push(buffer_table(&synthetic, "The synthetic page, above the fold, by send buffer"));
    Ok(Report {
        name: "marx-pages".to_owned(),
        title: "The order of service and what people see of a page".to_owned(),
        text: vec![
            format!(
                "Marx 2020, Table 2 and Fig. 14: a packet of 1400 bytes every 10 ms, one stream a \
                 packet, no loss and no round trips, {} page loads. A resource is asked for when \
                 what names it has arrived. Figures are mean speed-ups: ByteIndex with round robin \
                 over ByteIndex with the scheme; above 1 is better. The pages are others than the \
                 paper's.",
                main.pages.len()
            ),
            "ATF counts what is seen first and what is needed to see anything. Resources count by \
             their bytes unless it says by objects. Figures in kB are sizes of the buffer between \
             scheduler and wire. In the column ATF 1000 kB round robin has that buffer, too; \
             elsewhere it has none."
                .to_owned(),
        ],
        tables,
        series: Vec::new(),
        plots: vec![figure_14(&main)],
    })
}

/// The half of the pages in which scripts are most of what is not above the fold, and the half in
/// which they are least.
fn by_content(pages: &[Page]) -> (Vec<Page>, Vec<Page>) {
    let share = |page: &Page| {
        let below = || page.resources.iter().filter(|r| !r.resource.above_the_fold);
        let all: u64 = below().map(|r| r.bytes).sum();
        let scripts: u64 = below().filter(|r| r.resource.kind == Kind::Js).map(|r| r.bytes).sum();
        scripts as f64 / all.max(1) as f64
    };
    let mut sorted = pages.to_vec();
    sorted.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let images = sorted.split_off(sorted.len().div_ceil(2));
    (sorted, images)
}

/// A table with a row for each scheme.
fn table(caption: &str, columns: &[&str], row: impl Fn(usize) -> Vec<Cell>) -> Table {
    let rows = SCHEMES.iter().enumerate().map(|(index, (scheme, _))| {
        std::iter::once(Cell::from(scheme.name())).chain(row(index)).collect()
    });
    let columns = std::iter::once(&"scheme").chain(columns);
    Table {
        caption: caption.to_owned(),
        columns: columns.map(|column| (*column).to_owned()).collect(),
        rows: rows.collect(),
    }
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
        let ours = loads.table_2(scheme);
        let cells = ours.into_iter().enumerate().map(|(column, ours)| {
            let paper = SCHEMES[scheme].1.map(|paper| paper[column]);
            let number = |number: Option<f64>| number.map_or("-".into(), Cell::Number);
            [Cell::Number(ours), number(paper), number(paper.map(|paper| ours / paper))]
        });
        cells.flatten().collect()
    })
}

fn buffer_table(loads: &Loads, caption: &str) -> Table {
    table(caption, &["0 kB", "14 kB", "280 kB", "1000 kB"], |scheme| {
        let mean = |buffer| loads.mean(scheme, buffer, NONE, Set::AboveTheFold);
        (0..BUFFERS.len()).map(|buffer| Cell::Number(mean(buffer))).collect()
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
        let by_objects = |set| mean(&loads.speed_ups(scheme, NONE, NONE, set, Weighting::Objects));
        let [all, atf, large] = recorded.table_2(scheme);
        let figures = [
            by_objects(Set::All),
            by_objects(Set::AboveTheFold),
            all,
            atf,
            large,
            loads.mean(scheme, LARGEST, NONE, Set::AboveTheFold),
        ];
        figures.map(Cell::Number).to_vec()
    })
}

fn content_table(images: &Loads, scripts: &Loads) -> Table {
    let columns =
        ["fewest scripts: all", "ATF", "ATF 1000 kB", "most scripts: all", "ATF", "ATF 1000 kB"];
    let caption = "The half of the pages with the smallest share of scripts below the fold, and the \
                   half with the largest";
    table(caption, &columns, |scheme| {
        let halves = [images.table_2(scheme), scripts.table_2(scheme)];
        halves.into_iter().flatten().map(Cell::Number).collect()
    })
}

fn spread_table(loads: &Loads) -> Table {
    let columns = ["all, smallest", "median", "largest", "ATF, smallest", "median", "largest"];
    table("Single pages, without send buffer", &columns, |scheme| {
        let quantiles = |set| {
            let mut all = loads.speed_ups(scheme, NONE, NONE, set, Weighting::Bytes);
            all.sort_unstable_by(f64::total_cmp);
            let last = all.len().saturating_sub(1);
            [0, last / 2, last].map(|i| Cell::Number(all.get(i).copied().unwrap_or_default()))
        };
        [Set::All, Set::AboveTheFold].into_iter().flat_map(quantiles).collect()
    })
}

fn figure_14(loads: &Loads) -> Plot {
    let points = |label: &str, scheme, buffer| {
        let ratios = loads.speed_ups(scheme, buffer, buffer, Set::AboveTheFold, Weighting::Bytes);
        let sizes = loads.pages.iter().map(|page| page.bytes() as f64 / 1000.0);
        Points { label: label.to_owned(), at: sizes.zip(ratios).collect() }
    };
    let panels = SCHEMES.iter().enumerate().skip(1).map(|(index, (scheme, _))| Panel {
        title: scheme.name().to_owned(),
        points: vec![
            points("without send buffer", index, NONE),
            points("send buffer of 1000 kB", index, LARGEST),
        ],
    });
    Plot {
        name: "marx-pages".to_owned(),
        title: "Speed-up over round robin, above the fold: a point is a page".to_owned(),
        x_label: "bytes of the page, kB".to_owned(),
        y_label: "speed-up".to_owned(),
        baseline: Some(1.0),
        panels: panels.collect(),
    }
}
