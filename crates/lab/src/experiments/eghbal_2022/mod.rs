//! A page of which only the urgent resources are protected (Eghbal and Lu 2022, section 3): five resources of
//! 35 kB that are needed first and five others of 70 kB, over 1 Gbit/s and a round-trip time of 50 ms, with 2
//! % of packets lost: in each direction, or in both together, as the same authors count in a later paper.
//!
//! The paper sends at a fixed rate, whatever the losses. Here congestion control limits the sender. Repair
//! symbols save a round trip, and how many round trips a page takes depends on the window, so there are
//! several kinds of connections.

mod report;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_h3::Priority;
use sutura_link::LinkConfig;
use sutura_proto::Algorithm;
use sutura_sim::{Observed, Scenario};

use super::paper_path::transport;
use crate::comparison::{Runs, seed};
use crate::pages::Trigger;
use crate::report::Report;
use crate::web::{self, Client, Coverage, Reply, Request, Server, StreamBytes};
use crate::{Error, Options};

/// Pages of each configuration, each on a connection of its own.
const SEEDS: u64 = 200;
/// The path, in both directions; loss is added.
const PATH: &str = "rate=1gbit delay=25ms";
/// How many resources are needed first.
const URGENT: usize = 5;
/// The size of each.
const URGENT_BYTES: u64 = 35_000;
/// How many resources are needed later.
const OTHERS: usize = 5;
/// The size of each.
const OTHERS_BYTES: u64 = 70_000;
/// Pause before the page, so that the tail of the transfer before it does not disturb it.
const GAP: Duration = Duration::from_millis(200);
/// Burst loss tolerance where it is not varied, as in the other experiments.
const BURST: u32 = 3;

named! {
    /// Which resources have repair symbols.
    pub enum Protected {
        /// No resources.
        Nothing = "nothing",
        /// The urgent resources.
        Urgent = "urgent",
        /// All resources.
        All = "all",
    }
}

named! {
    /// The earlier use of the connection.
    pub enum History {
        /// None: the page begins with the initial window.
        Fresh = "fresh",
        /// The connection carried 4 MB, and congestion control has met the loss.
        Warm = "warm",
    }
}

impl History {
    const fn bytes(self) -> Option<u64> {
        match self {
            Self::Fresh => None,
            Self::Warm => Some(4_000_000),
        }
    }
}

/// A page that is loaded over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The share of packets lost in each direction, percent.
    pub loss: u8,
    /// The earlier use of the connection.
    pub history: History,
    /// The congestion control of both ends.
    pub congestion: Algorithm,
    /// The resources that are protected.
    pub protected: Protected,
    /// Burst loss tolerance of the protected resources.
    pub burst: u32,
    /// Repair delay tolerance of the protected resources.
    pub delay: Duration,
}

impl Visit {
    /// The configuration with 2 % of loss and three repair symbols for each resource that is
    /// protected.
    #[must_use]
    pub const fn new(history: History, congestion: Algorithm, protected: Protected) -> Self {
        Self { loss: 2, history, congestion, protected, burst: BURST, delay: Duration::ZERO }
    }

    /// The same connection with other resources protected.
    #[must_use]
    pub const fn protecting(self, protected: Protected) -> Self {
        Self { protected, ..self }
    }

    /// The requests: the earlier transfer, if there is one, and after a pause the resources of the page.
    fn requests(&self) -> Vec<Request> {
        let priority = |urgency, incremental, protect| {
            let bare = Priority::default().with_urgency(urgency).with_incremental(incremental);
            if protect { bare.with_burst(Some(self.burst)).with_delay(self.delay) } else { bare }
        };
        let urgent = priority(1, false, self.protected != Protected::Nothing);
        // Images, which are of use piece by piece.
        let others = priority(5, true, self.protected == Protected::All);
        let start = Trigger::Start(Duration::ZERO);
        let before = self.history.bytes().map(|bytes| (bytes, Priority::default(), start));
        let trigger = if before.is_some() { Trigger::After(0, GAP) } else { start };
        let page = [
            vec![(URGENT_BYTES, urgent, trigger); URGENT],
            vec![(OTHERS_BYTES, others, trigger); OTHERS],
        ];
        let all = before.into_iter().chain(page.into_iter().flatten()).enumerate();
        let request = |(number, (bytes, priority, trigger))| Request {
            priority: Some(priority),
            trigger,
            ..Request::described(number, bytes)
        };
        all.map(request).collect()
    }
}

