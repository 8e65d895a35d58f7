//! Changes of the address from which a destination sees its clients.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use sutura_link::{DurationText, ParseError, parse_duration};

/// The part of the clients' addresses that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Each client gets another port, as behind a NAT that has forgotten it.
    Port,
    /// All clients get another address, and so other ports. Only over the loopback device of IPv4,
    /// all of whose addresses a host has: 127.0.0.2, 127.0.0.3 and so on.
    Address,
}

/// A moment at which the destination begins to see the clients at other ports or addresses, of which
/// they are not told. Parses and prints as `port@1s` or `address@2500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rebinding {
    /// When, since the relay has started.
    pub at: Duration,
    /// The change.
    pub change: Change,
}

impl fmt::Display for Rebinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = match self.change {
            Change::Port => "port",
            Change::Address => "address",
        };
        write!(f, "{change}@{}", DurationText(self.at))
    }
}

impl FromStr for Rebinding {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new("rebinding", text, "expected port@TIME or address@TIME");
        let (change, at) = text.split_once('@').ok_or_else(error)?;
        let change = match change {
            "port" => Change::Port,
            "address" => Change::Address,
            _ => return Err(error()),
        };
        let at = parse_duration(at).map_err(|e| e.inside("rebinding", text))?;
        Ok(Self { at, change })
    }
}

/// Checks that clients can get the addresses that they are to get towards `to`.
///
/// # Errors
/// `to` is not reached from the addresses of the IPv4 loopback device.
pub(crate) fn check(rebindings: &[Rebinding], to: SocketAddr) -> io::Result<()> {
    let local = to.is_ipv4() && to.ip().is_loopback();
    if local || rebindings.iter().all(|rebinding| rebinding.change == Change::Port) {
        return Ok(());
    }
    let problem = "clients get other addresses only towards 127.0.0.0/8";
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

/// The address of this host after `present`.
///
/// # Errors
/// There is no other address that is known to work.
pub(crate) fn next_host(present: IpAddr) -> io::Result<IpAddr> {
    match present {
        IpAddr::V4(host) if host.is_unspecified() => Ok(Ipv4Addr::new(127, 0, 0, 2).into()),
        // 127.255.255.255 is left out: it is the broadcast address.
        IpAddr::V4(host) if host.is_loopback() && host < Ipv4Addr::new(127, 255, 255, 254) => {
            Ok(Ipv4Addr::from_bits(host.to_bits() + 1).into())
        }
        IpAddr::V4(_) | IpAddr::V6(_) => {
            Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "no other address"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebindings_are_read_and_written() {
        for text in ["port@1s", "address@2500ms"] {
            assert_eq!(text.parse::<Rebinding>().unwrap().to_string(), text);
        }
        for text in ["port", "host@1s", "port@soon", ""] {
            assert!(text.parse::<Rebinding>().is_err(), "{text}");
        }
    }

    #[test]
    fn hosts_follow_each_other_within_the_loopback_network() {
        let next = |text: &str| next_host(text.parse().unwrap()).map(|host| host.to_string());
        assert_eq!(next("0.0.0.0").unwrap(), "127.0.0.2");
        assert_eq!(next("127.0.0.255").unwrap(), "127.0.1.0");
        for last in ["127.255.255.254", "192.0.2.1", "::", "::1"] {
            assert!(next(last).is_err(), "{last}");
        }
    }
}
