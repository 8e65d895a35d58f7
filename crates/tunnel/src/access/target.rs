//! Where a tunnel leads.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::name::{InvalidName, Name};

/// What a tunnel carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// The bytes of a TCP connection (CONNECT, RFC 9114 section 4.4).
    Tcp,
    /// UDP datagrams (RFC 9298).
    Udp,
    /// IP packets (RFC 9484).
    Ip,
}

impl Transport {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Ip];

    /// `tcp`, `udp` or `ip`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Ip => "ip",
        }
    }

    /// The transport that is called so.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|transport| transport.as_str() == text)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A host: a name that has yet to be resolved, or an address. As text, IPv6 addresses have no brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A name.
    Name(Name),
    /// An address.
    Ip(IpAddr),
}

/// A host and a port that is not 0. As text: `db.example.org:5432`, `192.0.2.1:22`, `[2001:db8::1]:443`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// Why a text is no target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTarget {
    /// No port, or one that is not a number from 1 to 65535.
    #[error("no port from 1 to 65535, as in db.example.org:5432")]
    Port,
    /// An IPv6 address without brackets, or brackets with something else in them.
    #[error("IPv6 addresses, and only these, are in brackets: [2001:db8::1]:443")]
    Brackets,
    /// The host is neither an address nor a name.
    #[error(transparent)]
    Host(#[from] InvalidName),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Ip(ip) => ip.fmt(f),
        }
    }
}

impl FromStr for Host {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        text.parse().map_or_else(|_| text.parse().map(Self::Name), |ip| Ok(Self::Ip(ip)))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            Host::Ip(IpAddr::V4(_)) | Host::Name(_) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for Target {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let (host, port) = text.rsplit_once(':').ok_or(InvalidTarget::Port)?;
        let port = port_number(port).ok_or(InvalidTarget::Port)?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(ip) => Host::Ip(IpAddr::V6(ip.parse().map_err(|_| InvalidTarget::Brackets)?)),
            None if host.contains(['[', ']', ':']) => return Err(InvalidTarget::Brackets),
            None => host.parse()?,
        };
        Ok(Self { host, port })
    }
}

/// A port that is not 0, of digits only and without leading zeros.
pub(super) fn port_number(text: &str) -> Option<u16> {
    let strict = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| strict)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn targets_are_names_or_addresses_with_a_port() {
        for (text, host) in [
            ("db.example.org:5432", Host::Name("db.example.org".parse().unwrap())),
            ("192.0.2.1:22", Host::Ip("192.0.2.1".parse().unwrap())),
            ("[2001:db8::1]:65535", Host::Ip("2001:db8::1".parse().unwrap())),
            ("[::ffff:192.0.2.1]:1", Host::Ip("::ffff:192.0.2.1".parse().unwrap())),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.host, host);
            assert_eq!(target.to_string(), text);
        }
        assert_eq!("2001:db8::42".parse::<Host>().unwrap().to_string(), "2001:db8::42");
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for (text, error) in [
            ("example.org", InvalidTarget::Port),
            ("example.org:", InvalidTarget::Port),
            ("example.org:0", InvalidTarget::Port),
            ("example.org:022", InvalidTarget::Port),
            ("example.org:+22", InvalidTarget::Port),
            ("example.org:65536", InvalidTarget::Port),
            ("example.org:22 ", InvalidTarget::Port),
            ("[::1]", InvalidTarget::Port),
            ("::1:22", InvalidTarget::Brackets),
            ("[fe80::1%eth0]:22", InvalidTarget::Brackets),
            ("[192.0.2.1]:22", InvalidTarget::Brackets),
            ("[example.org]:22", InvalidTarget::Brackets),
            ("[::1:22", InvalidTarget::Brackets),
            ("192.0.2.01:22", InvalidTarget::Host(InvalidName::Number)),
            ("192.0.2:22", InvalidTarget::Host(InvalidName::Number)),
            (":22", InvalidTarget::Host(InvalidName::Length)),
            ("user@example.org:22", InvalidTarget::Host(InvalidName::Character)),
        ] {
            assert_eq!(text.parse::<Target>(), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_a_target_is_one_again(text in r"\[?[a-c0-9:.x]{0,12}\]?:[0-9]{1,5}") {
            if let Ok(target) = text.parse::<Target>() {
                prop_assert_eq!(target.to_string().parse(), Ok(target));
            }
        }

        #[test]
        fn addresses_are_targets(ip: IpAddr, port in 1..u16::MAX) {
            let target = Target { host: Host::Ip(ip), port };
            prop_assert_eq!(target.to_string(), std::net::SocketAddr::new(ip, port).to_string());
            prop_assert_eq!(target.to_string().parse(), Ok(target));
        }
    }
}
