//! Frame types and frame headers (RFC 9114 section 7).

use crate::codec::{put_varint, varint, varint_size_from};

/// A frame type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameType(pub(crate) u64);

impl FrameType {
    pub(crate) const DATA: Self = Self(0x0);
    pub(crate) const HEADERS: Self = Self(0x1);
    pub(crate) const CANCEL_PUSH: Self = Self(0x3);
    pub(crate) const SETTINGS: Self = Self(0x4);
    pub(crate) const PUSH_PROMISE: Self = Self(0x5);
    pub(crate) const GOAWAY: Self = Self(0x7);
    pub(crate) const MAX_PUSH_ID: Self = Self(0xd);
    /// Begins a bidirectional stream of a WebTransport session. Where frames have their length, the session's
    /// identifier follows (draft-ietf-webtrans-http3-15 section 4.3).
    pub(crate) const WT_STREAM: Self = Self(0x41);
    /// PRIORITY_UPDATE for a request (RFC 9218 section 7.2).
    pub(crate) const PRIORITY_UPDATE_REQUEST: Self = Self(0xf0700);
    /// PRIORITY_UPDATE for a push (RFC 9218 section 7.2).
    pub(crate) const PRIORITY_UPDATE_PUSH: Self = Self(0xf0701);

    /// Whether it is PRIORITY, PING, WINDOW_UPDATE or CONTINUATION of HTTP/2, which HTTP/3 does not
    /// permit (RFC 9114 section 7.2.8).
    pub(crate) const fn is_http2(self) -> bool {
        matches!(self.0, 0x2 | 0x6 | 0x8 | 0x9)
    }
}

/// The type of a frame and the length of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameType,
    pub(crate) len: u64,
}

/// Bytes of the longest frame header.
pub(crate) const MAX_HEADER_SIZE: usize = 16;

/// A frame's header, and its size in bytes.
pub(crate) fn header_of(kind: FrameType, len: u64) -> ([u8; MAX_HEADER_SIZE], usize) {
    let mut header = [0; MAX_HEADER_SIZE];
    let mut size = 0;
    for integer in [kind.0, len] {
        let (bytes, length) = varint(integer);
        header[size..size + length].copy_from_slice(&bytes[..length]);
        size += length;
    }
    (header, size)
}

/// Appends a frame's header.
pub(crate) fn put_header(out: &mut Vec<u8>, kind: FrameType, len: u64) {
    let (header, size) = header_of(kind, len);
    out.extend_from_slice(&header[..size]);
}

/// Appends a whole frame.
pub(crate) fn put_frame(out: &mut Vec<u8>, kind: FrameType, payload: &[u8]) {
    put_header(out, kind, payload.len() as u64);
    out.extend_from_slice(payload);
}

/// Appends a frame whose payload is one integer.
pub(crate) fn put_integer_frame(out: &mut Vec<u8>, kind: FrameType, value: u64) {
    let mut payload = Vec::new();
    put_varint(&mut payload, value);
    put_frame(out, kind, &payload);
}

/// A HEADERS frame whose payload is written before its length is known. The header comes to be right before
/// the payload.
#[derive(Debug)]
pub(crate) struct HeadersFrame {
    /// Room for the longest header, and the payload.
    bytes: Vec<u8>,
    /// Where the frame begins.
    start: usize,
}

impl HeadersFrame {
    /// Bytes of memory that are kept for the next frame.
    const MAX_KEPT: usize = 512;

    /// A frame without payload, in this memory.
    pub(crate) fn within(mut memory: Vec<u8>) -> Self {
        memory.clear();
        memory.resize(MAX_HEADER_SIZE, 0);
        Self { bytes: memory, start: MAX_HEADER_SIZE }
    }

    /// Where the payload is to be appended.
    pub(crate) fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Puts the header before the payload, which is complete.
    pub(crate) fn complete(&mut self) {
        let payload = self.bytes.len() - MAX_HEADER_SIZE;
        let (header, size) = header_of(FrameType::HEADERS, payload as u64);
        self.start = MAX_HEADER_SIZE - size;
        self.bytes[self.start..MAX_HEADER_SIZE].copy_from_slice(&header[..size]);
    }

