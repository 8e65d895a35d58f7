//! Encoding of frames, and the size of the encoding.

use super::{
    AckFrequency, Close, Frame, FrameKind, NewConnectionId, RESET_TOKEN_SIZE, SourceSymbol,
    StreamFrame, SymbolWindow,
};
use crate::ids::StreamId;
use crate::wire::coding::{put_varint, varint_size};

/// A frame that consists only of its type and some integers.
struct Integers {
    wire_type: u64,
    fields: [u64; 4],
    count: usize,
}

impl Integers {
    fn new<const N: usize>(wire_type: u64, values: [u64; N]) -> Self {
        let mut fields = [0; 4];
        fields[..N].copy_from_slice(&values);
        Self { wire_type, fields, count: N }
    }

    fn all(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.wire_type).chain(self.fields.into_iter().take(self.count))
    }
}

impl Frame<'_> {
    /// Number of bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn size(&self) -> usize {
        if let Some(integers) = self.integers() {
            return integers.all().map(varint_size).sum();
        }
        match self {
            Self::Ack(ack) => ack.size(),
            Self::Crypto { offset, data } => {
                1 + varint_size(*offset) + length_prefixed_size(data.len())
            }
            Self::NewToken(token) => 1 + length_prefixed_size(token.len()),
            Self::Stream(stream) => {
                stream.header().size(Some(stream.data.len())) + stream.data.len()
            }
            Self::NewConnectionId(id) => id.size(),
            Self::PathChallenge(data) | Self::PathResponse(data) => 1 + data.len(),
            Self::Close(close) => close.overhead() + length_prefixed_size(close.reason().len()),
            Self::Datagram(data) => 1 + length_prefixed_size(data.len()),
            Self::SourceSymbol(s) => SourceSymbol::header_size(s.symbol) + s.frames.len(),
            Self::Repair(repair) => repair.header.size() + repair.payload.len(),
            Self::SymbolAck(ack) => ack.size(),
            // Frames of integers only, whose size was computed above.
            _ => 0,
        }
    }

    /// Appends the frame. STREAM and DATAGRAM are written with their length, so that another frame
    /// may follow. Nothing may follow SOURCE_SYMBOL, REPAIR and REPAIR_CODED.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(integers) = self.integers() {
            return integers.all().for_each(|field| put_varint(out, field));
        }
        match self {
            Self::Ack(ack) => ack.encode(out),
            Self::Crypto { offset, data } => encode_crypto(*offset, data, out),
            Self::NewToken(token) => {
                put_varint(out, self.kind().wire_type());
                put_length_prefixed(token, out);
            }
            Self::Stream(stream) => {
                stream.header().encode(Some(stream.data.len()), out);
                out.extend_from_slice(stream.data);
            }
            Self::NewConnectionId(id) => id.encode(out),
            Self::PathChallenge(data) | Self::PathResponse(data) => {
                put_varint(out, self.kind().wire_type());
                out.extend_from_slice(data);
            }
            Self::Close(close) => close.encode(close.reason().len(), out),
            Self::Datagram(data) => encode_datagram(data, true, out),
            Self::SourceSymbol(source) => {
                SourceSymbol::encode_header(source.symbol, out);
                out.extend_from_slice(source.frames);
            }
            Self::Repair(repair) => {
                repair.header.encode(out);
                out.extend_from_slice(repair.payload);
            }
            Self::SymbolAck(ack) => ack.encode(out),
            // Frames of integers only, which were written above.
            _ => {}
        }
    }

    fn integers(&self) -> Option<Integers> {
        let wire_type = self.kind().wire_type();
        Some(match *self {
            Self::Padding | Self::Ping | Self::HandshakeDone | Self::ImmediateAck => {
                Integers::new(wire_type, [])
            }
            Self::AckFrequency(AckFrequency {
                sequence,
                threshold,
                max_ack_delay,
                reordering_threshold,
            }) => {
                Integers::new(wire_type, [sequence, threshold, max_ack_delay, reordering_threshold])
            }
            Self::ResetStream { id, code, final_size } => {
                Integers::new(wire_type, [id.0, code, final_size])
            }
            Self::ResetStreamAt { id, code, final_size, reliable_size } => {
                Integers::new(wire_type, [id.0, code, final_size, reliable_size])
            }
            Self::StopSending { id, code } => Integers::new(wire_type, [id.0, code]),
            Self::MaxData(value) | Self::DataBlocked(value) | Self::RetireConnectionId(value) => {
                Integers::new(wire_type, [value])
            }
            Self::MaxStreamData { id, max: value }
            | Self::StreamDataBlocked { id, limit: value } => {
                Integers::new(wire_type, [id.0, value])
            }
            Self::MaxStreams { dir, max: value } | Self::StreamsBlocked { dir, limit: value } => {
                Integers::new(wire_type | dir as u64, [value])
            }
            Self::SymbolWindow(SymbolWindow { session, lower_bound }) => {
                Integers::new(wire_type, [session.into(), lower_bound])
            }
            _ => return None,
        })
    }
}

/// The fields of a STREAM frame before its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamHeader {
    /// The stream.
    pub id: StreamId,
    /// Offset of the first byte.
    pub offset: u64,
    /// Whether the stream ends with this frame.
    pub fin: bool,
}

impl StreamHeader {
    fn size_without_length(&self) -> usize {
        1 + varint_size(self.id.0) + if self.offset == 0 { 0 } else { varint_size(self.offset) }
    }

