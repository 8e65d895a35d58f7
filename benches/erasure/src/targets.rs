//! What the codes are to reach, for a CPU with AVX-512 and GFNI unless said otherwise.
//!
//! Where a target compares with kernels that are not available here, such as those of libmoepgf,
//! the ratio to a stand-in is information. So is the ratio to an ISA-L without GFNI kernels; the
//! share of the machine's limit decides then.

mod list;
mod verdict;

use crate::{
    args::Section,
    cases::{Bout, Case, Loss, Operation},
    measure::Metric,
};
pub use list::criteria;
pub use verdict::{Finding, Named, judge};

/// A requirement on our time. It is compared with entries of the same race and the same metric,
/// unless the question names others.
#[derive(Debug, Clone, Copy)]
pub enum Question {
    /// At least so many times as fast as the fastest of these entries.
    Faster { than: &'static [&'static str], times: f64 },
    /// At most so many times the time of another entry.
    Takes { of: (Case, &'static str, Metric), times: f64 },
    /// At least this share of a limit.
    Share { limit: &'static str, at_least: f64 },
    /// At most so many microseconds.
    Micros { at_most: f64 },
    /// At most so many times apart from the same entry in other races.
    Alike { with: [Case; 2], times: f64 },
    /// So many times as fast as something that is not available here.
    Absent { what: &'static str, times: f64 },
}

/// One line of a target.
#[derive(Debug, Clone)]
pub struct Criterion {
    pub target: Section,
    /// What is measured.
    pub what: String,
    pub bout: Bout,
    pub metric: Metric,
    /// Ours: the fastest of these.
    pub ours: &'static [&'static str],
    pub question: Question,
    /// Whether it decides, or is information.
    pub binding: bool,
}

impl Criterion {
    /// What must be measured for it.
    pub fn bouts(&self) -> impl Iterator<Item = Bout> {
        let others = match self.question {
            Question::Takes { of: (case, ..), .. } => vec![case],
            Question::Alike { with, .. } => with.to_vec(),
            Question::Faster { .. }
            | Question::Share { .. }
            | Question::Micros { .. }
            | Question::Absent { .. } => Vec::new(),
        };
        let bout = self.bout;
        [bout.case].into_iter().chain(others).map(move |case| Bout { case, ..bout })
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
