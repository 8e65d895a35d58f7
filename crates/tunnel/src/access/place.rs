//! Sets of hosts and ports, as rules name them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use super::name::{InvalidName, Name};
use super::special::special;
use super::target::port_number;

/// A set of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Hosts {
    /// `*`: all of the public Internet, by address or by name.
    Public,
    /// `10.0.0.0/8`, `192.168.1.7`, `[fd00::/8]`: a network, or an address. A network holds the addresses of a
    /// [special](fn@super::special) range only if it is within that range: `0.0.0.0/0` holds no private ones.
    Network(IpNet),
    /// `db.example.org`: a host by its name, at addresses that are not special.
    Name(Name),
    /// `*.example.org`: hosts whose names end so, at addresses that are not special.
    Below(Name),
}

/// A range of ports: `22`, `5432-5440`, or `*` for all of them. Only the latter holds 0, which stands for packets
/// without ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ports {
    first: u16,
    last: u16,
}

/// Ports of hosts: `10.0.0.0/8:22`, `192.168.1.7:*`, `[fd00::/8]:443`, `*.example.org:443`,
/// `db.example.org:5432-5440`, `*:443`. No port is all of them: `*`, `[::1]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The hosts.
    pub hosts: Hosts,
    /// Their ports.
    pub ports: Ports,
}

/// Why a text names no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPlace {
    /// The ports are neither a number, a range nor `*`.
    #[error("ports are a number from 1 to 65535, two with a hyphen between them, or *")]
    Ports,
    /// IPv6 without brackets, or brackets around something else.
    #[error("IPv6 addresses and networks, and only these, are in brackets: [fd00::/8]:443")]
    Brackets,
    /// A network of which the prefix is too long, or has bits behind it.
    #[error(
        "a network is an address and the length of its prefix, with zeros behind the prefix: 10.0.0.0/8"
    )]
    Network,
    /// A name that is none, or a `*` elsewhere than in `*` and `*.example.org`.
    #[error(transparent)]
    Name(#[from] InvalidName),
}

impl Ports {
    /// All ports, and packets without any.
    pub const ALL: Self = Self { first: 0, last: u16::MAX };

    /// One port.
    #[must_use]
    pub fn one(port: u16) -> Self {
        Self { first: port, last: port }
    }

    /// Whether the range has this port.
    #[must_use]
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl Hosts {
    /// Whether a permission for these hosts holds for the one at this address, of which the client said this
    /// name, if it said one. Special addresses must be named, as this type says.
    #[must_use]
    pub fn contains(&self, name: Option<&Name>, ip: IpAddr) -> bool {
        let is_named = || match (special(ip), self) {
            (None, _) => true,
            (Some((range, _)), Self::Network(net)) => range.contains(net),
            (Some(_), Self::Public | Self::Name(_) | Self::Below(_)) => false,
        };
        self.covers(name, ip) && is_named()
    }

    /// Whether the host at this address is meant where nothing is permitted by it: `*` is every host, and an
    /// address may be special.
    #[must_use]
    pub fn covers(&self, name: Option<&Name>, ip: IpAddr) -> bool {
        match self {
            Self::Public => true,
            Self::Network(net) => net.contains(&ip.to_canonical()),
            Self::Name(_) | Self::Below(_) => name.is_some_and(|name| self.may_have(name)),
        }
    }

    /// Whether a host of this name may be meant, whatever its address.
    #[must_use]
    pub fn may_have(&self, name: &Name) -> bool {
        match self {
            Self::Public | Self::Network(_) => true,
            Self::Name(meant) => name == meant,
            Self::Below(domain) => name.is_below(domain),
        }
    }
}

impl Place {
    /// Whether a permission for this place holds for a port of a host: see [`Hosts::contains`].
    #[must_use]
    pub fn contains(&self, name: Option<&Name>, address: SocketAddr) -> bool {
        self.ports.contains(address.port()) && self.hosts.contains(name, address.ip())
    }

    /// Whether a port of a host is meant where nothing is permitted by it: see [`Hosts::covers`].
    #[must_use]
    pub fn covers(&self, name: Option<&Name>, address: SocketAddr) -> bool {
        self.ports.contains(address.port()) && self.hosts.covers(name, address.ip())
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first, self.last) {
            (0, u16::MAX) => f.write_str("*"),
            (first, last) if first == last => first.fmt(f),
            (first, last) => write!(f, "{first}-{last}"),
        }
    }
}

