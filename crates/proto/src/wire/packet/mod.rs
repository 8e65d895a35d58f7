//! Packet headers: the version-independent header (RFC 8999) and the headers of QUIC v1 and v2 (RFC 9000
//! section 17, RFC 9369 section 3).

mod encode;
mod number;
mod parse;
#[cfg(test)]
mod tests;

pub use encode::{
    Layout, LongHeader, LongType, ShortHeader, encode_retry, encode_version_negotiation,
};
pub use number::{MAX_NUMBER_SIZE, TruncatedNumber};
pub use parse::{Coalesced, HeaderRules, Invariants, parse, parse_invariants};

use super::frame::Carrier;
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{ConnectionId, SpaceId};
use crate::wire::version::Version;
use std::fmt;
use std::ops::Range;

/// The version number of QUIC v1 (RFC 9000).
#[cfg(test)]
pub const VERSION_1: u32 = Version::V1.number();

/// Size of the ciphertext sample for header protection (RFC 9001 section 5.4.2).
pub const SAMPLE_SIZE: usize = 16;

/// Size of a Retry packet's integrity tag (RFC 9001 section 5.8).
pub const RETRY_TAG_SIZE: usize = 16;

/// The header form bit: set in long headers (RFC 8999 section 5.1).
const FORM_LONG: u8 = 0x80;
/// The fixed bit, 1 in all v1 packets except Version Negotiation, unless both ends grease it (RFC 9287).
const FIXED: u8 = 0x40;
/// The position of the type in a long header.
const LONG_TYPE_SHIFT: u8 = 4;
/// The low bits, which hold the packet number's size minus one.
const NUMBER_SIZE_MASK: u8 = 0x03;
/// The reserved bits of a long header.
const LONG_RESERVED: u8 = 0x0c;
/// The reserved bits of a short header.
const SHORT_RESERVED: u8 = 0x18;
/// The spin bit of a short header.
const SPIN: u8 = 0x20;
/// The key phase bit of a short header.
const KEY_PHASE: u8 = 0x04;

/// Why bytes are not a packet that we can read. Such packets are dropped. They do not close a
/// connection, because anyone can send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// The header, or the length in it, exceeds the datagram.
    Truncated,
    /// The fixed bit is 0 and must not be: this is not QUIC v1, or it is padding after a packet.
    FixedBit,
    /// A connection identifier of more than 20 bytes.
    ConnectionIdTooLong,
    /// A long header of another version. Its version-independent part is still readable.
    UnsupportedVersion(u32),
    /// Too short to hold the sample for header protection (RFC 9001 section 5.4.2).
    NoSample,
    /// A Retry packet without a token, or a Version Negotiation packet with an incomplete version.
    Malformed,
    /// A packet to send is longer than its Length field can express.
    TooLong,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("packet cut short"),
            Self::FixedBit => f.write_str("fixed bit not set"),
            Self::ConnectionIdTooLong => f.write_str("connection id longer than 20 bytes"),
            Self::UnsupportedVersion(version) => write!(f, "unsupported version {version:#010x}"),
            Self::NoSample => f.write_str("packet too short to sample"),
            Self::Malformed => f.write_str("malformed packet"),
            Self::TooLong => f.write_str("packet longer than its length field can tell"),
        }
    }
}

impl std::error::Error for HeaderError {}

/// The types of packets that carry frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketType {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// 1-RTT, with a short header.
    OneRtt,
}

impl PacketType {
    /// The packet number space of this packet type.
    #[must_use]
    pub const fn space(self) -> SpaceId {
        match self {
            Self::Initial => SpaceId::Initial,
            Self::Handshake => SpaceId::Handshake,
            Self::ZeroRtt | Self::OneRtt => SpaceId::Data,
        }
    }

    /// The carrier that packets of this type are for their frames.
    #[must_use]
    pub const fn carrier(self) -> Carrier {
        match self {
            Self::Initial => Carrier::Initial,
            Self::ZeroRtt => Carrier::ZeroRtt,
            Self::Handshake => Carrier::Handshake,
            Self::OneRtt => Carrier::OneRtt,
        }
    }

    /// Whether packets of this type have a long header.
    #[must_use]
    pub const fn is_long(self) -> bool {
        !matches!(self, Self::OneRtt)
    }
}

/// The meaning of the type bits of a long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LongKind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

impl LongKind {
    /// The kind that these two bits stand for (RFC 9000 table 5, RFC 9369 section 3.2).
    const fn of(version: Version, bits: u8) -> Self {
        let rotated = match version {
            Version::V1 => bits,
            Version::V2 => bits.wrapping_sub(1),
        };
        match rotated & 0x03 {
            0 => Self::Initial,
            1 => Self::ZeroRtt,
            2 => Self::Handshake,
            _ => Self::Retry,
        }
    }

    /// The two bits that stand for this kind.
    const fn bits(self, version: Version) -> u8 {
        let rotation = match version {
            Version::V1 => 0,
            Version::V2 => 1,
        };
        (self as u8 + rotation) & 0x03
    }
}

