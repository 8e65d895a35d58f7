//! The targets of the codes, for a CPU with AVX-512 and GFNI unless said otherwise.
//!
//! Where a target compares with kernels that are not available here, such as libmoepgf's, the ratio to a
//! stand-in is only information. So is the ratio to an ISA-L without GFNI kernels; the share of the machine's
//! limit decides then.

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
    /// Our entry is at least `times` times as fast as the fastest of these entries.
    Faster { than: &'static [&'static str], times: f64 },
    /// Our entry takes at most `times` times the time of another entry.
    Takes { of: (Case, &'static str, Metric), times: f64 },
    /// Our entry reaches at least this share of a limit.
    Share { limit: &'static str, at_least: f64 },
    /// Our entry takes at most this many microseconds.
    Micros { at_most: f64 },
    /// The times of our entry in this race and in the other races differ at most by this factor.
    Alike { with: [Case; 2], times: f64 },
    /// Our entry is `times` times as fast as a peer that is not available here.
    Absent { what: &'static str, times: f64 },
}

/// One line of a target.
#[derive(Debug, Clone)]
pub struct Criterion {
    pub target: Section,
    /// The description of the measurement.
    pub what: String,
    pub bout: Bout,
    pub metric: Metric,
    /// Our entries, of which the fastest counts.
    pub ours: &'static [&'static str],
    pub question: Question,
    /// Whether it decides, or is information.
    pub binding: bool,
}

impl Criterion {
    /// The measurements that the criterion needs.
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

/// Windows of the paper: the numbers of symbols from which one repair symbol is made, or that are decoded.
pub const WINDOWS: [usize; 8] = [10, 20, 50, 100, 200, 500, 1000, 2000];

/// The measurements of tables without a target.
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
