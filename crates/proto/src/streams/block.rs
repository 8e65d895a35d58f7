//! Storage for the received bytes of one part of a stream.

use crate::wire::range_set::RangeSet;
use crate::work;
use bytes::{Buf, BytesMut};
use smallvec::SmallVec;
use std::ops::Range;

/// Size of the first block. Every further block is as large as all blocks before it together, up to
/// [`MAX_BLOCK`].
const MIN_BLOCK: u64 = 1024;
/// Size of the largest block.
pub(super) const MAX_BLOCK: u64 = 32 * 1024;
/// Bytes of the smallest storage. A stream that has few bytes at a time, such as instructions of HTTP/3, keeps
/// such storage while it has none, and uses it again.
const MIN_STORAGE: usize = 64;
/// New storage has room for at most this many times the bytes that come at a time.
const TIMES: usize = 64;
/// A piece that is left over after its surroundings were delivered keeps the whole allocation alive. If the
/// allocation is more than this many times the size of the piece, the piece is copied out.
const MAX_WASTE: usize = 4;

/// The bounds of the block that holds `offset`. The bounds depend only on `offset`, so blocks never overlap,
/// in whatever order bytes arrive. All blocks of a window together are less than one block larger than the
/// window.
pub(super) fn bounds(offset: u64) -> Range<u64> {
    if offset < MIN_BLOCK {
        0..MIN_BLOCK
    } else if offset < MAX_BLOCK {
        let start = 1 << offset.ilog2();
        start..start * 2
    } else {
        let start = offset & !(MAX_BLOCK - 1);
        start..start + MAX_BLOCK
    }
}

/// Ranges of a frame that were not received before.
pub(crate) type Fresh = SmallVec<[Range<u64>; 2]>;

/// What is known about the storage that received bytes need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    /// The highest offset at which the stream may end.
    pub(super) last: u64,
    /// Bytes that come at a time.
    pub(super) at_a_time: usize,
}

/// A stretch of the stream of which no byte was delivered, with storage for its beginning.
#[derive(Debug)]
struct Stretch {
    /// Stream offset of the first byte of `buf`.
    start: u64,
    /// Stream offset at which the stretch ends.
    end: u64,
    /// The bytes up to the highest received byte; gaps are filled with zeros.
    buf: BytesMut,
    /// Size of the allocation that `buf` is a part of.
    pinned: usize,
}

impl Stretch {
    /// A stretch without storage.
    fn new(stretch: Range<u64>) -> Self {
        Self { start: stretch.start, end: stretch.end, buf: BytesMut::new(), pinned: 0 }
    }

    fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// Stores bytes that were not received before.
    fn write(&mut self, offset: u64, data: &[u8], needs: Needs) {
        let at = (offset - self.start) as usize;
        if at + data.len() > self.buf.capacity() {
            self.grow(at + data.len(), needs);
        }
        match self.buf.get_mut(at..at + data.len()) {
            Some(hole) => hole.copy_from_slice(data),
            None => {
                self.buf.resize(at, 0);
                self.buf.extend_from_slice(data);
            }
        }
    }

    /// Makes room for the first `len` bytes. Storage in which nothing is held is used again, if it suffices. New
    /// storage is as large as all bytes of the stream before it together, but not much larger than what comes at
    /// a time. If that does not suffice, there is room for the whole stretch.
    #[cold]
    fn grow(&mut self, len: usize, needs: Needs) {
        let mut size = self.end.min(needs.last).saturating_sub(self.start) as usize;
        if self.buf.is_empty() {
            if self.buf.try_reclaim(len) {
                return;
            }
            let before = usize::try_from(self.start).unwrap_or(usize::MAX);
            let wanted = before.min(needs.at_a_time.saturating_mul(TIMES));
            size = size.min(wanted.max(MIN_STORAGE)).max(len);
        }
        let mut buf = BytesMut::with_capacity(size);
        buf.extend_from_slice(&self.buf);
        (self.buf, self.pinned) = (buf, size);
    }

