//! The handshakes that a server has under way, and which of them makes room for another.
//!
//! Anybody can send Initials with forged source addresses. A client that has shown that it receives packets
//! at its address therefore displaces a client that has not, and never the other way round.
//!
//! A handshake counts until no state is left of it, even if it has failed. A failed handshake makes room
//! first. Clients that are refused before they have proved their address leave no state behind, but their
//! recent number counts for the decision to send a Retry.

use super::ConnectionHandle;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Handshakes under way with clients of one address. All addresses of an IPv6 /64 count as one,
/// because a single host may have all of them.
pub const MAX_HANDSHAKES_PER_ADDRESS: usize = 256;
/// A handshake younger than this is not given up for another, if clients that must wait are sent a
/// Retry meanwhile. Those clients try again with the same token.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// After this time, half of the clients that ended their handshake without showing that they exist
/// no longer count.
const HALF_LIFE: Duration = Duration::from_secs(1);

/// The addresses that count as one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(IpAddr);

impl From<IpAddr> for Network {
    fn from(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self(ip.into()),
            IpAddr::V6(ip) => Self(IpAddr::from((ip.to_bits() >> 64 << 64).to_be_bytes())),
        }
    }
}

/// Identifies a handshake, and orders handshakes: the lowest is given up first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// False once the handshake has failed: only its end has still to be told to the client.
    under_way: bool,
    validated: bool,
    number: u64,
}

#[derive(Debug, Clone, Copy)]
struct HalfOpenEntry {
    handle: ConnectionHandle,
    network: Network,
    since: Instant,
}

/// How many handshakes there may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub max: usize,
    /// Of clients of one address.
    pub per_network: usize,
    pub retry_above: Option<usize>,
}

/// The decision about a client that asks for a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// There is room.
    Admit,
    /// There is room if this handshake is given up.
    Displace(Rank),
    /// The client must show first that it receives packets at its address.
    Retry,
    /// There is no room: the client is to try again.
    Wait,
}

/// How many handshakes failed lately whose clients had not shown that they exist.
#[derive(Debug, Default)]
struct Vain {
    count: usize,
    /// Since when none was forgotten.
    since: Option<Instant>,
}

impl Vain {
    /// Forgets half of the failures for each half-life that has passed.
    fn age(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let lives = now.saturating_duration_since(since).as_secs() / HALF_LIFE.as_secs();
        if lives > 0 {
            self.count = self.count.checked_shr(lives.min(64) as u32).unwrap_or(0);
            self.since = Some(now);
        }
    }
}

/// All handshakes that are not over.
#[derive(Debug, Default)]
pub struct HalfOpen {
    all: BTreeMap<Rank, HalfOpenEntry>,
    networks: HashMap<Network, BTreeSet<Rank>>,
    unvalidated: usize,
    vain: Vain,
    next: u64,
}

impl HalfOpen {
    /// How many there are.
    #[cfg(feature = "testing")]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Handles that time has passed.
    pub fn age(&mut self, now: Instant) {
        self.vain.age(now);
    }

    /// Counts a client that is refused before it has shown that it exists, and for which nothing is kept.
    pub fn refused(&mut self) {
        self.vain.count = self.vain.count.saturating_add(1);
    }

    /// Decides about a client of `network`. `validated` is whether its token was good.
    pub fn decide(
        &self,
        now: Instant,
        network: Network,
        validated: bool,
        limits: Limits,
    ) -> Admission {
        let same = self.networks.get(&network);
        let network_full = same.is_some_and(|same| same.len() >= limits.per_network);
        let full = self.all.len() >= limits.max;
        let unknown = self.unvalidated.saturating_add(self.vain.count);
        let pressed = |above: usize| unknown >= above || network_full || full;
        if !validated && limits.retry_above.is_some_and(pressed) {
            return Admission::Retry;
        }
        let victim = if network_full {
            same.and_then(BTreeSet::first)
        } else if full {
            self.all.keys().next()
        } else {
            return Admission::Admit;
        };
        let patience = limits.retry_above.map_or(Duration::ZERO, |_| PATIENCE);
        let gives_way = |rank: &&Rank| {
            let old = self.all.get(rank).is_some_and(|entry| now >= entry.since + patience);
            !rank.under_way || (old && (validated || !rank.validated))
        };
        victim.filter(gives_way).map_or(Admission::Wait, |rank| Admission::Displace(*rank))
    }

