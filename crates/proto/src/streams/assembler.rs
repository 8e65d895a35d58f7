//! Reassembly of a stream: which bytes were received, and which were delivered.

use super::block::{Fresh, Needs, ReceiveBlock, bounds};
use crate::wire::range_set::RangeSet;
use bytes::BytesMut;
use std::collections::VecDeque;
use std::ops::Range;

/// Number of gaps that any stream may have. More gaps are accepted only in proportion to the bytes received,
/// see [`BYTES_PER_GAP`].
pub(super) const MAX_GAPS: u64 = 1024;
/// Beyond [`MAX_GAPS`], the stream may have one more gap per this many undelivered bytes, counted up to the
/// highest byte received. Lost or late packets leave gaps at least a packet apart, whatever the size of the
/// window. Only a peer that fragments its data on purpose exceeds this limit.
pub(super) const BYTES_PER_GAP: u64 = 128;
/// Number of undelivered stretches that a block may have storage for. There is more than one stretch only if
/// the application takes bytes out of stream order.
pub(super) const MAX_PIECES: usize = 1024;

/// The peer fragments its data more than loss or reordering can explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyGaps;

/// Keeps a stream's bytes until they are delivered. The bytes are copied once, into the blocks from which
/// they are later handed out.
///
/// Any received range can be delivered, once. [`Delivery`](super::delivery::Delivery) decides which range is
/// next. If bytes are received twice, the first copy is kept.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    /// Blocks with undelivered bytes: ascending, disjoint, and never below `read`.
    blocks: VecDeque<ReceiveBlock>,
    /// The lowest offset that was not delivered.
    read: u64,
    /// The ranges delivered above `read`; empty while bytes are delivered in stream order.
    ahead: RangeSet,
    /// Number of bytes delivered.
    delivered: u64,
    /// End of the highest byte received.
    end: u64,
    /// Number of received ranges in all blocks.
    fragments: u64,
    /// Bytes of storage that the blocks can have.
    storage: usize,
}

impl Assembler {
    /// The lowest offset that was not delivered yet.
    pub(crate) fn read_offset(&self) -> u64 {
        self.read
    }

    /// Gives back the storage that is kept for the next bytes, unless bytes are held.
    pub(crate) fn rest(&mut self) {
        if self.delivered == self.end {
            // The blocks know no more than `read` does.
            self.blocks = VecDeque::new();
            (self.fragments, self.storage) = (0, 0);
        }
    }

    /// Inserts `data`, which starts at stream offset `offset`. `last` is the highest offset at which the
    /// stream may end, as far as is known. The ranges that were not received before are added to `fresh`.
    ///
    /// # Errors
    /// The data leaves more gaps than [`MAX_GAPS`], [`BYTES_PER_GAP`] and [`MAX_PIECES`] allow.
    pub(crate) fn insert(
        &mut self,
        offset: u64,
        data: &[u8],
        last: u64,
        fresh: &mut Fresh,
    ) -> Result<(), TooManyGaps> {
        let end = offset + data.len() as u64;
        let needs = Needs { last, at_a_time: data.len() };
        let mut at = offset.max(self.read);
        while at < end {
            let Some(part) = self.undelivered(at..end) else { break };
            at = part.end;
            let bytes = (part.start - offset) as usize..(part.end - offset) as usize;
            self.store(part.start, data.get(bytes).unwrap_or_default(), needs, fresh)?;
        }
        self.end = self.end.max(end);
        let undelivered = self.end - self.delivered;
        let allowed = MAX_GAPS + self.blocks.len() as u64 + undelivered / BYTES_PER_GAP;
        let fragments = self.fragments + self.ahead.len() as u64;
        if fragments > allowed { Err(TooManyGaps) } else { Ok(()) }
    }

    /// The first part of `range` that was not delivered. `range` must begin above the front.
    fn undelivered(&self, range: Range<u64>) -> Option<Range<u64>> {
        if self.ahead.is_empty() { Some(range) } else { self.ahead.gaps(range).next() }
    }

