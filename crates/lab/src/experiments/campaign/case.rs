//! A case of the campaign: the two ends, their work, their path, and the disturbances.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use sutura_link::LinkConfig;
use sutura_proto::{Protection, SocketFeatures, TransportConfig};
use sutura_random::Rng;
use sutura_sim::{Disturbance, Failure, Transfer};

use super::super::seeded::{self, Traffic};
use super::{mixed, ours, paths, settings};
use crate::Error;
use crate::hosts::client_at;

named! {
    /// Which implementation each end runs.
    pub enum Peers {
        /// Both ends are ours.
        Ours = "both ends ours",
        /// Our client and a server of quinn-proto.
        QuinnServer = "server of quinn",
        /// A client of quinn-proto and our server.
        QuinnClient = "client of quinn",
    }
}

named! {
    /// The kind of data that is transferred.
    pub enum Work {
        /// Streams, in both directions at once.
        Bulk = "streams",
        /// Groups of messages from the server, in a partial order.
        Updates = "ordered groups",
        /// Messages from the server, each on a stream of its own, with deadlines.
        Messages = "messages with deadlines",
        /// Datagrams from the client.
        Datagrams = "datagrams",
    }
}

/// All random choices of a case.
#[derive(Clone, Debug)]
pub struct TransferCase {
    pub seed: u64,
    pub peers: Peers,
    pub work: Work,
    /// Streams at the same time, and bytes each way on each.
    pub streams: u64,
    pub bytes: u64,
    /// Whether the client reads in another order than stream order.
    pub unordered: bool,
    pub up: LinkConfig,
    pub down: LinkConfig,
    pub client: TransportConfig,
    pub server: TransportConfig,
    pub sockets: SocketFeatures,
    pub disturbances: Vec<(Duration, Disturbance)>,
}

impl seeded::Case for TransferCase {
    type Tally = Traffic;

    /// Assertions of quinn-proto 0.11 that fail when a client of its server moves. They are not failures
    /// of ours.
    const PEER_ASSERTIONS: &'static [&'static str] =
        &["assertion failed: !self.peer_completed_address_validation()"];

    /// The case of a seed.
    ///
    /// # Errors
    /// A link or a policy is not valid, which is a bug of this module.
    fn of(seed: u64) -> Result<Self, Error> {
        let mut rng = Rng::new(seed);
        let peers = [Peers::Ours, Peers::Ours, Peers::QuinnServer, Peers::QuinnClient];
        let peers = peers[rng.below(4) as usize];
        let work = match (peers, rng.below(20)) {
            (Peers::QuinnServer | Peers::QuinnClient, _) | (Peers::Ours, 0..14) => Work::Bulk,
            (Peers::Ours, 14..16) => Work::Updates,
            (Peers::Ours, 16..18) => Work::Messages,
            (Peers::Ours, _) => Work::Datagrams,
        };
        let streams = [1, 1, 2, 10, 50][rng.below(5) as usize];
        let bytes = (20_000 + rng.below(800_000)) / streams;
        let calm = if peers == Peers::QuinnClient { mixed::START } else { Duration::ZERO };
        let (up, down) = (paths::random(&mut rng, calm)?, paths::random(&mut rng, calm)?);
        let slowest = up.slowest.min(down.slowest);
        let sockets = SocketFeatures::default()
            .with_ecn(rng.below(2) == 0)
            .with_unfragmented(rng.below(2) == 0);
        let mut client = settings::random(&mut rng, slowest, up.mtu)?;
        let unordered = work == Work::Bulk && rng.below(3) == 0;
        if unordered {
            client.delivery = settings::unordered()?;
        }
        Ok(Self {
            seed,
            peers,
            work,
            streams,
            bytes,
            unordered,
            client,
            server: settings::random(&mut rng, slowest, down.mtu)?,
            up: up.link,
            down: down.link,
            sockets,
            disturbances: disturbances(&mut rng, peers != Peers::QuinnClient, calm),
        })
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn run(&self) -> Result<Traffic, Failure> {
        match self.peers {
            Peers::Ours => ours::run(self),
            Peers::QuinnServer | Peers::QuinnClient => mixed::run(self),
        }
    }
}

impl TransferCase {
    /// The transfer on each stream: the same number of bytes each way, protected by the sender's policy.
    pub fn transfer(&self) -> Transfer {
        let protection = self.client.redundancy.clone().map(Protection::new);
        Transfer { protection, ..Transfer::both(self.bytes) }
    }

    /// Whether one of the links has this setting.
    pub fn has(&self, setting: &str) -> bool {
        [&self.up, &self.down].iter().any(|link| link.to_string().contains(setting))
    }

    /// Whether the client's address changes.
    pub fn has_move(&self) -> bool {
        self.disturbances.iter().any(|(_, d)| match d {
            Disturbance::Rebind(_) | Disturbance::Migrate(_) => true,
            Disturbance::ClientSleeps(_) | Disturbance::ServerSleeps(_) => false,
        })
    }

    /// Whether a host sleeps for a while.
    pub fn has_sleep(&self) -> bool {
        self.disturbances.iter().any(|(_, d)| match d {
            Disturbance::Rebind(_) | Disturbance::Migrate(_) => false,
            Disturbance::ClientSleeps(_) | Disturbance::ServerSleeps(_) => true,
        })
    }
}

/// Half of the cases run undisturbed. In the others, disturbances happen once or several times, but none
/// before `calm` is over. `deliberate` tells whether the client can move on purpose.
pub fn disturbances(
    rng: &mut Rng,
    deliberate: bool,
    calm: Duration,
) -> Vec<(Duration, Disturbance)> {
    if rng.below(2) == 0 {
        return Vec::new();
    }
    let one = |rng: &mut Rng| {
        let at = calm + Duration::from_millis(rng.below(5000));
        let rest = Duration::from_millis(100 + rng.below(1900));
        let what = match rng.below(4) {
            0 => Disturbance::ClientSleeps(rest),
            1 => Disturbance::ServerSleeps(rest),
            2 if deliberate => Disturbance::Migrate(another_address(rng)),
            _ => Disturbance::Rebind(another_address(rng)),
        };
        (at, what)
    };
    (0..=rng.below(3)).map(|_| one(rng)).collect()
}

/// Another port of the client, or another host.
fn another_address(rng: &mut Rng) -> SocketAddr {
    let host = if rng.below(2) == 0 { 1 } else { 2 + rng.below(200) as u8 };
    client_at(host, 50_000 + rng.below(10_000) as u16)
}

impl fmt::Display for TransferCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { streams, bytes, up, down, sockets, disturbances, .. } = self;
        let (peers, work) = (self.peers.name(), self.work.name());
        writeln!(f, "{peers}, {work}, {streams} x {bytes} bytes, {sockets:?}")?;
        writeln!(f, "up {up}\ndown {down}\nevents {disturbances:?}")?;
        writeln!(f, "client {:?}", self.client)?;
        write!(f, "server {:?}", self.server)
    }
}
