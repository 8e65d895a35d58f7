//! What the order of service does to a page (Marx 2020, Table 2 and Fig. 14): each scheme on real
//! page loads, with send buffers of several sizes, by ByteIndex against round robin.

use sutura_schedule::{Priority, Scheme};

use crate::pages::{Load, Page, Playback, Weighting, byte_index, play};
use crate::{Cell, Error, Options, Report, Table, parallel};

/// Sizes of the buffer between scheduler and wire, in bytes.
pub const BUFFERS: [usize; 4] = [0, 14_000, 280_000, 1_000_000];

/// The schemes, and the paper's mean speed-ups: all resources, those above the fold, and those with
/// a send buffer of 1000 kB.
pub const SCHEMES: [(Scheme, Option<[f64; 3]>); 13] = [
    (Scheme::Rr, Some([1.0, 1.0, 1.0])),
    (Scheme::Wrr, Some([1.05, 1.49, 1.28])),
    (Scheme::Fifo, Some([1.27, 1.93, 1.57])),
    (Scheme::Dfifo, Some([1.27, 2.30, 1.72])),
    (Scheme::Firefox, Some([1.07, 1.22, 1.25])),
    (Scheme::FirefoxMeasured, None),
    (Scheme::PPlus, Some([1.17, 2.20, 1.64])),
    (Scheme::SPlus, Some([1.14, 1.45, 1.56])),
    (Scheme::SpdyRr, Some([1.14, 1.96, 1.57])),
    (Scheme::Bucket, Some([1.20, 2.13, 1.82])),
    (Scheme::BucketHtml, Some([1.20, 2.49, 1.83])),
    (Scheme::ZeroWeight, Some([1.15, 2.8, 1.9])),
    (Scheme::ZeroWeightAtf, Some([1.15, 2.8, 1.9])),
];

/// The resources of a page that an index is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// All.
    All,
    /// Those that are seen first, and what is needed to see anything.
    AboveTheFold,
}

/// Loads of all pages with all schemes.
#[derive(Debug)]
pub struct Loads {
    /// The pages.
    pub pages: Vec<Page>,
    /// By scheme, then by buffer, then by page.
    loads: Vec<Vec<Vec<Load>>>,
}

impl Loads {
    /// Plays all pages back with all schemes and buffers.
    #[must_use]
    pub fn of(pages: Vec<Page>, options: &Options) -> Self {
        let jobs: Vec<(Scheme, usize)> = SCHEMES
            .iter()
            .flat_map(|(scheme, _)| BUFFERS.map(|buffer| (*scheme, buffer)))
            .collect();
        let loads: Result<Vec<Vec<Load>>, Error> =
            parallel::map(options.threads, &jobs, |&(scheme, buffer)| {
                Ok(pages.iter().map(|page| load(page, scheme, buffer)).collect())
            });
        // Playing back does not fail.
        let loads = loads.unwrap_or_default();
        let loads = loads.chunks(BUFFERS.len()).map(<[_]>::to_vec).collect();
        Self { pages, loads }
    }

    /// How many times smaller the index of each page is than with round robin and no buffer.
    #[must_use]
    pub fn speed_ups(&self, scheme: usize, buffer: usize, set: Set, by: Weighting) -> Vec<f64> {
        let index = |page: &Page, load: &Load| {
            byte_index(page, load, by, |i| {
                set == Set::All || page.resources[i].resource.above_the_fold
            })
        };
        let pairs = self.loads[scheme][buffer].iter().zip(&self.loads[0][0]);
        let pages = self.pages.iter().zip(pairs);
        pages.map(|(page, (load, base))| index(page, base) / index(page, load)).collect()
    }

    /// The mean of [`speed_ups`](Self::speed_ups).
    #[must_use]
    pub fn mean(&self, scheme: usize, buffer: usize, set: Set, by: Weighting) -> f64 {
        let all = self.speed_ups(scheme, buffer, set, by);
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }
}

fn load(page: &Page, scheme: Scheme, buffer: usize) -> Load {
    play(page, &mut *scheme.build(), Playback { buffer }, |index| Priority {
        resource: Some(page.resources[index].resource),
        ..Priority::default()
    })
}

