//! How much memory the peers of a whole process may take, and how it is shared among them.
//!
//! Every connection has a [`MemoryAccount`], to which it reports the memory that it holds for its peer. It
//! may hold a share of the *free* memory (dynamic thresholds: Choudhury and Hahne, "Dynamic Queue Length
//! Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998). So a
//! single busy connection gets plenty, each of many gets less, and something is always left for the next one.
//! The connections of one address have a share together as well.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use sutura_proto::CONNECTION_COST;

use crate::sync::lock;

/// A connection may hold this share of the free memory.
const CONNECTION_SHARE: usize = 4;
/// The connections of an address together may hold this many times the free memory: at most two thirds of
/// all.
const ADDRESS_FACTOR: usize = 2;

/// A connection may hold this many bytes beside itself in any case, or an equal part of a third of the budget
/// if that is less: the few streams that its peer may open however little is free, one request that is
/// answered, and enough data for the answer to go on. Without it, early clients that take nothing would keep
/// all others waiting.
const MIN_ALLOWANCE: usize = 96 << 10;

/// A limit on the memory that peers make a process hold. Clones share it. Endpoints have one each
/// unless they are given the same ([`Endpoint::set_memory_budget`](crate::Endpoint::set_memory_budget));
/// other servers of the process can keep [accounts](Self::open) on it, too.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<SharedBudget>);

#[derive(Debug)]
struct SharedBudget {
    limit: usize,
    used: AtomicUsize,
    /// The bytes in use by connections that are being closed.
    leaving: AtomicUsize,
    connections: AtomicUsize,
    hosts: Mutex<HashMap<IpAddr, Arc<Host>>>,
}

/// The memory that the connections of one address hold.
#[derive(Debug, Default)]
struct Host {
    used: AtomicUsize,
    connections: AtomicUsize,
}

/// The addresses that count as one: a single host may have all of an IPv6 /64.
fn host_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
    }
}

impl Default for MemoryBudget {
    /// A budget of [`DEFAULT_LIMIT`](Self::DEFAULT_LIMIT).
    fn default() -> Self {
        Self::new(Self::DEFAULT_LIMIT)
    }
}

impl MemoryBudget {
    /// The limit of an endpoint that was given no other: 512 MiB.
    pub const DEFAULT_LIMIT: usize = 512 << 20;

    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(SharedBudget {
            limit,
            used: AtomicUsize::new(0),
            leaving: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            hosts: Mutex::default(),
        }))
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// How many bytes are held.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.used.load(Relaxed)
    }

    /// How many bytes are left.
    fn free(&self) -> usize {
        self.limit().saturating_sub(self.used())
    }

    /// Whether little is left, so that connections are closed that hold much and whose peers take nothing.
    pub(crate) fn is_short(&self) -> bool {
        self.staying() > self.limit() / 2
    }

    /// How many bytes are held by connections that are not being closed.
    fn staying(&self) -> usize {
        self.used().saturating_sub(self.0.leaving.load(Relaxed))
    }

    /// Whether connections hold more than the limit, because peers use all the flow control credit that they
    /// were granted.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.staying() > self.limit()
    }

    /// Whether there is room for another connection with `address`: all connections together may take three
    /// quarters of the budget by their mere existence, and the connections of one address half of it.
    #[must_use]
    pub fn admits(&self, address: IpAddr) -> bool {
        let cost = |connections: &AtomicUsize| {
            connections.load(Relaxed).saturating_add(1).saturating_mul(CONNECTION_COST)
        };
        let hosts = lock(&self.0.hosts);
        let of_host = hosts.get(&host_of(address)).map_or(0, |host| cost(&host.connections));
        cost(&self.0.connections) <= self.limit() / 4 * 3 && of_host <= self.limit() / 2
    }

    /// How many bytes a connection that is opened now may hold.
    pub(crate) fn allowance_of_new(&self) -> usize {
        (self.free() / CONNECTION_SHARE).max(self.least())
    }

    /// How many bytes a connection may hold in any case.
    fn least(&self) -> usize {
        let equal = self.limit() / 3 / self.0.connections.load(Relaxed).max(1);
        CONNECTION_COST + equal.min(MIN_ALLOWANCE)
    }

    /// An account for a connection with `address`.
    #[must_use]
    pub fn open(&self, address: IpAddr) -> MemoryAccount {
        let address = host_of(address);
        let host = self.0.enter(address);
        self.0.connections.fetch_add(1, Relaxed);
        MemoryAccount { budget: self.clone(), address, host, held: 0, leaving: 0 }
    }
}

