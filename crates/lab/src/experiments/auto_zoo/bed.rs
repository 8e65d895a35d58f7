//! A run of a case with a policy.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_proto::{Algorithm, Connection, ConnectionHandle, Protection, Scheme, TransportConfig};
use sutura_random::Rng;
use sutura_sim::{
    App as Application, BulkClient, BulkServer, Clock, Failure, FailureKind, Host, MessagePlan,
    MessageSink, MessageSource, Network, NodeId, Observed, Transfer,
};

use super::apps::{Carriage, Feed, ZooApp};
use super::case::ZooCase;
use super::ideal;
use super::neighbour::{Neighbour, NeighbourTimes};
use super::packets::{Packets, Volume};
use crate::Error;
use crate::comparison::Policy;
use crate::experiments::controllers::meter::Meter;
use crate::hosts::{NAME, client_at, client_config, server_at, server_config};

const ALPN: &[u8] = b"zoo";
/// What flow control and buffers leave in flight.
const WINDOW: u64 = 16 << 20;
/// The share of a feed, and the round trips, in which the connection begins and messages do not count.
const WARM_UP: f64 = 0.15;
const WARM_UP_TRIPS: u32 = 10;
/// The time for the handshake, and for the last messages.
const GRACE: Duration = Duration::from_secs(2);

/// The outcome of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The share of messages that are late, 0 to 1, or the mean time of the files in seconds.
    pub score: f64,
    /// The same of the ideal with these packets, where there is one.
    pub ideal: Option<f64>,
    /// Bytes of UDP payload that the server sent for each byte of the application.
    pub wire: f64,
    /// The share of its packets that the queue or the policer dropped, and that were lost otherwise.
    pub dropped: f64,
    pub lost: f64,
    /// Repair symbols for each packet.
    pub repairs: f64,
    /// How long the downloads or messages of the flow beside it take.
    pub neighbour: Option<NeighbourTimes>,
}

/// The network of a run, with the measured flow's ends.
pub(super) struct ZooBed<'a> {
    pub case: &'a ZooCase,
    pub network: Network,
    pub client: NodeId,
    pub server: NodeId,
    transport: Arc<TransportConfig>,
    protection: Option<Protection>,
    meter: Meter,
    packets: Packets,
}

/// Runs a case once.
///
/// # Errors
/// The simulation fails, other than by a connection that breaks.
pub(super) fn run(case: &ZooCase, policy: &Policy, seed: u64) -> Result<Outcome, Error> {
    let seeds = &mut Rng::new(seed);
    let mut bed = ZooBed::new(case, policy, seeds);
    let mut neighbour = Neighbour::new(&mut bed, seeds);
    if let Some(neighbour) = &mut neighbour {
        neighbour.open(&mut bed.network)?;
    }
    let (score, ideal) = match case.app {
        ZooApp::Feed(feed) => bed.feed(&feed)?,
        ZooApp::Files { bytes, count, pause } => bed.files(bytes, count, pause)?,
    };
    bed.check()?;
    let neighbour = neighbour.map(|neighbour| neighbour.times(&bed.network)).transpose()?;
    Ok(Outcome { score, ideal, neighbour, ..bed.traffic() })
}

/// The settings of an end, with this redundancy.
pub(super) fn transport(congestion: Algorithm, policy: &Policy) -> TransportConfig {
    TransportConfig::default()
        .with_congestion(Arc::new(congestion))
        .with_redundancy(policy.clone())
        .with_send_buffer(WINDOW as usize)
        .with_connection_send_buffer(WINDOW as usize)
        .with_stream_receive_window(WINDOW)
        .with_max_stream_receive_window(WINDOW)
        .with_receive_window(WINDOW)
        .with_max_receive_window(WINDOW)
}

/// How a feed is sent.
pub(super) fn plan(feed: &Feed, protection: Option<Protection>) -> MessagePlan {
    MessagePlan {
        deadline: feed.within,
        announce: feed.within.is_some(),
        unreliable: feed.carriage == Carriage::Datagrams,
        protection,
        ..MessagePlan::new(feed.messages())
    }
}

