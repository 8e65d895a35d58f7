//! ICMP messages that answer packets which are not forwarded (RFC 792, RFC 4443).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::checksum;
use super::packet::{Header, Part};
use super::{MIN_MTU, version};

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// Most bytes of an answer: what every host takes (RFC 1812 section 4.3.2.3), and the smallest MTU of IPv6 (RFC
/// 4443 section 2.4).
const MAX_V4: usize = 576;
const MAX_V6: usize = MIN_MTU;
const HEADER_V4: usize = 20;
const HEADER_V6: usize = 40;
const HEADER_ICMP: usize = 8;
/// Hops that an answer may make.
const HOPS: u8 = 64;

/// Why a packet is not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is longer than this MTU, in bytes ("fragmentation needed", "packet too big").
    TooBig(u16),
    /// Nobody may send there ("communication administratively prohibited").
    Prohibited,
    /// There is no way there.
    NoRoute,
    /// It was forwarded too often.
    Expired,
}

impl Answer {
    /// Type, code and the last two bytes of the header, for IPv4.
    fn v4(self) -> (u8, u8, u16) {
        match self {
            Self::TooBig(mtu) => (3, 4, mtu),
            Self::Prohibited => (3, 13, 0),
            Self::NoRoute => (3, 0, 0),
            Self::Expired => (11, 0, 0),
        }
    }

    /// The same for IPv6.
    fn v6(self) -> (u8, u8, u16) {
        match self {
            Self::TooBig(mtu) => (2, 0, mtu),
            Self::Prohibited => (1, 1, 0),
            Self::NoRoute => (1, 0, 0),
            Self::Expired => (3, 0, 0),
        }
    }
}

/// The packet that tells the source of `packet` from `from` why it is not forwarded. `None` if nobody may be told: the
/// packet is an error itself or a later fragment, came from no single host or went to many (RFC 1122 section 3.2.2,
/// RFC 4443 section 2.4), or `from` is of the other version of IP. How many answers are sent is for the caller to
/// limit.
#[must_use]
pub fn answer(answer: Answer, packet: &[u8], header: &Header, from: IpAddr) -> Option<Vec<u8>> {
    if version(header.source) != version(from) || !may_be_answered(answer, packet, header) {
        return None;
    }
    match (from, header.source) {
        (IpAddr::V4(from), IpAddr::V4(to)) => Some(answer_v4(answer, packet, from, to)),
        (IpAddr::V6(from), IpAddr::V6(to)) => Some(answer_v6(answer, packet, from, to)),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => None,
    }
}

fn may_be_answered(answer: Answer, packet: &[u8], header: &Header) -> bool {
    let is_one = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_multicast() && !ip.is_broadcast() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_multicast() && !ip.is_unspecified(),
    };
    // A packet that is too big for a path to many hosts is answered in IPv6.
    let is_for_one = is_one(header.destination)
        || (header.destination.is_ipv6() && matches!(answer, Answer::TooBig(_)));
    let is_error = match (header.protocol, packet.get(header.offset)) {
        // Echoes, and what asks for something, are no errors. What cannot be told is taken for one.
        (ICMP, Some(kind)) => !matches!(kind, 0 | 8..=10 | 13..=18),
        (ICMP_V6, Some(kind)) => *kind < 128,
        (ICMP | ICMP_V6, None) => true,
        _ => false,
    };
    is_one(header.source)
        && !header.source.is_loopback()
        && is_for_one
        && header.part != Part::Later
        && !is_error
}

fn message((kind, code, value): (u8, u8, u16), packet: &[u8], most: usize) -> Vec<u8> {
    let [high, low] = value.to_be_bytes();
    let mut message = vec![kind, code, 0, 0, 0, 0, high, low];
    message.extend_from_slice(&packet[..packet.len().min(most)]);
    message
}

fn answer_v4(answer: Answer, packet: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut message = message(answer.v4(), packet, MAX_V4 - HEADER_V4 - HEADER_ICMP);
    let sum = checksum::finish(checksum::add(0, &message)).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    let [high, low] = ((HEADER_V4 + message.len()) as u16).to_be_bytes();
    let mut out = vec![0x45, 0, high, low, 0, 0, 0, 0, HOPS, ICMP, 0, 0];
    out.extend_from_slice(&from.octets());
    out.extend_from_slice(&to.octets());
    let sum = checksum::finish(checksum::add(0, &out)).to_be_bytes();
    out[10..12].copy_from_slice(&sum);
    out.extend_from_slice(&message);
    out
}