    /// Takes the first `len` bytes, with the whole allocation if it has room for no more.
    fn take_front(&mut self, len: usize) -> BytesMut {
        if len == self.buf.capacity() {
            return std::mem::take(&mut self.buf);
        }
        self.buf.split_to(len)
    }

    /// Moves bytes to `out`, which is not longer than what is held.
    fn read(&mut self, out: &mut [u8]) {
        out.copy_from_slice(&self.buf[..out.len()]);
        self.buf.advance(out.len());
    }

    /// Copies the piece out of its allocation if it is only a small part of the allocation.
    fn compact(&mut self) {
        let size = self.buf.capacity();
        if size * MAX_WASTE < self.pinned {
            let mut buf = BytesMut::with_capacity(size);
            buf.extend_from_slice(&self.buf);
            (self.buf, self.pinned) = (buf, size);
        }
    }
}

/// A part of the stream with the bounds given by [`bounds`], and storage for its undelivered bytes.
///
/// Delivering from the middle of a piece splits it into two pieces, which stay where they are in memory.
#[derive(Debug)]
pub(super) struct ReceiveBlock {
    /// Stream offset at which the block ends.
    end: u64,
    /// Received stream offsets, including the bytes delivered in stream order.
    received: RangeSet,
    /// Ascending, and as long as possible: the bytes between two pieces were delivered, or need no storage.
    pieces: SmallVec<[Stretch; 1]>,
}

