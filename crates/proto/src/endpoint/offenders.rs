//! Addresses whose connections made this end work in vain: by requests that they cancelled, or by breaking
//! the protocol so that a connection had to be made for nothing.
//!
//! One connection can be told to do less, or closed. Against a client that then opens the next connection,
//! only the endpoint can help: it refuses clients of an address with too much blame, until enough blame is
//! forgotten. Only offences from validated addresses count, so that nobody can shut out others.

use super::half_open::Network;
use crate::connection::Offence;
use std::collections::HashMap;
use std::time::{Duration, Instant};

impl Offence {
    /// The blame for this offence. To answer a handshake and to forget its connection takes as much work as
    /// to begin and end some ten requests; a peer with a harmless bug is to get through for a while.
    pub const fn weight(self) -> u32 {
        match self {
            Self::Request => 1,
            Self::Connection => 5,
        }
    }
}

/// How much blame an address may have before it is shut out.
pub const MAX_BLAME: u32 = 500;
/// How much blame is forgotten each second.
pub const FORGIVEN_PER_SECOND: u32 = 50;
/// Addresses that are remembered.
pub const MAX_OFFENDERS: usize = 4096;

#[derive(Debug, Clone, Copy)]
struct Offender {
    blame: u32,
    /// When `blame` was the blame.
    at: Instant,
}

impl Offender {
    /// The blame that is left at `now`.
    fn left(&self, now: Instant) -> u32 {
        let passed = now.saturating_duration_since(self.at);
        let forgiven = passed.as_millis() * u128::from(FORGIVEN_PER_SECOND) / 1000;
        self.blame.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }
}

/// The addresses that were blamed lately.
#[derive(Debug, Default)]
pub struct Offenders {
    all: HashMap<Network, Offender>,
    /// Until when it is useless to look for entries that can be forgotten.
    swept: Option<Instant>,
}

impl Offenders {
    /// Counts one more offence of `network`.
    pub fn blame(&mut self, now: Instant, network: Network, offence: Offence) {
        if !self.all.contains_key(&network) && self.all.len() >= MAX_OFFENDERS {
            self.sweep(now);
            if self.all.len() >= MAX_OFFENDERS {
                return;
            }
        }
        let offender = self.all.entry(network).or_insert(Offender { blame: 0, at: now });
        // Whole units are forgiven; the time since the last whole unit still counts.
        let left = offender.left(now);
        if left < offender.blame || left == 0 {
            (offender.blame, offender.at) = (left, now);
        }
        offender.blame = (offender.blame + offence.weight()).min(2 * MAX_BLAME);
    }

    /// Forgets addresses without remaining blame, at most once a second. If that makes no room, new offenders
    /// go unnoticed: the known ones are worse.
    fn sweep(&mut self, now: Instant) {
        if self.swept.is_some_and(|until| now < until) {
            return;
        }
        self.swept = Some(now + Duration::from_secs(1));
        self.all.retain(|_, offender| offender.left(now) > 0);
    }

    /// Whether nobody of `network` is let in at present.
    pub fn is_shut_out(&self, now: Instant, network: Network) -> bool {
        self.all.get(&network).is_some_and(|offender| offender.left(now) >= MAX_BLAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn network(n: u32) -> Network {
        IpAddr::from(n.to_be_bytes()).into()
    }

    #[test]
    fn who_does_too_much_is_shut_out_for_a_while() {
        let (mut offenders, now) = (Offenders::default(), Instant::now());
        for n in 0..MAX_BLAME {
            assert!(!offenders.is_shut_out(now, network(1)), "{n}");
            offenders.blame(now, network(1), Offence::Request);
        }
        assert!(offenders.is_shut_out(now, network(1)));
        assert!(!offenders.is_shut_out(now, network(2)));
        // However much blame an address has, it may come back in time.
        (0..10 * MAX_BLAME).for_each(|_| offenders.blame(now, network(1), Offence::Request));
        let most = u64::from(2 * MAX_BLAME / FORGIVEN_PER_SECOND);
        assert!(offenders.is_shut_out(now + Duration::from_secs(most / 2), network(1)));
        assert!(!offenders.is_shut_out(now + Duration::from_secs(most), network(1)));
    }

    #[test]
    fn a_connection_in_vain_counts_more_than_a_request() {
        let (mut offenders, now) = (Offenders::default(), Instant::now());
        let most = MAX_BLAME / Offence::Connection.weight();
        for n in 0..most {
            assert!(!offenders.is_shut_out(now, network(1)), "{n}");
            offenders.blame(now, network(1), Offence::Connection);
        }
        assert!(offenders.is_shut_out(now, network(1)));
        assert!(most >= 50, "a client with a bug is not shut out at once");
    }

    #[test]
    fn who_does_little_is_never_shut_out() {
        let (mut offenders, start) = (Offenders::default(), Instant::now());
        let interval = Duration::from_secs(1) / FORGIVEN_PER_SECOND;
        for n in 0..20 * MAX_BLAME {
            offenders.blame(start + interval * n, network(1), Offence::Request);
            assert!(!offenders.is_shut_out(start + interval * n, network(1)), "{n}");
        }
    }

    #[test]
    fn a_flood_of_offenders_is_remembered_within_bounds() {
        let (mut offenders, now) = (Offenders::default(), Instant::now());
        for n in 0..3 * MAX_OFFENDERS as u32 {
            offenders.blame(now, network(n), Offence::Request);
        }
        assert_eq!(offenders.all.len(), MAX_OFFENDERS);
        // Addresses with little blame are soon forgotten, and make room for new ones.
        offenders.blame(now + Duration::from_secs(2), network(u32::MAX), Offence::Request);
        assert_eq!(offenders.all.len(), 1);
    }
}
