//! Addresses that do not stand for a host of the public Internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// What a special address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Special {
    /// This machine.
    Loopback,
    /// No address, or "this network" (RFC 1122 section 3.2.1.3).
    Unspecified,
    /// Hosts on the same link.
    LinkLocal,
    /// Private networks (RFC 1918), unique local addresses (RFC 4193) and the site-local ones before them.
    Private,
    /// Between a provider and its customers (RFC 6598).
    SharedCgnat,
    /// Groups of hosts.
    Multicast,
    /// All hosts of a link.
    Broadcast,
    /// Examples in documents.
    Documentation,
    /// Benchmarks of networks (RFC 2544, RFC 5180).
    Benchmarking,
    /// Translation between IPv4 and IPv6, where what is behind is unknown: Teredo, the local-use NAT64 prefix,
    /// IPv4-compatible addresses, 6to4 relays.
    Translation,
    /// Assigned to protocols or to nobody.
    Reserved,
}

impl Special {
    /// In a sentence: "private address".
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Unspecified => "unspecified",
            Self::LinkLocal => "link-local",
            Self::Private => "private",
            Self::SharedCgnat => "carrier-grade NAT",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Translation => "translation",
            Self::Reserved => "reserved",
        }
    }
}

/// The special ranges of IPv4 (RFC 6890, IANA's registry as of 2026). What is more specific comes first.
const V4: [([u8; 4], u8, Special); 16] = [
    ([255, 255, 255, 255], 32, Special::Broadcast),
    ([0, 0, 0, 0], 8, Special::Unspecified),
    ([10, 0, 0, 0], 8, Special::Private),
    ([100, 64, 0, 0], 10, Special::SharedCgnat),
    ([127, 0, 0, 0], 8, Special::Loopback),
    ([169, 254, 0, 0], 16, Special::LinkLocal),
    ([172, 16, 0, 0], 12, Special::Private),
    ([192, 0, 0, 0], 24, Special::Reserved),
    ([192, 0, 2, 0], 24, Special::Documentation),
    ([192, 88, 99, 0], 24, Special::Translation),
    ([192, 168, 0, 0], 16, Special::Private),
    ([198, 18, 0, 0], 15, Special::Benchmarking),
    ([198, 51, 100, 0], 24, Special::Documentation),
    ([203, 0, 113, 0], 24, Special::Documentation),
    ([224, 0, 0, 0], 4, Special::Multicast),
    ([240, 0, 0, 0], 4, Special::Reserved),
];

/// The special ranges of IPv6. What is more specific comes first; the last three are all that is not global unicast.
const V6: [([u16; 4], u8, Special); 17] = [
    ([0, 0, 0, 0], 96, Special::Translation),
    ([0x64, 0xff9b, 1, 0], 48, Special::Translation),
    ([0x100, 0, 0, 0], 64, Special::Reserved),
    ([0x2001, 0, 0, 0], 32, Special::Translation),
    ([0x2001, 2, 0, 0], 48, Special::Benchmarking),
    ([0x2001, 0, 0, 0], 23, Special::Reserved),
    ([0x2001, 0xdb8, 0, 0], 32, Special::Documentation),
    ([0x3fff, 0, 0, 0], 20, Special::Documentation),
    ([0x5f00, 0, 0, 0], 16, Special::Reserved),
    ([0xfc00, 0, 0, 0], 7, Special::Private),
    ([0xfe80, 0, 0, 0], 10, Special::LinkLocal),
    ([0xfec0, 0, 0, 0], 10, Special::Private),
    ([0xff00, 0, 0, 0], 8, Special::Multicast),
    ([0x2002, 0, 0, 0], 16, Special::Translation),
    ([0, 0, 0, 0], 3, Special::Reserved),
    ([0x4000, 0, 0, 0], 2, Special::Reserved),
    ([0x8000, 0, 0, 0], 1, Special::Reserved),
];

/// The prefix of NAT64 (RFC 6052 section 2.1), in whose last 32 bits is an IPv4 address.
const NAT64: Ipv6Net = v6_net([0x64, 0xff9b, 0, 0], 96);
/// The prefix of 6to4 (RFC 3056 section 2), behind which is an IPv4 address.
const SIX_TO_FOUR: Ipv6Net = v6_net([0x2002, 0, 0, 0], 16);

const fn v6_net(start: [u16; 4], length: u8) -> Ipv6Net {
    let [a, b, c, d] = start;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), length)
}

/// The most specific special range that an address is in, and what that range is for; `None` for addresses of
/// the public Internet.
///
/// An IPv4-mapped address is the IPv4 address that it maps. One of NAT64 or 6to4 is as special as the IPv4
/// address in it, in a range of as many addresses: `64:ff9b::a01:203` is in `64:ff9b::a00:0/104`.
#[must_use]
pub fn special(ip: IpAddr) -> Option<(IpNet, Special)> {
    match ip.to_canonical() {
        IpAddr::V4(ip) => special_v4(ip).map(|(net, what)| (net.into(), what)),
        IpAddr::V6(ip) => special_v6(ip).map(|(net, what)| (net.into(), what)),
    }
}

fn special_v4(ip: Ipv4Addr) -> Option<(Ipv4Net, Special)> {
    V4.into_iter()
        .map(|(start, length, what)| (Ipv4Net::new_assert(start.into(), length), what))
        .find(|(net, _)| net.contains(&ip))
}

