//! What the kernel of a client routes into its tunnel.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;

use super::command::ip;
use crate::ip::{IpRange, MAX_ROUTES};

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

/// Routes these networks into a device, from the addresses of this machine in the tunnel. The routes go with the device.
pub(super) fn route(device: &str, networks: &[IpNet], own: &[IpNet]) -> io::Result<()> {
    for network in networks.iter().flat_map(halves) {
        let Some(own) = own.iter().find(|ip| ip.addr().is_ipv4() == network.addr().is_ipv4())
        else {
            continue;
        };
        let (network, own) = (network.to_string(), own.addr().to_string());
        ip(["route", "replace", &network, "dev", device, "src", &own])?;
    }
    Ok(())
}

/// A network, or the two halves of everything: so the machine's own default route stays, for when the device goes.
fn halves(network: &IpNet) -> Vec<IpNet> {
    match network.subnets(1) {
        Ok(halves) if network.prefix_len() == 0 => halves.collect(),
        Ok(_) | Err(_) => vec![*network],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(all: &str) -> Vec<IpNet> {
        all.split_whitespace().map(|net| net.parse().unwrap()).collect()
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
