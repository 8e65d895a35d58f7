//! A report on all experiments as pages for a browser: one for each paper, with its figures and tables under their
//! numbers beside what was measured here, and one for each experiment.

mod document;
mod experiment;
mod index;
mod paper;
mod strip;
mod verdicts;

pub use document::STYLE;
pub use experiment::{Exhibited, ExhibitedTable, experiment};
pub use index::{Findings, index};
pub use paper::paper;
pub use verdicts::verdicts;
