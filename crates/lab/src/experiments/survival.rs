//! A session in which every event happens that may happen to a connection, and the cost of each event.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::statistics::millis;
use sutura_link::LinkConfig;
use sutura_proto::{
    Connection, ConnectionHandle, Protection, ResetKey, SocketFeatures, TransportConfig,
};
use sutura_sim::{
    BulkClient, BulkServer, Clock, Failure, FailureKind, Host, Network, NodeId, Transfer,
};

use crate::comparison::{Runs, Values};
use crate::hosts::{NAME, client_at, client_config, server_at, server_config};
use crate::report::{Cell, Report, Table, report_of};
use crate::{Error, Options};

const ALPN: &[u8] = b"perf";
/// The bytes that the client fetches on each stream.
const BLOCK: u64 = 128_000;
const BLOCKS: usize = 900;
/// Blocks that are fetched at the same time.
const PARALLEL: usize = 4;
/// Sessions, each with losses of its own.
const SESSIONS: u64 = 20;
const ROUND_TRIP: Duration = Duration::from_millis(60);
/// By when a session must be over.
const DEADLINE: Duration = Duration::from_secs(600);
/// How long the path is gone.
const OUTAGE: Duration = Duration::from_secs(25);

/// An event in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Incident {
    Nothing,
    OtherPort,
    OtherAddress,
    ShortPackets,
    LongPackets,
    Restart,
    Outage,
}

impl Incident {
    /// All incidents, with their times in seconds.
    const ALL: [(u64, Self); 7] = [
        (2, Self::Nothing),
        (10, Self::OtherPort),
        (20, Self::OtherAddress),
        (30, Self::ShortPackets),
        (40, Self::LongPackets),
        (50, Self::Restart),
        (60, Self::Outage),
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing (for comparison)",
            Self::OtherPort => "the client gets another port",
            Self::OtherAddress => "the client gets another address",
            Self::ShortPackets => "the path carries no more than 1200 bytes of payload",
            Self::LongPackets => "the path carries 1452 bytes again",
            Self::Restart => "the server is killed and started again",
            Self::Outage => "the path is gone for 25 s",
        }
    }

    /// For how long nothing can arrive in any case.
    const fn inevitable(self) -> Duration {
        match self {
            Self::Outage => OUTAGE,
            Self::Nothing
            | Self::OtherPort
            | Self::OtherAddress
            | Self::ShortPackets
            | Self::LongPackets
            | Self::Restart => Duration::ZERO,
        }
    }
}

/// The path: 2 % loss, changes of the MTU, and an outage.
fn link() -> Result<LinkConfig, Error> {
    Ok("rate=10mbit delay=30ms queue=75kb loss=bern:0.02 mtu=1480b step=30s,mtu=1228b \
        step=40s,mtu=1480b outage=60s..85s"
        .parse()?)
}

fn transport(protected: bool) -> Arc<TransportConfig> {
    let config = TransportConfig::default().with_keep_alive(Some(Duration::from_secs(1)));
    let redundancy = config.redundancy.clone().filter(|_| protected);
    Arc::new(config.with_redundancy(redundancy))
}

/// The cost of an event: the longest time without data from then until the next event, and the datagram size
/// of the server before the next event.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Cost {
    silence: Duration,
    udp_payload: u16,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Survived {
    costs: Vec<Cost>,
    connections: usize,
    duration: Duration,
}

struct LongSession {
    network: Network,
    client: NodeId,
    server: NodeId,
    transport: Arc<TransportConfig>,
    handle: ConnectionHandle,
    connections: usize,
    /// Blocks that were complete when the present connection began.
    before: usize,
    /// Blocks and bytes that this connection has brought.
    complete: usize,
    bytes: u64,
    /// When the last byte was read.
    read_at: Duration,
}

