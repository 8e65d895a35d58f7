//! Statistics of a relay.

use std::time::Duration;

use sutura_link::LinkStats;

/// Statistics of a [`Relay`](crate::Relay).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The link from the clients to the destination.
    pub up: LinkStats,
    /// The link from the destination to the clients.
    pub down: LinkStats,
    /// Number of current clients.
    pub clients: usize,
    /// Number of clients seen so far. A client that returns after it was forgotten counts again.
    pub clients_seen: u64,
    /// How often the clients got other ports or addresses.
    pub rebindings: u64,
    /// Datagrams of clients above the limit, and datagrams for which there was no memory. They were
    /// never sent over the link.
    pub refused: u64,
    /// Datagrams that crossed the link but then could not be sent, or whose client was forgotten by
    /// then.
    pub unsent: u64,
    /// Datagrams forwarded.
    pub forwarded: u64,
    /// The largest delay of a forwarded datagram after its due time.
    pub late_max: Duration,
    /// The sum of these delays over all forwarded datagrams.
    pub late_total: Duration,
}

impl Stats {
    /// The mean delay of forwarded datagrams after their due time.
    #[must_use]
    pub fn late_mean(&self) -> Duration {
        let nanos = self.late_total.as_nanos().checked_div(u128::from(self.forwarded));
        Duration::from_nanos(nanos.and_then(|n| u64::try_from(n).ok()).unwrap_or(0))
    }

    pub(crate) fn on_forwarded(&mut self, late: Duration) {
        self.forwarded += 1;
        self.late_max = self.late_max.max(late);
        self.late_total = self.late_total.saturating_add(late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_averaged_over_what_was_forwarded() {
        let mut stats = Stats::default();
        assert_eq!(stats.late_mean(), Duration::ZERO);
        stats.on_forwarded(Duration::from_micros(10));
        stats.on_forwarded(Duration::from_micros(40));
        assert_eq!(stats.late_max, Duration::from_micros(40));
        assert_eq!(stats.late_mean(), Duration::from_micros(25));
    }
}
