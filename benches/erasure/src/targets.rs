//! What the codes are to reach, for a CPU with AVX-512 and GFNI unless said otherwise.
//!
//! Where a target compares with kernels that cannot be had here, such as those of libmoepgf, the
//! ratio to a stand-in is information. So is the ratio to an ISA-L without GFNI kernels; the share
//! of the machine's limit decides then.

mod list;
mod verdict;

use crate::{
    args::Section,
    cases::{Bout, Case, Loss, Operation},
    measure::Metric,
    memory::Pages,
};
pub use list::criteria;
pub use verdict::{Finding, Named, judge};

/// A time of some entry.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    pub bout: Bout,
    pub id: &'static str,
    pub metric: Metric,
}

impl Figure {
    /// The same in huge pages.
    fn in_huge_pages(self) -> Self {
        Self { bout: Bout { pages: Pages::Huge, ..self.bout }, ..self }
    }
}

/// What is asked of a figure.
#[derive(Debug, Clone)]
pub enum Question {
    /// So many times as fast as the fastest of others, at least.
    Faster { than: Vec<Figure>, times: f64 },
    /// So many times the time of another at most.
    Takes { of: Figure, times: f64 },
    /// This share of a limit, at least.
    Share { limit: &'static str, at_least: f64 },
    /// At most so many microseconds.
    Micros { at_most: f64 },
    /// Not more than so many times apart.
    Alike { with: Vec<Figure>, times: f64 },
    /// So many times as fast as what cannot be had here.
    Absent { what: &'static str, times: f64 },
}

impl Question {
    /// The same of figures in huge pages.
    fn in_huge_pages(self) -> Self {
        let all = |figures: Vec<Figure>| figures.into_iter().map(Figure::in_huge_pages).collect();
        match self {
            Self::Faster { than, times } => Self::Faster { than: all(than), times },
            Self::Takes { of, times } => Self::Takes { of: of.in_huge_pages(), times },
            Self::Alike { with, times } => Self::Alike { with: all(with), times },
            other => other,
        }
    }
}

/// One line of a target.
#[derive(Debug, Clone)]
pub struct Criterion {
    pub target: Section,
    /// What is measured.
    pub what: String,
    /// Ours: the fastest of these.
    pub ours: Vec<Figure>,
    pub question: Question,
    /// Whether it decides, or is information.
    pub binding: bool,
}

impl Criterion {
    /// What must be measured for it.
    pub fn bouts(&self) -> impl Iterator<Item = Bout> {
        let others = match &self.question {
            Question::Faster { than: others, .. } | Question::Alike { with: others, .. } => {
                others.clone()
            }
            Question::Takes { of, .. } => vec![*of],
            _ => Vec::new(),
        };
        let figures: Vec<_> = self.ours.iter().copied().chain(others).collect();
        figures.into_iter().map(|figure| figure.bout)
    }
}

/// Windows of the paper: symbols that one repair symbol is made of, or that are decoded.
pub const WINDOWS: [usize; 8] = [10, 20, 50, 100, 200, 500, 1000, 2000];

/// What tables without a target are about.
pub fn tables(section: Section) -> Vec<Bout> {
    let cases: Vec<Case> = match section {
        Section::Block => vec![Case::GridEncode, Case::GridDecode, Case::StaircaseDecode],
        Section::Push => vec![Case::Push { open: 4 }, Case::Push { open: 10 }],
        Section::Paper => {
            let decode = |n| Loss::ALL.map(|loss| Case::Decode { n, loss });
            let encode = WINDOWS.map(|n| Case::Generate { n });
            encode.into_iter().chain(WINDOWS.into_iter().flat_map(decode)).collect()
        }
        Section::Tiers => Operation::ALL.map(Case::Tiers).to_vec(),
        _ => Vec::new(),
    };
    cases.into_iter().map(Bout::from).collect()
}
