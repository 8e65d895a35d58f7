//! What a request asks of a proxy.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sutura::http::Request;

use super::{ACCEPT, CONNECT_IP, CONNECT_UDP, FLOWS, FLOWS_PATH};
use crate::access::Target;
use crate::ip::Scope;

/// What stays as it is in a segment of a path (RFC 3986 section 2.3).
pub(super) const NOT_IN_SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// How paths for UDP begin by the default template of URIs (RFC 9298 section 2).
pub(super) const UDP_PATH: &str = "/.well-known/masque/udp/";
/// How paths for listening begin.
const ACCEPT_PATH: &str = "/.well-known/sutura/accept/tcp/";

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A TCP connection to a target.
    Tcp(Target),
    /// Datagrams of UDP to and from a target.
    Udp(Target),
    /// IP packets to and from hosts.
    Ip(Scope),
    /// The next TCP connection to an address of the proxy.
    Accept(Target),
    /// To tell each other how much of flows was taken.
    Flows,
}

/// A request that is not understood, with the status to answer and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRequest {
    /// 400, 404, 405 or 501.
    pub status: u16,
    /// Why.
    pub reason: &'static str,
}

const fn bad(status: u16, reason: &'static str) -> BadRequest {
    BadRequest { status, reason }
}

impl Ask {
    /// Reads the head of a request.
    ///
    /// # Errors
    /// It asks for nothing that a proxy does.
    pub fn of(request: &Request) -> Result<Self, BadRequest> {
        if request.method != "CONNECT" {
            return Err(bad(405, "this is a proxy, which knows CONNECT only"));
        }
        let path = request.path.as_str();
        match request.protocol.as_deref() {
            None => {
                let target = request.authority.parse();
                let target = target.map_err(|_| bad(400, "the authority is no host and port"))?;
                Ok(Self::Tcp(target))
            }
            Some(CONNECT_UDP) => target(path, UDP_PATH).map(Self::Udp),
            Some(CONNECT_IP) => scope(path).map(Self::Ip),
            Some(ACCEPT) => target(path, ACCEPT_PATH).map(Self::Accept),
            Some(FLOWS) if path == FLOWS_PATH => Ok(Self::Flows),
            Some(FLOWS) => Err(bad(404, "there is nothing at this path")),
            Some(_) => Err(bad(501, "this protocol of CONNECT is not known here")),
        }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(target) => write!(f, "tcp {target}"),
            Self::Udp(target) => write!(f, "udp {target}"),
            Self::Ip(scope) => write!(f, "ip {}", scope.words()),
            Self::Accept(target) => write!(f, "listen {target}"),
            Self::Flows => f.write_str("flows"),
        }
    }
}

/// The path that asks for a TCP connection to an address of the proxy.
#[must_use]
pub fn accept_path(listen: &Target) -> String {
    let host = listen.host.to_string();
    let host = utf8_percent_encode(&host, NOT_IN_SEGMENT);
    format!("{ACCEPT_PATH}{host}/{}/", listen.port)
}

/// The target that a path `PREFIX{host}/{port}/` names. The last slash may be missing.
fn target(path: &str, prefix: &str) -> Result<Target, BadRequest> {
    const MALFORMED: BadRequest = bad(400, "the path names no host and port");
    let rest = path.strip_prefix(prefix).ok_or(bad(404, "there is nothing at this path"))?;
    let (host, port) = rest.split_once('/').ok_or(MALFORMED)?;
    let port = port.strip_suffix('/').unwrap_or(port);
    let host: Cow<'_, str> = percent_decode_str(host).decode_utf8().map_err(|_| MALFORMED)?;
    let authority =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    authority.parse().map_err(|_| MALFORMED)
}

/// What a path asks packets for.
fn scope(path: &str) -> Result<Scope, BadRequest> {
    if !path.starts_with(crate::ip::SCOPE_PATH) {
        return Err(bad(404, "there is nothing at this path"));
    }
    path.parse().map_err(|_| bad(400, "the path names no hosts and protocol"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masque::UdpTemplate;

    #[test]
    fn paths_of_packets_name_their_scope() {
        let read = |path: &str| scope(path).map(|scope| Ask::Ip(scope).to_string());
        assert_eq!(read("/.well-known/masque/ip/*/*/"), Ok("ip *".into()));
        let told = "ip 192.0.2.0/24, protocol 17".to_owned();
        assert_eq!(read("/.well-known/masque/ip/192.0.2.0%2F24/17/"), Ok(told));
        let status = |path| read(path).map_err(|bad| bad.status);
        assert_eq!(status("/.well-known/masque/udp/a/53/"), Err(404));
        assert_eq!(status("/.well-known/masque/ip/a b/*/"), Err(400));
    }

    fn read(path: &str) -> Result<String, u16> {
        let read = target(path, UDP_PATH).map_err(|bad| bad.status)?;
        assert_eq!(target(&UdpTemplate::default().path(&read), UDP_PATH), Ok(read.clone()));
        Ok(read.to_string())
    }

    #[test]
    fn paths_name_targets() {
        for (path, expected) in [
            ("/.well-known/masque/udp/192.0.2.6/443/", "192.0.2.6:443"),
            ("/.well-known/masque/udp/192.0.2.6/443", "192.0.2.6:443"),
            ("/.well-known/masque/udp/2001%3Adb8%3A%3A42/443/", "[2001:db8::42]:443"),
            ("/.well-known/masque/udp/example.org/53/", "example.org:53"),
        ] {
            assert_eq!(read(path), Ok(expected.to_owned()), "{path}");
        }
        for (path, status) in [
            ("/", 404),
            ("/.well-known/masque/ip/*/*/", 404),
            ("/.well-known/masque/udp/", 400),
            ("/.well-known/masque/udp/a/", 400),
            ("/.well-known/masque/udp//53/", 400),
            ("/.well-known/masque/udp/a/53/x/", 400),
            ("/.well-known/masque/udp/a/65536/", 400),
            ("/.well-known/masque/udp/%ff/53/", 400),
            ("/.well-known/masque/udp/a%2fb/53/", 400),
            ("/.well-known/masque/udp/a%3A1%5D/53/", 400),
        ] {
            assert_eq!(read(path), Err(status), "{path}");
        }
    }
}