/// A packet found in a datagram. It owns its fields and refers to bytes by their offset in the
/// datagram, so that the datagram can be decrypted in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodedPacket {
    /// A packet with packet protection.
    Protected(ProtectedPacket),
    /// Retry.
    Retry(RetryPacket),
    /// Version Negotiation.
    VersionNegotiation(VersionNegotiationPacket),
}

impl DecodedPacket {
    /// The version that a long header says; `None` for Version Negotiation, too.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        match self {
            Self::Protected(packet) => packet.version,
            Self::Retry(packet) => Some(packet.version),
            Self::VersionNegotiation(_) => None,
        }
    }

    /// The destination connection identifier.
    #[must_use]
    pub const fn dcid(&self) -> &ConnectionId {
        match self {
            Self::Protected(packet) => &packet.dcid,
            Self::Retry(packet) => &packet.dcid,
            Self::VersionNegotiation(packet) => &packet.dcid,
        }
    }

    /// Where the datagram's next packet starts, if any.
    #[must_use]
    pub const fn end(&self) -> usize {
        match self {
            Self::Protected(packet) => packet.end,
            Self::Retry(packet) => packet.tag.end,
            Self::VersionNegotiation(packet) => packet.versions.end,
        }
    }
}

/// A packet with a payload, whose header and payload are still protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedPacket {
    /// The version in a long header.
    pub version: Option<Version>,
    /// Its type.
    pub ty: PacketType,
    /// Destination connection identifier.
    pub dcid: ConnectionId,
    /// Source connection identifier; empty in a short header, which has none.
    pub scid: ConnectionId,
    /// An Initial's token; empty otherwise.
    pub token: Range<usize>,
    /// Offset of the first byte.
    pub start: usize,
    /// Offset of the packet number. At least 4 + [`SAMPLE_SIZE`] bytes of the packet follow from
    /// here on.
    pub number: usize,
    /// Offset of the end of the packet, including the AEAD's tag.
    pub end: usize,
}

impl ProtectedPacket {
    /// Reads the fields that header protection hid, after the protection was removed from `datagram`.
    ///
    /// # Errors
    /// [`HeaderError::Truncated`] if `datagram` is not the one that contained the packet.
    pub fn unprotected(&self, datagram: &[u8]) -> Result<UnprotectedHeader, HeaderError> {
        let first = *datagram.get(self.start).ok_or(HeaderError::Truncated)?;
        let size = usize::from(first & NUMBER_SIZE_MASK) + 1;
        let payload = self.number + size;
        let number = datagram.get(self.number..payload).ok_or(HeaderError::Truncated)?;
        let number = TruncatedNumber::from_bytes(number).ok_or(HeaderError::Truncated)?;
        let is_short = self.ty == PacketType::OneRtt;
        let reserved = if is_short { SHORT_RESERVED } else { LONG_RESERVED };
        Ok(UnprotectedHeader {
            number,
            header: self.start..payload,
            payload: payload..self.end,
            spin: is_short && first & SPIN != 0,
            key_phase: is_short && first & KEY_PHASE != 0,
            reserved_zero: first & reserved == 0,
        })
    }
}

/// The rest of a header, which is readable after header protection was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnprotectedHeader {
    /// The truncated packet number.
    pub number: TruncatedNumber,
    /// The whole header: the AEAD's associated data.
    pub header: Range<usize>,
    /// The AEAD's ciphertext, with the tag at its end.
    pub payload: Range<usize>,
    /// The spin bit; `false` in long headers.
    pub spin: bool,
    /// The key phase; `false` in long headers.
    pub key_phase: bool,
    reserved_zero: bool,
}

impl UnprotectedHeader {
    /// Checks the reserved bits. Call this only after the payload was opened: before that, an attacker may
    /// have set them.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if one is set (RFC 9000 sections 17.2 and 17.3.1).
    pub fn check_reserved(&self) -> Result<(), TransportError> {
        if self.reserved_zero {
            return Ok(());
        }
        Err(TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, "reserved bit set"))
    }
}

/// Retry (RFC 9000 section 17.2.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPacket {
    /// Its version.
    pub version: Version,
    /// Destination connection identifier.
    pub dcid: ConnectionId,
    /// Source connection identifier: the destination of all further packets of the client.
    pub scid: ConnectionId,
    /// Offset of the first byte; the integrity tag covers everything from here to itself.
    pub start: usize,
    /// The token; never empty.
    pub token: Range<usize>,
    /// The integrity tag, [`RETRY_TAG_SIZE`] bytes at the datagram's end.
    pub tag: Range<usize>,
}

/// Version Negotiation (RFC 9000 section 17.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionNegotiationPacket {
    /// Destination connection identifier.
    pub dcid: ConnectionId,
    /// Source connection identifier.
    pub scid: ConnectionId,
    /// The versions that the server supports, four bytes each, up to the end of the datagram; never
    /// empty.
    pub versions: Range<usize>,
}

impl VersionNegotiationPacket {
    /// The versions. `datagram` must be the one that contained the packet.
    pub fn versions<'a>(&self, datagram: &'a [u8]) -> impl Iterator<Item = u32> + use<'a> {
        let bytes = datagram.get(self.versions.clone()).unwrap_or_default();
        bytes.as_chunks::<4>().0.iter().map(|&version| u32::from_be_bytes(version))
    }
}
