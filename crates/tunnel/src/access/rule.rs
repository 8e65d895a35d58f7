//! One rule of what is allowed.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::name::Name;
use super::place::{InvalidPlace, Place};
use super::target::Transport;

/// Destinations that clients may use: a [`Place`], after `tcp/`, `udp/` or `ip/` where only this transport is
/// allowed: `10.0.0.0/8:22`, `udp/*.example.org:443`, `ip/192.168.0.0/16`.
///
/// The transport is that of the tunnel: `tcp/10.0.0.0/8:22` allows no IP packets with TCP in them. Tunnels of IP
/// packets know the ports of what is in them, and no names; packets without ports have port 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllowRule {
    /// The transport; any if `None`.
    pub transport: Option<Transport>,
    /// The destinations.
    pub place: Place,
}

/// Why a text is no rule: the text, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {why}")]
pub struct InvalidRule {
    text: String,
    why: InvalidPlace,
}

impl AllowRule {
    /// Whether the rule allows this. `name` is what the client asked for, and `address` what was found to stand
    /// behind it.
    #[must_use]
    pub fn allows(&self, transport: Transport, name: Option<&Name>, address: SocketAddr) -> bool {
        self.is_about(transport) && self.place.contains(name, address)
    }

    /// Whether the rule is about this transport.
    #[must_use]
    pub fn is_about(&self, transport: Transport) -> bool {
        self.transport.is_none_or(|meant| meant == transport)
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(transport) = self.transport {
            write!(f, "{transport}/")?;
        }
        self.place.fmt(f)
    }
}

impl FromStr for AllowRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let prefix = text.split_once('/');
        let prefix = prefix.and_then(|(transport, rest)| Some((Transport::find(transport)?, rest)));
        let (transport, place) = prefix.map_or((None, text), |(found, rest)| (Some(found), rest));
        let place = place.parse().map_err(|why| InvalidRule { text: text.to_owned(), why })?;
        Ok(Self { transport, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_places_and_may_have_a_transport() {
        for (text, transport, place) in [
            ("10.0.0.0/8:22", None, "10.0.0.0/8:22"),
            ("tcp/10.0.0.0/8:22", Some(Transport::Tcp), "10.0.0.0/8:22"),
            ("udp/*", Some(Transport::Udp), "*"),
            ("ip/[fd00::/8]:*", Some(Transport::Ip), "[fd00::/8]:*"),
            ("tcp:22", None, "tcp:22"),
        ] {
            let rule: AllowRule = text.parse().unwrap();
            assert_eq!(rule.transport, transport, "{text}");
            assert_eq!(rule.place.to_string(), place);
            assert_eq!(rule.to_string(), text);
        }
        for text in ["icmp/10.0.0.0/8:22", "tcp/udp/*", "tcp/", "tcp/a b:2", "TCP/a:2"] {
            let error = text.parse::<AllowRule>().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