impl LongSession {
    fn new(seed: u64, protected: bool) -> Result<Self, Error> {
        let mut network = Network::new(Clock::default());
        let transport = transport(protected);
        let config = server_config(ALPN, transport.clone());
        let protection = transport.redundancy.clone().map(Protection::new);
        let accept = Box::new(move || Box::new(BulkServer::new(protection.clone())) as _);
        let sockets = SocketFeatures::default().with_ecn(true).with_unfragmented(true);
        let client = Host::with_sockets(sockets, None, 2 * seed);
        let server = Host::with_sockets(sockets, Some((config, accept)), 2 * seed + 1);
        let key = ResetKey::new(&seed.to_be_bytes().repeat(4), b"survival");
        let client = network.add(client_at(1, 50_000), client);
        let server = network.add(server_at(1), server.answering(key));
        network.connect(client, server, &link()?, 2 * seed);
        network.connect(server, client, &link()?, 2 * seed + 1);
        let mut session = Self {
            network,
            client,
            server,
            transport,
            handle: ConnectionHandle(0),
            connections: 0,
            before: 0,
            complete: 0,
            bytes: 0,
            read_at: Duration::ZERO,
        };
        session.connect()?;
        Ok(session)
    }

    /// Fetches the blocks that are missing, over a new connection.
    fn connect(&mut self) -> Result<(), Failure> {
        self.before += std::mem::take(&mut self.complete);
        self.bytes = 0;
        self.connections += 1;
        let blocks = std::iter::repeat_n(Transfer::download(BLOCK), BLOCKS - self.before);
        let app = BulkClient::new(blocks, PARALLEL, Duration::ZERO);
        let config = client_config(ALPN, self.transport.clone());
        let now = self.network.clock().at(self.network.now());
        let opened = self
            .network
            .node_mut::<Host>(self.client)
            .map(|host| host.connect(now, config, server_at(1), NAME, app));
        match opened {
            Some(Ok(handle)) => self.handle = handle,
            Some(Err(e)) => return Err(self.network.failure(FailureKind::Connect(e.to_string()))),
            None => return Err(self.network.failure(FailureKind::Quiescent)),
        }
        Ok(())
    }

    fn connection(&self, node: NodeId) -> Option<&Connection> {
        let host = self.network.node::<Host>(node)?;
        host.connections().map(|(_, connection)| connection).find(|c| !c.is_closed())
    }

    /// Events of the path itself do not happen here.
    fn happen(&mut self, event: Incident) {
        match event {
            Incident::OtherPort => self.network.move_to(self.client, client_at(1, 50_001)),
            Incident::OtherAddress => self.network.move_to(self.client, client_at(2, 50_002)),
            Incident::Restart => {
                if let Some(host) = self.network.node_mut::<Host>(self.server) {
                    host.restart();
                }
            }
            Incident::Nothing
            | Incident::ShortPackets
            | Incident::LongPackets
            | Incident::Outage => {}
        }
    }

    /// Goes on by one event of the simulation. If the client read bytes now, returns for how long it had read
    /// none.
    fn step(&mut self) -> Result<Option<Duration>, Failure> {
        if !self.network.step()? {
            return Err(self.network.failure(FailureKind::Quiescent));
        }
        let now = self.network.now();
        if now > DEADLINE {
            return Err(self.network.failure(FailureKind::Deadline(DEADLINE)));
        }
        let host = self.network.node::<Host>(self.client);
        if let Some(error) = host.and_then(Host::app_error) {
            return Err(self.network.failure(FailureKind::App(error.to_string())));
        }
        let app = host.and_then(|host| host.app::<BulkClient>(self.handle));
        let (complete, bytes) = app.map_or((0, 0), |app| (app.completed().len(), app.received()));
        self.complete = self.complete.max(complete);
        if bytes > self.bytes {
            self.bytes = bytes;
            return Ok(Some(now - std::mem::replace(&mut self.read_at, now)));
        }
        if self.connection(self.client).is_none() {
            self.connect()?;
        }
        Ok(None)
    }

