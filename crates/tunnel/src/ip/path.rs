//! What a request for a tunnel of IP packets asks for (RFC 9484 section 4.6).

use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;

use crate::access::Host;

/// What a tunnel may carry: the variables of the default template,
/// `/.well-known/masque/ip/{target}/{ipproto}/`. As text it is such a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The only hosts that packets may go to and come from. `None` is `*`: all.
    pub target: Option<ScopeTarget>,
    /// The only protocol that packets may have. `None` is `*`: any.
    pub protocol: Option<u8>,
}

/// The hosts of a scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ScopeTarget {
    /// An address or a name.
    Host(Host),
    /// A network.
    Network(IpNet),
}

/// A path is none of a tunnel of IP packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no path such as {SCOPE_PATH}*/*/")]
pub struct InvalidScope;

/// How paths for packets begin (RFC 9484 section 3): the default template of URIs.
pub const SCOPE_PATH: &str = "/.well-known/masque/ip/";
/// Longest target, in bytes: a name, or a network with its bytes encoded.
const MAX_TARGET: usize = 3 * crate::access::MAX_NAME;

impl Scope {
    /// The scope for people: `*`, or `192.0.2.0/24, protocol 17`.
    #[must_use]
    pub fn words(&self) -> String {
        let target = match &self.target {
            Some(ScopeTarget::Host(host)) => host.to_string(),
            Some(ScopeTarget::Network(net)) => net.to_string(),
            None => "*".into(),
        };
        match self.protocol {
            Some(protocol) => format!("{target}, protocol {protocol}"),
            None => target,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCOPE_PATH)?;
        // What a variable has beyond unreserved characters is encoded.
        let encoded = |target: String| target.replace(':', "%3A").replace('/', "%2F");
        match &self.target {
            Some(ScopeTarget::Host(host)) => f.write_str(&encoded(host.to_string()))?,
            Some(ScopeTarget::Network(net)) => f.write_str(&encoded(net.to_string()))?,
            None => f.write_str("*")?,
        }
        match self.protocol {
            Some(protocol) => write!(f, "/{protocol}/"),
            None => f.write_str("/*/"),
        }
    }
}

impl FromStr for Scope {
    type Err = InvalidScope;

    fn from_str(path: &str) -> Result<Self, InvalidScope> {
        let rest = path.strip_prefix(SCOPE_PATH).and_then(|rest| rest.strip_suffix('/'));
        let (target, protocol) = rest.and_then(|rest| rest.split_once('/')).ok_or(InvalidScope)?;
        let target = match &*decoded(target).ok_or(InvalidScope)? {
            "*" => None,
            net if net.contains('/') => {
                let net: IpNet = net.parse().map_err(|_| InvalidScope)?;
                // RFC 9484 section 4.6: bits behind the prefix are zero.
                let is_valid = net.trunc() == net;
                Some(is_valid.then_some(ScopeTarget::Network(net)).ok_or(InvalidScope)?)
            }
            host => Some(ScopeTarget::Host(host.parse().map_err(|_| InvalidScope)?)),
        };
        let protocol = match &*decoded(protocol).ok_or(InvalidScope)? {
            "*" => None,
            number => Some(protocol_number(number).ok_or(InvalidScope)?),
        };
        Ok(Self { target, protocol })
    }
}

/// 0 to 255, of digits only.
fn protocol_number(text: &str) -> Option<u8> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

/// The text that percent signs stand in for other bytes in.
fn decoded(text: &str) -> Option<String> {
    if text.len() > MAX_TARGET {
        return None;
    }
    percent_encoding::percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scopes_are_shown_as_they_are_asked_for() {
        for (path, target, protocol) in [
            ("/.well-known/masque/ip/*/*/", None, None),
            ("/.well-known/masque/ip/192.0.2.1/17/", Some("192.0.2.1"), Some(17)),
            ("/.well-known/masque/ip/2001%3Adb8%3A%3A42/*/", Some("2001:db8::42"), None),
            ("/.well-known/masque/ip/192.0.2.0%2F24/*/", Some("192.0.2.0/24"), None),
            ("/.well-known/masque/ip/vpn.example.org/1/", Some("vpn.example.org"), Some(1)),
        ] {
            let scope: Scope = path.parse().unwrap();
            let shown = scope.target.as_ref().map(|target| match target {
                ScopeTarget::Host(host) => host.to_string(),
                ScopeTarget::Network(net) => net.to_string(),
            });
            assert_eq!((shown.as_deref(), scope.protocol), (target, protocol));
            assert_eq!(scope.to_string(), path);
        }
        assert_eq!("/.well-known/masque/ip/%2A/%2a/".parse(), Ok(Scope::default()));
    }

    #[test]
    fn what_is_no_scope_is_refused() {
        for path in [
            "/",
            "/.well-known/masque/ip/*/*",
            "/.well-known/masque/ip/*/",
            "/.well-known/masque/ip//*/",
            "/.well-known/masque/ip/*/256/",
            "/.well-known/masque/ip/*/+1/",
            "/.well-known/masque/ip/*//",
            "/.well-known/masque/ip/*/*/?a",
            "/.well-known/masque/ip/192.0.2.1%2F24/*/",
            "/.well-known/masque/ip/192.0.2.0%2F33/*/",
            "/.well-known/masque/ip/a b/*/",
            "/.well-known/masque/ip/%ff/*/",
            "/.well-known/masque/udp/192.0.2.1/17/",
        ] {
            assert_eq!(path.parse::<Scope>(), Err(InvalidScope), "{path}");
        }
        let long = format!("{SCOPE_PATH}{}/*/", "%61".repeat(MAX_TARGET));
        assert_eq!(long.parse::<Scope>(), Err(InvalidScope));
    }

    proptest! {
        #[test]
        fn what_is_a_scope_is_one_again(target in "[a-c0-9.*%:]{0,9}", protocol in "[0-9*]{0,4}") {
            let path = format!("{SCOPE_PATH}{target}/{protocol}/");
            if let Ok(scope) = path.parse::<Scope>() {
                prop_assert_eq!(scope.to_string().parse(), Ok(scope));
            }
        }
    }
}
