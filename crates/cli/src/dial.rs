//! Options that say which addresses of a server to try, and for how long.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use sutura_tunnel::race::interleaved;

use crate::failure::{Exit, Failure};
use crate::seconds;
use crate::url::Authority;

/// Most addresses of a host that are tried.
const MAX_ADDRESSES: usize = 8;
/// Most addresses of a host that are looked at, so that both families are among those that are tried.
const MAX_FOUND: usize = 64;

#[derive(Debug, Clone, Default, clap::Args)]
pub struct DialArgs {
    /// Use IPv4 addresses only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 addresses only
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Use these addresses for a host and port instead of asking the resolver, such as
    /// example.org:443:127.0.0.1
    #[arg(long, value_name = "HOST:PORT:ADDR[,ADDR]")]
    resolve: Vec<Pinned>,
    /// Give up on a server to which no connection has come about after this many seconds [default: 10 for
    /// each address]
    #[arg(long, value_name = "SECONDS", value_parser = seconds::limit)]
    pub connect_timeout: Option<Duration>,
}

impl DialArgs {
    /// The addresses of a server in the order in which they are to be tried.
    ///
    /// # Errors
    /// The host is unknown, or has no address of the wanted family.
    pub async fn addresses(&self, authority: &Authority) -> Result<Vec<SocketAddr>, Failure> {
        let Authority { host, port } = authority;
        let unknown = |why: &dyn std::fmt::Display| {
            Failure::new(Exit::UnknownHost, format!("unknown host {host}: {why}"))
        };
        let found: Vec<SocketAddr> = match self.pinned(authority) {
            Some(pinned) => pinned.iter().map(|&ip| (ip, *port).into()).collect(),
            None => {
                let found = tokio::net::lookup_host((host.as_str(), *port)).await;
                found.map_err(|e| unknown(&e))?.take(MAX_FOUND).collect()
            }
        };
        if found.is_empty() {
            return Err(unknown(&"it has no address"));
        }
        let addresses = self.chosen(&found);
        if addresses.is_empty() {
            let (wanted, option) = if self.ipv4 { ("IPv4", "-4") } else { ("IPv6", "-6") };
            return Err(unknown(&format!("it has no {wanted} address, and {option} wants one")));
        }
        Ok(addresses)
    }

    /// Uses these addresses for a server from now on.
    pub fn pin(&mut self, authority: &Authority, addresses: &[SocketAddr]) {
        let addresses = addresses.iter().map(SocketAddr::ip).collect();
        self.resolve.push(Pinned { authority: authority.clone(), addresses });
    }

    /// The addresses that the user names for a server.
    pub fn pinned(&self, authority: &Authority) -> Option<&[IpAddr]> {
        // The last one counts, so that a script's can be overridden.
        let pinned = self.resolve.iter().rfind(|pinned| pinned.authority == *authority)?;
        Some(&pinned.addresses)
    }

    /// The addresses of the wanted families, each once, in the order in which they are to be tried.
    fn chosen(&self, found: &[SocketAddr]) -> Vec<SocketAddr> {
        let mut wanted: Vec<SocketAddr> = Vec::new();
        for &address in found {
            let unwanted = (self.ipv4 && !address.is_ipv4()) || (self.ipv6 && !address.is_ipv6());
            if !unwanted && !wanted.contains(&address) {
                wanted.push(address);
            }
        }
        let mut ordered = interleaved(&wanted);
        ordered.truncate(MAX_ADDRESSES);
        ordered
    }
}

/// The addresses of a host and port that the user names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    authority: Authority,
    addresses: Vec<IpAddr>,
}

impl Pinned {
    const SYNTAX: &str = "expected HOST:PORT:ADDR, such as example.org:443:127.0.0.1 or \
                          localhost:4433:[::1]";
}

