//! The messages of SOCKS5 (RFC 1928).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{Buf, BytesMut};

use crate::access::{Host, Target};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const ASSOCIATE: u8 = 3;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// The longest message that a program sends before its data, in bytes: a request with a name of 255 bytes.
pub const MAX_MESSAGE: usize = 4 + 1 + 255 + 2;

/// A program does not speak SOCKS5, or wants what there is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Another version.
    #[error("it speaks SOCKS4, not SOCKS5: set the program to version 5")]
    Version4,
    /// HTTP.
    #[error("it speaks HTTP, not SOCKS5: such programs need --http")]
    Http,
    /// Something else.
    #[error("it does not speak SOCKS5")]
    Protocol,
    /// It wants to authenticate.
    #[error("it wants to authenticate by name and password, or otherwise, which is not supported")]
    Method,
    /// Another command than CONNECT and UDP ASSOCIATE.
    #[error("the command {0} is not supported: only CONNECT and UDP ASSOCIATE are")]
    Command(u8),
    /// An address that is none.
    #[error("the address of its target is none")]
    Address,
    /// It says nothing.
    #[error("it does not say what it wants")]
    Silent,
}

impl Invalid {
    /// What the program is told.
    #[must_use]
    pub const fn reply(self) -> Option<Reply> {
        match self {
            Self::Command(_) => Some(Reply::CommandNotSupported),
            Self::Address => Some(Reply::AddressNotSupported),
            Self::Version4 | Self::Http | Self::Protocol | Self::Method | Self::Silent => None,
        }
    }
}

/// The first message of a program: how it can authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    without: bool,
}

impl Greeting {
    /// Takes the message from the beginning of `input`, once all of it is there.
    ///
    /// # Errors
    /// It is something else.
    pub fn take(input: &mut BytesMut) -> Result<Option<Self>, Invalid> {
        match input.first() {
            None => return Ok(None),
            Some(&VERSION) => {}
            Some(4) => return Err(Invalid::Version4),
            Some(b'C' | b'G' | b'P' | b'H' | b'O') => return Err(Invalid::Http),
            Some(_) => return Err(Invalid::Protocol),
        }
        let Some(&count) = input.get(1) else { return Ok(None) };
        let Some(methods) = input.get(2..2 + usize::from(count)) else { return Ok(None) };
        let greeting = Self { without: methods.contains(&NO_AUTHENTICATION) };
        input.advance(2 + usize::from(count));
        Ok(Some(greeting))
    }

    /// The answer.
    #[must_use]
    pub const fn answer(self) -> [u8; 2] {
        [VERSION, if self.without { NO_AUTHENTICATION } else { NO_ACCEPTABLE_METHOD }]
    }

    /// Whether the program needs not authenticate.
    #[must_use]
    pub const fn is_acceptable(self) -> bool {
        self.without
    }
}

/// What a program wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// A TCP connection.
    Connect,
    /// To send and receive datagrams.
    Associate,
}

/// What a program wants, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocksRequest {
    /// What it wants.
    pub command: Command,
    /// Where to; for datagrams, where they will come from, which may be unknown yet.
    pub target: Target,
}

impl SocksRequest {
    /// Takes the message from the beginning of `input`, once all of it is there.
    ///
    /// # Errors
    /// It is something else.
    pub fn take(input: &mut BytesMut) -> Result<Option<Self>, Invalid> {
        let Some(&[version, command, _, kind]) = input.first_chunk() else { return Ok(None) };
        if version != VERSION {
            return Err(Invalid::Protocol);
        }
        let command = match command {
            CONNECT => Command::Connect,
            ASSOCIATE => Command::Associate,
            other => return Err(Invalid::Command(other)),
        };
        let mut rest = input.get(4..).unwrap_or_default();
        let before = rest.len();
        let Some(target) = take_address(kind, &mut rest, command == Command::Associate)? else {
            return Ok(None);
        };
        let length = 4 + before - rest.len();
        input.advance(length);
        Ok(Some(Self { command, target }))
    }
}

/// Takes an address and a port. `None` if some of it is missing.
fn take_address(kind: u8, rest: &mut &[u8], any: bool) -> Result<Option<Target>, Invalid> {
    let length = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => match rest.split_first() {
            Some((&length, after)) => {
                *rest = after;
                usize::from(length)
            }
            None => return Ok(None),
        },
        _ => return Err(Invalid::Address),
    };
    let Some((address, after)) = rest.split_at_checked(length) else { return Ok(None) };
    let Some((port, after)) = after.split_first_chunk() else { return Ok(None) };
    *rest = after;
    let port = u16::from_be_bytes(*port);
    let ip: Option<IpAddr> = match kind {
        IPV4 => address.try_into().ok().map(|ip: [u8; 4]| Ipv4Addr::from(ip).into()),
        IPV6 => address.try_into().ok().map(|ip: [u8; 16]| Ipv6Addr::from(ip).into()),
        _ => None,
    };
    if let Some(ip) = ip.filter(|_| any || port != 0) {
        return Ok(Some(Target { host: Host::Ip(ip), port }));
    }
    let name = std::str::from_utf8(address).map_err(|_| Invalid::Address)?;
    format!("{name}:{port}").parse().map(Some).map_err(|_| Invalid::Address)
}

/// The target of a datagram with a header of SOCKS, and where its payload begins. `None` if it is malformed, or a
/// fragment.
#[must_use]
pub fn read_udp(datagram: &[u8]) -> Option<(Target, usize)> {
    let (&[0, 0, 0, kind], mut rest) = datagram.split_first_chunk()? else { return None };
    let target = take_address(kind, &mut rest, false).ok()??;
    Some((target, datagram.len() - rest.len()))
}

