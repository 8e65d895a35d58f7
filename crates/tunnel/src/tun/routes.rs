//! Where packets go: what a proxy advertises, and what the kernel of a client is told.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use ipnet::IpNet;

use crate::access::{AllowList, Hosts, Transport};
use crate::ip::{IpRange, MAX_ROUTES};

/// The ranges that an allow list has for clients with addresses of these networks, in order and apart from each other.
/// Names have none: nothing is known of names in packets.
pub(super) fn advertised(allow: &AllowList, own: &[IpNet]) -> Vec<IpRange> {
    let everything = [IpNet::from(IpAddr::from([0; 4])), IpNet::from(IpAddr::from([0_u16; 8]))];
    let mut ranges: Vec<IpRange> = Vec::new();
    for rule in allow.rules().iter().filter(|rule| rule.is_about(Transport::Ip)) {
        match &rule.place.hosts {
            Hosts::Network(net) => ranges.push(IpRange::of(*net)),
            Hosts::Public => {
                ranges.extend(everything.iter().map(|ip| all(ip.addr())));
            }
            Hosts::Name(_) | Hosts::Below(_) => {}
        }
    }
    ranges.retain(|range| own.iter().any(|net| net.addr().is_ipv4() == range.start.is_ipv4()));
    let mut ranges = merged(ranges);
    ranges.truncate(MAX_ROUTES);
    ranges
}

/// All addresses of the version of this one.
fn all(ip: IpAddr) -> IpRange {
    let (start, end): (IpAddr, IpAddr) = match ip {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::BROADCAST.into()),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::from(u128::MAX).into()),
    };
    IpRange { start, end, protocol: 0 }
}

/// Ranges for all protocols without overlaps, in order.
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

/// The networks of ranges that all protocols may be sent to, and of these only what `wanted` has: all if it is
/// empty.
pub(super) fn networks(ranges: &[IpRange], wanted: &[IpNet]) -> Vec<IpNet> {
    let all = ranges.iter().filter(|range| range.protocol == 0).flat_map(|range| {
        match (range.start, range.end) {
            (IpAddr::V4(start), IpAddr::V4(end)) => {
                ipnet::Ipv4Subnets::new(start, end, 0).map(IpNet::V4).collect::<Vec<_>>()
            }
            (IpAddr::V6(start), IpAddr::V6(end)) => {
                ipnet::Ipv6Subnets::new(start, end, 0).map(IpNet::V6).collect()
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => Vec::new(),
        }
    });
    if wanted.is_empty() {
        return all.take(MAX_ROUTES).collect();
    }
    let all: Vec<IpNet> = all.collect();
    let within = wanted.iter().flat_map(|wish| {
        all.iter().filter_map(move |net| match (net.contains(wish), wish.contains(net)) {
            (true, _) => Some(*wish),
            (false, true) => Some(*net),
            (false, false) => None,
        })
    });
    within.take(MAX_ROUTES).collect()
}

/// The routes of this machine's kernel into a device. They go with the device.
#[derive(Debug)]
pub(super) struct Kernel<'a> {
    device: &'a str,
}

impl<'a> Kernel<'a> {
    pub(super) const fn new(device: &'a str) -> Self {
        Self { device }
    }

    /// Routes these networks into the device, from the addresses of this machine in the tunnel. The way to the proxy
    /// stays as it is, or the tunnel would lead into itself.
    pub(super) fn route(&self, networks: &[IpNet], own: &[IpNet], proxy: IpAddr) -> io::Result<()> {
        if networks.iter().any(|net| net.contains(&proxy)) && !proxy.is_loopback() {
            let (proxy, way) = (proxy.to_string(), way_to(proxy)?);
            let way = way.iter().map(String::as_str);
            ip(["route", "replace", &proxy].into_iter().chain(way))?;
        }
        for network in networks.iter().flat_map(halves) {
            let Some(own) = own.iter().find(|ip| ip.addr().is_ipv4() == network.addr().is_ipv4())
            else {
                continue;
            };
            let (network, own) = (network.to_string(), own.addr().to_string());
            ip(["route", "replace", &network, "dev", self.device, "src", &own])?;
        }
        Ok(())
    }
}

/// A network, or the two halves of everything: so the machine's own default route stays, for when the device goes.
fn halves(network: &IpNet) -> Vec<IpNet> {
    match network.subnets(1) {
        Ok(halves) if network.prefix_len() == 0 => halves.collect(),
        Ok(_) | Err(_) => vec![*network],
    }
}

/// How the kernel reaches a host now, in the words of `ip route`: `via 192.0.2.1 dev eth0`.
fn way_to(host: IpAddr) -> io::Result<Vec<String>> {
    let told = ip(["route", "get", &host.to_string()])?;
    let words: Vec<&str> = told.split_whitespace().collect();
    let named = words.windows(2).filter(|pair| matches!(pair[0], "via" | "dev"));
    Ok(named.flatten().map(|word| (*word).to_owned()).collect())
}

/// Runs `ip` of iproute2, and returns what it writes.
fn ip<'a>(arguments: impl IntoIterator<Item = &'a str>) -> io::Result<String> {
    let ran = Command::new("ip").args(arguments).output()?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    Err(io::Error::other(String::from_utf8_lossy(&ran.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AllowRule;

    fn nets(all: &str) -> Vec<IpNet> {
        all.split_whitespace().map(|net| net.parse().unwrap()).collect()
    }

    fn told(rules: &str, own: &str) -> String {
        let allow =
            rules.split_whitespace().map(|rule| rule.parse::<AllowRule>().unwrap()).collect();
        let ranges = advertised(&allow, &nets(own));
        ranges.iter().map(|range| format!("{}-{} ", range.start, range.end)).collect()
    }

    #[test]
    fn what_is_allowed_is_advertised() {
        let rules = "10.0.0.0/8:22 10.1.0.0/16:* tcp/172.16.0.0/12 ip/192.168.0.0/16 [fd00::/8]:* db.example.org:5432";
        assert_eq!(
            told(rules, "10.77.0.1/24"),
            "10.0.0.0-10.255.255.255 192.168.0.0-192.168.255.255 "
        );
        assert!(
            told(rules, "10.77.0.1/24 fd77::1/64")
                .ends_with("fd00::-fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ")
        );
        assert_eq!(told("* 10.0.0.0/8:*", "10.77.0.1/24"), "0.0.0.0-255.255.255.255 ");
    }

    #[test]
    fn routes_are_those_wanted_of_what_is_advertised() {
        let range = |net: &str| IpRange::of(net.parse().unwrap());
        let ranges = [range("10.0.0.0/8"), range("192.168.0.0/16"), range("fd00::/8")];
        assert_eq!(networks(&ranges, &[]), nets("10.0.0.0/8 192.168.0.0/16 fd00::/8"));
        let wanted = nets("10.1.0.0/16 0.0.0.0/0 172.16.0.0/12");
        assert_eq!(networks(&ranges, &wanted), nets("10.1.0.0/16 10.0.0.0/8 192.168.0.0/16"));
        let odd = IpRange { start: [10, 0, 0, 1].into(), end: [10, 0, 0, 4].into(), protocol: 0 };
        assert_eq!(networks(&[odd], &[]), nets("10.0.0.1/32 10.0.0.2/31 10.0.0.4/32"));
        assert_eq!(networks(&[IpRange { protocol: 6, ..odd }], &[]), []);
    }
}