fn special_v6(ip: Ipv6Addr) -> Option<(Ipv6Net, Special)> {
    if ip.is_loopback() {
        return Some((ip.into(), Special::Loopback));
    }
    if ip.is_unspecified() {
        return Some((ip.into(), Special::Unspecified));
    }
    if NAT64.contains(&ip) {
        return embedded(ip, NAT64);
    }
    if SIX_TO_FOUR.contains(&ip) {
        return embedded(ip, SIX_TO_FOUR);
    }
    V6.into_iter()
        .map(|(start, length, what)| (v6_net(start, length), what))
        .find(|(net, _)| net.contains(&ip))
}

/// The special range of the IPv4 address behind a prefix.
fn embedded(ip: Ipv6Addr, prefix: Ipv6Net) -> Option<(Ipv6Net, Special)> {
    let start = usize::from(prefix.prefix_len() / 8);
    let inner: [u8; 4] = ip.octets()[start..start + 4].try_into().ok()?;
    let (net, what) = special_v4(inner.into())?;
    let net = Ipv6Net::new(ip, prefix.prefix_len() + net.prefix_len()).ok()?;
    Some((net.trunc(), what))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(ip: &str) -> Option<(String, Special)> {
        special(ip.parse().unwrap()).map(|(net, what)| (net.to_string(), what))
    }

    #[test]
    fn special_addresses_are_told_from_others() {
        for (ip, net, what) in [
            ("127.0.0.1", "127.0.0.0/8", Special::Loopback),
            ("::1", "::1/128", Special::Loopback),
            ("0.1.2.3", "0.0.0.0/8", Special::Unspecified),
            ("::", "::/128", Special::Unspecified),
            ("169.254.169.254", "169.254.0.0/16", Special::LinkLocal),
            ("fe80::1", "fe80::/10", Special::LinkLocal),
            ("10.1.2.3", "10.0.0.0/8", Special::Private),
            ("172.31.0.1", "172.16.0.0/12", Special::Private),
            ("192.168.1.1", "192.168.0.0/16", Special::Private),
            ("fd12::1", "fc00::/7", Special::Private),
            ("fec0::1", "fec0::/10", Special::Private),
            ("100.127.0.1", "100.64.0.0/10", Special::SharedCgnat),
            ("224.0.0.251", "224.0.0.0/4", Special::Multicast),
            ("ff02::1", "ff00::/8", Special::Multicast),
            ("255.255.255.255", "255.255.255.255/32", Special::Broadcast),
            ("203.0.113.9", "203.0.113.0/24", Special::Documentation),
            ("2001:db8::1", "2001:db8::/32", Special::Documentation),
            ("3fff:fff::1", "3fff::/20", Special::Documentation),
            ("198.19.0.1", "198.18.0.0/15", Special::Benchmarking),
            ("2001:2::1", "2001:2::/48", Special::Benchmarking),
            ("2001:0:1::", "2001::/32", Special::Translation),
            ("64:ff9b:1::a", "64:ff9b:1::/48", Special::Translation),
            ("::10.1.2.3", "::/96", Special::Translation),
            ("::ffff:0:10.1.2.3", "::/3", Special::Reserved),
            ("2001:100::", "2001::/23", Special::Reserved),
            ("240.0.0.1", "240.0.0.0/4", Special::Reserved),
            ("4000::1", "4000::/2", Special::Reserved),
            ("e000::1", "8000::/1", Special::Reserved),
        ] {
            assert_eq!(of(ip), Some((net.to_owned(), what)), "{ip}");
        }
        for ip in [
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.32.0.0",
            "1.1.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2a00::1",
            "3ffe::1",
        ] {
            assert_eq!(of(ip), None, "{ip}");
        }
    }

    #[test]
    fn an_address_is_as_special_as_the_one_in_it() {
        for (ip, net, what) in [
            ("::ffff:10.1.2.3", "10.0.0.0/8", Special::Private),
            ("::ffff:127.0.0.1", "127.0.0.0/8", Special::Loopback),
            ("64:ff9b::10.1.2.3", "64:ff9b::a00:0/104", Special::Private),
            ("64:ff9b::7f00:1", "64:ff9b::7f00:0/104", Special::Loopback),
            ("2002:a01:203::5", "2002:a00::/24", Special::Private),
            ("2002:c0a8:1::", "2002:c0a8::/32", Special::Private),
            ("2002:ffff:ffff::", "2002:ffff:ffff::/48", Special::Broadcast),
        ] {
            assert_eq!(of(ip), Some((net.to_owned(), what)), "{ip}");
        }
        for ip in ["::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1"] {
            assert_eq!(of(ip), None, "{ip}");
        }
    }

    proptest! {
        #[test]
        fn a_range_holds_its_address_and_all_of_it_is_special(ip: IpAddr, other: u128) {
            if let Some((net, what)) = special(ip) {
                prop_assert!(net.contains(&ip.to_canonical()));
                let within: IpAddr = match net {
                    IpNet::V4(net) => (net.network() | Ipv4Addr::from((other as u32) & u32::from(net.hostmask()))).into(),
                    IpNet::V6(net) => (net.network() | Ipv6Addr::from(other & u128::from(net.hostmask()))).into(),
                };
                let (more_specific, inner) = special(within).unwrap();
                prop_assert!(net.contains(&more_specific));
                prop_assert!(inner == what || more_specific != net);
            }
        }

        #[test]
        fn what_the_standard_library_calls_special_is(ip: Ipv4Addr) {
            let known = ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_broadcast()
                || ip.is_documentation() || ip.is_multicast() || ip.is_unspecified();
            prop_assert!(!known || special(ip.into()).is_some());
        }
    }
}
