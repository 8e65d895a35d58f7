//! Parsing of packets in a datagram.

use super::{
    DecodedPacket, FIXED, FORM_LONG, HeaderError, LONG_TYPE_SHIFT, LongKind, MAX_NUMBER_SIZE,
    PacketType, ProtectedPacket, RETRY_TAG_SIZE, RetryPacket, SAMPLE_SIZE,
    VersionNegotiationPacket,
};
use crate::ids::ConnectionId;
use crate::wire::coding::{Reader, UnexpectedEnd};
use crate::wire::version::Version;
use std::ops::Range;

impl From<UnexpectedEnd> for HeaderError {
    fn from(_: UnexpectedEnd) -> Self {
        Self::Truncated
    }
}

/// The version-independent part of a header (RFC 8999 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invariants<'a> {
    /// The version in a long header, 0 for Version Negotiation; `None` in a short header.
    pub version: Option<u32>,
    /// Destination connection identifier; up to 255 bytes in other versions.
    pub dcid: &'a [u8],
    /// Source connection identifier; empty in a short header, which has none.
    pub scid: &'a [u8],
}

impl Invariants<'_> {
    /// Whether the header is a long one.
    #[must_use]
    pub const fn is_long(&self) -> bool {
        self.version.is_some()
    }
}

/// Reads the version-independent header of a datagram's first packet. This header is enough to find the
/// packet's connection, or to answer with Version Negotiation. `local_cid_len` is the length of the
/// identifiers that we issue, which a short header does not contain.
///
/// # Errors
/// [`HeaderError::Truncated`].
pub fn parse_invariants(
    datagram: &[u8],
    local_cid_len: usize,
) -> Result<Invariants<'_>, HeaderError> {
    let mut r = Reader::new(datagram);
    if r.u8()? & FORM_LONG == 0 {
        return Ok(Invariants { version: None, dcid: r.bytes(local_cid_len)?, scid: &[] });
    }
    let version = Some(r.u32()?);
    let (dcid, scid) = (invariant_cid(&mut r)?, invariant_cid(&mut r)?);
    Ok(Invariants { version, dcid, scid })
}

fn invariant_cid<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], UnexpectedEnd> {
    let len = usize::from(r.u8()?);
    r.bytes(len)
}

/// The knowledge of an end about the headers of packets that are sent to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderRules {
    /// The length of the identifiers that we issue, which a short header does not contain.
    pub local_cid_len: usize,
    /// Whether the fixed bit may have any value, as we said in `grease_quic_bit` (RFC 9287).
    pub greased: bool,
}

impl HeaderRules {
    fn check_fixed_bit(self, first: u8) -> Result<(), HeaderError> {
        if first & FIXED == 0 && !self.greased { Err(HeaderError::FixedBit) } else { Ok(()) }
    }
}

/// Reads the packet at offset `start` of `datagram`.
///
/// # Errors
/// A [`HeaderError`] if the rest of the datagram cannot be read. Packets before it are not
/// affected.
pub fn parse(
    datagram: &[u8],
    start: usize,
    rules: HeaderRules,
) -> Result<DecodedPacket, HeaderError> {
    let cursor = Cursor {
        reader: Reader::new(datagram.get(start..).ok_or(HeaderError::Truncated)?),
        len: datagram.len(),
    };
    match cursor.reader.peek_rest().first() {
        None => Err(HeaderError::Truncated),
        Some(&first) if first & FORM_LONG == 0 => {
            parse_short(cursor, first, rules).map(DecodedPacket::Protected)
        }
        Some(&first) => parse_long(cursor, first, rules),
    }
}

/// A reader that tracks its offset in the datagram.
struct Cursor<'a> {
    reader: Reader<'a>,
    len: usize,
}

impl Cursor<'_> {
    const fn offset(&self) -> usize {
        self.len - self.reader.remaining()
    }

    /// Reads a length-prefixed v1 connection identifier.
    fn cid(&mut self) -> Result<ConnectionId, HeaderError> {
        ConnectionId::new(invariant_cid(&mut self.reader)?).ok_or(HeaderError::ConnectionIdTooLong)
    }

    /// Reads a length and returns the range of bytes of that length after it.
    fn prefixed(&mut self) -> Result<Range<usize>, HeaderError> {
        let bytes = self.reader.varint_bytes()?;
        Ok(self.offset() - bytes.len()..self.offset())
    }
}

