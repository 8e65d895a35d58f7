//! Which guests are let in while there is not room for all.
//!
//! A guest who has not shown yet that it means to stay is *silent*: it has not finished its handshake, or
//! does not answer the password. When there is no room, the oldest silent guest of the network with the most
//! silent guests gives way. So a silent guest keeps no others out, and a guest who comes often has no guests
//! of other networks turned out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The guests of one place. Clones share them.
#[derive(Debug, Clone)]
pub struct Doors {
    max: usize,
    house: Arc<Mutex<House>>,
}

#[derive(Debug, Default)]
struct House {
    /// By the order in which they came.
    guests: BTreeMap<u64, DoorGuest>,
    next: u64,
}

#[derive(Debug)]
struct DoorGuest {
    network: IpAddr,
    silent: bool,
    turned_out: Arc<Notify>,
}

/// The stay of a guest, which ends when this is dropped.
#[derive(Debug)]
pub struct Pass {
    number: u64,
    turned_out: Arc<Notify>,
    house: Arc<Mutex<House>>,
}

impl Doors {
    /// A place for `max` guests.
    pub fn new(max: usize) -> Self {
        Self { max, house: Arc::default() }
    }

    /// Most guests of one network that are not silent: three quarters of all, rounded up. This machine's own
    /// guests are not limited.
    fn max_of_network(&self) -> usize {
        self.max - self.max / 4
    }

    /// Lets a guest in, if necessary in place of a silent guest. `None` if there is no room for it.
    pub fn enter(&self, address: IpAddr) -> Option<Pass> {
        let network = network(address);
        let mut house = lock(&self.house);
        let staying = |guest: &&DoorGuest| guest.network == network && !guest.silent;
        if !network.is_loopback()
            && house.guests.values().filter(staying).count() >= self.max_of_network()
        {
            return None;
        }
        if house.guests.len() >= self.max {
            let victim = house.victim(network)?;
            let guest = house.guests.remove(&victim)?;
            guest.turned_out.notify_one();
        }
        let (number, turned_out) = (house.next, Arc::new(Notify::new()));
        house.next += 1;
        let guest = DoorGuest { network, silent: true, turned_out: turned_out.clone() };
        house.guests.insert(number, guest);
        Some(Pass { number, turned_out, house: self.house.clone() })
    }
}

impl House {
    /// The guest who gives way to a guest from a network.
    fn victim(&self, newcomer: IpAddr) -> Option<u64> {
        let mut networks: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
        for (&number, guest) in self.guests.iter().filter(|(_, guest)| guest.silent) {
            let known = networks.entry(guest.network);
            known.or_insert((usize::from(guest.network == newcomer), number)).0 += 1;
        }
        let (_, oldest) = networks.into_values().max_by_key(|&(count, oldest)| {
            // Of networks with equally many silent guests, the network of the guest who came first.
            (count, u64::MAX - oldest)
        })?;
        Some(oldest)
    }
}

impl Pass {
    /// Notes that the guest means to stay: it is no longer silent, and is never turned out.
    pub fn stay(&self) {
        if let Some(guest) = lock(&self.house).guests.get_mut(&self.number) {
            guest.silent = false;
        }
    }

    /// Waits until the guest has to give way to another.
    pub async fn turned_out(&self) {
        self.turned_out.notified().await;
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        lock(&self.house).guests.remove(&self.number);
    }
}

fn lock(house: &Mutex<House>) -> MutexGuard<'_, House> {
    house.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of an address that counts as one place: an IPv6 host has 2^64 addresses.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) if !ip.is_loopback() => {
            Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into()
        }
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn is_turned_out(pass: &Pass) -> bool {
        pass.turned_out().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_silent_guest_gives_way() {
        let doors = Doors::new(4);
        let guests: Vec<Pass> = (0..4).map(|n| doors.enter(address(n)).unwrap()).collect();
        guests[0].stay();
        let _new = doors.enter(address(9)).unwrap();
        let out: Vec<bool> = guests.iter().map(is_turned_out).collect();
        assert_eq!(out, [false, true, false, false]);
        // A guest who was turned out takes no place when it goes.
        drop(guests);
        assert_eq!(lock(&doors.house).guests.len(), 1);
    }

    #[test]
    fn a_flood_from_one_network_turns_out_its_own_guests_only() {
        let doors = Doors::new(16);
        let honest = doors.enter(address(1)).unwrap();
        let mut flood = Vec::new();
        for n in 0..10_000_u128 {
            let ip = Ipv6Addr::from_bits((0x2001_0db8 << 96) + n);
            flood.push(doors.enter(ip.into()).unwrap());
            assert!(lock(&doors.house).guests.len() <= 16);
        }
        assert!(!is_turned_out(&honest));
        assert_eq!(flood.iter().filter(|pass| !is_turned_out(pass)).count(), 15);
        let second = doors.enter(address(2)).unwrap();
        assert!(!is_turned_out(&honest) && !is_turned_out(&second));
    }

    #[test]
    fn guests_who_stay_are_not_turned_out_and_one_network_does_not_take_all() {
        let doors = Doors::new(16);
        let enter = |address| doors.enter(address).inspect(Pass::stay);
        let many: Vec<Pass> = std::iter::from_fn(|| enter(address(1))).collect();
        assert_eq!(many.len(), 12);
        let others: Vec<Pass> = (2..6).map(|n| enter(address(n)).unwrap()).collect();
        assert!(enter(address(9)).is_none());
        assert!(!many.iter().chain(&others).any(is_turned_out));
        drop(others);
        assert!(enter(address(9)).is_some() && enter(address(1)).is_none());
        drop(many);
        let own: Vec<Pass> =
            std::iter::from_fn(|| enter(std::net::Ipv4Addr::LOCALHOST.into())).collect();
        assert_eq!(own.len(), 16);
        for (max, expected) in [(1, 1), (2, 2), (3, 3), (4, 3)] {
            assert_eq!(Doors::new(max).max_of_network(), expected);
        }
    }
}
