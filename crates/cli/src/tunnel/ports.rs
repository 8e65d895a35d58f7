//! Options that name ports of this machine and targets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use sutura_tunnel::access::Target;
use sutura_tunnel::client::Reverse;

/// An address of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bind(pub SocketAddr);

/// An address of this machine, and where what comes to it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    pub bind: SocketAddr,
    pub to: Target,
}

/// An address of the proxy, and where what comes to it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backward(pub Reverse);

const BIND: &str = "expected [BIND:]PORT, such as 1080 or 127.0.0.1:1080";
const FORWARD: &str = "expected [BIND:]PORT:HOST:HOSTPORT, such as 8080:intra.example.org:80 or [::1]:22:[fd00::1]:22";

/// The parts between colons that are not in brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The address that a text names. None is this machine's own; `*` is all.
fn bind(host: Option<&str>, port: &str, syntax: &str) -> Result<SocketAddr, String> {
    let port: u16 = port.parse().map_err(|_| syntax.to_owned())?;
    let ip: IpAddr = match host {
        None | Some("localhost") => Ipv4Addr::LOCALHOST.into(),
        Some("*" | "") => Ipv6Addr::UNSPECIFIED.into(),
        Some(host) => {
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            let ip = bare.unwrap_or(host).parse();
            ip.map_err(|_| format!("`{host}` is no address of this machine: {syntax}"))?
        }
    };
    Ok((ip, port).into())
}

fn target(host: &str, port: &str) -> Result<Target, String> {
    format!("{host}:{port}").parse().map_err(|why| format!("{host}:{port}: {why}: {FORWARD}"))
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match parts(text)[..] {
            [port] => bind(None, port, BIND).map(Self),
            [host, port] => bind(Some(host), port, BIND).map(Self),
            _ => Err(BIND.into()),
        }
    }
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (at, host, port) = match parts(text)[..] {
            [port, host, to] => (bind(None, port, FORWARD)?, host, to),
            [at, port, host, to] => (bind(Some(at), port, FORWARD)?, host, to),
            _ => return Err(FORWARD.into()),
        };
        Ok(Self { bind: at, to: target(host, port)? })
    }
}

impl FromStr for Backward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (listen, to) = match parts(text)[..] {
            [port, host, to] => (target("127.0.0.1", port)?, target(host, to)?),
            ["*" | "", port, host, to] => (target("[::]", port)?, target(host, to)?),
            [at, port, host, to] => (target(at, port)?, target(host, to)?),
            _ => return Err(FORWARD.into()),
        };
        Ok(Self(Reverse { listen, to }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_read() {
        for (text, at, to) in [
            ("8080:a.example:80", "127.0.0.1:8080", "a.example:80"),
            ("localhost:1:a:2", "127.0.0.1:1", "a:2"),
            ("*:22:10.0.0.1:22", "[::]:22", "10.0.0.1:22"),
            ("0.0.0.0:22:10.0.0.1:22", "0.0.0.0:22", "10.0.0.1:22"),
            ("[::1]:0:[fd00::1]:22", "[::1]:0", "[fd00::1]:22"),
        ] {
            let forward: Forward = text.parse().unwrap();
            assert_eq!(forward.bind, at.parse().unwrap(), "{text}");
            assert_eq!(forward.to.to_string(), to, "{text}");
        }
        for text in ["", "1", "1:a", "a:b:c", "1:a:b", "::1:1:a:1", "host:1:a:1", "1:2:a:1:2"] {
            assert!(text.parse::<Forward>().is_err(), "{text}");
        }
    }

    #[test]
    fn binds_and_backwards_are_read() {
        for (text, at) in [("1080", "127.0.0.1:1080"), ("*:1", "[::]:1"), ("[::1]:2", "[::1]:2")] {
            assert_eq!(text.parse(), Ok(Bind(at.parse().unwrap())), "{text}");
        }
        assert!(["", "a", "1:a", "a:1:2"].iter().all(|text| text.parse::<Bind>().is_err()));
        let Backward(reverse) = "8080:localhost:80".parse().unwrap();
        assert_eq!(reverse.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(reverse.to.to_string(), "localhost:80");
        let Backward(reverse) = "*:8080:localhost:80".parse().unwrap();
        assert_eq!(reverse.listen.to_string(), "[::]:8080");
    }
}
