//! What is read of a packet, and changed in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::checksum;

/// TCP's protocol number.
pub const TCP: u8 = 6;
/// UDP's protocol number.
pub const UDP: u8 = 17;
/// Other protocols whose headers begin with ports: DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [TCP, UDP, 33, 132, 136];
/// Extension headers of IPv6 that another header follows: hop-by-hop options, routing, destination options.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
/// Most extension headers of a packet that are read. Real ones have one or two.
const MAX_EXTENSIONS: usize = 8;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;

/// What is read of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// The protocol behind the headers of IP and its extensions.
    pub protocol: u8,
    /// Type of service or traffic class: six bits of DSCP and two of ECN.
    pub traffic_class: u8,
    /// Time to live, or hop limit.
    pub hops: u8,
    /// Which part of a packet it is.
    pub part: Part,
    /// Whether no router may cut it, as in IPv6.
    pub is_whole: bool,
    /// Where the header of `protocol` begins, in bytes.
    pub offset: usize,
}

/// Which part of a packet another one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// Its first fragment, with the header of its protocol.
    First,
    /// Another fragment.
    Later,
}

/// Why bytes are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPacket {
    /// Neither IPv4 nor IPv6.
    #[error("neither IPv4 nor IPv6")]
    Version,
    /// A length is not that of the bytes, or of a header in them.
    #[error("cut short, or longer than it says")]
    Length,
    /// The checksum of the header of IPv4 is wrong.
    #[error("wrong checksum")]
    Checksum,
    /// More extension headers than any real packet has.
    #[error("too many extension headers")]
    Extensions,
}

/// A packet has been forwarded as often as it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("hop limit exceeded")]
pub struct Expired;

impl Header {
    /// Reads a packet, which must be all of `packet` and nothing else.
    ///
    /// # Errors
    /// It is no packet.
    pub fn parse(packet: &[u8]) -> Result<Self, InvalidPacket> {
        match packet.first().map(|byte| byte >> 4) {
            Some(4) => parse_v4(packet),
            Some(6) => parse_v6(packet),
            Some(_) | None => Err(InvalidPacket::Version),
        }
    }
}

fn parse_v4(packet: &[u8]) -> Result<Header, InvalidPacket> {
    let fixed: &[u8; V4_HEADER] = packet.first_chunk().ok_or(InvalidPacket::Length)?;
    let offset = usize::from(fixed[0] & 0xf) * 4;
    let length = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if offset < V4_HEADER || length < offset || packet.len() != length {
        return Err(InvalidPacket::Length);
    }
    if checksum::finish(checksum::add(0, &packet[..offset])) != 0 {
        return Err(InvalidPacket::Checksum);
    }
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    let [.., a, b, c, d, e, f, g, h] = *fixed;
    Ok(Header {
        source: Ipv4Addr::new(a, b, c, d).into(),
        destination: Ipv4Addr::new(e, f, g, h).into(),
        protocol: fixed[9],
        traffic_class: fixed[1],
        hops: fixed[8],
        part: part(fragment & 0x1fff != 0, fragment & 0x2000 != 0),
        is_whole: fragment & 0x4000 != 0,
        offset,
    })
}

fn part(has_offset: bool, has_more: bool) -> Part {
    match (has_offset, has_more) {
        (true, _) => Part::Later,
        (false, true) => Part::First,
        (false, false) => Part::Whole,
    }
}