impl<'a> ZooBed<'a> {
    fn new(case: &'a ZooCase, policy: &Policy, seeds: &mut Rng) -> Self {
        let mut network = Network::new(Clock::default());
        let clock = network.clock();
        let mut transport = transport(case.congestion, policy);
        let protection = policy.clone().map(Protection::new);
        let packets = Packets::default();
        let accept: sutura_sim::Accept = match case.app {
            ZooApp::Feed(feed) => {
                if feed.within.is_some() {
                    transport = transport.with_scheduler(Arc::new(Scheme::DEADLINE));
                }
                let plan = plan(&feed, protection.clone());
                let record = case.is_plain().then(|| packets.clone());
                Box::new(move || {
                    let source = MessageSource::new(plan.clone(), clock);
                    match &record {
                        Some(record) => {
                            Box::new(Observed::new(source, record.observer(true, clock)))
                        }
                        None => Box::new(source) as Box<dyn Application<Connection>>,
                    }
                })
            }
            ZooApp::Files { .. } => {
                let protection = protection.clone();
                Box::new(move || Box::new(BulkServer::new(protection.clone())))
            }
        };
        let transport = Arc::new(transport);
        let config = server_config(ALPN, transport.clone());
        let client = network.add(client_at(1, 50_000), Host::client(seeds.next_u64()));
        let server = Host::server(config, accept, seeds.next_u64());
        let server = network.add(server_at(1), server);
        network.connect(client, server, &case.up, seeds.next_u64());
        network.connect(server, client, &case.down, seeds.next_u64());
        let meter = Meter::new([server]);
        network.set_tracer(Box::new(meter.clone()));
        Self { case, network, client, server, transport, protection, meter, packets }
    }

    /// Opens a connection of the measured flow.
    fn open(&mut self, app: impl Application<Connection>) -> Result<ConnectionHandle, Failure> {
        let now = self.network.clock().at(self.network.now());
        let config = client_config(ALPN, self.transport.clone());
        let quiescent = self.network.failure(FailureKind::Quiescent);
        let host: &mut Host = self.network.node_mut(self.client).ok_or(quiescent)?;
        let opened = host.connect(now, config, server_at(1), NAME, app);
        opened.map_err(|error| self.network.failure(FailureKind::Connect(error.to_string())))
    }

    /// The share of late messages, and of the ideal.
    fn feed(&mut self, feed: &Feed) -> Result<(f64, Option<f64>), Failure> {
        let (clock, count) = (self.network.clock(), feed.count as usize);
        let sink = MessageSink::new(count, clock);
        let handle = self.open(Observed::new(sink, self.packets.observer(false, clock)))?;
        let limit = self.case.limit(feed);
        let end = GRACE + feed.length() + 4 * self.case.size.rtt + limit;
        self.network.run_until(end)?;
        let warm_up = (WARM_UP_TRIPS * self.case.size.rtt).as_secs_f64();
        let warm_up = warm_up.min(WARM_UP * feed.length().as_secs_f64());
        let skip = (warm_up / feed.every.as_secs_f64()) as usize;
        let counted = count.saturating_sub(skip).max(1) as f64;
        let host = self.network.node::<Host>(self.client);
        let sink = host.and_then(|host| host.app::<Observed<MessageSink>>(handle));
        let delays = sink.map_or(&[][..], |sink| sink.app.delays());
        let in_time = delays.iter().skip(skip).filter(|delay| delay.is_some_and(|d| d <= limit));
        let in_time = in_time.count();
        let ideal = self.case.is_plain().then(|| {
            let all = ideal::in_time(&self.packets.take(), feed.size as u64, limit);
            let all = all.iter().filter(|number| **number >= skip as u64).count();
            // The greedy choice may be worse than what happened.
            1.0 - all.max(in_time) as f64 / counted
        });
        Ok((1.0 - in_time as f64 / counted, ideal))
    }