fn parse_short(
    mut cursor: Cursor<'_>,
    first: u8,
    rules: HeaderRules,
) -> Result<ProtectedPacket, HeaderError> {
    rules.check_fixed_bit(first)?;
    let start = cursor.offset();
    cursor.reader.u8()?;
    let dcid = ConnectionId::new(cursor.reader.bytes(rules.local_cid_len)?)
        .ok_or(HeaderError::ConnectionIdTooLong)?;
    let number = cursor.offset();
    sampled(ProtectedPacket {
        version: None,
        ty: PacketType::OneRtt,
        dcid,
        scid: ConnectionId::default(),
        token: number..number,
        start,
        number,
        end: cursor.len,
    })
}

fn parse_long(
    mut cursor: Cursor<'_>,
    first: u8,
    rules: HeaderRules,
) -> Result<DecodedPacket, HeaderError> {
    let start = cursor.offset();
    cursor.reader.u8()?;
    let number = cursor.reader.u32()?;
    let version = Version::from_number(number);
    if version.is_none() && number != 0 {
        return Err(HeaderError::UnsupportedVersion(number));
    }
    let (dcid, scid) = (cursor.cid()?, cursor.cid()?);
    let Some(version) = version else {
        return version_negotiation(&cursor, dcid, scid).map(DecodedPacket::VersionNegotiation);
    };
    rules.check_fixed_bit(first)?;
    let ty = match LongKind::of(version, first >> LONG_TYPE_SHIFT) {
        LongKind::Initial => PacketType::Initial,
        LongKind::ZeroRtt => PacketType::ZeroRtt,
        LongKind::Handshake => PacketType::Handshake,
        LongKind::Retry => {
            return retry(&cursor, version, start, dcid, scid).map(DecodedPacket::Retry);
        }
    };
    let token = if ty == PacketType::Initial {
        cursor.prefixed()?
    } else {
        cursor.offset()..cursor.offset()
    };
    let Range { start: number, end } = cursor.prefixed()?;
    let version = Some(version);
    sampled(ProtectedPacket { version, ty, dcid, scid, token, start, number, end })
        .map(DecodedPacket::Protected)
}

/// Returns the packet if it is long enough to contain the header protection sample.
fn sampled(packet: ProtectedPacket) -> Result<ProtectedPacket, HeaderError> {
    if packet.end - packet.number < MAX_NUMBER_SIZE + SAMPLE_SIZE {
        return Err(HeaderError::NoSample);
    }
    Ok(packet)
}

fn retry(
    cursor: &Cursor<'_>,
    version: Version,
    start: usize,
    dcid: ConnectionId,
    scid: ConnectionId,
) -> Result<RetryPacket, HeaderError> {
    let tag = cursor.len.checked_sub(RETRY_TAG_SIZE).ok_or(HeaderError::Truncated)?;
    let token = cursor.offset();
    match tag.checked_sub(token) {
        None => Err(HeaderError::Truncated),
        Some(0) => Err(HeaderError::Malformed),
        Some(_) => {
            Ok(RetryPacket { version, dcid, scid, start, token: token..tag, tag: tag..cursor.len })
        }
    }
}

fn version_negotiation(
    cursor: &Cursor<'_>,
    dcid: ConnectionId,
    scid: ConnectionId,
) -> Result<VersionNegotiationPacket, HeaderError> {
    match cursor.reader.remaining() {
        0 => Err(HeaderError::Truncated),
        n if n % 4 != 0 => Err(HeaderError::Malformed),
        _ => Ok(VersionNegotiationPacket { dcid, scid, versions: cursor.offset()..cursor.len }),
    }
}

/// Iterates over the packets of a datagram (RFC 9000 section 12.2). The datagram is passed to each
/// call, so that packets can be decrypted in place between them.
#[derive(Debug, Clone)]
pub struct Coalesced {
    next: usize,
    rules: HeaderRules,
    dcid: Option<ConnectionId>,
}

impl Coalesced {
    /// Starts at the beginning of a datagram.
    #[must_use]
    pub const fn new(rules: HeaderRules) -> Self {
        Self { next: 0, rules, dcid: None }
    }

    /// The next packet. Packets with another connection identifier than the first are skipped.
    /// There are no more packets after an error, which includes padding after the last packet.
    pub fn next(&mut self, datagram: &[u8]) -> Option<Result<DecodedPacket, HeaderError>> {
        while self.next < datagram.len() {
            let packet = match parse(datagram, self.next, self.rules) {
                Ok(packet) => packet,
                Err(error) => {
                    self.next = datagram.len();
                    return Some(Err(error));
                }
            };
            self.next = packet.end();
            if self.dcid.get_or_insert(*packet.dcid()) == packet.dcid() {
                return Some(Ok(packet));
            }
        }
        None
    }
}