impl ReceiveBlock {
    /// An empty block that ends at `end`.
    pub(super) fn new(end: u64) -> Self {
        Self { end, received: RangeSet::default(), pieces: SmallVec::new() }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes between the bounds of the block, which is the most that the block stores.
    pub(super) fn size(&self) -> usize {
        let Range { start, end } = bounds(self.end.saturating_sub(1));
        usize::try_from(end - start).unwrap_or(usize::MAX)
    }

    /// Number of ranges of received bytes.
    pub(super) fn fragments(&self) -> u64 {
        self.received.len() as u64
    }

    /// Number of undelivered stretches with storage.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Bytes of storage.
    pub(super) fn allocated(&self) -> usize {
        self.pieces.iter().map(|piece| piece.buf.capacity()).sum()
    }

    /// Bytes of storage, including allocations that pieces keep alive only in part.
    #[cfg(test)]
    pub(super) fn pinned(&self) -> usize {
        self.pieces.iter().map(|piece| piece.pinned).sum()
    }

    /// Index of the first piece that ends after `offset`.
    fn position(&self, offset: u64) -> usize {
        self.pieces.partition_point(|piece| piece.end <= offset)
    }

    /// Copies the new bytes of `data`, none of which was delivered, and adds their ranges to `fresh`.
    /// `stretch` finds the undelivered stretch around `data` within the block.
    pub(super) fn fill(
        &mut self,
        offset: u64,
        data: &[u8],
        stretch: impl FnOnce() -> Range<u64>,
        needs: Needs,
        fresh: &mut Fresh,
    ) {
        let index = self.position(offset);
        if self.pieces.get(index).is_none_or(|piece| piece.start > offset) {
            work::steps(self.pieces.len() - index);
            self.pieces.insert(index, Stretch::new(stretch()));
        }
        let Some(piece) = self.pieces.get_mut(index) else { return };
        let range = offset..offset + data.len() as u64;
        if self.received.append(&range) {
            piece.write(offset, data, needs);
            fresh.push(range);
            return;
        }
        for gap in self.received.gaps(range.clone()) {
            let source = (gap.start - offset) as usize..(gap.end - offset) as usize;
            let Some(source) = data.get(source) else { break };
            piece.write(gap.start, source, needs);
            fresh.push(gap);
        }
        self.received.insert(range);
    }

    /// The received, undelivered bytes around `offset` that are contiguous in memory.
    pub(super) fn range_of(&self, offset: u64) -> Option<Range<u64>> {
        let piece = self.pieces.get(self.position(offset))?;
        let range = self.received.range_of(offset).filter(|_| piece.start <= offset)?;
        Some(range.start.max(piece.start)..range.end.min(piece.end))
    }

    /// Received, undelivered ranges in ascending order.
    pub(super) fn held(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.pieces.iter().flat_map(|piece| self.held_in(piece.range()))
    }

    /// Received ranges within `stretch`.
    fn held_in(&self, stretch: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut at = stretch.start;
        std::iter::from_fn(move || {
            if let Some(gap) = self.received.gaps(at..stretch.end).next()
                && gap.start == at
            {
                at = gap.end;
            }
            let range = at..self.received.range_of(at)?.end.min(stretch.end);
            at = range.end;
            (!range.is_empty()).then_some(range)
        })
    }

    /// Like [`range_of`](Self::range_of), where `offset` is the first undelivered offset of the stream.
    #[inline]
    pub(super) fn front(&self, offset: u64) -> Option<Range<u64>> {
        let piece = self.pieces.first().filter(|piece| piece.start == offset)?;
        Some(offset..self.received.range_of(offset)?.end.min(piece.end))
    }

    /// Like [`take`](Self::take) for the first `max` bytes of [`front`](Self::front). Returns also whether
    /// the piece ends with these bytes, in which case the piece is removed.
    #[inline]
    pub(super) fn take_front(&mut self, offset: u64, max: usize) -> Option<(BytesMut, bool)> {
        let len = self.front_len(offset, max)?;
        let bytes = self.pieces.first_mut()?.take_front(len);
        Some((bytes, self.advance_front(len)))
    }

    /// Copies the first bytes of [`front`](Self::front) to the beginning of `out` and frees them. Returns how many
    /// they are, and whether the piece ends with these bytes, in which case the piece is removed.
    #[inline]
    pub(super) fn read_front(&mut self, offset: u64, out: &mut [u8]) -> Option<(usize, bool)> {
        let len = self.front_len(offset, out.len())?;
        self.pieces.first_mut()?.read(&mut out[..len]);
        Some((len, self.advance_front(len)))
    }

    /// How many of at most `max` bytes are at the front; `None` without any.
    fn front_len(&self, offset: u64, max: usize) -> Option<usize> {
        let front = self.front(offset)?;
        let len = usize::try_from(front.end - offset).map_or(max, |len| len.min(max));
        (len > 0).then_some(len)
    }

    /// The first `len` bytes of the first piece were delivered. Returns whether it ends with them, and was
    /// removed.
    fn advance_front(&mut self, len: usize) -> bool {
        let Some(piece) = self.pieces.first_mut() else { return false };
        piece.start += len as u64;
        let ended = piece.start == piece.end;
        if ended {
            self.pieces.remove(0);
        }
        ended
    }

    /// Takes out `range`, which lies within one [`range_of`](Self::range_of). Returns the bytes and
    /// the indices of the pieces left around them, which must be [settled](Self::settle).
    pub(super) fn take(&mut self, range: &Range<u64>) -> Option<(BytesMut, Range<usize>)> {
        let index = self.position(range.start);
        let piece = self.pieces.get_mut(index)?;
        let before = range.start.checked_sub(piece.start)? as usize;
        let len = (range.end - range.start) as usize;
        if before + len > piece.buf.len() {
            return None;
        }
        if before == 0 {
            piece.start = range.end;
            return Some((piece.buf.split_to(len), index..index + 1));
        }
        let mut rest = piece.buf.split_off(before);
        let bytes = rest.split_to(len);
        let tail = Stretch { start: range.end, end: piece.end, buf: rest, pinned: piece.pinned };
        piece.end = range.start;
        self.pieces.insert(index + 1, tail);
        Some((bytes, index..index + 2))
    }

    /// Forgets that `range` was received.
    pub(super) fn forget(&mut self, range: Range<u64>) {
        self.received.remove(range);
    }

    /// Forgets all bytes from offset `end` on. Returns how many undelivered bytes were among them.
    pub(super) fn truncate(&mut self, end: u64) -> u64 {
        let held = self.held().map(|range| range.end.saturating_sub(range.start.max(end))).sum();
        while let Some(last) = self.pieces.last_mut().filter(|last| last.end > end) {
            if last.start < end {
                last.end = end;
                last.buf.truncate((end - last.start) as usize);
                break;
            }
            self.pieces.pop();
        }
        self.received.remove(end..u64::MAX);
        held
    }

    /// Frees the storage that piece `index` does not need, unless `keep` returns true for its
    /// range.
    pub(super) fn settle(&mut self, index: usize, keep: impl FnOnce(&Range<u64>) -> bool) {
        let Some(piece) = self.pieces.get_mut(index) else { return };
        let range = piece.range();
        if range.is_empty() {
            self.pieces.remove(index);
        } else if !keep(&range) {
            if self.received.gaps(range.clone()).next() == Some(range) {
                self.pieces.remove(index);
            } else {
                piece.compact();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_tile_the_stream() {
        let mut offset = 0;
        while offset < 5 * MAX_BLOCK {
            let block = bounds(offset);
            assert_eq!(block.start, offset);
            assert_eq!(bounds(block.end - 1), block);
            assert!((MIN_BLOCK..=MAX_BLOCK).contains(&(block.end - block.start)));
            offset = block.end;
        }
        let last = bounds(crate::wire::coding::VARINT_MAX);
        assert_eq!(last.end, 1 << 62);
    }

    #[test]
    fn what_is_left_of_a_block_moves_out_when_it_is_small() {
        let mut block = ReceiveBlock::new(MAX_BLOCK);
        let needs = Needs { last: MAX_BLOCK, at_a_time: 1 };
        block.fill(0, &[7; MAX_BLOCK as usize], || 0..MAX_BLOCK, needs, &mut Fresh::new());
        let (bytes, left) = block.take(&(100..MAX_BLOCK)).unwrap();
        assert_eq!((bytes.len() as u64, left), (MAX_BLOCK - 100, 0..2));
        block.settle(1, |_| false);
        assert_eq!((block.pieces(), block.pinned()), (1, MAX_BLOCK as usize));
        block.settle(0, |_| true);
        assert_eq!(block.pinned(), MAX_BLOCK as usize);
        block.settle(0, |_| false);
        assert_eq!((block.pinned(), block.allocated()), (100, 100));
        assert_eq!(block.held().last(), Some(0..100));
        assert_eq!(block.take(&(0..100)).unwrap().0, [7; 100][..]);
    }

    #[test]
    fn a_stretch_in_which_nothing_is_held_has_no_storage() {
        let mut block = ReceiveBlock::new(MAX_BLOCK);
        let needs = Needs { last: MAX_BLOCK, at_a_time: 1 };
        block.fill(500, &[7; 500], || 0..MAX_BLOCK, needs, &mut Fresh::new());
        block.take(&(500..1000)).unwrap();
        block.settle(1, |_| true);
        assert_eq!(block.pieces(), 2);
        block.settle(1, |_| false);
        block.settle(0, |_| false);
        assert_eq!((block.pieces(), block.held().count()), (0, 0));
    }

    #[test]
    fn storage_is_used_again_once_its_bytes_were_copied_out() {
        let mut block = ReceiveBlock::new(MIN_BLOCK);
        let needs = Needs { last: u64::MAX, at_a_time: 20 };
        let mut addresses = Vec::new();
        for start in (0..1000).step_by(20) {
            block.fill(start, &[7; 20], || 0..MIN_BLOCK, needs, &mut Fresh::new());
            addresses.push(block.pieces[0].buf.as_ptr().addr());
            assert_eq!(block.read_front(start, &mut [0; 20]), Some((20, false)));
        }
        let (first, last) = (addresses.iter().min().unwrap(), addresses.iter().max().unwrap());
        assert!(last - first < MIN_STORAGE);
    }
}
