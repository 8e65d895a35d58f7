//! The flows that packets belong to.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use crate::access::Transport;
use crate::flow::{Dscp, Flow, FlowInfo, Rules, Treatment};
use crate::ip::{Header, TCP, UDP};

/// Most flows of a client that are told apart at a time. If more come, those that were not used for longest are
/// forgotten, and recognised anew.
pub const MAX_TRACKED: usize = 2048;

/// Which flow a packet belongs to, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    protocol: u8,
    client: (IpAddr, u16),
    remote: (IpAddr, u16),
}

/// Flows of a client in two generations: the newer ones, and those that were not used since the newer were begun.
#[derive(Debug, Default)]
pub(super) struct Flows {
    newer: HashMap<Key, Flow>,
    older: HashMap<Key, Flow>,
}

/// A packet as flows see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) header: &'a Header,
    /// Its ports; 0 where it has none.
    pub(super) ports: (u16, u16),
    pub(super) size: usize,
    /// Whether the client sent it.
    pub(super) is_from_client: bool,
}

impl Flows {
    /// How a packet is sent into the tunnel.
    pub(super) fn sent(&mut self, now: Instant, seen: Seen<'_>, rules: &Rules) -> Treatment {
        self.flow(seen, rules).sent(now, seen.size).clone()
    }

    /// A packet came out of the tunnel.
    pub(super) fn received(&mut self, now: Instant, seen: Seen<'_>, rules: &Rules) {
        self.flow(seen, rules).received(now, seen.size);
    }

    fn flow(&mut self, seen: Seen<'_>, rules: &Rules) -> &mut Flow {
        let key = seen.key();
        if !self.newer.contains_key(&key) {
            let flow = self.older.remove(&key);
            let flow = flow.unwrap_or_else(|| Flow::new(rules, &seen.info()));
            if self.newer.len() >= MAX_TRACKED / 2 {
                self.older = std::mem::take(&mut self.newer);
            }
            self.newer.insert(key, flow);
        }
        self.newer.entry(key).or_insert_with(|| Flow::new(rules, &seen.info()))
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.newer.len() + self.older.len()
    }
}

impl Seen<'_> {
    fn key(self) -> Key {
        let Header { source, destination, protocol, .. } = *self.header;
        let (source, destination) = ((source, self.ports.0), (destination, self.ports.1));
        let (client, remote) =
            if self.is_from_client { (source, destination) } else { (destination, source) };
        Key { protocol, client, remote }
    }

    fn info(self) -> FlowInfo {
        let transport = match self.header.protocol {
            TCP => Transport::Tcp,
            UDP => Transport::Udp,
            _ => Transport::Ip,
        };
        let destination = SocketAddr::new(self.header.destination, self.ports.1);
        let mut info = FlowInfo::to(transport, destination);
        info.source = Some(self.header.source);
        info.dscp = Dscp::from_traffic_class(self.header.traffic_class);
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Part;

    fn header(source: [u8; 4], destination: [u8; 4]) -> Header {
        Header {
            source: source.into(),
            destination: destination.into(),
            protocol: UDP,
            traffic_class: 0,
            hops: 64,
            part: Part::Whole,
            is_whole: true,
            offset: 20,
        }
    }

    #[test]
    fn both_directions_are_one_flow() {
        let rules = Rules::parse("udp:53 bulk").unwrap();
        let (mut flows, now) = (Flows::default(), Instant::now());
        let there = header([10, 0, 0, 1], [10, 0, 0, 2]);
        let back = header([10, 0, 0, 2], [10, 0, 0, 1]);
        let out = Seen { header: &there, ports: (99, 53), size: 60, is_from_client: true };
        let home = Seen { header: &back, ports: (53, 99), size: 60, is_from_client: false };
        flows.received(now, out, &rules);
        // The rule is about the destination of the first packet.
        let treatment = flows.sent(now, home, &rules);
        assert_eq!(treatment, Treatment::of(crate::flow::Class::Bulk));
        assert_eq!(flows.len(), 1);
    }

    #[test]
    fn a_flood_of_flows_stays_within_the_bound_and_spares_those_in_use() {
        let rules = Rules::parse("udp:7 bulk").unwrap();
        let (mut flows, now) = (Flows::default(), Instant::now());
        let header = header([10, 0, 0, 1], [10, 0, 0, 2]);
        let seen = |source, port| Seen {
            header: &header,
            ports: (source, port),
            size: 60,
            is_from_client: true,
        };
        for n in 0..20_000_u16 {
            flows.received(now, seen(n, 9), &rules);
            flows.received(now, seen(0, 7), &rules);
            assert!(flows.len() <= MAX_TRACKED);
        }
        let used = seen(0, 7).key();
        assert!(flows.newer.contains_key(&used) || flows.older.contains_key(&used));
    }
}