impl SharedBudget {
    /// Counts a connection of this host.
    fn enter(&self, address: IpAddr) -> Arc<Host> {
        let mut hosts = lock(&self.hosts);
        let host = hosts.entry(address).or_default();
        // Under the lock, because a host without connections is removed.
        host.connections.fetch_add(1, Relaxed);
        host.clone()
    }

    /// Counts a connection of this host no more.
    fn leave(&self, address: IpAddr, host: &Host) {
        let mut hosts = lock(&self.hosts);
        if host.connections.fetch_sub(1, Relaxed) == 1 {
            hosts.remove(&address);
            if hosts.capacity() > 4 * hosts.len() + 64 {
                hosts.shrink_to_fit();
            }
        }
    }
}

/// The memory that one connection holds of a [`MemoryBudget`]. It is given back when the account is dropped.
#[derive(Debug)]
pub struct MemoryAccount {
    budget: MemoryBudget,
    address: IpAddr,
    host: Arc<Host>,
    held: usize,
    /// How much of it is about to be given back.
    leaving: usize,
}

impl MemoryAccount {
    /// The connection is being closed: its memory is about to be given back. It is not lent to others before
    /// that, but no other connection has to be closed for it.
    pub(crate) fn leave(&mut self) {
        let more = self.held.saturating_sub(self.leaving);
        self.leaving += more;
        self.budget.0.leaving.fetch_add(more, Relaxed);
    }

    /// Reports that the connection holds `bytes` bytes now.
    pub fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.held, bytes);
        for sum in [&self.budget.0.used, &self.host.used] {
            // Each account takes away only its own part, so that no sum falls below zero.
            if bytes >= before {
                sum.fetch_add(bytes - before, Relaxed);
            } else {
                sum.fetch_sub(before - bytes, Relaxed);
            }
        }
    }

    /// The connection's peer has another address now: its memory counts for that address. Call this only once
    /// the address is validated, as else a peer could charge its memory to others.
    pub fn move_to(&mut self, address: IpAddr) {
        let address = host_of(address);
        if address == self.address {
            return;
        }
        let host = self.budget.0.enter(address);
        host.used.fetch_add(self.held, Relaxed);
        let left = std::mem::replace(&mut self.host, host);
        left.used.fetch_sub(self.held, Relaxed);
        self.budget.0.leave(std::mem::replace(&mut self.address, address), &left);
    }

    /// The budget that it belongs to.
    #[must_use]
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// How many bytes the connection reported.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// How many bytes the connection may hold: a quarter of the free memory, and no more than its address has
    /// left, or an equal part of the share of its address; in any case enough to answer a request.
    #[must_use]
    pub fn allowance(&self) -> usize {
        let free = self.budget.free();
        let all = free.saturating_mul(ADDRESS_FACTOR);
        let others = self.host.used.load(Relaxed).saturating_sub(self.held);
        let equal = all / self.host.connections.load(Relaxed).max(1);
        let share = (free / CONNECTION_SHARE).min(all.saturating_sub(others).max(equal));
        share.max(self.budget.least())
    }
}

