//! Addresses to listen on.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

const SYNTAX: &str = "expected a port such as 4433, or an IP address and a port, such as \
                      127.0.0.1:4433 or [::1]:4433";

/// Where to listen: at one address, or at all addresses of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// At every address, with this port: IPv6 and IPv4, or IPv4 alone where there is no IPv6.
    Everywhere(u16),
    /// At this address.
    At(SocketAddr),
}

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let port = text.strip_prefix(':').unwrap_or(text);
        if port.bytes().all(|b| b.is_ascii_digit())
            && let Ok(port) = port.parse()
        {
            return Ok(Self::Everywhere(port));
        }
        text.parse().map(Self::At).map_err(|_| SYNTAX)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everywhere(port) => write!(f, "port {port}"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl Listen {
    /// Reads an address; a port alone is a port of the loopback address.
    ///
    /// # Errors
    /// The text is neither; the error names the expected form.
    pub fn on_loopback(text: &str) -> Result<SocketAddr, &'static str> {
        Ok(match text.parse()? {
            Self::Everywhere(port) => (Ipv4Addr::LOCALHOST, port).into(),
            Self::At(address) => address,
        })
    }

    /// The port; 0 for any.
    pub const fn port(self) -> u16 {
        match self {
            Self::Everywhere(port) => port,
            Self::At(address) => address.port(),
        }
    }

    /// Binds sockets.
    ///
    /// # Errors
    /// The error of `bind`.
    pub fn bind<T>(self, mut bind: impl FnMut(SocketAddr) -> io::Result<T>) -> io::Result<T> {
        match self {
            Self::At(address) => bind(address),
            Self::Everywhere(port) => match bind((Ipv6Addr::UNSPECIFIED, port).into()) {
                Err(error) if lacks_ipv6(&error) => bind((Ipv4Addr::UNSPECIFIED, port).into()),
                bound => bound,
            },
        }
    }
}

fn lacks_ipv6(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrInUse, PermissionDenied};
    !matches!(error.kind(), AddrInUse | PermissionDenied)
}

/// An address that is listened on, in words that say who reaches it.
pub fn describe(address: SocketAddr) -> String {
    let port = address.port();
    match address.ip() {
        ip if ip.is_loopback() => format!("{address}, which only this machine reaches"),
        IpAddr::V6(ip) if ip.is_unspecified() => format!("port {port} of all addresses"),
        IpAddr::V4(ip) if ip.is_unspecified() => format!("port {port} of all IPv4 addresses"),
        IpAddr::V6(_) | IpAddr::V4(_) => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_stands_for_all_addresses() {
        assert_eq!("4999".parse(), Ok(Listen::Everywhere(4999)));
        assert_eq!(":4999".parse(), Ok(Listen::Everywhere(4999)));
        for address in ["127.0.0.1:4999", "[::1]:4999", "[::]:0"] {
            assert_eq!(address.parse(), Ok(Listen::At(address.parse().unwrap())));
        }
        assert_eq!(Listen::on_loopback("5000"), Ok(([127, 0, 0, 1], 5000).into()));
        assert_eq!(Listen::on_loopback("0.0.0.0:5000"), Ok(([0, 0, 0, 0], 5000).into()));
        for text in ["", ":", "65536", "+80", "here", "localhost:4999", "127.0.0.1", "::1:80:"] {
            assert_eq!(text.parse::<Listen>(), Err(SYNTAX), "{text}");
        }
    }

    #[test]
    fn all_addresses_are_those_of_ipv4_where_there_is_no_ipv6() {
        let bind = |ipv6: io::ErrorKind| {
            Listen::Everywhere(9).bind(|address| match address.ip() {
                IpAddr::V6(_) => Err(io::Error::from(ipv6)),
                IpAddr::V4(_) => Ok(address),
            })
        };
        assert_eq!(bind(io::ErrorKind::Unsupported).unwrap(), ([0, 0, 0, 0], 9).into());
        // Another program is in the way.
        assert_eq!(bind(io::ErrorKind::AddrInUse).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn it_is_said_who_reaches_an_address() {
        for (address, said) in [
            ("127.0.0.1:1", "127.0.0.1:1, which only this machine reaches"),
            ("[::1]:1", "[::1]:1, which only this machine reaches"),
            ("[::]:1", "port 1 of all addresses"),
            ("0.0.0.0:1", "port 1 of all IPv4 addresses"),
            ("192.0.2.1:1", "192.0.2.1:1"),
        ] {
            assert_eq!(describe(address.parse().unwrap()), said);
        }
    }
}
