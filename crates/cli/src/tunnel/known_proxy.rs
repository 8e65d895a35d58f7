//! Where a proxy is, as the user gives it.

use std::str::FromStr;

use sutura_tunnel::masque::UdpTemplate;

use super::DEFAULT_PORT;
use crate::url::Authority;

/// The port of the authority in a template that names none.
const HTTPS_PORT: u16 = 443;

/// A proxy: `HOST`, `HOST:PORT`, or the URI template of one that takes requests for UDP at a path of its own (RFC 9298
/// section 2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownProxy {
    pub authority: Authority,
    /// Where it takes requests for UDP.
    pub udp: UdpTemplate,
}

impl FromStr for KnownProxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(['{', '}']) {
            let (authority, udp) = UdpTemplate::parse(text).map_err(|why| why.to_string())?;
            let authority = Authority::parse(authority, HTTPS_PORT)?;
            return Ok(Self { authority, udp });
        }
        let text = text.strip_prefix("https://").map_or(text, |rest| rest.trim_end_matches('/'));
        let authority = Authority::parse(text, DEFAULT_PORT)?;
        Ok(Self { authority, udp: UdpTemplate::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_our_port_and_the_default_path() {
        for (text, host, port) in [
            ("proxy.example.org", "proxy.example.org", DEFAULT_PORT),
            ("https://proxy.example.org:99/", "proxy.example.org", 99),
            ("[2001:db8::1]", "2001:db8::1", DEFAULT_PORT),
        ] {
            let proxy: KnownProxy = text.parse().unwrap();
            assert_eq!((proxy.authority.host.as_str(), proxy.authority.port), (host, port));
            assert_eq!(proxy.udp, UdpTemplate::default());
        }
    }

    #[test]
    fn templates_have_the_port_of_https_and_their_own_path() {
        for (text, port) in [
            ("https://proxy.example.org/m{?target_host,target_port}", 443),
            ("https://proxy.example.org:99/m{?target_host,target_port}", 99),
        ] {
            let proxy: KnownProxy = text.parse().unwrap();
            assert_eq!(
                (proxy.authority.host.as_str(), proxy.authority.port),
                ("proxy.example.org", port)
            );
            let target = "192.0.2.6:53".parse().unwrap();
            assert_eq!(proxy.udp.path(&target), "/m?target_host=192.0.2.6&target_port=53");
        }
    }

    #[test]
    fn what_is_neither_is_refused_with_the_reason() {
        for (text, why) in [
            ("a:b", "the port is not a number"),
            ("https://a/path", "not a host name"),
            ("https://a/{target_host}", "a template has the variables target_host and target_port"),
            ("a/{target_host}/{target_port}", "a template begins with https://"),
            ("https://a:b/{target_host}/{target_port}", "the port is not a number"),
        ] {
            assert_eq!(text.parse::<KnownProxy>().unwrap_err(), why, "{text}");
        }
    }
}
