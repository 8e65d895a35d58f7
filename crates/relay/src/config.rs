//! The configuration of a relay.

use std::net::SocketAddr;
use std::time::Duration;

use sutura_link::LinkConfig;

/// How a [`Relay`](crate::Relay) is set up.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where clients send to. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where their datagrams go.
    pub to: SocketAddr,
    /// The link from the clients to the destination.
    pub up: LinkConfig,
    /// The link from the destination to the clients.
    pub down: LinkConfig,
    /// Decides all that is random: the same seed and the same datagrams meet the same fate.
    pub seed: u64,
    /// Clients served at the same time. Datagrams of further ones are refused until one of these
    /// has been idle for [`idle_timeout`](Self::idle_timeout).
    pub max_clients: usize,
    /// How long a client that neither sends nor receives is remembered.
    pub idle_timeout: Duration,
}

impl Config {
    /// Default for the clients served at the same time. Each takes a socket.
    pub const DEFAULT_MAX_CLIENTS: usize = 512;
    /// Default for how long an idle client is remembered.
    pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

    /// A relay without any effect, from `listen` to `to`.
    #[must_use]
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            listen,
            to,
            up: LinkConfig::default(),
            down: LinkConfig::default(),
            seed: 0,
            max_clients: Self::DEFAULT_MAX_CLIENTS,
            idle_timeout: Self::DEFAULT_IDLE_TIMEOUT,
        }
    }

    /// The same link in both directions.
    #[must_use]
    pub fn link(mut self, link: &LinkConfig) -> Self {
        self.up = link.clone();
        self.down = link.clone();
        self
    }

    /// Another seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The seed of the link upwards.
    #[must_use]
    pub const fn up_seed(&self) -> u64 {
        self.seed
    }

    /// The seed of the link downwards, which differs so that the directions share no luck.
    #[must_use]
    pub const fn down_seed(&self) -> u64 {
        self.seed ^ 0x646f_776e_7761_7264
    }
}
