//! ACK frames (RFC 9000 section 19.3).

use super::{FrameKind, Malformed};
use crate::ecn::EcnCounts;
use crate::wire::coding::{Reader, put_varint, varint_size};
use std::iter::FusedIterator;
use std::ops::Range;

impl EcnCounts {
    fn size(&self) -> usize {
        varint_size(self.ect0) + varint_size(self.ect1) + varint_size(self.ce)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for count in [self.ect0, self.ect1, self.ce] {
            put_varint(out, count);
        }
    }
}

/// A received ACK frame. Its ranges stay encoded and are decoded during iteration. Decoding cannot fail,
/// because the ranges were validated when the frame was parsed.
#[derive(Clone, Copy)]
pub struct AckFrame<'a> {
    /// The largest packet number that the frame acknowledges.
    pub largest: u64,
    /// The ACK Delay field: microseconds shifted right by the sender's `ack_delay_exponent`.
    pub delay: u64,
    /// ECN counts, if the frame has them.
    pub ecn: Option<EcnCounts>,
    /// Number of packets acknowledged directly below `largest`.
    first_range: u64,
    /// Number of pairs in `pairs`.
    count: u64,
    /// Gap and ACK Range Length pairs, as received.
    pairs: &'a [u8],
}

impl<'a> AckFrame<'a> {
    /// The ranges of acknowledged packet numbers, in descending order. There is at most one range for every
    /// two bytes of the frame, plus one. Each may be as wide as the number space, so iterate over the sent
    /// packets and not over the values.
    #[must_use]
    pub fn ranges(&self) -> AckRanges<'a> {
        AckRanges {
            next: Some(self.largest - self.first_range..self.largest + 1),
            pairs: Reader::new(self.pairs),
        }
    }

    pub(super) fn decode(r: &mut Reader<'a>, with_ecn: bool) -> Result<Self, Malformed> {
        let largest = r.varint()?;
        let delay = r.varint()?;
        let count = r.varint()?;
        let first_range = r.varint()?;
        let mut smallest =
            largest.checked_sub(first_range).ok_or(Malformed("ACK range below zero"))?;
        let rest = r.peek_rest();
        // Each iteration reads at least two bytes, so a huge count ends with the input.
        for _ in 0..count {
            let (gap, len) = (r.varint()?, r.varint()?);
            smallest = smallest
                .checked_sub(gap + 2)
                .and_then(|largest| largest.checked_sub(len))
                .ok_or(Malformed("ACK range below zero"))?;
        }
        let pairs = rest.get(..rest.len() - r.remaining()).unwrap_or_default();
        let ecn = if with_ecn {
            Some(EcnCounts { ect0: r.varint()?, ect1: r.varint()?, ce: r.varint()? })
        } else {
            None
        };
        Ok(Self { largest, delay, ecn, first_range, count, pairs })
    }

    pub(super) fn size(&self) -> usize {
        let head = [self.largest, self.delay, self.count, self.first_range];
        1 + head.into_iter().map(varint_size).sum::<usize>()
            + self.pairs.len()
            + self.ecn.map_or(0, |ecn| ecn.size())
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, ack_type(self.ecn.as_ref()));
        for field in [self.largest, self.delay, self.count, self.first_range] {
            put_varint(out, field);
        }
        out.extend_from_slice(self.pairs);
        if let Some(ecn) = self.ecn {
            ecn.encode(out);
        }
    }
}

impl PartialEq for AckFrame<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.delay == other.delay && self.ecn == other.ecn && self.ranges().eq(other.ranges())
    }
}

impl Eq for AckFrame<'_> {}

impl std::fmt::Debug for AckFrame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AckFrame")
            .field("delay", &self.delay)
            .field("ecn", &self.ecn)
            .field("ranges", &self.ranges())
            .finish()
    }
}

/// The acknowledged ranges of an [`AckFrame`], descending and disjoint.
#[derive(Clone)]
pub struct AckRanges<'a> {
    next: Option<Range<u64>>,
    pairs: Reader<'a>,
}

impl AckRanges<'_> {
    fn below(&mut self, smallest: u64) -> Option<Range<u64>> {
        let (gap, len) = (self.pairs.varint().ok()?, self.pairs.varint().ok()?);
        let largest = smallest.checked_sub(gap + 2)?;
        Some(largest.checked_sub(len)?..largest + 1)
    }
}

impl Iterator for AckRanges<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let range = self.next.take()?;
        self.next = self.below(range.start);
        Some(range)
    }
}

impl FusedIterator for AckRanges<'_> {}

impl std::fmt::Debug for AckRanges<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

fn ack_type(ecn: Option<&EcnCounts>) -> u64 {
    FrameKind::Ack.wire_type() | u64::from(ecn.is_some())
}

/// The Gap and ACK Range Length fields of `range` when it follows the range that starts at
/// `smallest`.
fn pair(smallest: u64, range: &Range<u64>) -> (u64, u64) {
    (smallest - range.end - 1, range.end - range.start - 1)
}

/// Appends an ACK frame of at most `room` bytes that reports `received`, and returns its size. If
/// there is not enough room, the smallest packet numbers are left out (RFC 9000 section 13.2.3).
/// Returns `None` and appends nothing if `received` is empty, or if not even its largest range
/// fits.
///
/// `delay` is the ACK Delay field, already shifted by our `ack_delay_exponent`. Packet numbers in
/// `received` are at most 2^62 - 1.
pub fn encode_ack(
    received: impl Iterator<Item = Range<u64>> + Clone,
    delay: u64,
    ecn: Option<&EcnCounts>,
    room: usize,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let mut older = received;
    let first = older.next()?;
    let (largest, first_range) = (first.end - 1, first.end - first.start - 1);
    let mut size = 1
        + [largest, delay, first_range].into_iter().map(varint_size).sum::<usize>()
        + ecn.map_or(0, EcnCounts::size);
    if size + varint_size(0) > room {
        return None;
    }
    let (mut count, mut smallest) = (0, first.start);
    for range in older.clone() {
        let (gap, len) = pair(smallest, &range);
        let larger = size + varint_size(gap) + varint_size(len);
        if larger + varint_size(count + 1) > room {
            break;
        }
        (size, count, smallest) = (larger, count + 1, range.start);
    }

    let start = out.len();
    put_varint(out, ack_type(ecn));
    for field in [largest, delay, count, first_range] {
        put_varint(out, field);
    }
    smallest = first.start;
    for range in older.take(count as usize) {
        let (gap, len) = pair(smallest, &range);
        put_varint(out, gap);
        put_varint(out, len);
        smallest = range.start;
    }
    if let Some(ecn) = ecn {
        ecn.encode(out);
    }
    debug_assert_eq!(out.len() - start, size + varint_size(count));
    Some(out.len() - start)
}
