//! A page of which only the urgent resources are protected (Eghbal and Lu 2022, section 3): five
//! resources of 35 kB that are needed first and five of 70 kB that are not, over 1 Gbit/s and a
//! round-trip time of 50 ms, with 2 % of packets lost: in each direction, or in both together, as
//! the same authors count in a later paper.
//!
//! The paper sends at a fixed rate whatever is lost. Here congestion control has its say, so there
//! are several connections: what repair symbols save is a round trip, and how many of those a page
//! takes depends on the window.

mod report;

use std::sync::Arc;
use std::time::Duration;

use sutura_h3::Priority;
use sutura_link::LinkConfig;
use sutura_proto::{Algorithm, TransportConfig};
use sutura_sim::{Clock, Ends, Progress, Scenario};

use super::paper_path::seed;
use crate::web::{Browser, Coverage, Loaded, Request, Site, StreamBytes};
use crate::{Distribution, Error, Options, Report, parallel};

/// Pages of each configuration, each on a connection of its own.
const SEEDS: u64 = 200;
/// The path, in both directions; loss is added.
const PATH: &str = "rate=1gbit delay=25ms";
/// How many resources are needed first.
const URGENT: usize = 5;
/// The size of each.
const URGENT_BYTES: u64 = 35_000;
/// How many are not.
const OTHERS: usize = 5;
/// The size of each.
const OTHERS_BYTES: u64 = 70_000;
/// Pause before the page, so that the tail of what was before does not disturb it.
const GAP: Duration = Duration::from_millis(200);
/// Burst loss tolerance unless it is what is varied, as in the other experiments.
const BURST: u32 = 3;

/// What repair symbols are sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protected {
    /// For no resource.
    Nothing,
    /// For the urgent ones.
    Urgent,
    /// For all.
    All,
}

impl Protected {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Urgent => "urgent",
            Self::All => "all",
        }
    }
}

/// What the connection did before the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Nothing: the page begins with the initial window.
    Fresh,
    /// It carried 4 MB, and congestion control has met the loss.
    Warm,
}

impl History {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Warm => "warm",
        }
    }

    const fn bytes(self) -> Option<u64> {
        match self {
            Self::Fresh => None,
            Self::Warm => Some(4_000_000),
        }
    }
}

/// One configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The share of packets lost in each direction, percent.
    pub loss: u8,
    /// What the connection did before.
    pub history: History,
    /// The congestion control of both ends.
    pub congestion: Algorithm,
    /// What is protected.
    pub protected: Protected,
    /// Burst loss tolerance of what is protected.
    pub burst: u32,
    /// Repair delay tolerance of what is protected.
    pub delay: Duration,
}

impl Setup {
    /// The configuration with 2 % of loss and three repair symbols for each resource that is
    /// protected.
    #[must_use]
    pub const fn new(history: History, congestion: Algorithm, protected: Protected) -> Self {
        Self { loss: 2, history, congestion, protected, burst: BURST, delay: Duration::ZERO }
    }

    /// The same connection with something else protected.
    #[must_use]
    pub const fn protecting(self, protected: Protected) -> Self {
        Self { protected, ..self }
    }

    fn page(&self) -> Vec<Request> {
        let priority = |urgency, incremental, protect| {
            let bare = Priority { urgency, incremental, ..Priority::default() };
            let protected = |bare| Priority { burst: self.burst, delay: self.delay, ..bare };
            if protect { protected(bare) } else { bare }
        };
        let urgent = priority(1, false, self.protected != Protected::Nothing);
        // Images, which are of use piece by piece.
        let others = priority(5, true, self.protected == Protected::All);
        let urgent = Request { bytes: URGENT_BYTES, priority: urgent };
        let others = Request { bytes: OTHERS_BYTES, priority: others };
        [vec![urgent; URGENT], vec![others; OTHERS]].concat()
    }

    fn pages(&self) -> Vec<Vec<Request>> {
        let before = |bytes| vec![Request { bytes, priority: Priority::default() }];
        self.history.bytes().map(before).into_iter().chain([self.page()]).collect()
    }
}

/// What came of one page. Times are from its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageLoad {
    /// Until anything of a response arrived: the round trip that the requests take.
    pub began: Duration,
    /// Until the first urgent resource was complete, in the order of the requests.
    pub first: Duration,
    /// Until all urgent resources were complete.
    pub urgent: Duration,
    /// Until all others were complete.
    pub others: Duration,
    /// Bytes that the server put on the link for the page, UDP and IP headers not included.
    pub wire: u64,
    /// Repair symbols that it sent.
    pub repair_symbols: u64,
    /// Source symbols that the client computed from them.
    pub recovered: u64,
    /// Bytes of stream data that the server sent again.
    pub resent: u64,
    /// The server's congestion window when the page was asked for, bytes.
    pub window: u64,
    /// Stream bytes of the urgent resources as they were sent.
    pub urgent_sent: StreamBytes,
    /// Stream bytes of the others as they were sent.
    pub others_sent: StreamBytes,
}

