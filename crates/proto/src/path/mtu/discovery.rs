//! How larger datagrams are looked for.

use std::time::Duration;

/// How the datagram size of a path is found (RFC 8899).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MtuDiscovery {
    /// The largest UDP payload to look for, in bytes. By default 1452, which Ethernet carries with IPv6.
    pub upper_bound: u16,
    /// After how long a path that carries less is tried again. By default a minute.
    pub retry_interval: Duration,
}

impl MtuDiscovery {
    sutura_schedule::setters! {
        with_upper_bound: upper_bound = u16,
        with_retry_interval: retry_interval = Duration,
    }
}

impl Default for MtuDiscovery {
    fn default() -> Self {
        Self { upper_bound: 1452, retry_interval: Duration::from_secs(60) }
    }
}