    fn run(mut self) -> Result<Survived, Failure> {
        let mut costs: Vec<Cost> = Vec::new();
        while self.before + self.complete < BLOCKS {
            let next = Incident::ALL.get(costs.len());
            if let Some((at, event)) = next
                && self.network.now() >= Duration::from_secs(*at)
            {
                self.happen(*event);
                costs.push(Cost::default());
            }
            let silence = self.step()?;
            let size = self.connection(self.server).map(|c| c.stats().udp_payload_size);
            if let Some(cost) = costs.last_mut() {
                cost.silence = cost.silence.max(silence.unwrap_or_default());
                cost.udp_payload = size.unwrap_or(cost.udp_payload);
            }
        }
        let (connections, duration) = (self.connections, self.network.now());
        if costs.len() < Incident::ALL.len() {
            let early = "the session was over before everything happened".to_owned();
            return Err(self.network.failure(FailureKind::App(early)));
        }
        Ok(Survived { costs, connections, duration })
    }
}

experiment! {
    "survival": "One session that moves, loses its server and its path, and what each event costs" (Seeds),
    one in 4 takes 9 s
}

/// The sessions of both kinds: with redundancy and without.
fn run(options: &Options) -> Result<Report, Error> {
    let sessions = options.seeds(SESSIONS);
    let all = Runs::measure(options, &[true, false], sessions, |protected, n| {
        let session = LongSession::new(options.seed.wrapping_add(n), *protected)?;
        session.run().map_err(Error::from)
    })?;
    let [with, without] = [0, 1].map(|n| all.get(n).map_or(&[][..], |of| &of.runs));
    Ok(report(with, without))
}

/// The costs of an event in milliseconds, beyond the inevitable time.
fn costs(outcomes: &[Survived], index: usize) -> Values {
    let (_, event) = Incident::ALL[index];
    let cost = |o: &Survived| millis(o.costs[index].silence.saturating_sub(event.inevitable()));
    Values::of(outcomes.iter().map(cost))
}

fn report(with: &[Survived], without: &[Survived]) -> Report {
    let rows: Vec<usize> = (0..Incident::ALL.len()).collect();
    let size = |n: usize| with.iter().map(|o| o.costs[n].udp_payload).min().unwrap_or_default();
    let table = Table::of(
        "The longest time without data after each event",
        &rows,
        &[
            ("event", &|n| Incident::ALL[**n].1.name().into()),
            ("at", &|n| format!("{} s", Incident::ALL[**n].0).into()),
            ("median", &|n| costs(with, **n).millis_cell(0.5)),
            ("worst", &|n| Cell::Millis(costs(with, **n).at(1.0))),
            ("median without redundancy", &|n| costs(without, **n).millis_cell(0.5)),
            ("UDP payload before the next event", &|n| u64::from(size(**n)).into()),
        ],
    );
    let connections = with.iter().map(|o| o.connections).max().unwrap_or_default();
    let longest = with.iter().map(|o| o.duration).max().unwrap_or_default();
    report_of(
        "A session that survives",
        &[
            &format!(
                "A client fetches {BLOCKS} blocks of {BLOCK} bytes, {PARALLEL} at a time, over \
                 10 Mbit/s with a round-trip time of {ROUND_TRIP:?} and 2 % loss each way; {} sessions \
                 with the default redundancy, and as many without. Ports and addresses change without \
                 notice to the client. Every byte is checked, and all blocks arrived in every session, \
                 over at most {connections} connections, within {longest:.0?}.",
                with.len()
            ),
            "The longest time without new data for the application until the next event; of an outage, \
             what is beyond it. After a restart the client learns from a stateless reset that its \
             connection is gone, connects again and fetches the blocks that are not complete.",
        ],
        [table],
        [],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_survives_everything() {
        let outcome = LongSession::new(7, true).unwrap().run().unwrap();
        println!("{outcome:?}");
        assert_eq!(outcome.connections, 2, "only the restart takes another one");
        let costs: Vec<_> = outcome.costs.iter().zip(Incident::ALL).collect();
        for (cost, (_, event)) in &costs {
            let beyond = cost.silence.saturating_sub(event.inevitable());
            assert!(beyond < Duration::from_secs(4), "{event:?}: {beyond:?}");
        }
        let size = |wanted: Incident| {
            let found = costs.iter().find(|(_, (_, event))| *event == wanted);
            found.map(|(cost, _)| cost.udp_payload).unwrap()
        };
        assert_eq!((size(Incident::OtherAddress), size(Incident::ShortPackets)), (1452, 1200));
        assert_eq!(size(Incident::Outage), 1452, "the path carries more again");
    }
}