/// Appends the header of a datagram from a target.
pub fn write_udp(out: &mut Vec<u8>, from: &Target) {
    out.extend_from_slice(&[0, 0, 0]);
    match &from.host {
        Host::Ip(ip) => put_ip(out, *ip),
        Host::Name(name) => {
            // Names have 253 bytes at most.
            let name = name.as_str().as_bytes();
            out.extend_from_slice(&[NAME, name.len() as u8]);
            out.extend_from_slice(name);
        }
    }
    out.extend_from_slice(&from.port.to_be_bytes());
}

fn put_ip(out: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => {
            out.push(IPV4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(IPV6);
            out.extend_from_slice(&ip.octets());
        }
    }
}

/// What a program is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reply {
    /// It has what it wants.
    Succeeded = 0,
    /// Something went wrong.
    Failure = 1,
    /// Rules do not permit it.
    NotAllowed = 2,
    /// There is no way there.
    NetworkUnreachable = 3,
    /// The host is unknown or does not answer.
    HostUnreachable = 4,
    /// The target refuses.
    Refused = 5,
    /// The target does not answer.
    TtlExpired = 6,
    /// The command is not supported.
    CommandNotSupported = 7,
    /// The kind of address is not supported.
    AddressNotSupported = 8,
}

impl Reply {
    /// The message, with an address where datagrams are to be sent to.
    #[must_use]
    pub fn encode(self, bound: Option<SocketAddr>) -> Vec<u8> {
        let bound = bound.unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
        let mut out = vec![VERSION, self as u8, 0];
        put_ip(&mut out, bound.ip().to_canonical());
        out.extend_from_slice(&bound.port().to_be_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives `take` one byte after the other; returns its message, and what is left.
    fn drip<T>(
        bytes: &[u8],
        take: impl Fn(&mut BytesMut) -> Result<Option<T>, Invalid>,
    ) -> Result<Option<(T, usize)>, Invalid> {
        let mut input = BytesMut::new();
        for (at, byte) in bytes.iter().enumerate() {
            input.extend_from_slice(&[*byte]);
            if let Some(message) = take(&mut input)? {
                assert!(input.is_empty());
                return Ok(Some((message, bytes.len() - at - 1)));
            }
        }
        Ok(None)
    }

    #[test]
    fn greetings_are_taken_byte_by_byte() {
        let (greeting, left) = drip(b"\x05\x02\x02\x00rest", Greeting::take).unwrap().unwrap();
        assert_eq!((greeting.answer(), left), ([5, 0], 4));
        let (greeting, _) = drip(b"\x05\x01\x02", Greeting::take).unwrap().unwrap();
        assert_eq!((greeting.answer(), greeting.is_acceptable()), ([5, 0xff], false));
        for (bytes, why) in [
            (&b"\x04\x01"[..], Invalid::Version4),
            (b"CONNECT a:1", Invalid::Http),
            (b"\x16\x03\x01", Invalid::Protocol),
        ] {
            assert_eq!(drip(bytes, Greeting::take), Err(why));
        }
    }

    #[test]
    fn requests_are_taken_byte_by_byte() {
        for (bytes, command, target) in [
            (&b"\x05\x01\x00\x01\x7f\0\0\x01\x00\x50"[..], Command::Connect, "127.0.0.1:80"),
            (b"\x05\x01\x00\x03\x0bexample.org\x01\xbb", Command::Connect, "example.org:443"),
            (b"\x05\x03\x00\x01\0\0\0\0\0\0", Command::Associate, "0.0.0.0:0"),
        ] {
            let (request, left) = drip(bytes, SocksRequest::take).unwrap().unwrap();
            assert_eq!((request.command, left), (command, 0));
            assert_eq!(request.target.to_string(), target);
        }
        let six = [&b"\x05\x01\x00\x04"[..], &Ipv6Addr::LOCALHOST.octets(), b"\x00\x35"].concat();
        let (request, _) = drip(&six, SocksRequest::take).unwrap().unwrap();
        assert_eq!(request.target.to_string(), "[::1]:53");
        for (bytes, why) in [
            (&b"\x05\x02\x00\x01\x7f\0\0\x01\x00\x50"[..], Invalid::Command(2)),
            (b"\x04\x01\x00\x01", Invalid::Protocol),
            (b"\x05\x01\x00\x09", Invalid::Address),
            (b"\x05\x01\x00\x03\x00\x00\x50", Invalid::Address),
            (b"\x05\x01\x00\x03\x02\xff\xfe\x00\x50", Invalid::Address),
            (b"\x05\x01\x00\x01\x7f\0\0\x01\x00\x00", Invalid::Address),
        ] {
            assert_eq!(drip(bytes, SocksRequest::take), Err(why), "{bytes:?}");
        }
    }

    #[test]
    fn datagrams_have_headers() {
        for target in ["127.0.0.1:53", "[2001:db8::1]:443", "example.org:1"] {
            let target: Target = target.parse().unwrap();
            let mut datagram = Vec::new();
            write_udp(&mut datagram, &target);
            let header = datagram.len();
            datagram.extend_from_slice(b"payload");
            assert_eq!(read_udp(&datagram), Some((target, header)));
            assert!((0..header).all(|cut| read_udp(&datagram[..cut]).is_none()));
            // A fragment.
            datagram[2] = 1;
            assert_eq!(read_udp(&datagram), None);
        }
    }

    #[test]
    fn replies_have_an_address() {
        assert_eq!(Reply::Refused.encode(None), b"\x05\x05\0\x01\0\0\0\0\0\0");
        let bound = Some(([127, 0, 0, 1], 0x1234).into());
        assert_eq!(Reply::Succeeded.encode(bound), b"\x05\x00\0\x01\x7f\0\0\x01\x12\x34");
    }
}