    /// Size of the header for `length` bytes of data; or without the Length field, in which case
    /// the frame must be the last of its packet.
    #[must_use]
    pub fn size(&self, length: Option<usize>) -> usize {
        self.size_without_length() + length.map_or(0, |n| varint_size(n as u64))
    }

    /// The most data that fits into `room` bytes together with the header; `None` if not even the
    /// header fits.
    #[must_use]
    pub fn capacity(&self, room: usize, with_length: bool) -> Option<usize> {
        let room = room.checked_sub(self.size_without_length())?;
        if with_length { length_prefixed_capacity(room) } else { Some(room) }
    }

    /// Appends the header; the data must follow. `length`, if given, must be the size of the data. Without
    /// it, the data must extend to the end of the packet.
    pub fn encode(&self, length: Option<usize>, out: &mut Vec<u8>) {
        let flags = u64::from(self.fin)
            | u64::from(length.is_some()) << 1
            | u64::from(self.offset != 0) << 2;
        put_varint(out, FrameKind::Stream.wire_type() | flags);
        put_varint(out, self.id.0);
        if self.offset != 0 {
            put_varint(out, self.offset);
        }
        if let Some(length) = length {
            put_varint(out, length as u64);
        }
    }
}

impl StreamFrame<'_> {
    /// The fields of the frame before its data.
    #[must_use]
    pub const fn header(&self) -> StreamHeader {
        StreamHeader { id: self.id, offset: self.offset, fin: self.fin }
    }
}

/// The most data that a CRYPTO frame at `offset` can carry in `room` bytes; `None` if not even an
/// empty frame fits.
#[must_use]
pub fn crypto_capacity(offset: u64, room: usize) -> Option<usize> {
    length_prefixed_capacity(room.checked_sub(1 + varint_size(offset))?)
}

/// Appends a CRYPTO frame.
pub fn encode_crypto(offset: u64, data: &[u8], out: &mut Vec<u8>) {
    put_varint(out, FrameKind::Crypto.wire_type());
    put_varint(out, offset);
    put_length_prefixed(data, out);
}

/// Size of a DATAGRAM frame that has a Length field and `len` bytes of data.
#[must_use]
pub fn datagram_size(len: usize) -> usize {
    1 + varint_size(len as u64) + len
}

/// Appends a DATAGRAM frame. Without a length, it must be the last frame of its packet.
pub fn encode_datagram(data: &[u8], with_length: bool, out: &mut Vec<u8>) {
    put_varint(out, FrameKind::Datagram.wire_type() | u64::from(with_length));
    if with_length {
        put_length_prefixed(data, out);
    } else {
        out.extend_from_slice(data);
    }
}

impl NewConnectionId {
    fn size(&self) -> usize {
        let integers = varint_size(self.sequence) + varint_size(self.retire_prior_to);
        1 + integers + 1 + self.id.len() + RESET_TOKEN_SIZE
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, FrameKind::NewConnectionId.wire_type());
        put_varint(out, self.sequence);
        put_varint(out, self.retire_prior_to);
        out.push(self.id.len() as u8);
        out.extend_from_slice(self.id.as_slice());
        out.extend_from_slice(&self.reset_token);
    }
}

impl Close<'_> {
    /// Appends the frame in at most `room` bytes and returns its size. A reason that is too long is
    /// truncated, between characters if it is UTF-8. Returns `None` and appends nothing if the
    /// frame does not fit even without the reason.
    pub fn encode_within(&self, room: usize, out: &mut Vec<u8>) -> Option<usize> {
        let capacity = length_prefixed_capacity(room.checked_sub(self.overhead())?)?;
        let start = out.len();
        self.encode(cut(self.reason(), capacity), out);
        Some(out.len() - start)
    }

    /// Size without the reason and its length.
    fn overhead(&self) -> usize {
        1 + match *self {
            Self::Transport { code, frame, .. } => {
                varint_size(code.0) + varint_size(frame.unwrap_or(0))
            }
            Self::Application { code, .. } => varint_size(code),
        }
    }

    fn encode(&self, reason_len: usize, out: &mut Vec<u8>) {
        match *self {
            Self::Transport { code, frame, .. } => {
                put_varint(out, FrameKind::ConnectionClose.wire_type());
                put_varint(out, code.0);
                put_varint(out, frame.unwrap_or(0));
            }
            Self::Application { code, .. } => {
                put_varint(out, FrameKind::ApplicationClose.wire_type());
                put_varint(out, code);
            }
        }
        put_length_prefixed(self.reason().get(..reason_len).unwrap_or_default(), out);
    }
}

/// Where to cut `text` to at most `capacity` bytes without splitting a UTF-8 character.
fn cut(text: &[u8], capacity: usize) -> usize {
    if text.len() <= capacity {
        return text.len();
    }
    let is_boundary = |&at: &usize| text.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    // A UTF-8 character has at most four bytes; other bytes may be cut anywhere.
    (capacity.saturating_sub(3)..=capacity).rev().find(is_boundary).unwrap_or(capacity)
}

fn length_prefixed_size(len: usize) -> usize {
    varint_size(len as u64) + len
}

fn put_length_prefixed(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The most bytes that fit into `room` together with their length prefix.
fn length_prefixed_capacity(room: usize) -> Option<usize> {
    const SIZES: [(usize, usize); 3] = [(1, 0x3f), (2, 0x3fff), (4, 0x3fff_ffff)];
    SIZES.iter().filter_map(|&(size, max)| Some(room.checked_sub(size)?.min(max))).max()
}
