//! The parts of QUIC packets that are readable on the path (RFC 8999, RFC 9000 section 17, RFC 9369 section
//! 3.2).

/// The number of version 2.
pub const VERSION_2: u32 = 0x6b33_43cf;

/// The longest connection identifier.
const MAX_CID: usize = 20;

/// The type of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    VersionNegotiation,
    /// A packet with a short header, or unreadable bytes such as the rest of a damaged datagram.
    Short,
}

/// The readable parts of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    pub kind: Kind,
    /// 0 in short headers.
    pub version: u32,
    /// In short headers: as many bytes as the longest possible identifier has.
    pub dcid: Vec<u8>,
    /// Empty in short headers.
    pub scid: Vec<u8>,
    /// The length of the token in an Initial packet.
    pub token: usize,
    /// The size of the packet in bytes.
    pub size: usize,
}

/// Reads from the front of a datagram.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// A variable-length integer (RFC 9000 section 16).
    fn varint(&mut self) -> Option<usize> {
        let first = self.byte()?;
        let rest = self.take((1 << (first >> 6)) - 1)?;
        let value =
            rest.iter().fold(u64::from(first & 0x3f), |all, byte| all << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    }

    fn cid(&mut self) -> Option<Vec<u8>> {
        let length = usize::from(self.byte()?);
        Some(self.take(length)?.to_vec())
    }
}

/// The packets of a datagram.
pub fn packets(datagram: &[u8]) -> Vec<Packet> {
    let (mut packets, mut rest) = (Vec::new(), datagram);
    while !rest.is_empty() {
        let packet = long_header(rest).unwrap_or_else(|| short_header(rest));
        rest = rest.get(packet.size..).unwrap_or_default();
        packets.push(packet);
    }
    packets
}

fn short_header(datagram: &[u8]) -> Packet {
    let dcid = datagram.get(1..).unwrap_or_default();
    Packet {
        kind: Kind::Short,
        version: 0,
        dcid: dcid.iter().copied().take(MAX_CID).collect(),
        scid: Vec::new(),
        token: 0,
        size: datagram.len(),
    }
}

fn long_header(datagram: &[u8]) -> Option<Packet> {
    let mut reader = Reader(datagram);
    let first = reader.byte()?;
    if first & 0x80 == 0 {
        return None;
    }
    let version = u32::from_be_bytes(reader.take(4)?.try_into().ok()?);
    let (dcid, scid) = (reader.cid()?, reader.cid()?);
    let kind = kind(first, version)?;
    let token = if kind == Kind::Initial { reader.varint()? } else { 0 };
    reader.take(token)?;
    let whole = matches!(kind, Kind::Retry | Kind::VersionNegotiation);
    let length = if whole { reader.0.len() } else { reader.varint()? };
    reader.take(length)?;
    let size = datagram.len() - reader.0.len();
    Some(Packet { kind, version, dcid, scid, token, size })
}

fn kind(first: u8, version: u32) -> Option<Kind> {
    // Version 2 numbers the types of packets in another way.
    let number = match version {
        0 => return Some(Kind::VersionNegotiation),
        1 => first >> 4 & 3,
        VERSION_2 => (first >> 4 & 3).wrapping_sub(1) & 3,
        _ => return None,
    };
    Some(match number {
        0 => Kind::Initial,
        1 => Kind::ZeroRtt,
        2 => Kind::Handshake,
        _ => Kind::Retry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(first: u8, version: u32, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![first];
        packet.extend(version.to_be_bytes());
        packet.extend([2, 0xa, 0xb, 1, 0xc]);
        packet.extend(rest);
        packet
    }

    #[test]
    fn coalesced_packets_are_taken_apart() {
        let mut datagram = long(0xc0, 1, &[3, 1, 2, 3, 0x40, 2, 9, 9]);
        datagram.extend(long(0xe0, 1, &[1, 9]));
        datagram.extend([0x40, 0xa, 0xb, 7]);
        let found = packets(&datagram);
        let kinds: Vec<_> = found.iter().map(|packet| (packet.kind, packet.token)).collect();
        assert_eq!(kinds, [(Kind::Initial, 3), (Kind::Handshake, 0), (Kind::Short, 0)]);
        assert_eq!((&found[0].dcid[..], &found[0].scid[..]), (&[0xa, 0xb][..], &[0xc][..]));
        assert_eq!(found[2].dcid, [0xa, 0xb, 7]);
        assert_eq!(found.iter().map(|packet| packet.size).sum::<usize>(), datagram.len());
    }

    #[test]
    fn version_2_has_other_types() {
        for (first, kind) in [
            (0xd0, Kind::Initial),
            (0xe0, Kind::ZeroRtt),
            (0xf0, Kind::Handshake),
            (0xc0, Kind::Retry),
        ] {
            assert_eq!(packets(&long(first, VERSION_2, &[0, 0]))[0].kind, kind);
        }
    }

    #[test]
    fn whatever_is_cut_short_is_read_as_something() {
        let datagram = long(0xc0, 1, &[3, 1, 2, 3, 0x40, 2, 9, 9]);
        for length in 1..datagram.len() {
            let found = packets(&datagram[..length]);
            assert_eq!(found.len(), 1, "{length}");
            assert_eq!(found[0].kind, Kind::Short);
        }
    }
}
