//! What a client of a proxy may send packets to: what the rules allow of what it asked for.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::access::{AllowList, Hosts, Name, Transport};
use crate::ip::{IpRange, MAX_ROUTES, everywhere};

/// The packets that pass for one client.
#[derive(Debug, Clone)]
pub struct Permit {
    allow: Arc<AllowList>,
    /// The name that it asked for, if it was one.
    name: Option<Name>,
    /// All addresses that it asked for, with the protocol that it asked for.
    asked: Vec<IpRange>,
}

impl Permit {
    /// What `allow` has of these ranges, which are the addresses of `name` if there is one, with this protocol or any
    /// (RFC 9484 section 4.6).
    #[must_use]
    pub fn new(
        allow: Arc<AllowList>,
        name: Option<Name>,
        ranges: Vec<IpRange>,
        protocol: Option<u8>,
    ) -> Self {
        let protocol = protocol.unwrap_or_default();
        let asked = ranges.into_iter().map(|range| IpRange { protocol, ..range }).collect();
        Self { allow, name, asked }
    }

    /// Whether packets of a protocol may go to this host and port, and come from there. Port 0 is for those without.
    #[must_use]
    pub fn allows(&self, protocol: u8, remote: SocketAddr) -> bool {
        self.asked.iter().any(|range| range.contains(remote.ip(), protocol))
            && self.allow.check(Transport::Ip, self.name.as_ref(), remote).is_ok()
    }

    /// The ranges to advertise, in order and apart from each other: some port of each of their addresses is allowed,
    /// but for special addresses among those of a larger network.
    #[must_use]
    pub fn routes(&self) -> Vec<IpRange> {
        let mut routes = match &self.name {
            // Rules for the name hold for its addresses, of which there are few.
            Some(_) => {
                let may_reach = |range: &&IpRange| {
                    self.allow.may_reach(Transport::Ip, self.name.as_ref(), range.start)
                };
                merged(self.asked.iter().filter(may_reach).copied().collect())
            }
            None => {
                let allowed = merged(allowed(&self.allow));
                let within =
                    |one: &IpRange| allowed.iter().filter_map(|other| one.within(other)).collect();
                merged(self.asked.iter().flat_map::<Vec<_>, _>(within).collect())
            }
        };
        routes.truncate(MAX_ROUTES);
        routes
    }
}

/// The ranges that an allow list has. Names have none: nothing is known of names in packets.
fn allowed(allow: &AllowList) -> Vec<IpRange> {
    let mut ranges: Vec<IpRange> = Vec::new();
    for rule in allow.rules().iter().filter(|rule| rule.is_about(Transport::Ip)) {
        match &rule.place.hosts {
            Hosts::Network(net) => ranges.push(IpRange::of(*net)),
            Hosts::Public => ranges.extend(everywhere()),
            Hosts::Name(_) | Hosts::Below(_) => {}
        }
    }
    ranges
}

/// Ranges for one protocol without overlaps, in order.
fn merged(mut ranges: Vec<IpRange>) -> Vec<IpRange> {
    ranges.sort_by_key(|range| (range.start.is_ipv6(), range.start));
    let mut merged: Vec<IpRange> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last)
                if last.start.is_ipv4() == range.start.is_ipv4() && range.start <= last.end =>
            {
                last.end = last.end.max(range.end);
            }
            Some(_) | None => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AllowRule;
    use crate::ip::{TCP, UDP};

    fn permit(rules: &str, name: Option<&str>, asked: &[&str], protocol: Option<u8>) -> Permit {
        let allow: AllowList =
            rules.split_whitespace().map(|rule| rule.parse::<AllowRule>().unwrap()).collect();
        let ranges = asked.iter().map(|net| IpRange::of(net.parse().unwrap())).collect();
        Permit::new(Arc::new(allow), name.map(|name| name.parse().unwrap()), ranges, protocol)
    }

    fn told(permit: &Permit) -> String {
        let routes = permit.routes();
        let told =
            routes.iter().map(|range| format!("{}-{} {} ", range.start, range.end, range.protocol));
        told.collect()
    }

    #[test]
    fn what_is_allowed_is_advertised() {
        let rules = "10.0.0.0/8:22 10.1.0.0/16:* tcp/172.16.0.0/12 ip/192.168.0.0/16 [fd00::/8]:* db.example.org:5432";
        assert_eq!(
            told(&permit(rules, None, &["0.0.0.0/0"], None)),
            "10.0.0.0-10.255.255.255 0 192.168.0.0-192.168.255.255 0 "
        );
        assert!(
            told(&permit(rules, None, &["0.0.0.0/0", "::/0"], None))
                .ends_with("fd00::-fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 0 ")
        );
        let all = told(&permit("* 10.0.0.0/8:*", None, &["0.0.0.0/0"], None));
        assert_eq!(all, "0.0.0.0-255.255.255.255 0 ");
    }

    #[test]
    fn only_what_was_asked_for_is_advertised_and_passes() {
        let permit = permit("10.0.0.0/8:*", None, &["10.1.0.0/16", "192.168.0.0/24"], Some(UDP));
        assert_eq!(told(&permit), "10.1.0.0-10.1.255.255 17 ");
        let allows = |protocol, to: &str| permit.allows(protocol, to.parse().unwrap());
        assert!(allows(UDP, "10.1.2.3:53") && allows(1, "10.1.2.3:0"));
        assert!(!allows(TCP, "10.1.2.3:53") && !allows(UDP, "10.2.2.3:53"));
        assert!(!allows(UDP, "192.168.0.1:53"));
    }

    #[test]
    fn a_rule_for_a_name_holds_for_who_asks_for_the_name() {
        let rules = "ip/db.example.org:5432";
        let named = permit(rules, Some("db.example.org"), &["192.0.2.1/32", "10.0.0.1/32"], None);
        // A name allows no special address.
        let to: SocketAddr = "93.184.216.34:5432".parse().unwrap();
        assert_eq!(told(&named), "");
        let named = permit(rules, Some("db.example.org"), &["93.184.216.34/32"], None);
        assert_eq!(told(&named), "93.184.216.34-93.184.216.34 0 ");
        assert!(named.allows(TCP, to) && !named.allows(TCP, (to.ip(), 22).into()));
        let unnamed = permit(rules, None, &["93.184.216.34/32"], None);
        assert!(told(&unnamed).is_empty() && !unnamed.allows(TCP, to));
    }
}