    /// The whole frame.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// The memory, unless it is too large to be kept.
    pub(crate) fn into_memory(self) -> Vec<u8> {
        if self.bytes.capacity() > Self::MAX_KEPT { Vec::new() } else { self.bytes }
    }
}

/// Reads frame headers from a stream that may pause anywhere.
///
/// The reader never asks for a byte past the header, so that the payload of a DATA frame can be read from the
/// transport straight into the reader's buffer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HeaderReader {
    bytes: [u8; MAX_HEADER_SIZE],
    len: usize,
}

impl HeaderReader {
    /// Whether no byte of the next header has been read.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The length of the header, as far as known.
    fn target(&self) -> usize {
        if self.len == 0 {
            return 2;
        }
        let kind = varint_size_from(self.bytes[0]);
        match self.bytes.get(kind) {
            Some(&first) if self.len > kind => kind + varint_size_from(first),
            _ => kind + 1,
        }
    }

    /// Buffer for the header's next bytes. Never empty.
    pub(crate) fn spare(&mut self) -> &mut [u8] {
        let target = self.target();
        self.bytes.get_mut(self.len..target).unwrap_or_default()
    }

    /// Records that `n` bytes were put into [`Self::spare`]. Once the header is complete, returns
    /// it and starts the next one.
    pub(crate) fn advance(&mut self, n: usize) -> Option<FrameHeader> {
        self.len += n;
        if self.len < self.target() {
            return None;
        }
        let mut bytes = self.bytes.get(..self.len)?;
        let kind = FrameType(crate::codec::take_varint(&mut bytes)?);
        let len = crate::codec::take_varint(&mut bytes)?;
        self.len = 0;
        Some(FrameHeader { kind, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::VARINT_MAX;
    use proptest::prelude::*;

    /// Feeds `bytes` in pieces of at most `step`; returns the header and the number of unread
    /// bytes.
    fn read(bytes: &[u8], step: usize) -> Option<(FrameHeader, usize)> {
        let mut reader = HeaderReader::default();
        let mut at = 0;
        loop {
            let spare = reader.spare();
            assert!(!spare.is_empty());
            let n = spare.len().min(step).min(bytes.len() - at);
            if n == 0 {
                return None;
            }
            spare[..n].copy_from_slice(&bytes[at..at + n]);
            at += n;
            if let Some(header) = reader.advance(n) {
                assert!(reader.is_empty());
                return Some((header, bytes.len() - at));
            }
        }
    }

    #[test]
    fn a_headers_frame_is_as_long_as_its_payload_needs() {
        for length in [0, 1, 63, 64, 500, 16_383, 16_384] {
            let mut frame = HeadersFrame::within(vec![9; 30]);
            frame.payload().extend(std::iter::repeat_n(7, length));
            frame.complete();
            let mut whole = Vec::new();
            put_frame(&mut whole, FrameType::HEADERS, &vec![7; length]);
            assert_eq!(frame.as_bytes(), whole);
            assert!(frame.into_memory().capacity() <= HeadersFrame::MAX_KEPT);
        }
    }

    proptest! {
        #[test]
        fn headers_survive_any_split(
            kind in 0..=VARINT_MAX, len in 0..=VARINT_MAX, a in 0u32..62, b in 0u32..62,
            step in 1usize..17,
        ) {
            let header = FrameHeader { kind: FrameType(kind >> a), len: len >> b };
            let mut out = Vec::new();
            put_header(&mut out, header.kind, header.len);
            let size = out.len();
            for cut in 0..size {
                prop_assert_eq!(read(&out[..cut], step), None);
            }
            out.extend_from_slice(b"payload");
            prop_assert_eq!(read(&out, step), Some((header, 7)));
        }
    }
}
