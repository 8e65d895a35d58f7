//! The configuration of a relay.

use std::net::SocketAddr;
use std::time::Duration;

use sutura_link::LinkConfig;

use crate::Rebinding;

/// The configuration of a [`Relay`](crate::Relay).
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The address that clients send to. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The destination of their datagrams.
    pub to: SocketAddr,
    /// Further addresses to listen on, each with a destination of its own. They share the link.
    pub further: Vec<(SocketAddr, SocketAddr)>,
    /// The link from the clients to the destination.
    pub up: LinkConfig,
    /// The link from the destination to the clients.
    pub down: LinkConfig,
    /// When the clients get other ports or addresses towards the destination, in any order.
    pub rebindings: Vec<Rebinding>,
    /// Seeds everything that is random: the same seed and the same datagrams give the same fates.
    pub seed: u64,
    /// Maximum number of concurrent clients. Datagrams of further clients are refused until a current client
    /// has been idle for [`idle_timeout`](Self::idle_timeout).
    pub max_clients: usize,
    /// How long to remember a client that neither sends nor receives.
    pub idle_timeout: Duration,
}

impl Config {
    /// The default maximum number of clients. Each uses one socket.
    pub const DEFAULT_MAX_CLIENTS: usize = 512;
    /// The default time for which an idle client is remembered.
    pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

    /// A relay from `listen` to `to` that has no effect on datagrams.
    #[must_use]
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            listen,
            to,
            further: Vec::new(),
            up: LinkConfig::default(),
            down: LinkConfig::default(),
            rebindings: Vec::new(),
            seed: 0,
            max_clients: Self::DEFAULT_MAX_CLIENTS,
            idle_timeout: Self::DEFAULT_IDLE_TIMEOUT,
        }
    }

    /// Sets the same link for both directions.
    #[must_use]
    pub fn link(mut self, link: &LinkConfig) -> Self {
        self.up = link.clone();
        self.down = link.clone();
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// All pairs of an address to listen on and a destination.
    pub(crate) fn doors(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
        std::iter::once((self.listen, self.to)).chain(self.further.iter().copied())
    }

    /// The seed of the upward link.
    #[must_use]
    pub const fn up_seed(&self) -> u64 {
        self.seed
    }

    /// The seed of the downward link. It differs from the upward link's, so that the fates in both directions
    /// are independent.
    #[must_use]
    pub const fn down_seed(&self) -> u64 {
        self.seed ^ 0x646f_776e_7761_7264
    }
}
