//! The order in which messages arrive (Eghbal and Lu 2022, Fig. 1): five urgent resources and five
//! others, made of messages of 7 kB, on one connection over a lossy path; with and without repair
//! symbols for the urgent ones.
//!
//! The paper sends the messages over UDT, which delivers them in the order of arrival, at a fixed rate. Here
//! a resource is a stream, and the client reads each stream in the order of arrival.

mod apps;
mod order;
mod report;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_link::LinkConfig;
use sutura_proto::policy::FixedRate;
use sutura_proto::{
    Algorithm, CodeId, CodeSet, FecConfig, FecStats, Priority, Protection, TransportConfig,
};
use sutura_sim::{Clock, Ends, Progress, Scenario};

use apps::{PagePlan, Resource, Sink, Source};
pub use order::{Order, order};

use crate::comparison::{Runs, protection, seed};
use crate::report::Report;
use crate::{Error, Options};

/// Connections of each configuration.
const SEEDS: u64 = 100;
/// The path, in both directions; loss is added.
const PATH: &str = "rate=1gbit delay=25ms";
/// Its delay, one way.
const ONE_WAY: Duration = Duration::from_millis(25);
/// UDP payload of a packet on an Ethernet, as UDT has it: a message takes five packets, so that an
/// urgent resource is a square of five rows and columns.
const UDP_PAYLOAD: u16 = 1452;
/// Bytes of a message.
const MESSAGE: usize = 7_000;
/// How many resources are urgent, and the messages of each.
const URGENT: [usize; 2] = [5, 5];
/// How many resources are not urgent, and the messages of each.
const OTHERS: [usize; 2] = [5, 10];
/// How many messages of the urgent resources there are. They are sent first.
pub const URGENT_MESSAGES: usize = URGENT[0] * URGENT[1];
/// How many messages there are.
pub const MESSAGES: usize = URGENT_MESSAGES + OTHERS[0] * OTHERS[1];
/// Bytes that the connection carries before, so that congestion control and `auto` know the path.
const WARM_UP: usize = 4_000_000;
/// The pause after them.
const GAP: Duration = Duration::from_millis(200);
/// The rate of the sender that yields to nothing, bytes per second: 70 Mbit/s. The paper does not say
/// at which rate UDPBlast sends. Its times fit this rate: 245 kB of urgent data and XOR sums in 28 ms, and a
/// retransmission of 50 ms for the first resource, which ends after 4 ms, at 54 ms.
const FIXED_RATE: u64 = 70_000_000 / 8;

/// How the urgent resources are protected: names and parameters of policies. The first is the paper's
/// matrix for each resource, which takes ten sums for 25 packets. The second is a matrix over all resources,
/// as in the paper: each row is a resource, and a column has a packet of each. The third sends the same
/// number of symbols of the sliding window as the first.
pub const POLICIES: [&str; 5] = [
    "block:code=2d,rows=5,columns=5",
    "block:code=2d,rows=5,columns=25,shared=on",
    "tail:burst=10",
    "tail:burst=3",
    "auto",
];

named! {
    /// The control of the sending rate.
    pub enum Pacing {
        /// None: the rate is fixed, as in the paper.
        Fixed = "70 Mbit/s",
        /// BBR.
        Bbr = "BBR",
    }
}

impl Pacing {
    fn transport(self) -> TransportConfig {
        // The sums of rows and columns are not among the codes that a decoder accepts by default.
        let codes = CodeSet::default().with(CodeId::PARITY_2D);
        let base = TransportConfig::default()
            .with_redundancy(None)
            .with_fec(Some(FecConfig::default().with_codes(codes)))
            .with_udp_payload_size(UDP_PAYLOAD);
        match self {
            // `FixedRate` accepts this rate, so the default is never used.
            Self::Fixed => match FixedRate::new(FIXED_RATE) {
                Some(fixed) => base.with_congestion(Arc::new(fixed)),
                None => base,
            },
            Self::Bbr => base.with_congestion(Arc::new(Algorithm::BBR)),
        }
    }
}

/// The sender of the messages, and their protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The share of packets lost in each direction, percent.
    pub loss: u8,
    /// The control of the sending rate.
    pub sender: Pacing,
    /// The policy for the urgent resources; `None` to protect nothing.
    pub policy: Option<&'static str>,
}

impl Sending {
    /// The same without protection.
    #[must_use]
    pub const fn bare(self) -> Self {
        Self { policy: None, ..self }
    }

    fn plan(&self) -> Result<PagePlan, Error> {
        let protection = protection(self.policy)?;
        let resource = |[count, messages]: [usize; 2], urgency, protection: Option<Protection>| {
            let priority = Priority::new(urgency, false).unwrap_or_default();
            std::iter::repeat_n(Resource { bytes: messages * MESSAGE, priority, protection }, count)
        };
        let resources = resource(URGENT, 1, protection).chain(resource(OTHERS, 5, None)).collect();
        Ok(PagePlan { warm_up: WARM_UP, gap: GAP, resources, message: MESSAGE })
    }
}