    /// Stores bytes, none of which were delivered.
    fn store(
        &mut self,
        mut offset: u64,
        mut data: &[u8],
        needs: Needs,
        fresh: &mut Fresh,
    ) -> Result<(), TooManyGaps> {
        while !data.is_empty() {
            let within = bounds(offset);
            let room = usize::try_from(within.end - offset).unwrap_or(usize::MAX);
            let (head, rest) = data.split_at(room.min(data.len()));
            let index = self.make_block(within.end);
            let Some(block) = self.blocks.get_mut(index) else { break };
            let before = block.fragments();
            let stretch = || self.ahead.gap_of(offset, within.start.max(self.read)..within.end);
            block.fill(offset, head, stretch, needs, fresh);
            self.fragments = self.fragments + block.fragments() - before;
            if block.pieces() > MAX_PIECES {
                return Err(TooManyGaps);
            }
            offset += head.len() as u64;
            data = rest;
        }
        Ok(())
    }

    /// Finds or creates the block that ends at `end`; returns the index of the block.
    fn make_block(&mut self, end: u64) -> usize {
        // Data usually belongs at the end of the last block.
        match self.blocks.back() {
            Some(back) if back.end() == end => return self.blocks.len() - 1,
            Some(back) if back.end() < end => self.close_last(),
            _ => {}
        }
        let index = self.blocks.partition_point(|block| block.end() < end);
        if self.blocks.get(index).is_none_or(|block| block.end() != end) {
            let block = ReceiveBlock::new(end);
            self.storage += block.size();
            // Most streams end within their first block, so there is room for no more at first.
            self.blocks.reserve_exact(usize::from(self.blocks.capacity() == 0));
            self.blocks.insert(index, block);
        }
        index
    }

    /// Frees storage that the last block reserves beyond its highest byte, when data continues in
    /// another block.
    fn close_last(&mut self) {
        let Some(index) = self.blocks.len().checked_sub(1) else { return };
        let Some(block) = self.blocks.get_mut(index) else { return };
        let piece = block.pieces().saturating_sub(1);
        block.settle(piece, |piece| piece.start == self.read);
        self.drop_if_empty(index);
    }

    fn drop_if_empty(&mut self, index: usize) {
        if let Some(block) = self.blocks.get(index).filter(|block| block.pieces() == 0) {
            self.fragments -= block.fragments();
            self.storage -= block.size();
            self.blocks.remove(index);
        }
    }

    /// Index of the block that holds `offset`, or of where that block would be.
    fn position(&self, offset: u64) -> usize {
        if offset == self.read { 0 } else { self.blocks.partition_point(|b| b.end() <= offset) }
    }

    /// The received, undelivered bytes around `offset` that are contiguous in memory.
    pub(crate) fn range_of(&self, offset: u64) -> Option<Range<u64>> {
        self.blocks.get(self.position(offset))?.range_of(offset)
    }

    /// Received, undelivered ranges in ascending order, split where they are not contiguous in
    /// memory.
    pub(crate) fn held(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.blocks.iter().flat_map(ReceiveBlock::held)
    }

    /// Whether `range` can be delivered: it is not empty, and all of it is held and contiguous in
    /// memory.
    pub(crate) fn is_deliverable(&self, range: &Range<u64>) -> bool {
        let together = self.range_of(range.start);
        !range.is_empty() && together.is_some_and(|together| range.end <= together.end)
    }

    /// Delivers `range` without a copy. It must be [deliverable](Self::is_deliverable).
    pub(crate) fn take(&mut self, range: Range<u64>) -> Option<BytesMut> {
        let index = self.position(range.start);
        let (bytes, left) = self.blocks.get_mut(index)?.take(&range)?;
        self.advance(range, index);
        let (read, end) = (self.read, self.end);
        // The next bytes to arrive are mostly the first missing ones and those after the highest.
        let keep = |piece: &Range<u64>| piece.start == read || piece.end > end;
        let block = self.blocks.get_mut(index)?;
        // In reverse order, because settling a piece may remove it.
        left.rev().for_each(|piece| block.settle(piece, keep));
        self.drop_if_empty(index);
        Some(bytes)
    }

    /// The next range in stream order.
    #[inline]
    pub(super) fn front(&self) -> Option<Range<u64>> {
        self.blocks.front()?.front(self.read)
    }

