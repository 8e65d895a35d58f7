//! Frames of the erasure-coding extension; `docs/extension.md` specifies their format.

use super::{FrameKind, Malformed};
use crate::ids::SymbolRef;
use crate::wire::code_id::CodeId;
use crate::wire::coding::{Reader, VARINT_MAX, put_varint, varint_size};
use crate::wire::range_set::RangeSet;
use std::iter::FusedIterator;
use std::ops::Range;

/// Size of the shortest repair symbol: the coded length of a source symbol and one byte, because no
/// source symbol is empty.
pub const MIN_REPAIR_SYMBOL: usize = 3;

/// Size of the types of all FEC frames.
const TYPE_SIZE: usize = 2;

fn session(r: &mut Reader<'_>) -> Result<u16, Malformed> {
    u16::try_from(r.varint()?).map_err(|_| Malformed("session number out of range"))
}

/// SOURCE_SYMBOL: frames that erasure coding protects. It is the last frame of its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSymbol<'a> {
    /// The session and the symbol.
    pub symbol: SymbolRef,
    /// The symbol: one or more STREAM and DATAGRAM frames, the last of which may lack its length.
    /// Read them with [`FrameIter`](super::FrameIter) and
    /// [`Carrier::SourceSymbol`](super::Carrier::SourceSymbol).
    pub frames: &'a [u8],
}

impl<'a> SourceSymbol<'a> {
    /// Size of a SOURCE_SYMBOL before its first frame.
    #[must_use]
    pub const fn header_size(symbol: SymbolRef) -> usize {
        TYPE_SIZE + varint_size(symbol.session as u64) + varint_size(symbol.id)
    }

    /// Appends the fields before the first frame.
    pub fn encode_header(symbol: SymbolRef, out: &mut Vec<u8>) {
        put_varint(out, FrameKind::SourceSymbol.wire_type());
        put_varint(out, symbol.session.into());
        put_varint(out, symbol.id);
    }

    pub(super) fn decode(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let symbol = SymbolRef { session: session(r)?, id: r.varint()? };
        // Other frames must still be able to encode the number after the last symbol's.
        if symbol.id == VARINT_MAX {
            return Err(Malformed("symbol id out of range"));
        }
        match r.rest() {
            [] => Err(Malformed("empty source symbol")),
            frames => Ok(Self { symbol, frames }),
        }
    }
}

/// The fields of REPAIR or REPAIR_CODED before the repair symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairHeader {
    /// The session whose symbols it repairs.
    pub session: u16,
    /// Its code: the sliding window uses REPAIR, all others REPAIR_CODED.
    pub code: CodeId,
    /// The first source symbol of its span.
    pub first: u64,
    /// How many source symbols the span has: at least 1, and `first + count` is at most 2^62 - 1.
    pub count: u64,
    /// The key that the coefficients are derived from.
    pub key: u32,
}

impl RepairHeader {
    /// The header for a repair symbol over `span`.
    #[must_use]
    pub const fn new(session: u16, code: CodeId, span: &Range<u64>, key: u32) -> Self {
        let count = span.end.saturating_sub(span.start);
        Self { session, code, first: span.start, count, key }
    }

    /// The kind of frame that it belongs to.
    #[must_use]
    pub const fn kind(&self) -> FrameKind {
        match self.code {
            CodeId::SLIDING_WINDOW => FrameKind::Repair,
            _ => FrameKind::RepairCoded,
        }
    }

    /// The source symbols that are combined in the repair symbol.
    #[must_use]
    pub const fn span(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.count)
    }

    /// Size of the frame before its repair symbol.
    #[must_use]
    pub const fn size(&self) -> usize {
        let is_coded = matches!(self.kind(), FrameKind::RepairCoded);
        let code = if is_coded { varint_size(self.code.get() as u64) } else { 0 };
        TYPE_SIZE
            + code
            + varint_size(self.session as u64)
            + varint_size(self.first)
            + varint_size(self.count)
            + varint_size(self.key as u64)
    }

    /// Appends the fields before the repair symbol.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.kind().wire_type());
        put_varint(out, self.session.into());
        if self.kind() == FrameKind::RepairCoded {
            put_varint(out, self.code.get().into());
        }
        for field in [self.first, self.count, self.key.into()] {
            put_varint(out, field);
        }
    }
}

/// REPAIR or REPAIR_CODED: a repair symbol. It is the last frame of its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair<'a> {
    /// The frame's fields before the repair symbol.
    pub header: RepairHeader,
    /// The repair symbol, at least 3 bytes.
    pub payload: &'a [u8],
}

impl<'a> Repair<'a> {
    pub(super) fn decode(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let session = session(r)?;
        Self::decode_rest(session, CodeId::SLIDING_WINDOW, r)
    }

    pub(super) fn decode_coded(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let session = session(r)?;
        // The sliding window has its own frame type.
        let code = CodeId::new(r.varint()?).filter(|code| *code != CodeId::SLIDING_WINDOW);
        Self::decode_rest(session, code.ok_or(Malformed("code number out of range"))?, r)
    }