/// The outcome of one page. Times are from its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitTimes {
    /// Until the first bytes of a response arrived: the round trip that the requests take.
    pub began: Duration,
    /// Until the first urgent resource was complete, in the order of the requests.
    pub first: Duration,
    /// Until all urgent resources were complete.
    pub urgent: Duration,
    /// Until all other resources were complete.
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
    /// Stream bytes of the other resources as they were sent.
    pub others_sent: StreamBytes,
}

/// Loads the page once.
///
/// # Errors
/// The simulation fails.
pub fn load(setup: Visit, seed: u64) -> Result<VisitTimes, Error> {
    let path: LinkConfig = format!("{PATH} loss=bern:{}%", setup.loss).parse()?;
    let transport = transport().with_congestion(Arc::new(setup.congestion));
    let requests = setup.requests();
    let page = requests.len() - URGENT - OTHERS;
    let coverage = Coverage::default();
    let server = {
        let coverage = coverage.clone();
        move || Observed::new(Server::app(Reply::described), coverage.clone())
    };
    let scenario = Scenario::new(seed).link(&path, &path).transport(&transport);
    let loaded = web::load(&scenario, Client::new(requests), server, page)?;
    Ok(page_load(&loaded, page, &coverage))
}

/// The outcome of the page whose first request is number `page`.
fn page_load(loaded: &web::PageLoad, page: usize, coverage: &Coverage) -> VisitTimes {
    let (urgent, others) = (page..page + URGENT, page + URGENT..page + URGENT + OTHERS);
    let load = &loaded.load;
    let time = |request: usize| load.completed[request] - load.requested[request];
    let began = loaded.arrivals.iter().find(|arrival| arrival.request >= page);
    let streams = coverage.streams();
    let sent = |requests: &Range<usize>| {
        let own = |stream| loaded.streams.get(stream).is_some_and(|of| requests.contains(of));
        let own = streams.iter().filter(|(stream, _)| own(stream));
        own.fold(StreamBytes::default(), |sum, (_, bytes)| StreamBytes {
            protected: sum.protected + bytes.protected,
            bare: sum.bare + bytes.bare,
        })
    };
    let (before, after) = (&loaded.before, &loaded.after);
    let (server, client) = (&after.server, &after.client);
    VisitTimes {
        began: began.map(|arrival| arrival.at - load.requested[page]).unwrap_or_default(),
        first: time(page),
        urgent: urgent.clone().map(time).max().unwrap_or_default(),
        others: others.clone().map(time).max().unwrap_or_default(),
        wire: after.down.sent_bytes - before.down.sent_bytes,
        repair_symbols: server.fec.repair_symbols_sent - before.server.fec.repair_symbols_sent,
        recovered: client.fec.recovered - before.client.fec.recovered,
        resent: server.stream_bytes_retransmitted - before.server.stream_bytes_retransmitted,
        window: before.server.congestion_window,
        urgent_sent: sent(&urgent),
        others_sent: sent(&others),
    }
}

/// The pages of one configuration.
pub type Visits = Runs<Visit, VisitTimes>;

/// Loads the page `seeds` times with each of `setups`, which all get the same seeds.
///
/// # Errors
/// A simulation fails.
pub fn measure(setups: &[Visit], seeds: u64, options: &Options) -> Result<Vec<Visits>, Error> {
    Runs::measure(options, setups, seeds, |setup, n| load(*setup, seed(options.seed, 1 + n)))
}

experiment! {
    "eghbal-2022": "Completion times of a page of which only the urgent resources are protected" (Seeds),
    one in 5 takes 20 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let seeds = options.seeds(SEEDS);
    let nothing = |history, congestion| Visit::new(history, congestion, Protected::Nothing);
    let warm = nothing(History::Warm, Algorithm::BBR);
    let connections = [
        warm,
        Visit { loss: 1, ..warm },
        nothing(History::Fresh, Algorithm::BBR),
        nothing(History::Warm, Algorithm::CUBIC),
        nothing(History::Fresh, Algorithm::CUBIC),
    ];
    let setups: Vec<Visit> = connections
        .iter()
        .flat_map(|setup| Protected::ALL.map(|arm| setup.protecting(arm)))
        .collect();
    let varied = [(1, 0), (2, 0), (5, 0), (BURST, 25)].map(|(burst, ms)| {
        let delay = Duration::from_millis(ms);
        Visit { burst, delay, ..warm.protecting(Protected::Urgent) }
    });
    let summaries = measure(&setups, seeds, options)?;
    let varied = measure(&varied, seeds, options)?;
    Ok(report::report(&summaries, &varied))
}