    /// Adds a handshake.
    pub fn insert(
        &mut self,
        now: Instant,
        handle: ConnectionHandle,
        network: Network,
        validated: bool,
    ) -> Rank {
        let rank = Rank { under_way: true, validated, number: self.next };
        self.next += 1;
        self.put(rank, HalfOpenEntry { handle, network, since: now });
        rank
    }

    fn put(&mut self, rank: Rank, entry: HalfOpenEntry) {
        self.unvalidated += usize::from(!rank.validated);
        self.networks.entry(entry.network).or_default().insert(rank);
        self.all.insert(rank, entry);
    }

    /// Removes a handshake; returns its connection. A client that is not validated by now did not
    /// complete it.
    pub fn remove(&mut self, rank: Rank) -> Option<ConnectionHandle> {
        let entry = self.take(rank)?;
        if !rank.validated {
            self.refused();
        }
        Some(entry.handle)
    }

    fn take(&mut self, rank: Rank) -> Option<HalfOpenEntry> {
        let entry = self.all.remove(&rank)?;
        if self.all.is_empty() {
            // Gives the memory of an idle server back.
            self.all.clear();
        }
        self.unvalidated -= usize::from(!rank.validated);
        if let Some(same) = self.networks.get_mut(&entry.network) {
            same.remove(&rank);
            if same.is_empty() {
                self.networks.remove(&entry.network);
            }
        }
        Some(entry)
    }

    /// Handles proof that the client receives packets at its address.
    pub fn validate(&mut self, rank: Rank) -> Rank {
        self.change(rank, Rank { validated: true, ..rank })
    }

    /// Handles that a handshake has failed. It counts until it is removed.
    pub fn fail(&mut self, rank: Rank) -> Rank {
        self.change(rank, Rank { under_way: false, ..rank })
    }