/// The outcome of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    /// When each message was complete, in the order of sending, since the first byte could have
    /// arrived.
    pub completed: Vec<Duration>,
    /// Bytes that the server put on the link for the messages, UDP and IP headers not included.
    pub wire: u64,
    /// Repair symbols that it sent.
    pub repairs: u64,
    /// Source symbols that it sent for the first time.
    pub sources: u64,
    /// Source symbols that the client computed.
    pub recovered: u64,
    /// Bytes of stream data that were sent again.
    pub resent: u64,
}

impl Arrivals {
    /// Source and repair symbols for each source symbol; 1 if there are none.
    #[must_use]
    pub fn rate(&self) -> f64 {
        1.0 + self.repairs as f64 / self.sources.max(1) as f64
    }

    /// The messages of the urgent resources.
    #[must_use]
    pub fn urgent(&self) -> &[Duration] {
        self.completed.get(..URGENT_MESSAGES).unwrap_or_default()
    }

    /// When all of them were complete.
    #[must_use]
    pub fn urgent_complete(&self) -> Duration {
        self.urgent().iter().copied().max().unwrap_or_default()
    }

    /// When all messages were complete.
    #[must_use]
    pub fn all_complete(&self) -> Duration {
        self.completed.iter().copied().max().unwrap_or_default()
    }
}

/// Sends the messages once.
///
/// # Errors
/// The simulation fails, or there is no such policy.
pub fn send(setup: Sending, seed: u64) -> Result<Arrivals, Error> {
    let path: LinkConfig = format!("{PATH} loss=bern:{}%", setup.loss).parse()?;
    let plan = setup.plan()?;
    let scenario = Scenario::new(seed).link(&path, &path).transport(&setup.sender.transport());
    let (sink, source) = (Sink::new(plan.clone()), move || Source::new(plan.clone()));
    let mut before: Option<Ends> = None;
    let mut completed = Vec::new();
    let after = scenario.drive(Clock::default(), sink, source, |view| {
        let idle = Progress { done: false, busy: false };
        let Some(source) = view.server.filter(|source| source.is_warm()) else { return idle };
        before.get_or_insert_with(|| view.ends());
        let Some(begun) = source.begun() else { return idle };
        let times = view.client.completed();
        let done = times.is_some();
        if let Some(times) = times {
            let first = begun + ONE_WAY;
            completed = times.into_iter().map(|at| at.saturating_duration_since(first)).collect();
        }
        Progress { done, busy: !done }
    })?;
    let before = before.unwrap_or_default();
    let (now, then) = (&after.server, &before.server);
    let first = |fec: &FecStats| fec.source_symbols_sent - fec.source_symbols_resent;
    Ok(Arrivals {
        completed,
        wire: after.down.sent_bytes - before.down.sent_bytes,
        repairs: now.fec.repair_symbols_sent - then.fec.repair_symbols_sent,
        sources: first(&now.fec) - first(&then.fec),
        recovered: after.client.fec.recovered - before.client.fec.recovered,
        resent: now.stream_bytes_retransmitted - then.stream_bytes_retransmitted,
    })
}

/// The connections of one configuration.
pub type Sendings = Runs<Sending, Arrivals>;

/// Sends the messages `seeds` times with each of `setups`, which all get the same seeds.
///
/// # Errors
/// A simulation fails, or there is no such policy.
pub fn measure(setups: &[Sending], seeds: u64, options: &Options) -> Result<Vec<Sendings>, Error> {
    Runs::measure(options, setups, seeds, |setup, n| send(*setup, seed(options.seed, 1 + n)))
}

/// When the urgent messages of each sender are complete if nothing is lost and nothing protected.
fn lossless(options: &Options) -> Result<Vec<(Pacing, Duration)>, Error> {
    let complete = |sender| {
        let bare = Sending { loss: 0, sender, policy: None };
        Ok((sender, send(bare, seed(options.seed, 0))?.urgent_complete()))
    };
    Pacing::ALL.into_iter().map(complete).collect()
}

/// All configurations. Configurations with the same sender and loss are neighbours.
#[must_use]
pub fn setups() -> Vec<Sending> {
    let channels = [2, 1].into_iter().flat_map(|loss| [(loss, Pacing::Fixed), (loss, Pacing::Bbr)]);
    let policies = || std::iter::once(None).chain(POLICIES.map(Some));
    let of_channel =
        |(loss, sender)| policies().map(move |policy| Sending { loss, sender, policy });
    channels.flat_map(of_channel).collect()
}

experiment! {
    "eghbal-order": "The order in which messages arrive, of which the urgent ones are protected" (Seeds),
    one in 5 takes 18 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let summaries = measure(&setups(), options.seeds(SEEDS), options)?;
    Ok(report::report(&summaries, &lossless(options)?))
}