impl Drop for MemoryAccount {
    fn drop(&mut self) {
        self.set(0);
        self.budget.0.leaving.fetch_sub(self.leaving, Relaxed);
        self.budget.0.connections.fetch_sub(1, Relaxed);
        self.budget.0.leave(self.address, &self.host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const LIMIT: usize = 128 << 20;

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from_bits(n).into()
    }

    /// Lets all accounts approach their allowances until nothing changes; returns how many bytes each holds
    /// then.
    fn settle(accounts: &mut [MemoryAccount]) -> Vec<usize> {
        for _ in 0..2_000 {
            for account in &mut *accounts {
                account.set((7 * account.held() + account.allowance()) / 8);
            }
        }
        accounts.iter().map(MemoryAccount::held).collect()
    }

    #[test]
    fn what_one_may_hold_shrinks_as_the_whole_fills() {
        for count in [1, 10, 1_000] {
            let budget = MemoryBudget::new(LIMIT);
            let mut accounts: Vec<_> = (0..count).map(|n| budget.open(address(n))).collect();
            let held = settle(&mut accounts);
            let fair = LIMIT / (CONNECTION_SHARE + count as usize);
            assert!(held.iter().all(|bytes| *bytes <= 2 * fair + 1_000), "{count}: {held:?}");
            assert!(budget.used() < LIMIT);
            let newcomer = budget.open(address(u32::MAX)).allowance();
            assert!(newcomer >= fair / 2, "{count}: {newcomer} of {fair}");
        }
    }

    #[test]
    fn one_address_leaves_a_third_to_the_others() {
        let budget = MemoryBudget::new(LIMIT);
        let mut accounts: Vec<_> = (0..1_000).map(|_| budget.open(address(1))).collect();
        settle(&mut accounts);
        assert!(budget.used() <= LIMIT / 3 * 2 + LIMIT / 100, "{}", budget.used());
        assert!(budget.open(address(2)).allowance() >= LIMIT / 13);
        assert!(budget.open(address(1)).allowance() >= LIMIT / 3 * 2 / 1_100);
    }

    #[test]
    fn what_is_closed_leaves_nothing_behind() {
        let budget = MemoryBudget::new(LIMIT);
        let mut accounts: Vec<_> = (0..1_000).map(|n| budget.open(address(n))).collect();
        settle(&mut accounts);
        drop(accounts);
        assert_eq!((budget.used(), budget.0.connections.load(Relaxed)), (0, 0));
        assert!(lock(&budget.0.hosts).capacity() <= 128);
    }

    #[test]
    fn what_a_connection_holds_moves_with_it() {
        const EACH: usize = LIMIT / 15;
        let budget = MemoryBudget::new(LIMIT);
        let mut accounts: Vec<_> = (0..10).map(|_| budget.open(address(1))).collect();
        accounts.iter_mut().for_each(|account| account.set(EACH));
        let (free, before) = (budget.free(), accounts[9].allowance());
        let of_host = |n| lock(&budget.0.hosts).get(&address(n)).map(|h| h.used.load(Relaxed));
        accounts[0].move_to(address(2));
        assert_eq!((of_host(1), of_host(2)), (Some(9 * EACH), Some(EACH)));
        assert_eq!(budget.free(), free);
        let after = accounts[9].allowance();
        assert!(after > before, "{after} of {before}");
        accounts[0].move_to(address(2));
        accounts[0].set(1000);
        assert_eq!((of_host(1), of_host(2)), (Some(9 * EACH), Some(1000)));
        drop(accounts);
        assert_eq!((budget.used(), budget.0.connections.load(Relaxed)), (0, 0));
        assert!(lock(&budget.0.hosts).is_empty());
    }

    #[test]
    fn what_is_about_to_be_given_back_is_lent_to_nobody_before() {
        let budget = MemoryBudget::new(LIMIT);
        let (mut one, other) = (budget.open(address(1)), budget.open(address(2)));
        one.set(LIMIT / 4 * 3);
        let before = other.allowance();
        assert!(budget.is_short());
        one.leave();
        one.leave();
        assert!(!budget.is_short());
        assert_eq!(other.allowance(), before);
        drop(one);
        assert!(other.allowance() > before && !budget.is_short());
        assert_eq!((budget.used(), budget.0.leaving.load(Relaxed)), (0, 0));
    }

    #[test]
    fn mere_existence_does_not_fill_the_budget() {
        let budget = MemoryBudget::new(LIMIT);
        let mut accounts = Vec::new();
        while budget.admits(address(1)) {
            accounts.push(budget.open(address(1)));
        }
        assert_eq!(accounts.len(), LIMIT / 2 / CONNECTION_COST);
        while budget.admits(address(2)) {
            accounts.push(budget.open(address(2)));
        }
        assert_eq!(accounts.len(), LIMIT / 4 * 3 / CONNECTION_COST);
    }

    #[test]
    fn all_addresses_of_an_ipv6_network_are_one_host() {
        let budget = MemoryBudget::new(LIMIT);
        let _one = budget.open("2001:db8::1".parse().unwrap());
        let _other = budget.open("2001:db8::2:1".parse().unwrap());
        let _mapped = budget.open("::ffff:192.0.2.1".parse().unwrap());
        let _plain = budget.open("192.0.2.1".parse().unwrap());
        assert_eq!(lock(&budget.0.hosts).len(), 2);
    }
}
