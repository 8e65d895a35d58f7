//! Events that disturb the hosts of a scenario while it runs.

use std::net::SocketAddr;
use std::time::Duration;

#[cfg(feature = "quinn")]
use crate::quinn::QuinnHost;
use crate::{Host, Network, NodeId, Quic};

/// An event that disturbs a host, not its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// The client gets another address without noticing, as behind a NAT that forgot a binding.
    Rebind(SocketAddr),
    /// The client moves to another address, and tells its connection.
    Migrate(SocketAddr),
    /// The client sleeps for this long: its clock jumps.
    ClientSleeps(Duration),
    /// The server sleeps for this long.
    ServerSleeps(Duration),
}

impl Disturbance {
    /// Whether it happens to the client's address. An address must stay the same during the handshake
    /// (RFC 9000 section 9).
    const fn is_move(self) -> bool {
        match self {
            Self::Rebind(_) | Self::Migrate(_) => true,
            Self::ClientSleeps(_) | Self::ServerSleeps(_) => false,
        }
    }

    /// Whether the client itself causes the disturbance, so that it must wait until the client knows that it
    /// may move (RFC 9000 section 9).
    const fn is_deliberate(self) -> bool {
        match self {
            Self::Migrate(_) => true,
            Self::Rebind(_) | Self::ClientSleeps(_) | Self::ServerSleeps(_) => false,
        }
    }

    fn apply(self, network: &mut Network, [client, server]: [NodeId; 2]) {
        match self {
            Self::Rebind(address) => network.move_to(client, address),
            Self::Migrate(address) => {
                network.move_to(client, address);
                let now = network.clock().at(network.now());
                let Some(host) = network.node_mut::<Host>(client) else { return };
                let handles: Vec<_> = host.connections().map(|(handle, _)| handle).collect();
                for connection in handles {
                    if let Some(connection) = host.connection_mut(connection) {
                        connection.local_address_changed(now);
                    }
                }
            }
            Self::ClientSleeps(duration) => network.sleep(client, duration),
            Self::ServerSleeps(duration) => network.sleep(server, duration),
        }
    }
}

/// The disturbances that are still to come.
#[derive(Debug)]
pub struct Disturbances {
    /// The earliest last.
    due: Vec<(Duration, Disturbance)>,
}

impl Disturbances {
    /// Disturbances, each at a time since the start.
    #[must_use]
    pub fn new(plan: &[(Duration, Disturbance)]) -> Self {
        let mut due = plan.to_vec();
        due.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self { due }
    }

    /// Lets all disturbances happen that are due, to a client and a server. A change of the client's address
    /// waits until the server has completed the handshake, and a deliberate move until the client knows that
    /// the handshake is confirmed.
    pub fn happen(&mut self, network: &mut Network, nodes: [NodeId; 2]) {
        while let Some((at, next)) = self.due.last().copied()
            && at <= network.now()
            && is_possible(next, network, nodes)
        {
            self.due.pop();
            next.apply(network, nodes);
        }
    }
}

fn is_possible(next: Disturbance, network: &Network, [client, server]: [NodeId; 2]) -> bool {
    let may_migrate = || {
        let connection = network.node::<Host>(client).and_then(|host| host.connections().next());
        connection.is_some_and(|(_, connection)| connection.may_migrate())
    };
    let moves = !next.is_move() || is_established(network, server);
    moves && (!next.is_deliberate() || may_migrate())
}

/// Whether the first connection of a host has completed the handshake.
fn is_established(network: &Network, node: NodeId) -> bool {
    let ours = network.node::<Host>(node).and_then(|host| host.connections().next());
    if let Some((_, connection)) = ours {
        return connection.is_established();
    }
    #[cfg(feature = "quinn")]
    if let Some(host) = network.node::<QuinnHost>(node) {
        return host.connections().next().is_some_and(|(_, c)| c.is_established());
    }
    false
}
