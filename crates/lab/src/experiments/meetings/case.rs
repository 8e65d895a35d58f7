//! A meeting: two ends, the path between them, and the disturbances of their hosts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sutura_link::LinkConfig;
use sutura_proto::{Connection, Extensions, SocketFeatures, TransportConfig};
use sutura_random::Rng;
use sutura_sim::{
    Accept, Clock, Disturbance, Disturbances, Failure, FailureKind, Host, Network, NodeId, TraceLog,
};

use super::super::campaign::{disturbances, paths, settings};
use super::super::seeded::{self, Traffic};
use super::MeetingTally;
use super::guest::Guest;
use crate::Error;
use crate::hosts::{self, NAME, client_at, client_config, server_at, server_config};

const ALPN: &[u8] = b"meeting";
/// By when both ends must be done, and no state left.
const DEADLINE: Duration = Duration::from_secs(900);
/// How many events are shown with a failure.
const EVENTS: usize = 30;

/// All random choices of a meeting.
#[derive(Clone, Debug)]
pub struct MeetingCase {
    pub seed: u64,
    up: LinkConfig,
    down: LinkConfig,
    client: TransportConfig,
    server: TransportConfig,
    sockets: SocketFeatures,
    disturbances: Vec<(Duration, Disturbance)>,
    guests: [u64; 2],
    /// The extensions that the client and the server offer.
    extensions: [Extensions; 2],
}

impl seeded::Case for MeetingCase {
    type Tally = MeetingTally;

    /// The meeting of a seed.
    ///
    /// # Errors
    /// A link or a policy is not valid, which is a bug of this module.
    fn of(seed: u64) -> Result<Self, Error> {
        let mut rng = Rng::new(seed);
        let calm = Duration::ZERO;
        let (up, down) = (paths::random(&mut rng, calm)?, paths::random(&mut rng, calm)?);
        let slowest = up.slowest.min(down.slowest);
        Ok(Self {
            seed,
            sockets: SocketFeatures::default()
                .with_ecn(rng.below(2) == 0)
                .with_unfragmented(rng.below(2) == 0),
            client: settings::random(&mut rng, slowest, up.mtu)?,
            server: settings::random(&mut rng, slowest, down.mtu)?,
            up: up.link,
            down: down.link,
            disturbances: disturbances(&mut rng, true, calm),
            guests: [rng.next_u64(), rng.next_u64()],
            extensions: [extensions(&mut rng), extensions(&mut rng)],
        })
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    /// Lets the two ends meet.
    ///
    /// # Errors
    /// A byte is wrong, a connection breaks or contradicts itself, or state is left after the end.
    fn run(&self) -> Result<MeetingTally, Failure> {
        Meeting::new(self)?.complete(self)
    }
}

impl MeetingCase {
    /// Whether a disturbance happens to a host.
    pub fn is_disturbed(&self) -> bool {
        !self.disturbances.is_empty()
    }

    /// Whether both ends understand RESET_STREAM_AT.
    pub fn can_promise(&self) -> bool {
        self.extensions.iter().all(|offered| offered.reset_stream_at)
    }

    /// Whether one of the links has this setting.
    pub fn has(&self, setting: &str) -> bool {
        [&self.up, &self.down].iter().any(|link| link.to_string().contains(setting))
    }
}

/// Most ends offer all extensions, as by default; other ends any of them.
fn extensions(rng: &mut Rng) -> Extensions {
    if rng.below(4) > 0 {
        return Extensions::default();
    }
    Extensions::default()
        .with_grease_quic_bit(rng.below(2) == 0)
        .with_reset_stream_at(rng.below(2) == 0)
        .with_version_information(rng.below(2) == 0)
        .with_ack_frequency(rng.below(2) == 0)
}

impl fmt::Display for MeetingCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { up, down, sockets, disturbances, extensions, .. } = self;
        writeln!(f, "up {up}\ndown {down}\n{sockets:?}, events {disturbances:?}")?;
        writeln!(f, "{extensions:?}")?;
        writeln!(f, "client {:?}", self.client)?;
        write!(f, "server {:?}", self.server)
    }
}