impl FromStr for Ports {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        if text == "*" {
            return Ok(Self::ALL);
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text| port_number(text).ok_or(InvalidPlace::Ports);
        let ports = Self { first: port(first)?, last: port(last)? };
        if ports.first > ports.last { Err(InvalidPlace::Ports) } else { Ok(ports) }
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public => f.write_str("*"),
            Self::Network(net) => {
                let is_address = net.prefix_len() == net.max_prefix_len();
                match (net, is_address) {
                    (IpNet::V4(net), true) => net.addr().fmt(f),
                    (IpNet::V4(net), false) => net.fmt(f),
                    (IpNet::V6(net), true) => write!(f, "[{}]", net.addr()),
                    (IpNet::V6(net), false) => write!(f, "[{net}]"),
                }
            }
            Self::Name(name) => name.fmt(f),
            Self::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

impl FromStr for Hosts {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        if text == "*" {
            return Ok(Self::Public);
        }
        if let Some(domain) = text.strip_prefix("*.") {
            return Ok(Self::Below(domain.parse()?));
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').filter(|inner| inner.contains(':'));
            return network(inner.ok_or(InvalidPlace::Brackets)?).map(Self::Network);
        }
        if text.contains([':', ']']) {
            return Err(InvalidPlace::Brackets);
        }
        if text.contains('/') || text.parse::<IpAddr>().is_ok() {
            return network(text).map(Self::Network);
        }
        Ok(Self::Name(text.parse()?))
    }
}

/// A network or an address. One of IPv4-mapped addresses is the network of the IPv4 addresses.
fn network(text: &str) -> Result<IpNet, InvalidPlace> {
    let net = text.parse().or_else(|_| text.parse().map(|ip: IpAddr| IpNet::from(ip)));
    let net: IpNet = net.map_err(|_| InvalidPlace::Network)?;
    if net.trunc() != net {
        return Err(InvalidPlace::Network);
    }
    let mapped = match (net.addr().to_canonical(), net) {
        (IpAddr::V4(ip), IpNet::V6(net)) => {
            net.prefix_len().checked_sub(96).map(|length| (ip, length))
        }
        (IpAddr::V4(_), IpNet::V4(_)) | (IpAddr::V6(_), _) => None,
    };
    let Some((ip, length)) = mapped else { return Ok(net) };
    Ipv4Net::new(ip, length).map(IpNet::V4).map_err(|_| InvalidPlace::Network)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hosts.fmt(f)?;
        if self.ports == Ports::ALL && self.hosts == Hosts::Public {
            return Ok(());
        }
        write!(f, ":{}", self.ports)
    }
}

impl FromStr for Place {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        let (hosts, ports) = match text.rsplit_once(':') {
            Some((hosts, ports)) if !ports.ends_with(']') => (hosts, ports.parse()?),
            Some(_) | None => (text, Ports::ALL),
        };
        Ok(Self { hosts: hosts.parse()?, ports })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_shown_as_they_are_written() {
        for text in [
            "*",
            "*:443",
            "10.0.0.0/8:22",
            "192.168.1.7:*",
            "[fd00::/8]:443",
            "[::1]:*",
            "*.example.org:443",
            "db.example.org:5432-5440",
        ] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        for (text, shown) in [
            ("*:*", "*"),
            ("[::1]", "[::1]:*"),
            ("10.0.0.0/8", "10.0.0.0/8:*"),
            ("DB.example.org:1-1", "db.example.org:1"),
            ("[::ffff:10.0.0.0/104]:22", "10.0.0.0/8:22"),
            ("[::ffff:10.0.0.1]:22", "10.0.0.1:22"),
        ] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for (text, error) in [
            ("a.example:0", InvalidPlace::Ports),
            ("a.example:2-1", InvalidPlace::Ports),
            ("a.example:1-2-3", InvalidPlace::Ports),
            ("a.example:", InvalidPlace::Ports),
            ("a.example:http", InvalidPlace::Ports),
            ("fd00::/8:443", InvalidPlace::Brackets),
            ("[10.0.0.0/8]:443", InvalidPlace::Brackets),
            ("[a.example]:443", InvalidPlace::Brackets),
            ("[fd00::/8:443", InvalidPlace::Brackets),
            ("10.0.0.1/8:22", InvalidPlace::Network),
            ("10.0.0.0/33:22", InvalidPlace::Network),
            ("a.example/8:22", InvalidPlace::Network),
            ("[fd00::1%1]:22", InvalidPlace::Network),
            ("10.0.0:22", InvalidPlace::Name(InvalidName::Number)),
            ("a*.example:22", InvalidPlace::Name(InvalidName::Character)),
            ("*.*.example:22", InvalidPlace::Name(InvalidName::Character)),
            ("*.:22", InvalidPlace::Name(InvalidName::Length)),
            ("", InvalidPlace::Name(InvalidName::Length)),
        ] {
            assert_eq!(text.parse::<Place>(), Err(error), "{text}");
        }
    }

    #[test]
    fn all_ports_alone_hold_packets_without_ports() {
        assert!(Ports::ALL.contains(0));
        assert!(!"1-65535".parse::<Ports>().unwrap().contains(0));
        assert!(Ports::one(22).contains(22) && !Ports::one(22).contains(23));
    }

    proptest! {
        #[test]
        fn what_names_a_place_names_it_again(
            text in r"(\*|\*\.)?(\[[0-9a-f:/]{2,8}\]|[a-c0-9./]{0,9})(:[0-9*-]{0,5})?",
        ) {
            if let Ok(place) = text.parse::<Place>() {
                prop_assert_eq!(place.to_string().parse(), Ok(place));
            }
        }
    }
}