    fn change(&mut self, from: Rank, to: Rank) -> Rank {
        let Some(entry) = self.take(from) else { return from };
        self.put(to, entry);
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { max: 1000, per_network: MAX_HANDSHAKES_PER_ADDRESS, retry_above: Some(500) };

    fn network(text: &str) -> Network {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn a_network_is_an_ipv4_address_or_an_ipv6_prefix() {
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_ne!(network("::ffff:192.0.2.1"), network("::ffff:192.0.2.2"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:0:0:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
    }

    /// A table full of validated and unvalidated handshakes of other networks.
    fn filled(now: Instant, unvalidated: u32, validated: u32) -> HalfOpen {
        let mut table = HalfOpen::default();
        for n in 0..unvalidated + validated {
            let ip = IpAddr::from(n.to_be_bytes());
            table.insert(now, ConnectionHandle(n as usize), ip.into(), n >= unvalidated);
        }
        table
    }

    #[test]
    fn unvalidated_clients_are_sent_a_retry_under_pressure() {
        let (now, me) = (Instant::now(), network("192.0.2.1"));
        let table = filled(now, 499, 0);
        assert_eq!(table.decide(now, me, false, LIMITS), Admission::Admit);
        let table = filled(now, 500, 0);
        assert_eq!(table.decide(now, me, false, LIMITS), Admission::Retry);
        assert_eq!(table.decide(now, me, true, LIMITS), Admission::Admit);
        let always = Limits { retry_above: Some(0), ..LIMITS };
        assert_eq!(HalfOpen::default().decide(now, me, false, always), Admission::Retry);
    }

    #[test]
    fn the_oldest_unvalidated_makes_room() {
        let (now, me) = (Instant::now(), network("192.0.2.1"));
        let mut table = filled(now, 500, 500);
        assert_eq!(table.decide(now, me, true, LIMITS), Admission::Wait);
        let later = now + PATIENCE;
        for oldest in 0..3 {
            let Admission::Displace(rank) = table.decide(later, me, true, LIMITS) else {
                panic!("full")
            };
            assert_eq!(table.remove(rank), Some(ConnectionHandle(oldest)));
            table.insert(later, ConnectionHandle(2000), me, true);
        }
        // Without Retry there is no other way in.
        let never = Limits { retry_above: None, ..LIMITS };
        assert!(matches!(table.decide(now, me, false, never), Admission::Displace(_)));
        // But a validated handshake does not give way to an unvalidated one.
        let table = filled(now, 0, 1000);
        assert_eq!(table.decide(later, me, false, never), Admission::Wait);
    }

    #[test]
    fn what_has_failed_counts_and_makes_room_at_once() {
        let (now, me) = (Instant::now(), network("192.0.2.1"));
        let mut table = filled(now, 0, 999);
        let failed = table.insert(now, ConnectionHandle(7), network("192.0.2.2"), true);
        let failed = table.fail(failed);
        assert_eq!(table.len(), 1000);
        assert_eq!(table.decide(now, me, false, LIMITS), Admission::Retry);
        assert_eq!(table.decide(now, me, true, LIMITS), Admission::Displace(failed));
        // Even for a client that has shown nothing, where there is no Retry.
        let never = Limits { retry_above: None, ..LIMITS };
        assert_eq!(table.decide(now, me, false, never), Admission::Displace(failed));
        assert_eq!(table.remove(failed), Some(ConnectionHandle(7)));
        assert_eq!(table.decide(now, me, true, LIMITS), Admission::Admit);
    }

    #[test]
    fn clients_that_come_to_nothing_bring_retry_about_by_their_rate() {
        let (now, me) = (Instant::now(), network("192.0.2.1"));
        let mut table = HalfOpen::default();
        table.age(now);
        for n in 0..500 {
            assert_eq!(table.decide(now, me, false, LIMITS), Admission::Admit, "{n}");
            let rank = table.insert(now, ConnectionHandle(n), me, false);
            table.remove(rank);
        }
        assert_eq!(table.len(), 0);
        assert_eq!(table.decide(now, me, false, LIMITS), Admission::Retry);
        assert_eq!(table.decide(now, me, true, LIMITS), Admission::Admit);
        // Clients that have shown that they exist do not count, nor do clients of long ago.
        let rank = table.insert(now, ConnectionHandle(0), me, false);
        let rank = table.validate(rank);
        table.age(now + HALF_LIFE);
        assert_eq!(table.remove(rank), Some(ConnectionHandle(0)));
        for _ in 0..249 {
            assert_eq!(table.decide(now, me, false, LIMITS), Admission::Admit);
            table.refused();
        }
        table.refused();
        assert_eq!(table.decide(now, me, false, LIMITS), Admission::Retry);
        table.age(now + 100 * HALF_LIFE);
        assert_eq!(table.decide(now, me, false, LIMITS), Admission::Admit);
    }

    #[test]
    fn one_network_gets_its_share_and_no_more() {
        let now = Instant::now();
        let mut table = HalfOpen::default();
        for n in 0..MAX_HANDSHAKES_PER_ADDRESS {
            let ip: Network = format!("2001:db8::{n:x}").parse::<IpAddr>().unwrap().into();
            assert_eq!(table.decide(now, ip, true, LIMITS), Admission::Admit);
            table.insert(now, ConnectionHandle(n), ip, true);
        }
        let same = network("2001:db8::1:0");
        assert_eq!(table.decide(now, same, false, LIMITS), Admission::Retry);
        assert_eq!(table.decide(now, same, true, LIMITS), Admission::Wait);
        let Admission::Displace(rank) = table.decide(now + PATIENCE, same, true, LIMITS) else {
            panic!("full")
        };
        assert_eq!(table.decide(now, network("2001:db8:1::1"), false, LIMITS), Admission::Admit);
        assert_eq!(table.remove(rank), Some(ConnectionHandle(0)));
        assert_eq!(table.decide(now, same, true, LIMITS), Admission::Admit);
    }

    #[test]
    fn nothing_is_left_of_what_was_removed() {
        let now = Instant::now();
        let mut table = HalfOpen::default();
        let rank = table.insert(now, ConnectionHandle(1), network("192.0.2.1"), false);
        let rank = table.validate(rank);
        assert_eq!((table.unvalidated, table.len()), (0, 1));
        assert_eq!(table.remove(rank), Some(ConnectionHandle(1)));
        assert_eq!(table.remove(rank), None);
        assert!(table.networks.is_empty() && table.all.is_empty());
    }
}