    fn decode_rest(session: u16, code: CodeId, r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (first, count) = (r.varint()?, r.varint()?);
        if count == 0 || first + count > VARINT_MAX {
            return Err(Malformed("repair span empty or out of range"));
        }
        let key = u32::try_from(r.varint()?).map_err(|_| Malformed("repair key out of range"))?;
        let payload = r.rest();
        if payload.len() < MIN_REPAIR_SYMBOL {
            return Err(Malformed("repair symbol too short"));
        }
        Ok(Self { header: RepairHeader { session, code, first, count, key }, payload })
    }
}

/// SYMBOL_WINDOW: later REPAIR frames of the session do not refer to symbols below the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolWindow {
    /// The session.
    pub session: u16,
    /// The smallest symbol that repair symbols may still refer to.
    pub lower_bound: u64,
}

impl SymbolWindow {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { session: session(r)?, lower_bound: r.varint()? })
    }
}

/// SYMBOL_ACK: the source symbols that a decoder has received or recovered. Ranges stay encoded as
/// in an ACK frame, and were validated when the frame was parsed.
#[derive(Clone, Copy)]
pub struct SymbolAck<'a> {
    /// The session.
    pub session: u16,
    /// Every symbol below this is held, delivered or no longer wanted.
    pub lower_bound: u64,
    count: u64,
    pairs: &'a [u8],
}

impl<'a> SymbolAck<'a> {
    /// The ranges of symbols held above the bound, ascending and disjoint.
    #[must_use]
    pub const fn ranges(&self) -> SymbolRanges<'a> {
        SymbolRanges { end: self.lower_bound, pairs: Reader::new(self.pairs) }
    }

    pub(super) fn decode(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let session = session(r)?;
        let lower_bound = r.varint()?;
        let count = r.varint()?;
        let rest = r.peek_rest();
        let mut end = lower_bound;
        // Each iteration reads at least two bytes, so a huge count ends with the input.
        for _ in 0..count {
            let (gap, len) = (r.varint()?, r.varint()?);
            if gap == 0 || len == 0 {
                return Err(Malformed("empty gap or range of symbols"));
            }
            // Each of the three values is below 2^62.
            end += gap + len;
            if end > VARINT_MAX {
                return Err(Malformed("symbol range out of range"));
            }
        }
        let pairs = rest.get(..rest.len() - r.remaining()).unwrap_or_default();
        Ok(Self { session, lower_bound, count, pairs })
    }

    pub(super) fn size(&self) -> usize {
        symbol_ack_head_size(self.session, self.lower_bound)
            + varint_size(self.count)
            + self.pairs.len()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_symbol_ack_head(self.session, self.lower_bound, self.count, out);
        out.extend_from_slice(self.pairs);
    }
}

impl PartialEq for SymbolAck<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.session, self.lower_bound) == (other.session, other.lower_bound)
            && self.ranges().eq(other.ranges())
    }
}

impl Eq for SymbolAck<'_> {}

impl std::fmt::Debug for SymbolAck<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SymbolAck")
            .field("session", &self.session)
            .field("lower_bound", &self.lower_bound)
            .field("ranges", &self.ranges())
            .finish()
    }
}

/// The ranges of a [`SymbolAck`].
#[derive(Clone)]
pub struct SymbolRanges<'a> {
    end: u64,
    pairs: Reader<'a>,
}

impl Iterator for SymbolRanges<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let (gap, len) = (self.pairs.varint().ok()?, self.pairs.varint().ok()?);
        let start = self.end.checked_add(gap)?;
        self.end = start.checked_add(len)?;
        Some(start..self.end)
    }
}

impl FusedIterator for SymbolRanges<'_> {}

impl std::fmt::Debug for SymbolRanges<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

fn symbol_ack_head_size(session: u16, lower_bound: u64) -> usize {
    TYPE_SIZE + varint_size(session.into()) + varint_size(lower_bound)
}

fn put_symbol_ack_head(session: u16, lower_bound: u64, count: u64, out: &mut Vec<u8>) {
    put_varint(out, FrameKind::SymbolAck.wire_type());
    for field in [session.into(), lower_bound, count] {
        put_varint(out, field);
    }
}

/// Appends a SYMBOL_ACK of at most `room` bytes and returns its size. `held` are the symbols held.
/// Symbols at or below `lower_bound` are left out. If there is not enough room, the largest ranges are left
/// out as well, because the sender repairs the smallest symbols first. Returns `None` and appends nothing if
/// not even the bound fits.
pub fn encode_symbol_ack(
    session: u16,
    lower_bound: u64,
    held: &RangeSet,
    room: usize,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let mut size = symbol_ack_head_size(session, lower_bound);
    if size + varint_size(0) > room {
        return None;
    }
    let above = held
        .iter()
        .map(|range| range.start.max(lower_bound.saturating_add(1))..range.end)
        .filter(|range| !range.is_empty());
    let (mut count, mut end) = (0, lower_bound);
    for range in above.clone() {
        let larger = size + varint_size(range.start - end) + varint_size(range.end - range.start);
        if larger + varint_size(count + 1) > room {
            break;
        }
        (size, count, end) = (larger, count + 1, range.end);
    }

    let start = out.len();
    put_symbol_ack_head(session, lower_bound, count, out);
    end = lower_bound;
    for range in above.take(count as usize) {
        put_varint(out, range.start - end);
        put_varint(out, range.end - range.start);
        end = range.end;
    }
    debug_assert_eq!(out.len() - start, size + varint_size(count));
    Some(out.len() - start)
}