/// The experiment.
///
/// # Errors
/// The shipped pages cannot be read.
pub fn run(options: &Options) -> Result<Report, Error> {
    let mut pages = Page::corpus()?;
    let keep = options.reduced(pages.len() as u64) as usize;
    pages.truncate(keep);
    let loads = Loads::of(pages, options);
    let synthetic = Loads::of(vec![Page::synthetic()?], options);
    Ok(Report {
        name: "marx-pages".to_owned(),
        title: "The order of service and what people see of a page".to_owned(),
        text: vec![
            format!(
                "Marx 2020, Table 2 and Fig. 14: a packet of 1400 bytes every 10 ms, one stream a \
                 packet, requests as recorded in {} page loads. Figures are mean speed-ups: ByteIndex \
                 with round robin and no send buffer over ByteIndex with the scheme; above 1 is \
                 better. The pages are others than the paper's.",
                loads.pages.len()
            ),
            "`ATF` counts what is seen first and what is needed to see anything. Columns in kB are \
             sizes of the buffer between scheduler and wire. By bytes a resource counts for its size, \
             by objects as much as any other."
                .to_owned(),
        ],
        tables: vec![
            paper_table(&loads),
            buffer_table(&loads, "Above the fold, by size of the send buffer", Weighting::Bytes),
            buffer_table(
                &loads,
                "Above the fold, by size of the send buffer, by objects",
                Weighting::Objects,
            ),
            spread_table(&loads),
            buffer_table(&synthetic, "The synthetic page, above the fold", Weighting::Bytes),
        ],
        series: Vec::new(),
    })
}

fn paper_table(loads: &Loads) -> Table {
    let columns = [
        "scheme",
        "all",
        "paper",
        "ratio",
        "ATF",
        "paper",
        "ratio",
        "ATF 1000 kB",
        "paper",
        "ratio",
        "all, by objects",
        "ATF, by objects",
    ];
    let rows = SCHEMES.iter().enumerate().map(|(i, (scheme, paper))| {
        let ours = [
            loads.mean(i, 0, Set::All, Weighting::Bytes),
            loads.mean(i, 0, Set::AboveTheFold, Weighting::Bytes),
            loads.mean(i, BUFFERS.len() - 1, Set::AboveTheFold, Weighting::Bytes),
        ];
        let mut row: Vec<Cell> = vec![scheme.name().into()];
        for (column, ours) in ours.into_iter().enumerate() {
            row.push(Cell::Number(ours));
            match paper {
                Some(paper) => {
                    row.extend([Cell::Number(paper[column]), Cell::Number(ours / paper[column])]);
                }
                None => row.extend(["-".into(), "-".into()]),
            }
        }
        row.push(Cell::Number(loads.mean(i, 0, Set::All, Weighting::Objects)));
        row.push(Cell::Number(loads.mean(i, 0, Set::AboveTheFold, Weighting::Objects)));
        row
    });
    Table {
        caption: "Mean speed-up over round robin".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

fn buffer_table(loads: &Loads, caption: &str, by: Weighting) -> Table {
    let rows = SCHEMES.iter().enumerate().map(|(i, (scheme, _))| {
        let means = (0..BUFFERS.len()).map(|b| loads.mean(i, b, Set::AboveTheFold, by));
        std::iter::once(scheme.name().into()).chain(means.map(Cell::Number)).collect()
    });
    let columns = ["scheme", "0 kB", "14 kB", "280 kB", "1000 kB"];
    Table {
        caption: caption.to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

fn spread_table(loads: &Loads) -> Table {
    let rows = SCHEMES.iter().enumerate().map(|(i, (scheme, _))| {
        let mut row: Vec<Cell> = vec![scheme.name().into()];
        for set in [Set::All, Set::AboveTheFold] {
            let mut all = loads.speed_ups(i, 0, set, Weighting::Bytes);
            all.sort_unstable_by(f64::total_cmp);
            let at = |q: f64| all.get(((all.len() - 1) as f64 * q) as usize).copied();
            row.extend([0.0, 0.5, 1.0].map(|q| Cell::Number(at(q).unwrap_or_default())));
        }
        row
    });
    let columns =
        ["scheme", "all, smallest", "median", "largest", "ATF, smallest", "median", "largest"];
    Table {
        caption: "Single pages, without send buffer".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}
