//! The measurements: peers, channels, workloads, and the jobs that they make.

use std::fmt;
use std::time::Duration;
use sutura::{Algorithm, Protection};
use sutura_benches::stack::Name;
use sutura_link::{LinkConfig, ParseError};

/// An implementation, its congestion control and its protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    pub name: Name,
    pub congestion: Algorithm,
    /// Burst loss tolerance: the number of repair symbols after the data.
    pub burst: u32,
    /// Repair delay tolerance: how long the repair symbols wait.
    pub delay: Duration,
}

impl Peer {
    const fn sutura(congestion: Algorithm, burst: u32, delay_ms: u64) -> Self {
        Self { name: Name::Sutura, congestion, burst, delay: Duration::from_millis(delay_ms) }
    }

    const fn quinn(congestion: Algorithm) -> Self {
        Self { name: Name::Quinn, congestion, burst: 0, delay: Duration::ZERO }
    }

    /// The same peer without repair symbols.
    pub const fn unprotected(self) -> Self {
        Self { burst: 0, delay: Duration::ZERO, ..self }
    }

    /// The protection for which the peer's server asks.
    pub fn protection(&self, incremental: bool) -> Option<Protection> {
        let Self { burst, delay, .. } = *self;
        let make = if incremental { Protection::incremental } else { Protection::tail };
        (burst > 0).then(|| make(burst, delay))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.congestion.name().to_uppercase())?;
        if self.name == Name::Sutura {
            write!(f, " BLT {}", self.burst)?;
        }
        if !self.delay.is_zero() {
            write!(f, " RDT {} ms", self.delay.as_millis())?;
        }
        Ok(())
    }
}

/// The loss of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    Lossless,
    /// Gilbert-Elliott, stepped by all packets and by 10 Mbit/s of cross traffic.
    Background,
    /// The same loss in each state, but the states last for times that no traffic influences.
    Time,
}

impl Channel {
    pub const ALL: [Self; 3] = [Self::Lossless, Self::Background, Self::Time];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Lossless => "lossless",
            Self::Background => "packet-stepped",
            Self::Time => "time-stepped",
        }
    }

    pub fn link(self) -> Result<LinkConfig, ParseError> {
        match self {
            Self::Lossless => "paper loss=none",
            Self::Background => "paper-background",
            Self::Time => "paper-time",
        }
        .parse()
    }
}

/// The work of a job on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// `count` downloads, one after the other.
    Downloads { bytes: u64, count: usize },
    /// This many messages on one stream.
    Stream { messages: usize },
}

/// The sizes of downloads.
pub const SIZES: [u64; 2] = [32_000, 1_000_000];

/// One connection of one peer over one link.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub peer: Peer,
    pub channel: Channel,
    pub workload: Workload,
    pub seed: u64,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, channel, workload, seed } = self;
        match workload {
            Workload::Downloads { bytes, .. } => write!(f, "download {bytes}")?,
            Workload::Stream { .. } => write!(f, "stream")?,
        }
        write!(f, ", {}, {peer}, seed {seed}", channel.name())
    }
}

/// The peers whose downloads are compared.
pub const DOWNLOADERS: [Peer; 7] = [
    Peer::quinn(Algorithm::BBR),
    Peer::sutura(Algorithm::BBR, 0, 0),
    Peer::sutura(Algorithm::BBR, 1, 0),
    Peer::sutura(Algorithm::BBR, 3, 0),
    Peer::quinn(Algorithm::CUBIC),
    Peer::sutura(Algorithm::CUBIC, 0, 0),
    Peer::sutura(Algorithm::CUBIC, 3, 0),
];

/// The peers whose streams are compared.
pub const STREAMERS: [Peer; 7] = [
    Peer::quinn(Algorithm::BBR),
    Peer::sutura(Algorithm::BBR, 0, 0),
    Peer::sutura(Algorithm::BBR, 3, 0),
    Peer::sutura(Algorithm::BBR, 3, 25),
    Peer::quinn(Algorithm::CUBIC),
    Peer::sutura(Algorithm::CUBIC, 0, 0),
    Peer::sutura(Algorithm::CUBIC, 3, 0),
];

/// Connections of each peer, channel and workload.
const CONNECTIONS: u64 = 4;

/// All jobs, peers next to each other.
pub fn jobs(seed: u64, quick: bool) -> Vec<Job> {
    let (connections, divisor) = if quick { (1, 3) } else { (CONNECTIONS, 1) };
    let workloads = [
        (Workload::Stream { messages: 900 / divisor }, STREAMERS),
        (Workload::Downloads { bytes: SIZES[0], count: 50 / divisor }, DOWNLOADERS),
        (Workload::Downloads { bytes: SIZES[1], count: 10 / divisor }, DOWNLOADERS),
    ];
    let mut jobs = Vec::new();
    for connection in 0..connections {
        let seed = sutura_random::Rng::stream(seed, connection).next_u64();
        for (workload, peers) in workloads {
            for channel in Channel::ALL {
                // Without loss, all connections of a peer are the same.
                if channel == Channel::Lossless && connection > 0 {
                    continue;
                }
                jobs.extend(peers.map(|peer| Job { peer, channel, workload, seed }));
            }
        }
    }
    jobs
}
