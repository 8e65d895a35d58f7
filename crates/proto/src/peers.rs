//! An endpoint's memory of the peers that it had connections with.

use crate::loss_floor::LossMemory;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Peers that are remembered; the peer that was added first is forgotten first.
pub const MAX_PEERS_REMEMBERED: usize = 1024;

/// The loss floors of peers, by address.
#[derive(Debug, Default)]
pub struct Peers {
    floors: HashMap<IpAddr, LossMemory>,
    /// The keys of `floors`, oldest first.
    order: VecDeque<IpAddr>,
}

impl Peers {
    /// The losses on the path to `address`; none, if no connection to it is remembered.
    pub fn recall(&self, address: IpAddr) -> LossMemory {
        self.floors.get(&address).copied().unwrap_or_default()
    }

    /// Remembers the losses that a connection to `address` measured.
    pub fn learn(&mut self, address: IpAddr, floor: LossMemory) {
        if self.floors.insert(address, floor).is_some() {
            return;
        }
        self.order.push_back(address);
        if self.order.len() > MAX_PEERS_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.floors.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_flood_of_peers_pushes_out_the_oldest() {
        let address = |i: u32| IpAddr::from(Ipv4Addr::from(i));
        let mut peers = Peers::default();
        let count = 3 * MAX_PEERS_REMEMBERED as u32;
        for i in 0..count {
            // Coming back is no reason to be listed twice.
            peers.learn(address(i), LossMemory::default());
            peers.learn(address(i), LossMemory::default());
            assert!(peers.floors.len() <= MAX_PEERS_REMEMBERED);
            assert_eq!(peers.floors.len(), peers.order.len());
        }
        assert!(!peers.floors.contains_key(&address(0)));
        assert!(peers.floors.contains_key(&address(count - 1)));
    }
}