impl FromStr for Pinned {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let host = match text.strip_prefix('[') {
            Some(rest) => rest.find(']').map(|at| at + 2),
            None => text.find(':'),
        };
        let (host, rest) = host.and_then(|at| text.split_at_checked(at)).ok_or(Self::SYNTAX)?;
        let rest = rest.strip_prefix(':').ok_or(Self::SYNTAX)?;
        let (port, addresses) = rest.split_once(':').ok_or(Self::SYNTAX)?;
        if port.is_empty() {
            return Err(Self::SYNTAX.into());
        }
        let authority = Authority::parse(&format!("{host}:{port}"), 0)?;
        let addresses = addresses.split(',').map(|text| {
            let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
            let address = bare.unwrap_or(text).parse::<IpAddr>();
            address.map_err(|_| format!("`{text}` is no IP address: {}", Self::SYNTAX))
        });
        Ok(Self { authority, addresses: addresses.collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn authority(text: &str) -> Authority {
        Authority::parse(text, 443).unwrap()
    }

    #[test]
    fn pinned_addresses_are_read() {
        for (text, host, addresses) in [
            ("example.org:443:127.0.0.1", "example.org:443", vec!["127.0.0.1"]),
            ("Example.ORG:1:[::1]", "example.org:1", vec!["::1"]),
            ("localhost:4433:::1", "localhost:4433", vec!["::1"]),
            ("[::2]:5:10.0.0.1,[fe80::1]", "[::2]:5", vec!["10.0.0.1", "fe80::1"]),
        ] {
            let pinned: Pinned = text.parse().unwrap();
            assert_eq!(pinned.authority, authority(host), "{text}");
            let expected: Vec<IpAddr> =
                addresses.iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(pinned.addresses, expected, "{text}");
        }
        for text in [
            "",
            "a",
            "a:1",
            "a:1:",
            "a:1:b",
            "a::1.1.1.1",
            "a:x:1.1.1.1",
            "a:0:1.1.1.1",
            "[::1",
            "[::1]",
        ] {
            assert!(text.parse::<Pinned>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_addresses_come_back(
            text in "[a\\[][a-z0-9.:,\\[\\]\u{e4}]{0,30}",
            ips in proptest::collection::vec(any::<IpAddr>(), 1..4),
            port in 1_u16..,
        ) {
            let _ = text.parse::<Pinned>();
            let list: Vec<String> = ips.iter().map(IpAddr::to_string).collect();
            let pinned: Pinned = format!("host:{port}:{}", list.join(",")).parse().unwrap();
            prop_assert_eq!(pinned.addresses, ips);
            prop_assert_eq!(pinned.authority, authority(&format!("host:{port}")));
        }
    }

    #[tokio::test]
    async fn the_wanted_addresses_are_tried() {
        let pin = |text: &str| text.parse::<Pinned>().unwrap();
        let args = |ipv4, ipv6| DialArgs {
            ipv4,
            ipv6,
            resolve: vec![
                pin("a:443:9.9.9.9"),
                pin("a:443:::1,::2,1.1.1.1,::1"),
                pin("b:443:1.1.1.1"),
            ],
            connect_timeout: None,
        };
        let texts = async |args: DialArgs, host: &str| {
            let found = args.addresses(&authority(host)).await;
            found.map(|found| found.iter().map(|a| a.ip().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(texts(args(false, false), "a").await.unwrap(), ["::1", "1.1.1.1", "::2"]);
        assert_eq!(texts(args(true, false), "a").await.unwrap(), ["1.1.1.1"]);
        assert_eq!(texts(args(false, true), "a").await.unwrap(), ["::1", "::2"]);
        let failure = texts(args(false, true), "b").await.unwrap_err();
        assert_eq!(failure.exit, Exit::UnknownHost);
        assert_eq!(failure.message, "unknown host b: it has no IPv6 address, and -6 wants one");
        // Another port of the host is not pinned, and neither is a number looked up.
        assert_eq!(texts(args(false, false), "127.0.0.1:444").await.unwrap(), ["127.0.0.1"]);
    }
}