    /// Delivers at most `max` of the next bytes in stream order. Does the same as [`take`](Self::take), but
    /// faster.
    #[inline]
    pub(super) fn take_front(&mut self, max: usize) -> Option<BytesMut> {
        let block = self.blocks.front_mut()?;
        let (bytes, ended) = block.take_front(self.read, max)?;
        self.advance_front(bytes.len() as u64);
        if ended {
            self.drop_if_empty(0);
        }
        Some(bytes)
    }

    /// Copies the next bytes in stream order to the beginning of `out`, as many as lie together; returns how many
    /// they are. Their storage is used again, as it is nowhere else in use.
    #[inline]
    pub(super) fn read_front(&mut self, out: &mut [u8]) -> Option<usize> {
        let block = self.blocks.front_mut()?;
        let (len, ended) = block.read_front(self.read, out)?;
        self.advance_front(len as u64);
        if ended {
            self.drop_if_empty(0);
        }
        Some(len)
    }

    /// Records that `range`, in block `index`, was delivered.
    fn advance(&mut self, range: Range<u64>, index: usize) {
        if range.start == self.read {
            return self.advance_front(range.end - range.start);
        }
        self.delivered += range.end - range.start;
        if let Some(block) = self.blocks.get_mut(index) {
            let before = block.fragments();
            block.forget(range.clone());
            self.fragments = self.fragments + block.fragments() - before;
        }
        self.ahead.insert(range);
    }

    /// Records that `len` bytes were delivered at the front.
    #[inline]
    fn advance_front(&mut self, len: u64) {
        self.delivered += len;
        self.read += len;
        if let Some(next) = self.ahead.first().filter(|next| next.start == self.read) {
            self.read = next.end;
            self.ahead.remove(next);
        }
    }

