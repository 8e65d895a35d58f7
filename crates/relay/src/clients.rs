//! The clients of the relay.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use slotmap::{DefaultKey, SlotMap};

use crate::rebinding::Change;
use crate::socket::Socket;

/// Identifies a client. Never refers to a later client in the same slot.
pub(crate) type ClientId = DefaultKey;

/// Which of the addresses that the relay listens on, in the order of the configuration.
pub(crate) type DoorId = usize;

/// A client: its address, and a socket that represents it towards the destination.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) door: DoorId,
    pub(crate) socket: Socket,
    last_used: Duration,
}

/// All clients, and their maximum number.
#[derive(Debug)]
pub(crate) struct Clients {
    /// For each door, the host from which clients are seen that come now. Port 0.
    hosts: Vec<SocketAddr>,
    limit: usize,
    idle_timeout: Duration,
    all: SlotMap<ClientId, Client>,
    by_address: HashMap<(DoorId, SocketAddr), ClientId>,
    seen: u64,
}

impl Clients {
    /// Clients of doors to these destinations.
    pub(crate) fn new(
        to: impl IntoIterator<Item = SocketAddr>,
        limit: usize,
        idle_timeout: Duration,
    ) -> Self {
        let (all, by_address) = (SlotMap::default(), HashMap::new());
        let hosts = to.into_iter().map(|to| match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        });
        Self { hosts: hosts.collect(), limit, idle_timeout, all, by_address, seen: 0 }
    }

    /// The client at `address` that uses `door`, which is created if necessary; `None` if there are too many
    /// clients or the door does not exist.
    ///
    /// # Errors
    /// The system cannot provide another socket.
    pub(crate) fn find_or_insert(
        &mut self,
        door: DoorId,
        address: SocketAddr,
        now: Duration,
    ) -> io::Result<Option<ClientId>> {
        let key = (door, address);
        if let Some(&id) = self.by_address.get(&key) {
            self.touch(id, now);
            return Ok(Some(id));
        }
        if self.len() >= self.limit {
            self.expire(now);
            if self.len() >= self.limit {
                return Ok(None);
            }
        }
        let Some(&host) = self.hosts.get(door) else { return Ok(None) };
        let socket = Socket::bind(host)?;
        self.seen += 1;
        let id = self.all.insert(Client { address, door, socket, last_used: now });
        self.by_address.insert(key, id);
        Ok(Some(id))
    }

    pub(crate) fn get(&self, id: ClientId) -> Option<&Client> {
        self.all.get(id)
    }

    /// Gives all clients other sockets towards the destination, as a NAT does that has lost its state.
    /// Datagrams under way to the old sockets are lost.
    ///
    /// # Errors
    /// The system cannot provide more sockets, or does not have the address.
    pub(crate) fn rebind(&mut self, change: Change) -> io::Result<()> {
        if change == Change::Address {
            for host in &mut self.hosts {
                host.set_ip(crate::rebinding::next_host(host.ip())?);
            }
        }
        for client in self.all.values_mut() {
            if let Some(&host) = self.hosts.get(client.door) {
                client.socket = Socket::bind(host)?;
            }
        }
        Ok(())
    }

    /// Records that the client has sent or received a datagram.
    pub(crate) fn touch(&mut self, id: ClientId, now: Duration) {
        if let Some(client) = self.all.get_mut(id) {
            client.last_used = now;
        }
    }

    /// Removes clients that have been idle for too long.
    pub(crate) fn expire(&mut self, now: Duration) {
        self.all.retain(|_, client| {
            let stays = now.saturating_sub(client.last_used) < self.idle_timeout;
            if !stays {
                self.by_address.remove(&(client.door, client.address));
            }
            stays
        });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ClientId, &Client)> {
        self.all.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn clients(limit: usize) -> Clients {
        Clients::new(["127.0.0.1:9".parse().unwrap(); 2], limit, 10 * SECOND)
    }

    fn address(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    #[test]
    fn a_client_is_known_by_its_address() {
        let mut clients = clients(2);
        let a = clients.find_or_insert(0, address(1), SECOND).unwrap().unwrap();
        let b = clients.find_or_insert(0, address(2), SECOND).unwrap().unwrap();
        assert_ne!(a, b);
        assert_eq!(clients.find_or_insert(0, address(1), SECOND).unwrap(), Some(a));
        // At another door the same address is another client; there is no door 2.
        assert_eq!(clients.find_or_insert(2, address(1), SECOND).unwrap(), None);
        assert_eq!(clients.get(b).unwrap().address, address(2));
        assert_eq!((clients.len(), clients.seen()), (2, 2));
    }

    #[test]
    fn a_flood_of_addresses_is_bounded_and_the_idle_make_room() {
        let mut clients = clients(3);
        let first = clients.find_or_insert(0, address(1), SECOND).unwrap().unwrap();
        for port in 2..1000 {
            let found = clients.find_or_insert(0, address(port), 2 * SECOND).unwrap();
            assert_eq!(found.is_some(), port <= 3);
        }
        assert_eq!((clients.len(), clients.by_address.len()), (3, 3));
        // The first client is in use; the others are removed, and their identifiers are invalid.
        let second = clients.find_or_insert(0, address(2), 2 * SECOND).unwrap().unwrap();
        clients.touch(first, 11 * SECOND);
        let new = clients.find_or_insert(0, address(1000), 12 * SECOND).unwrap().unwrap();
        assert_ne!(new, second);
        assert!(clients.get(second).is_none());
        assert!(clients.get(first).is_some());
        assert_eq!(clients.len(), 2);
    }
}