fn answer_v6(answer: Answer, packet: &[u8], from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    let mut message = message(answer.v6(), packet, MAX_V6 - HEADER_V6 - HEADER_ICMP);
    let length = message.len() as u16;
    let sum = [&from.octets()[..], &to.octets(), &length.to_be_bytes(), &[0, ICMP_V6]];
    let sum = sum.into_iter().fold(0, checksum::add);
    let sum = checksum::finish(checksum::add(sum, &message)).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    let [high, low] = length.to_be_bytes();
    let mut out = vec![0x60, 0, 0, 0, high, low, ICMP_V6, HOPS];
    out.extend_from_slice(&from.octets());
    out.extend_from_slice(&to.octets());
    out.extend_from_slice(&message);
    out
}

#[cfg(test)]
mod tests {
    use super::super::packet::UDP;
    use super::super::packet::tests::{v4, v6};
    use super::*;

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 254));
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe));

    fn tell(what: Answer, packet: &[u8], from: IpAddr) -> Option<Vec<u8>> {
        answer(what, packet, &Header::parse(packet).unwrap(), from)
    }

    /// Reads an answer: type, code, the last two bytes of its header, and what it quotes.
    fn read(answer: &[u8]) -> (u8, u8, u16, &[u8]) {
        let header = Header::parse(answer).unwrap();
        let message = &answer[header.offset..];
        let mut sum = checksum::add(0, message);
        if header.source.is_ipv6() {
            sum = checksum::add(sum, &answer[8..40]);
            sum = checksum::add(sum, &(message.len() as u32).to_be_bytes());
            sum = checksum::add(sum, &[0, ICMP_V6]);
        }
        assert_eq!(checksum::finish(sum), 0);
        let value = u16::from_be_bytes([message[6], message[7]]);
        (message[0], message[1], value, &message[8..])
    }

    #[test]
    fn sources_are_told_why() {
        let four = v4([10, 0, 0, 1], [10, 0, 0, 2], UDP, &[7; 1400]);
        let six = v6("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap(), UDP, &[7; 1400]);
        for (what, in_four, in_six) in [
            (Answer::TooBig(1300), (3, 4, 1300), (2, 0, 1300)),
            (Answer::Prohibited, (3, 13, 0), (1, 1, 0)),
            (Answer::NoRoute, (3, 0, 0), (1, 0, 0)),
            (Answer::Expired, (11, 0, 0), (3, 0, 0)),
        ] {
            let told = tell(what, &four, V4).unwrap();
            assert_eq!(told.len(), MAX_V4);
            let (kind, code, value, quoted) = read(&told);
            assert_eq!((kind, code, value), in_four);
            assert_eq!(quoted, &four[..quoted.len()]);
            assert_eq!(Header::parse(&told).unwrap().destination, IpAddr::from([10, 0, 0, 1]));
            let told = tell(what, &six, V6).unwrap();
            assert_eq!(told.len(), MAX_V6);
            let (kind, code, value, quoted) = read(&told);
            assert_eq!((kind, code, value), in_six);
            assert_eq!(quoted, &six[..quoted.len()]);
        }
        assert_eq!(tell(Answer::Prohibited, &four, V6), None);
        let short = v4([10, 0, 0, 1], [10, 0, 0, 2], UDP, &[7; 9]);
        assert_eq!(read(&tell(Answer::NoRoute, &short, V4).unwrap()).3, short);
    }

    #[test]
    fn nobody_is_told_of_errors_or_by_many() {
        let four = |source, destination, protocol, kind| {
            let packet = v4(source, destination, protocol, &[kind; 16]);
            tell(Answer::TooBig(1280), &packet, V4).is_some()
        };
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        assert!(four(a, b, ICMP, 8) && four(a, b, ICMP, 0) && four(a, b, UDP, 3));
        assert!(!four(a, b, ICMP, 3) && !four(a, b, ICMP, 11) && !four(a, b, ICMP, 5));
        for source in [[0; 4], [224, 0, 0, 1], [255; 4], [127, 0, 0, 1]] {
            assert!(!four(source, b, UDP, 0));
        }
        assert!(!four(a, [224, 0, 0, 1], UDP, 0) && !four(a, [255; 4], UDP, 0));
        assert_eq!(tell(Answer::NoRoute, &v4(a, b, ICMP, &[]), V4), None);
        let six = |destination: &str, next, kind, what| {
            let packet =
                v6("fd00::1".parse().unwrap(), destination.parse().unwrap(), next, &[kind; 16]);
            tell(what, &packet, V6).is_some()
        };
        assert!(six("fd00::2", ICMP_V6, 128, Answer::NoRoute));
        assert!(!six("fd00::2", ICMP_V6, 1, Answer::NoRoute));
        assert!(six("ff02::2", UDP, 1, Answer::TooBig(1280)));
        assert!(!six("ff02::2", UDP, 1, Answer::NoRoute));
        let later = [UDP, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, 0];
        assert!(
            tell(
                Answer::NoRoute,
                &v6("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap(), 44, &later),
                V6
            )
            .is_none()
        );
    }
}