    /// The mean time of the files, and of the ideal.
    fn files(
        &mut self,
        bytes: u64,
        count: u32,
        pause: Duration,
    ) -> Result<(f64, Option<f64>), Failure> {
        let clock = self.network.clock();
        let pass = Duration::from_secs_f64(8.0 * bytes as f64 / self.case.size.rate);
        let most = GRACE * 5 + 20 * pass + 60 * self.case.size.rtt;
        let (mut times, mut ideals) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..count {
            let begun = self.network.now();
            let volume = Volume::of(bytes, clock);
            let download =
                Transfer { protection: self.protection.clone(), ..Transfer::download(bytes) };
            let client = BulkClient::new([download], 1, Duration::ZERO);
            let handle = self.open(Observed::new(client, volume.clone()))?;
            self.until_complete(handle, begun + most)?;
            let time = self.network.now() - begun;
            times += time;
            ideals += volume.at().map_or(time, |at| at.saturating_sub(begun).min(time));
            let now = clock.at(self.network.now());
            if let Some(host) = self.network.node_mut::<Host>(self.client) {
                host.close(now, handle, 0, b"done");
            }
            let next = self.network.now() + pause;
            self.network.run_until(next)?;
        }
        let ideal = self.case.is_plain().then(|| ideals.as_secs_f64() / f64::from(count.max(1)));
        Ok((times.as_secs_f64() / f64::from(count.max(1)), ideal))
    }

    /// Runs until a file is complete, or its time is over.
    fn until_complete(&mut self, handle: ConnectionHandle, end: Duration) -> Result<(), Failure> {
        self.network.flush()?;
        loop {
            let host = self.network.node::<Host>(self.client);
            let client = host.and_then(|host| host.app::<Observed<BulkClient>>(handle));
            if client.is_none_or(|client| client.app.is_done()) {
                break;
            }
            if self.network.next_time().is_none_or(|next| next > end) {
                return self.network.run_until(end);
            }
            self.network.step()?;
        }
        // A connection that broke leaves its file incomplete.
        if client_is_gone(&self.network, self.client, handle) {
            return self.network.run_until(end);
        }
        Ok(())
    }

    /// Fails if an application gave up, for example because a byte was wrong.
    fn check(&self) -> Result<(), Failure> {
        let error = |node| self.network.node::<Host>(node)?.app_error().cloned();
        let error = error(self.client).or_else(|| error(self.server));
        let failed = |error: sutura_sim::AppError| FailureKind::App(error.to_string());
        error.map_or(Ok(()), |error| Err(self.network.failure(failed(error))))
    }

    /// What the server sent, and what became of it.
    fn traffic(&self) -> Outcome {
        let Some(host) = self.network.node::<Host>(self.server) else { return Outcome::default() };
        let present = host.connections().map(|(_, connection)| connection.stats());
        let all: Vec<_> = present.chain(host.finished().iter().map(|past| past.stats)).collect();
        let bytes: u64 = all.iter().map(|stats| stats.sent.bytes).sum();
        let repairs: u64 = all.iter().map(|stats| stats.fec.repair_symbols_sent).sum();
        let passage = self.meter.take().into_iter().next().unwrap_or_default();
        let sent = passage.sent.max(1) as f64;
        Outcome {
            wire: bytes as f64 / self.case.app.payload().max(1) as f64,
            dropped: passage.overflow as f64 / sent,
            lost: passage.sent.saturating_sub(passage.overflow + passage.passed) as f64 / sent,
            repairs: repairs as f64 / sent,
            ..Outcome::default()
        }
    }
}

fn client_is_gone(network: &Network, client: NodeId, handle: ConnectionHandle) -> bool {
    let host = network.node::<Host>(client);
    host.is_none_or(|host| host.app::<Observed<BulkClient>>(handle).is_none())
}
