//! What a relay counts.

use std::time::Duration;

use sutura_link::LinkStats;

/// What happened at a [`Relay`](crate::Relay).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The link from the clients to the destination.
    pub up: LinkStats,
    /// The link from the destination to the clients.
    pub down: LinkStats,
    /// Clients served now.
    pub clients: usize,
    /// Clients seen so far. One that comes back after it was forgotten counts again.
    pub clients_seen: u64,
    /// Datagrams of clients beyond the limit, and datagrams for which there was no memory. They
    /// never met the link.
    pub refused: u64,
    /// Datagrams that a socket did not take after they had crossed the link, or whose client was
    /// forgotten by then.
    pub unsent: u64,
    /// Datagrams sent on.
    pub forwarded: u64,
    /// How much later than due the latest datagram was sent on.
    pub late_max: Duration,
    /// By how much all of them together were late.
    pub late_total: Duration,
}

impl Stats {
    /// By how much datagrams were late on average.
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