    /// Whether bytes were delivered although bytes before them were not.
    pub(super) fn has_holes(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// The first received, undelivered bytes below `end` that are contiguous in memory.
    pub(super) fn first_below(&self, end: u64) -> Option<Range<u64>> {
        let range = self.front().or_else(|| self.held().next())?;
        let range = range.start..range.end.min(end);
        (!range.is_empty()).then_some(range)
    }

    /// Number of bytes delivered.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Forgets all bytes from offset `end` on, delivered or not; no bytes beyond `end` may be inserted later.
    /// Returns how many bytes beyond `end` had been received.
    pub(super) fn truncate(&mut self, end: u64) -> u64 {
        let delivered = self.ahead.remove(end..u64::MAX) + self.read.saturating_sub(end);
        let mut held = 0;
        while let Some(last) = self.blocks.back_mut().filter(|last| last.end() > end) {
            let before = last.fragments();
            held += last.truncate(end);
            self.fragments = self.fragments + last.fragments() - before;
            if last.pieces() > 0 {
                break;
            }
            self.drop_if_empty(self.blocks.len() - 1);
        }
        self.delivered -= delivered;
        self.read = self.read.min(end);
        self.end = self.end.min(end);
        held + delivered
    }

    /// Discards all undelivered bytes, because they will not be read.
    pub(super) fn discard(&mut self) {
        self.blocks = VecDeque::new();
        self.ahead.clear();
        self.fragments = 0;
        self.storage = 0;
    }

    /// An upper bound of the bytes of storage held. Unlike [`allocated`](Self::allocated), this visits no
    /// block.
    pub(super) fn storage(&self) -> usize {
        self.storage
    }

    /// Bytes of storage held.
    pub(super) fn allocated(&self) -> usize {
        self.blocks.iter().map(ReceiveBlock::allocated).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::block::MAX_BLOCK;
    use proptest::prelude::*;

    const NO_END: u64 = u64::MAX;

    /// Byte `offset` of the test stream.
    fn byte(offset: u64) -> u8 {
        (offset ^ (offset >> 8)).wrapping_mul(31) as u8
    }

    fn bytes(range: Range<u64>) -> Vec<u8> {
        range.map(byte).collect()
    }

    impl Assembler {
        fn read(&mut self, max: usize) -> Vec<u8> {
            let mut out = Vec::new();
            while let Some(chunk) = self.take_front(max - out.len()) {
                out.extend_from_slice(&chunk);
            }
            out
        }

        /// Bytes of storage, including allocations that are kept alive only in part.
        fn pinned(&self) -> u64 {
            self.blocks.iter().map(|block| block.pinned() as u64).sum()
        }

        /// Delivers all held bytes.
        fn drain(&mut self) {
            for range in self.held().collect::<Vec<_>>() {
                self.take(range).unwrap();
            }
        }
    }

    /// Inserts bytes of the test stream; returns how many were new.
    fn insert(assembler: &mut Assembler, range: Range<u64>) -> Result<u64, TooManyGaps> {
        let fresh = insert_bytes(assembler, range.start, &bytes(range))?;
        Ok(fresh.iter().map(|range| range.end - range.start).sum())
    }

    fn insert_bytes(a: &mut Assembler, offset: u64, data: &[u8]) -> Result<Fresh, TooManyGaps> {
        let mut fresh = Fresh::new();
        a.insert(offset, data, NO_END, &mut fresh).map(|()| fresh)
    }

    #[test]
    fn a_chunk_is_a_view_of_the_block_and_no_copy() {
        let mut assembler = Assembler::default();
        insert_bytes(&mut assembler, 0, &bytes(0..2048)).unwrap();
        assert_eq!(assembler.read(2048), bytes(0..2048));
        insert_bytes(&mut assembler, 2048, &bytes(2048..2648)).unwrap();
        let first = assembler.take_front(100).unwrap();
        let second = assembler.take_front(usize::MAX).unwrap();
        assert_eq!(first.as_ptr().wrapping_add(100), second.as_ptr());
        // The rest of the block is still used after its beginning was handed out.
        insert_bytes(&mut assembler, 2648, &bytes(2648..4000)).unwrap();
        let third = assembler.take_front(usize::MAX).unwrap();
        assert_eq!(second.as_ptr().wrapping_add(500), third.as_ptr());
        assert_eq!([first, second, third].concat(), bytes(2048..4000));
    }

    #[test]
    fn the_first_copy_wins() {
        let mut assembler = Assembler::default();
        insert_bytes(&mut assembler, 2, b"cd").unwrap();
        let fresh = insert_bytes(&mut assembler, 0, b"ABCDEF").unwrap();
        assert_eq!(fresh[..], [0..2, 4..6]);
        assert!(insert_bytes(&mut assembler, 0, b"xxxxxx").unwrap().is_empty());
        assert_eq!(assembler.take_front(4).unwrap(), b"ABcd"[..]);
        assert_eq!(insert_bytes(&mut assembler, 0, b"yyyyyyg").unwrap().first(), Some(&(6..7)));
        assert_eq!(assembler.read(8), b"EFg");
    }

    #[test]
    fn a_stream_that_rests_holds_nothing_and_goes_on() {
        for at in [20, MAX_BLOCK - 7, MAX_BLOCK, 3 * MAX_BLOCK + 5] {
            let mut assembler = Assembler::default();
            insert(&mut assembler, 0..at).unwrap();
            assert_eq!(assembler.read(usize::MAX), bytes(0..at));
            assembler.rest();
            let held = (assembler.blocks.capacity(), assembler.storage(), assembler.fragments);
            assert_eq!(held, (0, 0, 0));
            // Only what is new arrives, whether or not some of it comes again.
            assert_eq!(insert(&mut assembler, at - 9..at).unwrap(), 0);
            assert_eq!(insert(&mut assembler, at - 9..at + 9).unwrap(), 9);
            assert_eq!(assembler.read(usize::MAX), bytes(at..at + 9));
        }
    }

    #[test]
    fn bytes_that_are_held_stay_in_silence() {
        let mut assembler = Assembler::default();
        insert(&mut assembler, 0..10).unwrap();
        insert(&mut assembler, 15..20).unwrap();
        assembler.rest();
        assert_eq!(assembler.read(usize::MAX), bytes(0..10));
        assembler.rest();
        assert_eq!(insert(&mut assembler, 5..20).unwrap(), 5);
        assert_eq!(assembler.read(usize::MAX), bytes(10..20));
    }

    #[test]
    fn a_short_stream_takes_no_more_than_its_length() {
        let mut assembler = Assembler::default();
        assembler.insert(0, &bytes(0..20), 20, &mut Fresh::new()).unwrap();
        assert_eq!(assembler.allocated(), 20);
    }

    #[test]
    fn few_bytes_at_a_time_take_little_storage() {
        const LEN: usize = 20;
        let mut assembler = Assembler::default();
        for start in (0..4 * MAX_BLOCK).step_by(LEN) {
            insert(&mut assembler, start..start + LEN as u64).unwrap();
            let (mut out, mut done) = ([0; LEN], 0);
            while done < LEN {
                done += assembler.read_front(&mut out[done..]).unwrap();
            }
            assert_eq!(out[..], bytes(start..start + LEN as u64));
            let most = if start == 0 { 64 } else { 64 * LEN };
            assert!(assembler.allocated() <= most, "{} at {start}", assembler.allocated());
        }
    }

    #[test]
    fn sparse_bytes_cost_no_more_than_the_window_and_a_block() {
        let mut assembler = Assembler::default();
        let window = 64 * MAX_BLOCK;
        for offset in (1..window).step_by(MAX_BLOCK as usize) {
            insert_bytes(&mut assembler, offset, &[0]).unwrap();
        }
        assert!(assembler.allocated() as u64 <= window + MAX_BLOCK);
    }

    #[test]
    fn confetti_is_refused() {
        let mut assembler = Assembler::default();
        let mut accepted: u64 = 0;
        while insert_bytes(&mut assembler, accepted * 2 + 1, &[0]).is_ok() {
            accepted += 1;
        }
        // Gaps are two bytes apart, so each of them earns 1/64 of a further gap.
        assert!((MAX_GAPS..MAX_GAPS + MAX_GAPS / 32).contains(&accepted), "{accepted}");
    }

    #[test]
    fn every_second_packet_of_a_large_window_may_be_missing() {
        let mut assembler = Assembler::default();
        let (packet, window) = (1200, 24 << 20);
        for start in (0..window).step_by(2 * packet) {
            let start = (start + packet) as u64;
            insert_bytes(&mut assembler, start, &bytes(start..start + packet as u64)).unwrap();
        }
        for start in (0..window).step_by(2 * packet) {
            let start = start as u64;
            insert_bytes(&mut assembler, start, &bytes(start..start + packet as u64)).unwrap();
        }
        let mut at = 0;
        while let Some(chunk) = assembler.take_front(usize::MAX) {
            assert!(chunk.iter().zip(at..).all(|(&b, offset)| b == byte(offset)));
            at += chunk.len() as u64;
        }
        assert!(at >= window as u64);
        assert_eq!(assembler.fragments, assembler.blocks.len() as u64);
    }

    #[test]
    fn one_byte_frames_in_reverse_survive_up_to_the_bound() {
        let mut assembler = Assembler::default();
        for offset in (0..200_000).rev() {
            assert_eq!(insert(&mut assembler, offset..offset + 1), Ok(1));
        }
        assert_eq!(assembler.read(200_001), bytes(0..200_000));
        // Only the block in which the stream ended is left.
        assert!(assembler.allocated() <= MAX_BLOCK as usize);
    }

    #[test]
    fn pieces_out_of_the_middle_are_views_too() {
        let mut assembler = Assembler::default();
        insert(&mut assembler, 2048..4096).unwrap();
        let middle = assembler.take(2600..3000).unwrap();
        let end = assembler.take(3600..4096).unwrap();
        let start = assembler.take(2048..2600).unwrap();
        let rest = assembler.take(3000..3600).unwrap();
        assert_eq!(start.as_ptr().wrapping_add(3000 - 2048), rest.as_ptr());
        assert_eq!(start.as_ptr().wrapping_add(2600 - 2048), middle.as_ptr());
        assert_eq!([start, middle, rest, end].concat(), bytes(2048..4096));
        assert_eq!((assembler.read_offset(), assembler.blocks.len()), (0, 0));
        insert(&mut assembler, 0..4096).unwrap();
        assert_eq!(assembler.read(9000), bytes(0..2048));
        assert_eq!((assembler.read_offset(), assembler.allocated()), (4096, 0));
    }

    #[test]
    fn only_what_is_held_and_lies_together_can_be_delivered() {
        let mut assembler = Assembler::default();
        insert(&mut assembler, 100..1100).unwrap();
        for range in [0..1, 99..101, 100..100, 1000..1025, 1024..1101, 1100..1101, 5000..6000] {
            assert!(!assembler.is_deliverable(&range), "{range:?}");
        }
        assert!(assembler.is_deliverable(&(200..300)));
        assert_eq!(assembler.take(200..300).unwrap(), bytes(200..300)[..]);
        for range in [200..201, 199..201, 299..301, 150..350] {
            assert!(!assembler.is_deliverable(&range), "{range:?}");
        }
        assert_eq!(assembler.held().collect::<Vec<_>>(), [100..200, 300..1024, 1024..1100]);
    }

    #[test]
    fn a_packet_after_the_other_stays_in_one_allocation() {
        let mut assembler = Assembler::default();
        insert(&mut assembler, 0..MAX_BLOCK).unwrap();
        // The first packet of the next block is missing.
        let mut at = MAX_BLOCK + 1200;
        insert(&mut assembler, at..at + 1000).unwrap();
        assembler.drain();
        let first = insert(&mut assembler, at + 1000..at + 2000).map(|_| assembler.pinned());
        while at + 3000 < 2 * MAX_BLOCK {
            at += 1000;
            assembler.drain();
            assert_eq!(insert(&mut assembler, at + 1000..at + 2000), Ok(1000));
            assert_eq!(Ok(assembler.pinned()), first);
        }
    }

    #[test]
    fn what_is_undelivered_here_and_there_keeps_little_storage() {
        let mut assembler = Assembler::default();
        for start in (0..64 * MAX_BLOCK).step_by(MAX_BLOCK as usize) {
            insert(&mut assembler, start..start + MAX_BLOCK).unwrap();
            // One byte of each block is left, at a different place each time.
            let left = start + 1 + start / 64;
            let held: Vec<_> = assembler.held().filter(|range| range.start >= start).collect();
            for range in held {
                let cut = left.clamp(range.start, range.end);
                for part in [range.start..cut, (left + 1).clamp(range.start, range.end)..range.end]
                {
                    if !part.is_empty() {
                        assembler.take(part).unwrap();
                    }
                }
            }
        }
        assert_eq!(assembler.held().count(), 64);
        // The first and the last byte may stay in their blocks.
        assert!(assembler.pinned() <= 64 + 2 * MAX_BLOCK, "{}", assembler.pinned());
    }

    #[test]
    fn gaps_that_everything_else_was_delivered_around_cost_no_storage() {
        let mut assembler = Assembler::default();
        for start in (0..1024 * MAX_BLOCK).step_by(MAX_BLOCK as usize) {
            // The first byte of each block is missing.
            insert(&mut assembler, start + 1..start + MAX_BLOCK).unwrap();
            assembler.drain();
            assert!(assembler.pinned() <= 2 * MAX_BLOCK && assembler.blocks.len() <= 2);
        }
        for start in (0..1024 * MAX_BLOCK).step_by(MAX_BLOCK as usize) {
            assert_eq!(insert(&mut assembler, start..start + MAX_BLOCK), Ok(1));
        }
        assert!(assembler.pinned() <= 1024 + MAX_BLOCK);
        assembler.drain();
        assert_eq!((assembler.ahead.len(), assembler.blocks.len()), (0, 0));
        assert_eq!(assembler.read_offset(), 1024 * MAX_BLOCK);
    }

    #[test]
    fn confetti_is_refused_although_it_is_delivered() {
        let mut assembler = Assembler::default();
        let mut accepted: u64 = 0;
        while insert(&mut assembler, accepted * 2 + 1..accepted * 2 + 2).is_ok() {
            assembler.drain();
            accepted += 1;
        }
        assert!((MAX_GAPS - 2..MAX_GAPS + MAX_GAPS / 32).contains(&accepted), "{accepted}");
    }

    #[test]
    fn confetti_between_delivered_bytes_is_refused() {
        let mut assembler = Assembler::default();
        // A large gap pays for many small ones.
        insert(&mut assembler, (1 << 24)..(1 << 24) + 1).unwrap();
        let offsets = (3 * MAX_BLOCK..4 * MAX_BLOCK).step_by(4);
        for offset in offsets.clone() {
            insert(&mut assembler, offset..offset + 1).unwrap();
            assembler.take(offset..offset + 1).unwrap();
        }
        let filled = offsets.take_while(|at| insert(&mut assembler, at + 2..at + 3).is_ok());
        assert_eq!(filled.count(), MAX_PIECES);
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Byte {
        Missing,
        Held(u8),
        Delivered,
    }

    /// Compares the ranges that `assembler` reports as held with a model.
    fn check(assembler: &Assembler, model: &[Byte]) -> Result<(), TestCaseError> {
        let is_held = |byte: &Byte| matches!(byte, Byte::Held(_));
        let undelivered = model.iter().position(|byte| *byte != Byte::Delivered);
        prop_assert_eq!(assembler.read_offset(), undelivered.unwrap_or(model.len()) as u64);
        let mut held = 0;
        for range in assembler.held() {
            prop_assert!(model[range.start as usize..range.end as usize].iter().all(is_held));
            prop_assert_eq!(assembler.range_of(range.start), Some(range.clone()));
            prop_assert_eq!(assembler.range_of(range.end - 1), Some(range.clone()));
            held += range.end - range.start;
        }
        prop_assert_eq!(held, model.iter().filter(|byte| is_held(byte)).count() as u64);
        let fragments: u64 = assembler.blocks.iter().map(ReceiveBlock::fragments).sum();
        prop_assert_eq!(assembler.fragments, fragments);
        let delivered = model.iter().filter(|byte| **byte == Byte::Delivered).count();
        prop_assert_eq!(assembler.delivered, delivered as u64);
        Ok(())
    }

    /// Inserts the same bytes into the model and into `assembler`, and compares which bytes are new.
    fn insert_both(
        assembler: &mut Assembler,
        model: &mut [Byte],
        offset: u64,
        data: &[u8],
    ) -> Result<(), TestCaseError> {
        let mut new = Vec::new();
        for (at, &b) in (offset as usize..).zip(data) {
            if model[at] == Byte::Missing {
                model[at] = Byte::Held(b);
                new.push(at as u64);
            }
        }
        let fresh = insert_bytes(assembler, offset, data).unwrap();
        prop_assert_eq!(fresh.into_iter().flatten().collect::<Vec<_>>(), new);
        Ok(())
    }

    fn take_both(
        assembler: &mut Assembler,
        model: &mut [Byte],
        range: Range<u64>,
    ) -> Result<(), TestCaseError> {
        let taken = match range.start == assembler.read_offset() && range.end.is_multiple_of(2) {
            true => assembler.take_front((range.end - range.start) as usize).unwrap(),
            false => assembler.take(range.clone()).unwrap(),
        };
        prop_assert_eq!(taken.len() as u64, range.end - range.start);
        for (byte, b) in model[range.start as usize..range.end as usize].iter_mut().zip(taken) {
            prop_assert_eq!(std::mem::replace(byte, Byte::Delivered), Byte::Held(b));
        }
        Ok(())
    }

    proptest! {
        /// Delivers from anywhere, or only in stream order.
        #[test]
        fn agrees_with_a_vector_of_bytes(
            ops in prop::collection::vec(
                (0..4u8, prop_oneof![0..3000u64, 30_000..40_000u64, 0..80_000u64], 0..2500u64),
                1..80,
            ),
            in_order: bool,
        ) {
            let mut assembler = Assembler::default();
            let mut model = vec![Byte::Missing; 90_000];
            for (salt, (op, offset, len)) in ops.into_iter().enumerate() {
                if op < 2 {
                    // Every write has its own contents, which shows the write whose byte was kept.
                    let data: Vec<u8> = (offset..offset + len)
                        .map(|at| byte(at).wrapping_add(salt as u8))
                        .collect();
                    insert_both(&mut assembler, &mut model, offset, &data)?;
                } else {
                    prop_assert_eq!(assembler.front(), assembler.range_of(assembler.read_offset()));
                    let next = match in_order {
                        true => assembler.front(),
                        false => assembler.held().min_by_key(|held| held.start.abs_diff(offset)),
                    };
                    let Some(held) = next else { continue };
                    let skip = if in_order || op == 2 { 0 } else { offset % (held.end - held.start) };
                    let start = held.start + skip;
                    let end = held.end.min(start + len.max(1));
                    take_both(&mut assembler, &mut model, start..end)?;
                }
                check(&assembler, &model)?;
            }
        }
    }
}
