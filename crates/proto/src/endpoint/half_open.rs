//! The handshakes that a server has under way, and which of them makes room for another.
//!
//! Anybody can send Initials with forged source addresses. A client that has shown that it receives
//! what is sent to its address therefore displaces one that has not, and never the other way round.

use super::ConnectionHandle;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Handshakes under way with clients of one address. All addresses of an IPv6 /64 count as one,
/// because a single host may have all of them.
pub const MAX_HANDSHAKES_PER_ADDRESS: usize = 256;
/// A handshake younger than this is not given up for another, if clients that must wait are sent a
/// Retry meanwhile. They try again with the same token.
pub const PATIENCE: Duration = Duration::from_secs(1);

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

/// Identifies a handshake, and orders all of them: those that are given up first come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
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
    pub retry_above: Option<usize>,
}

/// What to do with a client that asks for a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// There is room.
    Admit,
    /// There is room without this one.
    Displace(Rank),
    /// It must show first that it receives what is sent to its address.
    Retry,
    /// There is no room: let it try again.
    Wait,
}

/// All handshakes under way.
#[derive(Debug, Default)]
pub struct HalfOpen {
    all: BTreeMap<Rank, HalfOpenEntry>,
    networks: HashMap<Network, BTreeSet<Rank>>,
    unvalidated: usize,
    next: u64,
}

impl HalfOpen {
    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all.len()
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
        let network_full = same.is_some_and(|same| same.len() >= MAX_HANDSHAKES_PER_ADDRESS);
        let full = self.all.len() >= limits.max;
        let pressed = |above: usize| self.unvalidated >= above || network_full || full;
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
            old && (validated || !rank.validated)
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
        let rank = Rank { validated, number: self.next };
        self.next += 1;
        self.put(rank, HalfOpenEntry { handle, network, since: now });
        rank
    }

    fn put(&mut self, rank: Rank, entry: HalfOpenEntry) {
        self.unvalidated += usize::from(!rank.validated);
        self.networks.entry(entry.network).or_default().insert(rank);
        self.all.insert(rank, entry);
    }

    /// Removes a handshake; returns its connection.
    pub fn remove(&mut self, rank: Rank) -> Option<ConnectionHandle> {
        self.take(rank).map(|entry| entry.handle)
    }

    fn take(&mut self, rank: Rank) -> Option<HalfOpenEntry> {
        let entry = self.all.remove(&rank)?;
        self.unvalidated -= usize::from(!rank.validated);
        if let Some(same) = self.networks.get_mut(&entry.network) {
            same.remove(&rank);
            if same.is_empty() {
                self.networks.remove(&entry.network);
            }
        }
        Some(entry)
    }

    /// Handles proof that the client receives what is sent to its address.
    pub fn validate(&mut self, rank: Rank) -> Rank {
        let Some(entry) = self.take(rank) else { return rank };
        let rank = Rank { validated: true, ..rank };
        self.put(rank, entry);
        rank
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { max: 1000, retry_above: Some(500) };

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
        let now = Instant::now();
        let me = network("192.0.2.1");
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
        let now = Instant::now();
        let me = network("192.0.2.1");
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
        // But what is validated does not give way to what is not.
        let table = filled(now, 0, 1000);
        assert_eq!(table.decide(later, me, false, never), Admission::Wait);
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
