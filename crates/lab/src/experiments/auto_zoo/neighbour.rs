//! The flow beside the measured one.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::statistics::mean;
use sutura_proto::{Algorithm, ConnectionHandle};
use sutura_random::Rng;
use sutura_sim::{Failure, FailureKind, Host, MessageSink, MessageSource, Network, Transfer};

use super::apps::{Beside, Carriage, Feed};
use super::bed::{ZooBed, plan, transport};
use crate::comparison::Values;
use crate::experiments::controllers::ends::Ends;
use crate::experiments::controllers::sender::{QuinnController, Sender};
use crate::hosts::{NAME, client_at, client_config, server_at, server_config};

const ALPN: &[u8] = b"zoo";
/// The bytes in flight that flow control leaves it.
const WINDOW: u32 = 4 << 20;
/// How long the bottleneck takes for a download of the neighbour, and the fewest bytes of one.
const PIECE: f64 = 0.25;
const LEAST_PIECE: f64 = 30_000.0;
/// More downloads than there is time for.
const PIECES: usize = 10_000;
/// The neighbour's messages: a tenth of the path, 30 a second.
const EVERY: Duration = Duration::from_millis(33);
const SHARE: f64 = 0.1;

/// How long the downloads or messages of a flow take, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NeighbourTimes {
    pub mean: f64,
    /// The 95th percentile.
    pub p95: f64,
}

/// One of them.
pub type NeighbourTime = fn(&NeighbourTimes) -> f64;

/// The flow beside the measured one.
pub(super) enum Neighbour {
    Downloads { ends: Ends, bytes: u64 },
    Messages { client: sutura_sim::NodeId, feed: Feed, handle: Option<ConnectionHandle> },
}

impl Neighbour {
    /// Adds the flow to the network, where the case has one.
    pub fn new(bed: &mut ZooBed<'_>, seeds: &mut Rng) -> Option<Self> {
        let own = [seeds.next_u64(), seeds.next_u64()];
        let along = [(bed.client, bed.server), (bed.server, bed.client)];
        let rate = bed.case.size.rate;
        let sender = match bed.case.beside? {
            Beside::Ours => {
                Sender::Ours { congestion: Arc::new(Algorithm::CUBIC), protection: None }
            }
            Beside::Quinn => Sender::Quinn(QuinnController::Cubic),
            Beside::Messages => {
                let length = bed.case.app.length(rate, bed.case.size.rtt);
                let feed = Feed {
                    carriage: Carriage::Streams,
                    size: (SHARE * rate / 8.0 * EVERY.as_secs_f64()) as usize,
                    every: EVERY,
                    burst: 1,
                    count: (length.as_secs_f64() / EVERY.as_secs_f64()) as u32,
                    within: None,
                };
                let transport = Arc::new(transport(Algorithm::BBR, &None));
                let (plan, clock) = (plan(&feed, None), bed.network.clock());
                let accept =
                    Box::new(move || Box::new(MessageSource::new(plan.clone(), clock)) as _);
                let server = Host::server(server_config(ALPN, transport), accept, own[1]);
                let server = bed.network.add(server_at(2), server);
                let client = bed.network.add(client_at(2, 50_000), Host::client(own[0]));
                bed.network.share(client, server, along[0]);
                bed.network.share(server, client, along[1]);
                return Some(Self::Messages { client, feed, handle: None });
            }
        };
        let ends = Ends::new(&mut bed.network, 2, &sender, WINDOW, own);
        bed.network.share(ends.client, ends.server, along[0]);
        bed.network.share(ends.server, ends.client, along[1]);
        Some(Self::Downloads { ends, bytes: (PIECE * rate / 8.0).max(LEAST_PIECE) as u64 })
    }

    /// Opens its connection.
    ///
    /// # Errors
    /// The connection cannot be opened.
    pub fn open(&mut self, network: &mut Network) -> Result<(), Failure> {
        match self {
            Self::Downloads { ends, bytes } => {
                let downloads = std::iter::repeat_n(Transfer::download(*bytes), PIECES);
                ends.open(network, downloads, Duration::ZERO)
            }
            Self::Messages { client, feed, handle } => {
                let clock = network.clock();
                let now = clock.at(network.now());
                let config = client_config(ALPN, Arc::new(transport(Algorithm::BBR, &None)));
                let sink = MessageSink::new(feed.count as usize, clock);
                let quiescent = network.failure(FailureKind::Quiescent);
                let host: &mut Host = network.node_mut(*client).ok_or(quiescent)?;
                let opened = host.connect(now, config, server_at(2), NAME, sink);
                let failed = |error: String| network.failure(FailureKind::Connect(error));
                *handle = Some(opened.map_err(|error| failed(error.to_string()))?);
                Ok(())
            }
        }
    }

    /// How long its downloads take, of which the last one is not complete, or its messages that were made by
    /// now, of which those that are under way take until now.
    ///
    /// # Errors
    /// An application gave up.
    pub fn times(&self, network: &Network) -> Result<NeighbourTimes, Failure> {
        match self {
            Self::Downloads { ends, .. } => {
                ends.check(network)?;
                let mut times = ends.downloads(network);
                if times.is_empty() {
                    times.push(network.now());
                }
                Ok(NeighbourTimes::of(times.iter().map(Duration::as_secs_f64)))
            }
            Self::Messages { client, feed, handle } => {
                let host = network.node::<Host>(*client);
                let sink = host.zip(*handle).and_then(|(host, handle)| host.app(handle));
                let delays = sink.map_or(&[][..], MessageSink::delays);
                let until = network.now().saturating_sub(Duration::from_secs(2));
                let made = (until.as_secs_f64() / feed.every.as_secs_f64()) as usize;
                let never = network.now();
                let made = delays.iter().take(made.max(1));
                Ok(NeighbourTimes::of(made.map(|delay| delay.unwrap_or(never).as_secs_f64())))
            }
        }
    }
}

impl NeighbourTimes {
    fn of(times: impl Iterator<Item = f64>) -> Self {
        let times = Values::of(times);
        Self { mean: mean(times.iter().copied()), p95: times.at(0.95) }
    }
}