/// Loads the page once.
///
/// # Errors
/// The simulation fails.
pub fn load(setup: Setup, seed: u64) -> Result<PageLoad, Error> {
    let path: LinkConfig = format!("{PATH} loss=bern:{}%", setup.loss).parse()?;
    let transport =
        TransportConfig { congestion: Arc::new(setup.congestion), ..TransportConfig::default() };
    let pages = setup.pages();
    let last = pages.len();
    let coverage = Coverage::default();
    let server = {
        let coverage = coverage.clone();
        move || Site::new(coverage.clone())
    };
    let mut before = None;
    let mut loaded = Vec::new();
    let scenario = Scenario::new(seed).link(&path, &path).transport(&transport);
    let after = scenario.drive(Clock::default(), Browser::new(pages, GAP), server, |view| {
        let browser = view.client;
        if before.is_none() && browser.begun() == last {
            before = Some(view.ends());
        }
        if browser.is_done() {
            loaded.clear();
            loaded.extend_from_slice(browser.loaded());
        }
        Progress { done: browser.is_done(), busy: browser.is_busy() || browser.begun() == 0 }
    })?;
    loaded.retain(|resource| resource.page + 1 == last);
    Ok(page_load(&before.unwrap_or_default(), &after, &loaded, &coverage))
}

fn page_load(before: &Ends, after: &Ends, page: &[Loaded], coverage: &Coverage) -> PageLoad {
    let (urgent, others) = page.split_at(URGENT.min(page.len()));
    let time = |resource: &Loaded| Some(resource.complete? - resource.asked);
    let began = |resource: &Loaded| Some(resource.began? - resource.asked);
    let all = |resources: &[Loaded]| resources.iter().filter_map(time).max().unwrap_or_default();
    let streams = coverage.streams();
    let sent = |resources: &[Loaded]| {
        let own = resources.iter().filter_map(|resource| streams.get(&resource.stream));
        own.fold(StreamBytes::default(), |sum, bytes| StreamBytes {
            protected: sum.protected + bytes.protected,
            bare: sum.bare + bytes.bare,
        })
    };
    let (server, client) = (&after.server, &after.client);
    PageLoad {
        began: page.iter().filter_map(began).min().unwrap_or_default(),
        first: urgent.first().and_then(time).unwrap_or_default(),
        urgent: all(urgent),
        others: all(others),
        wire: after.down.sent_bytes - before.down.sent_bytes,
        repair_symbols: server.fec.repair_symbols_sent - before.server.fec.repair_symbols_sent,
        recovered: client.fec.recovered - before.client.fec.recovered,
        resent: server.stream_bytes_retransmitted - before.server.stream_bytes_retransmitted,
        window: before.server.congestion_window,
        urgent_sent: sent(urgent),
        others_sent: sent(others),
    }
}

/// What came of one configuration.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The configuration.
    pub setup: Setup,
    /// Each page.
    pub loads: Vec<PageLoad>,
}

impl Summary {
    /// The distribution of one of the times.
    #[must_use]
    pub fn times(&self, time: impl Fn(&PageLoad) -> Duration) -> Distribution {
        Distribution::of(self.loads.iter().map(time))
    }

    /// The mean of one of the counts.
    #[must_use]
    pub fn mean(&self, count: impl Fn(&PageLoad) -> u64) -> f64 {
        self.loads.iter().map(count).sum::<u64>() as f64 / self.loads.len().max(1) as f64
    }
}

/// Loads the page `seeds` times with each of `setups`, which all get the same seeds.
///
/// # Errors
/// A simulation fails.
pub fn measure(setups: &[Setup], seeds: u64, options: &Options) -> Result<Vec<Summary>, Error> {
    let jobs: Vec<(Setup, u64)> =
        setups.iter().flat_map(|setup| (0..seeds).map(|n| (*setup, n))).collect();
    let mut loads =
        parallel::map(options, &jobs, |&(setup, n)| load(setup, seed(options.seed, 1 + n)))?
            .into_iter();
    let own = |setup: &Setup| Summary {
        setup: *setup,
        loads: loads.by_ref().take(usize::try_from(seeds).unwrap_or(usize::MAX)).collect(),
    };
    Ok(setups.iter().map(own).collect())
}

/// The experiment.
///
/// # Errors
/// A simulation fails.
pub fn run(options: &Options) -> Result<Report, Error> {
    let seeds = options.seeds(SEEDS);
    let nothing = |history, congestion| Setup::new(history, congestion, Protected::Nothing);
    let warm = nothing(History::Warm, Algorithm::BBR);
    let connections = [
        warm,
        Setup { loss: 1, ..warm },
        nothing(History::Fresh, Algorithm::BBR),
        nothing(History::Warm, Algorithm::CUBIC),
        nothing(History::Fresh, Algorithm::CUBIC),
    ];
    let arms = [Protected::Nothing, Protected::Urgent, Protected::All];
    let setups: Vec<Setup> =
        connections.iter().flat_map(|setup| arms.map(|arm| setup.protecting(arm))).collect();
    let varied = [(1, 0), (2, 0), (5, 0), (BURST, 25)].map(|(burst, ms)| {
        let delay = Duration::from_millis(ms);
        Setup { burst, delay, ..warm.protecting(Protected::Urgent) }
    });
    let summaries = measure(&setups, seeds, options)?;
    let varied = measure(&varied, seeds, options)?;
    Ok(report::report(&summaries, &varied))
}
