//! The addresses that a proxy gives to its clients.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Most clients that have addresses at a time.
const MAX_CLIENTS: usize = 4096;

/// Networks, of which each client gets an address. The first address of each, as it is given, is the proxy's own.
#[derive(Debug)]
pub struct AddressPool {
    networks: Vec<IpNet>,
    taken: HashSet<IpAddr>,
}

/// No address is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no address is left in the network")]
pub struct Full;

impl AddressPool {
    /// The networks of the proxy's own addresses: `10.77.0.1/24`.
    #[must_use]
    pub fn new(own: &[IpNet]) -> Self {
        Self { networks: own.to_vec(), taken: own.iter().map(IpNet::addr).collect() }
    }

    /// Takes an address of each network.
    ///
    /// # Errors
    /// A network has none left, or there are too many clients.
    pub fn take(&mut self) -> Result<Vec<IpAddr>, Full> {
        if self.taken.len() >= self.networks.len() * (MAX_CLIENTS + 1) {
            return Err(Full);
        }
        let found: Option<Vec<IpAddr>> = self.networks.iter().map(|net| self.free(*net)).collect();
        let found = found.ok_or(Full)?;
        self.taken.extend(&found);
        Ok(found)
    }

    /// Takes a certain address. Returns whether it is one for clients and nobody has it.
    pub fn take_exactly(&mut self, address: IpAddr) -> bool {
        let is_for_a_host = |net: &&IpNet| {
            net.contains(&address) && ![net.network(), net.broadcast()].contains(&address)
        };
        self.networks.iter().find(is_for_a_host).is_some() && self.taken.insert(address)
    }

    /// Gives addresses back.
    pub fn give_back(&mut self, addresses: &[IpAddr]) {
        for address in addresses {
            self.taken.remove(address);
        }
    }

    /// The lowest address of a network that nobody has. Those of the network itself and for all its hosts are none. As
    /// few are taken, it is among the first ones.
    fn free(&self, network: IpNet) -> Option<IpAddr> {
        let first = number(network.network());
        let last = number(network.broadcast());
        let limit = last.min(first + self.taken.len() as u128 + 2);
        let mut candidates = (first + 1..=limit).map(|n| address(n, network));
        candidates.find(|ip| !self.taken.contains(ip) && *ip != network.broadcast())
    }
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).into(),
        IpAddr::V6(ip) => ip.into(),
    }
}

/// The address with this number, of the version of a network that it is in.
fn address(number: u128, network: IpNet) -> IpAddr {
    match network {
        IpNet::V4(_) => Ipv4Addr::from(number as u32).into(),
        IpNet::V6(_) => Ipv6Addr::from(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(own: &[&str]) -> AddressPool {
        AddressPool::new(&own.iter().map(|net| net.parse().unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn each_client_has_an_address_of_its_own_in_each_network() {
        let mut pool = pool(&["10.77.0.2/29", "fd77::1/64"]);
        let taken: Vec<_> = (0..5).map(|_| pool.take().unwrap()).collect();
        let expected = ["10.77.0.1", "10.77.0.3", "10.77.0.4", "10.77.0.5", "10.77.0.6"];
        assert_eq!(taken.iter().map(|ips| ips[0].to_string()).collect::<Vec<_>>(), expected);
        assert_eq!(taken[0][1], "fd77::2".parse::<IpAddr>().unwrap());
        assert_eq!(pool.take(), Err(Full));
        pool.give_back(&taken[1]);
        assert_eq!(pool.take(), Ok(taken[1].clone()));
    }

    #[test]
    fn a_certain_address_is_had_if_nobody_has_it() {
        let mut pool = pool(&["10.77.0.1/24"]);
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(pool.take_exactly(at("10.77.0.9")) && !pool.take_exactly(at("10.77.0.9")));
        for none in ["10.77.0.0", "10.77.0.1", "10.77.0.255", "10.78.0.2", "fd77::2"] {
            assert!(!pool.take_exactly(at(none)), "{none}");
        }
        assert_eq!(pool.take(), Ok(vec![at("10.77.0.2")]));
        pool.give_back(&[at("10.77.0.9")]);
        assert!(pool.take_exactly(at("10.77.0.9")));
    }

    #[test]
    fn a_network_of_one_address_has_none_for_clients() {
        assert_eq!(pool(&["10.77.0.1/32"]).take(), Err(Full));
        assert_eq!(pool(&[]).take(), Err(Full));
        assert!(pool(&["::/0"]).take().is_ok() && pool(&["0.0.0.0/0"]).take().is_ok());
    }

    #[test]
    fn a_flood_of_clients_is_bounded() {
        let mut pool = pool(&["fd77::1/64"]);
        assert_eq!((0..MAX_CLIENTS * 2).filter(|_| pool.take().is_ok()).count(), MAX_CLIENTS);
    }
}