/// Two ends, each with a guest.
struct Meeting {
    network: Network,
    /// The client and the server.
    nodes: [NodeId; 2],
}

impl Meeting {
    fn new(case: &MeetingCase) -> Result<Self, Failure> {
        let mut seeds = Rng::new(!case.seed);
        let mut network = Network::new(Clock::default());
        network.set_tracer(Box::new(TraceLog::new(EVENTS)));
        let [ours, theirs] = case.guests;
        let config = server_config(ALPN, Arc::new(case.server.clone()));
        let accept: Accept = Box::new(move || Box::new(Guest::new(theirs)));
        let server = Some((config, accept));
        let [client_offers, server_offers] = case.extensions;
        let server = Host::with_sockets(case.sockets, server, seeds.next_u64());
        let server = server.offering(server_offers).checked();
        let client = Host::with_sockets(case.sockets, None, seeds.next_u64());
        let mut client = client.offering(client_offers).checked();
        let config = client_config(ALPN, Arc::new(case.client.clone()));
        let now = network.clock().at(Duration::ZERO);
        let opened = client.connect(now, config, server_at(1), NAME, Guest::new(ours));
        let client = network.add(client_at(1, 50_000), client);
        let server = network.add(server_at(1), server);
        network.connect(client, server, &case.up, seeds.next_u64());
        network.connect(server, client, &case.down, seeds.next_u64());
        match opened {
            Ok(_) => Ok(Self { network, nodes: [client, server] }),
            Err(error) => Err(network.failure(FailureKind::Connect(error.to_string()))),
        }
    }

    fn complete(mut self, case: &MeetingCase) -> Result<MeetingTally, Failure> {
        let mut disturbances = Disturbances::new(&case.disturbances);
        loop {
            disturbances.happen(&mut self.network, self.nodes);
            if let Some(error) = self.nodes.into_iter().find_map(|node| self.error(node)) {
                return Err(self.network.failure(FailureKind::App(error)));
            }
            let left = self.left();
            let Err(left) = left else { break };
            if self.network.now() > DEADLINE {
                return Err(self.network.failure(FailureKind::Leftover(left)));
            }
            if !self.network.step()? {
                return Err(self.network.failure(FailureKind::Quiescent));
            }
        }
        let [client, server] = self.nodes;
        let links = [(client, server), (server, client)];
        let links = links.map(|(from, to)| self.network.link_stats(from, to));
        let ends = self.nodes.map(|node| self.end(node));
        let guests = || ends.iter().flatten().map(|(_, guest)| *guest);
        let recovered = ends.iter().flatten().map(|(quic, _)| quic.stats().fec.recovered).sum();
        Ok(MeetingTally {
            traffic: Traffic::of(&links, recovered),
            bytes: guests().map(|guest| guest.bytes).sum(),
            promises: guests().map(|guest| guest.promises).sum(),
            time: self.network.now(),
        })
    }

    fn end(&self, node: NodeId) -> Option<(&Connection, &Guest)> {
        let host = self.network.node::<Host>(node)?;
        let (handle, connection) = host.connections().next()?;
        Some((connection, host.app(handle)?))
    }

    fn error(&self, node: NodeId) -> Option<String> {
        hosts::error(self.network.node::<Host>(node)?)
    }

    /// `Ok` once both ends are done, and no state is left; otherwise a description of the rest.
    fn left(&self) -> Result<(), String> {
        for (node, name) in self.nodes.into_iter().zip(["client", "server"]) {
            let (_, guest) = self.end(node).ok_or_else(|| format!("no {name} yet"))?;
            if !guest.is_done() {
                return Err(format!("the {name} is not done"));
            }
        }
        for (node, name) in self.nodes.into_iter().zip(["client", "server"]) {
            let (connection, _) = self.end(node).ok_or_else(|| format!("no {name} yet"))?;
            connection.check_nothing_left().map_err(|left| format!("{name}: {left}"))?;
        }
        Ok(())
    }
}
