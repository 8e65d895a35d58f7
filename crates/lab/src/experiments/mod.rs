//! One module per experiment.

pub mod eghbal_2022;
pub mod fec_bottleneck;
pub mod holzinger_bulk;
pub mod holzinger_page;
pub mod holzinger_stream;
pub mod marx_link;
pub mod marx_pages;
pub mod marx_stacks;
mod paper_path;

pub use paper_path::Channel;

use crate::{Error, Options, Report};

/// An experiment by its name.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(&Options) -> Result<Report, Error>,
}

/// All experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "eghbal-2022",
        about: "Completion times of a page of which only the urgent resources are protected",
        run: eghbal_2022::run,
    },
    Experiment {
        name: "fec-bottleneck",
        about: "What repair symbols do to each congestion controller at a bottleneck",
        run: fec_bottleneck::run,
    },
    Experiment {
        name: "holzinger-bulk",
        about: "Completion times of 32 kB and 1 MB over a path with bursts of loss",
        run: holzinger_bulk::run,
    },
    Experiment {
        name: "holzinger-page",
        about: "A page by strict priorities and by weighted classes, beside the ideal",
        run: holzinger_page::run,
    },
    Experiment {
        name: "holzinger-stream",
        about: "Delay of the bytes of a steady stream over a path with bursts of loss",
        run: holzinger_stream::run,
    },
    Experiment {
        name: "marx-pages",
        about: "What each scheme and send buffer does to the resources of real pages",
        run: marx_pages::run,
    },
    Experiment {
        name: "marx-link",
        about: "The same pages over HTTP/3 and a link, without and with loss",
        run: marx_link::run,
    },
    Experiment {
        name: "marx-stacks",
        about: "How ten stacks multiplex ten files of 1 MB, and what loss holds up",
        run: marx_stacks::run,
    },
];
