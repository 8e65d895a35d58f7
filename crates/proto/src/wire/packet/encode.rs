//! Encoding of packet headers.

use super::{
    FIXED, FORM_LONG, HeaderError, KEY_PHASE, LONG_TYPE_SHIFT, LongKind, SPIN, TruncatedNumber,
};
use crate::ids::ConnectionId;
use crate::wire::coding::{put_varint, put_varint2};
use crate::wire::version::Version;

/// Size of the Length field, which is written before the length is known.
const LENGTH_SIZE: usize = 2;

/// The largest value of a Length field of [`LENGTH_SIZE`] bytes.
const MAX_LENGTH: usize = (1 << 14) - 1;

/// The types of packets with a long header that carry frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongType<'a> {
    /// Initial.
    Initial {
        /// The token from a Retry packet or NEW_TOKEN frame; empty if there is none.
        token: &'a [u8],
    },
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
}

/// A long header with a packet number (RFC 9000 section 17.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeader<'a> {
    /// The version.
    pub version: Version,
    /// The packet's type.
    pub ty: LongType<'a>,
    /// Destination connection identifier.
    pub dcid: ConnectionId,
    /// Source connection identifier.
    pub scid: ConnectionId,
}

impl LongHeader<'_> {
    /// Appends the header; its Length is set by [`Layout::finish`].
    pub fn encode(&self, number: TruncatedNumber, out: &mut Vec<u8>) -> Layout {
        let start = out.len();
        let kind = match self.ty {
            LongType::Initial { .. } => LongKind::Initial,
            LongType::ZeroRtt => LongKind::ZeroRtt,
            LongType::Handshake => LongKind::Handshake,
        };
        let ty = kind.bits(self.version);
        out.push(FORM_LONG | FIXED | ty << LONG_TYPE_SHIFT | number_bits(number));
        put_version_and_cids(self.version, self.dcid, self.scid, out);
        if let LongType::Initial { token } = self.ty {
            put_varint(out, token.len() as u64);
            out.extend_from_slice(token);
        }
        put_varint2(out, 0);
        let layout = Layout { start, number: out.len(), payload: out.len() + number.size() };
        number.encode(out);
        layout
    }
}

/// A short header (RFC 9000 section 17.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortHeader {
    /// Destination connection identifier.
    pub dcid: ConnectionId,
    /// The latency spin bit.
    pub spin: bool,
    /// The key phase.
    pub key_phase: bool,
}

impl ShortHeader {
    /// Appends the header.
    pub fn encode(&self, number: TruncatedNumber, out: &mut Vec<u8>) -> Layout {
        let start = out.len();
        let spin = if self.spin { SPIN } else { 0 };
        let key_phase = if self.key_phase { KEY_PHASE } else { 0 };
        out.push(FIXED | spin | key_phase | number_bits(number));
        out.extend_from_slice(self.dcid.as_slice());
        let layout = Layout { start, number: out.len(), payload: out.len() + number.size() };
        number.encode(out);
        layout
    }
}

/// The positions of the parts of a packet that is being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The first byte of the header.
    pub start: usize,
    /// The first byte of the packet number. The header protection sample starts 4 bytes after it.
    pub number: usize,
    /// The first byte of the payload.
    pub payload: usize,
}

impl Layout {
    /// Clears the fixed bit. Only for a peer that ignores it (RFC 9287 section 3.1), and before the
    /// packet is sealed.
    pub fn clear_fixed_bit(&self, out: &mut [u8]) {
        if let Some(first) = out.get_mut(self.start) {
            *first &= !FIXED;
        }
    }

    /// Sets the Length field of a long header. Call this before the packet is sealed, because the
    /// AEAD covers the header. The packet ends at the end of `out`, plus `trailer` bytes still to
    /// come (the AEAD's tag). Does nothing for a short header, which has no Length field.
    ///
    /// # Errors
    /// [`HeaderError::TooLong`] if the length is 2^14 bytes or more.
    pub fn finish(&self, trailer: usize, out: &mut [u8]) -> Result<(), HeaderError> {
        if out.get(self.start).is_none_or(|first| first & FORM_LONG == 0) {
            return Ok(());
        }
        let length = (out.len() + trailer).saturating_sub(self.number);
        if length > MAX_LENGTH {
            return Err(HeaderError::TooLong);
        }
        let field = out.get_mut(self.number - LENGTH_SIZE..self.number);
        let field = field.ok_or(HeaderError::Truncated)?;
        field.copy_from_slice(&(0x4000 | length as u16).to_be_bytes());
        Ok(())
    }
}

/// Appends a Retry packet without its integrity tag (RFC 9000 section 17.2.5). `token` must not be
/// empty.
pub fn encode_retry(
    version: Version,
    dcid: ConnectionId,
    scid: ConnectionId,
    token: &[u8],
    out: &mut Vec<u8>,
) {
    debug_assert!(!token.is_empty(), "clients discard a Retry without a token");
    // The low four bits are unused and may have any value.
    out.push(FORM_LONG | FIXED | LongKind::Retry.bits(version) << LONG_TYPE_SHIFT | 0x0f);
    put_version_and_cids(version, dcid, scid, out);
    out.extend_from_slice(token);
}

/// Appends a Version Negotiation packet (RFC 9000 section 17.2.1). The identifiers are taken from the packet
/// that it answers, and swapped; in other versions they may be up to 255 bytes long.
pub fn encode_version_negotiation(dcid: &[u8], scid: &[u8], versions: &[u32], out: &mut Vec<u8>) {
    // The other bits are unused. Setting the fixed bit distinguishes the packet from other
    // protocols.
    out.push(FORM_LONG | FIXED);
    out.extend_from_slice(&0u32.to_be_bytes());
    for cid in [dcid, scid] {
        debug_assert!(cid.len() <= usize::from(u8::MAX));
        out.push(cid.len() as u8);
        out.extend_from_slice(cid);
    }
    for version in versions {
        out.extend_from_slice(&version.to_be_bytes());
    }
}

fn put_version_and_cids(
    version: Version,
    dcid: ConnectionId,
    scid: ConnectionId,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&version.number().to_be_bytes());
    for cid in [dcid, scid] {
        out.push(cid.len() as u8);
        out.extend_from_slice(cid.as_slice());
    }
}

const fn number_bits(number: TruncatedNumber) -> u8 {
    number.size() as u8 - 1
}