fn parse_v6(packet: &[u8]) -> Result<Header, InvalidPacket> {
    let fixed: &[u8; V6_HEADER] = packet.first_chunk().ok_or(InvalidPacket::Length)?;
    if packet.len() != V6_HEADER + usize::from(u16::from_be_bytes([fixed[4], fixed[5]])) {
        return Err(InvalidPacket::Length);
    }
    let address = |at: usize| {
        let bytes: [u8; 16] = std::array::from_fn(|n| fixed[at + n]);
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    let (protocol, offset, part) = behind_extensions(packet, fixed[6])?;
    Ok(Header {
        source: address(8),
        destination: address(24),
        protocol,
        traffic_class: fixed[0] << 4 | fixed[1] >> 4,
        hops: fixed[7],
        part,
        is_whole: true,
        offset,
    })
}

/// The first header of an IPv6 packet that is no extension: its protocol and where it begins. Behind the header of a
/// later fragment nothing is read.
fn behind_extensions(packet: &[u8], first: u8) -> Result<(u8, usize, Part), InvalidPacket> {
    let (mut next, mut at, mut of) = (first, V6_HEADER, Part::Whole);
    for _ in 0..=MAX_EXTENSIONS {
        let is_known = EXTENSIONS.contains(&next) || next == FRAGMENT || next == AUTHENTICATION;
        if !is_known {
            return Ok((next, at, of));
        }
        let header = packet.get(at..at + 8).ok_or(InvalidPacket::Length)?;
        let size = match next {
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        if next == FRAGMENT {
            let field = u16::from_be_bytes([header[2], header[3]]);
            of = part(field >> 3 != 0, field & 1 != 0);
        }
        next = header[0];
        at += size;
        if at > packet.len() {
            return Err(InvalidPacket::Length);
        }
        if of == Part::Later {
            return Ok((next, at, of));
        }
    }
    Err(InvalidPacket::Extensions)
}

/// Source and destination port of a packet, if its protocol has any and this part of it has them.
#[must_use]
pub fn ports(packet: &[u8], header: &Header) -> Option<(u16, u16)> {
    if !WITH_PORTS.contains(&header.protocol) || header.part == Part::Later {
        return None;
    }
    let [a, b, c, d] = *packet.get(header.offset..)?.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// The two bits of a packet for ECN (RFC 3168): 0 if it is not capable, 3 if it met congestion.
#[must_use]
pub fn ecn(header: &Header) -> u8 {
    header.traffic_class & 3
}

/// Sets these bits of a packet that [`Header::parse`] reads.
pub fn set_ecn(packet: &mut [u8], ecn: u8) {
    match packet {
        [first, class, ..] if *first >> 4 == 4 => {
            let before = [*first, *class];
            *class = *class & !3 | ecn & 3;
            let after = [*first, *class];
            update_v4(packet, before, after);
        }
        [first, class, ..] if *first >> 4 == 6 => *class = *class & !0x30 | (ecn & 3) << 4,
        _ => {}
    }
}

/// Takes one from the hop limit of a packet that [`Header::parse`] reads, as each that forwards it does (RFC 9484
/// section 7.2).
///
/// # Errors
/// None is left: the packet goes no further.
pub fn decrement_hops(packet: &mut [u8]) -> Result<(), Expired> {
    let is_v4 = packet.first().is_some_and(|first| first >> 4 == 4);
    let at = if is_v4 { 8 } else { 7 };
    let hops = packet.get_mut(at).ok_or(Expired)?;
    let left = hops.checked_sub(1).filter(|left| *left > 0).ok_or(Expired)?;
    *hops = left;
    if is_v4 && let Some(protocol) = packet.get(9).copied() {
        update_v4(packet, [left + 1, protocol], [left, protocol]);
    }
    Ok(())
}

/// The checksum of an IPv4 header after a word of it has changed.
fn update_v4(packet: &mut [u8], before: [u8; 2], after: [u8; 2]) {
    if let Some([a, b]) = packet.get_mut(10..12) {
        [*a, *b] = checksum::update([*a, *b], before, after);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet of IPv4 with this payload.
    pub fn v4(source: [u8; 4], destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
        let length = (V4_HEADER + payload.len()) as u16;
        let [high, low] = length.to_be_bytes();
        let mut packet = vec![0x45, 0, high, low, 0, 1, 0x40, 0, 64, protocol, 0, 0];
        packet.extend_from_slice(&source);
        packet.extend_from_slice(&destination);
        let sum = checksum::finish(checksum::add(0, &packet)).to_be_bytes();
        packet[10..12].copy_from_slice(&sum);
        packet.extend_from_slice(payload);
        packet
    }

    /// A packet of IPv6 with this payload.
    pub fn v6(source: Ipv6Addr, destination: Ipv6Addr, next: u8, payload: &[u8]) -> Vec<u8> {
        let [high, low] = (payload.len() as u16).to_be_bytes();
        let mut packet = vec![0x60, 0, 0, 0, high, low, next, 64];
        packet.extend_from_slice(&source.octets());
        packet.extend_from_slice(&destination.octets());
        packet.extend_from_slice(payload);
        packet
    }

    const PORTS: [u8; 8] = [0x30, 0x39, 0, 53, 0, 8, 0, 0];

    fn some_v6(next: u8, payload: &[u8]) -> Vec<u8> {
        v6("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap(), next, payload)
    }

    #[test]
    fn both_versions_are_read() {
        let mut packet = v4([10, 0, 0, 1], [10, 0, 0, 2], UDP, &PORTS);
        set_ecn(&mut packet, 2);
        let header = Header::parse(&packet).unwrap();
        assert_eq!(header.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(header.destination, IpAddr::from([10, 0, 0, 2]));
        assert_eq!((header.protocol, header.hops, header.offset), (UDP, 64, 20));
        assert_eq!((ecn(&header), header.part, header.is_whole), (2, Part::Whole, true));
        assert_eq!(ports(&packet, &header), Some((12345, 53)));

        let mut packet = some_v6(UDP, &PORTS);
        set_ecn(&mut packet, 3);
        let header = Header::parse(&packet).unwrap();
        assert_eq!(header.source, "2001:db8::1".parse::<IpAddr>().unwrap());
        assert_eq!((header.protocol, header.hops, header.offset), (UDP, 64, 40));
        assert_eq!((ecn(&header), header.traffic_class), (3, 3));
        assert_eq!(ports(&packet, &header), Some((12345, 53)));
    }

    #[test]
    fn extensions_are_passed_to_the_protocol_behind_them() {
        let options = [60, 0, 1, 4, 0, 0, 0, 0];
        let more = [FRAGMENT, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let first = [UDP, 0, 0, 1, 0, 0, 0, 7];
        let packet = some_v6(0, &[&options[..], &more, &first, &PORTS].concat());
        let header = Header::parse(&packet).unwrap();
        assert_eq!((header.protocol, header.part, header.offset), (UDP, Part::First, 40 + 32));
        assert_eq!(ports(&packet, &header), Some((12345, 53)));
        // What follows a later fragment's header are not ports, nor any header.
        let later = [UDP, 0, 0, 8, 0, 0, 0, 7];
        let packet = some_v6(FRAGMENT, &[&later[..], &PORTS].concat());
        let header = Header::parse(&packet).unwrap();
        assert_eq!((header.part, ports(&packet, &header)), (Part::Later, None));
        let authentication = [TCP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let packet = some_v6(AUTHENTICATION, &[&authentication[..], &PORTS].concat());
        assert_eq!(Header::parse(&packet).unwrap().offset, 52);
        let endless = options.repeat(MAX_EXTENSIONS + 1);
        assert_eq!(Header::parse(&some_v6(60, &endless)), Err(InvalidPacket::Extensions));
    }

    #[test]
    fn fragments_of_ipv4_are_told_apart() {
        for (field, part, is_whole) in [
            (0x4000_u16, Part::Whole, true),
            (0, Part::Whole, false),
            (0x2000, Part::First, false),
            (0x2001, Part::Later, false),
            (0x0005, Part::Later, false),
        ] {
            let mut packet = v4([10, 0, 0, 1], [10, 0, 0, 2], UDP, &PORTS);
            let before = [packet[6], packet[7]];
            packet[6..8].copy_from_slice(&field.to_be_bytes());
            update_v4(&mut packet, before, field.to_be_bytes());
            let header = Header::parse(&packet).unwrap();
            assert_eq!((header.part, header.is_whole), (part, is_whole), "{field:x}");
            assert_eq!(ports(&packet, &header).is_some(), part != Part::Later);
        }
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        let packet = v4([10, 0, 0, 1], [10, 0, 0, 2], UDP, &PORTS);
        let changed = |at: usize, value: u8| {
            let mut packet = packet.clone();
            packet[at] = value;
            packet
        };
        for (packet, error) in [
            (Vec::new(), InvalidPacket::Version),
            (vec![0x50; 40], InvalidPacket::Version),
            (packet[..19].to_vec(), InvalidPacket::Length),
            (packet[..27].to_vec(), InvalidPacket::Length),
            ([&packet[..], &[0]].concat(), InvalidPacket::Length),
            (changed(0, 0x44), InvalidPacket::Length),
            (changed(0, 0x4f), InvalidPacket::Length),
            (changed(8, 63), InvalidPacket::Checksum),
            (some_v6(UDP, &PORTS)[..47].to_vec(), InvalidPacket::Length),
            (some_v6(0, &[UDP, 0, 0]), InvalidPacket::Length),
            (some_v6(0, &[UDP, 1, 0, 0, 0, 0, 0, 0]), InvalidPacket::Length),
        ] {
            assert_eq!(Header::parse(&packet), Err(error));
        }
        // A jumbogram (RFC 2675) says that it has no payload.
        let mut jumbo = some_v6(0, &[UDP, 0, 0xc2, 4, 0, 1, 0, 0]);
        jumbo[4..6].fill(0);
        assert_eq!(Header::parse(&jumbo), Err(InvalidPacket::Length));
    }

    #[test]
    fn a_packet_is_forwarded_until_no_hop_is_left() {
        for mut packet in [v4([10, 0, 0, 1], [10, 0, 0, 2], UDP, &PORTS), some_v6(UDP, &PORTS)] {
            for left in (1..64).rev() {
                assert_eq!(decrement_hops(&mut packet), Ok(()));
                assert_eq!(Header::parse(&packet).unwrap().hops, left);
            }
            let before = packet.clone();
            assert_eq!(decrement_hops(&mut packet), Err(Expired));
            assert_eq!(packet, before);
        }
    }

    proptest! {
        #[test]
        fn changes_keep_the_checksum(
            source: [u8; 4], destination: [u8; 4], class: u8, ecn: u8, hops in 2..=255_u8,
        ) {
            let mut packet = v4(source, destination, UDP, &PORTS);
            for (at, value) in [(1, class), (8, hops)] {
                let word = at / 2 * 2;
                let before = [packet[word], packet[word + 1]];
                packet[at] = value;
                let after = [packet[word], packet[word + 1]];
                update_v4(&mut packet, before, after);
            }
            set_ecn(&mut packet, ecn);
            decrement_hops(&mut packet).unwrap();
            let header = Header::parse(&packet).unwrap();
            prop_assert_eq!(header.traffic_class, class & !3 | ecn & 3);
            prop_assert_eq!(header.hops, hops - 1);
        }
    }
}
