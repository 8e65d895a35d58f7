//! Reassembly of a stream's bytes.

use crate::wire::range_set::RangeSet;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::ops::Range;

/// Gaps that any stream may have. More are accepted only if received bytes pay for them, see
/// [`BYTES_PER_GAP`].
pub(super) const MAX_GAPS: u64 = 1024;
/// Beyond [`MAX_GAPS`], the stream may have one more gap for each so many bytes between what was
/// read and the highest byte received. Packets that are lost or late leave gaps a packet apart, in
/// windows of any size; only a peer that cuts its data to confetti on purpose gets past this.
pub(super) const BYTES_PER_GAP: u64 = 128;
/// The first block; every further one is as large as all before it, up to [`MAX_BLOCK`].
const MIN_BLOCK: u64 = 1024;
/// The largest block.
const MAX_BLOCK: u64 = 32 * 1024;

/// The peer fragments its data more than any loss or reordering explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyGaps;

/// The block that holds `offset`. Borders depend on nothing else, so that blocks never overlap
/// whatever comes first, and all blocks of a window together exceed it by less than one.
fn block_bounds(offset: u64) -> Range<u64> {
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

/// A stretch of the stream with storage for all of it.
#[derive(Debug)]
struct Block {
    /// Stream offset of the first byte of `buf`.
    start: u64,
    /// Stream offset at which the block ends.
    end: u64,
    /// Bytes up to the highest received one; those of gaps are zero. Never grows beyond the
    /// capacity that it was made with.
    buf: BytesMut,
    /// Received stream offsets.
    filled: RangeSet,
}

impl Block {
    /// Copies what is new of `data`; returns how many bytes that was.
    fn fill(&mut self, offset: u64, data: &[u8]) -> u64 {
        let range = offset..offset + data.len() as u64;
        for gap in self.filled.gaps(range.clone()) {
            let source = (gap.start - offset) as usize..(gap.end - offset) as usize;
            let Some(source) = data.get(source) else {
                break;
            };
            let at = (gap.start - self.start) as usize;
            match self.buf.get_mut(at..at + source.len()) {
                Some(hole) => hole.copy_from_slice(source),
                None => {
                    self.buf.resize(at, 0);
                    self.buf.extend_from_slice(source);
                }
            }
        }
        self.filled.insert(range)
    }
}

/// Puts a stream's bytes in order, with one copy: into blocks out of which they are handed.
///
/// What may be delivered next is decided in one place, [`Assembler::deliverable`]; the rest is
/// storage and does not care about the order of delivery. Bytes that came twice are kept as they
/// came first.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    /// Ascending and disjoint; never below `read`.
    blocks: VecDeque<Block>,
    /// First byte that was not delivered.
    read: u64,
    /// End of the highest byte received.
    end: u64,
    /// Received ranges in all blocks.
    fragments: u64,
}

impl Assembler {
    /// First byte that was not delivered yet.
    #[cfg(test)]
    pub(super) fn read_offset(&self) -> u64 {
        self.read
    }

    /// Takes `data`, which starts at stream offset `offset`; `last` is the highest offset at which
    /// the stream may end, as far as is known. Returns how many bytes were not there before.
    ///
    /// # Errors
    /// The data leave more gaps than [`MAX_GAPS`] and [`BYTES_PER_GAP`] allow.
    pub(super) fn insert(
        &mut self,
        offset: u64,
        data: &[u8],
        last: u64,
    ) -> Result<u64, TooManyGaps> {
        let skip = usize::try_from(self.read.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut data = data.get(skip..).unwrap_or_default();
        let mut offset = offset.max(self.read);
        let mut fresh = 0;
        while !data.is_empty() {
            let bounds = block_bounds(offset);
            let room = usize::try_from(bounds.end - offset).unwrap_or(usize::MAX);
            let (head, rest) = data.split_at(room.min(data.len()));
            let block = Self::block(&mut self.blocks, bounds, self.read, last);
            let before = block.filled.len() as u64;
            fresh += block.fill(offset, head);
            self.fragments = self.fragments + block.filled.len() as u64 - before;
            offset += head.len() as u64;
            data = rest;
        }
        self.end = self.end.max(offset);
        let allowed = MAX_GAPS + self.blocks.len() as u64 + (self.end - self.read) / BYTES_PER_GAP;
        if self.fragments > allowed { Err(TooManyGaps) } else { Ok(fresh) }
    }

    /// Finds or makes the block within `bounds`.
    fn block(blocks: &mut VecDeque<Block>, bounds: Range<u64>, read: u64, last: u64) -> &mut Block {
        // Data mostly go to the end of the last block.
        let index = match blocks.back() {
            Some(back) if back.end == bounds.end => blocks.len() - 1,
            Some(back) if back.end < bounds.end => blocks.len(),
            _ => blocks.partition_point(|block| block.end < bounds.end),
        };
        if blocks.get(index).is_none_or(|block| block.end != bounds.end) {
            let start = bounds.start.max(read);
            let size = bounds.end.min(last).saturating_sub(start) as usize;
            blocks.insert(
                index,
                Block {
                    start,
                    end: bounds.end,
                    buf: BytesMut::with_capacity(size),
                    filled: RangeSet::default(),
                },
            );
        }
        &mut blocks[index]
    }

    /// How many bytes, within one block, can be delivered next: here is where stream order is
    /// decided.
    fn deliverable(&self) -> usize {
        self.blocks
            .front()
            .and_then(|front| front.filled.range_of(self.read))
            .map_or(0, |range| (range.end - self.read) as usize)
    }

    /// Whether any byte can be delivered.
    pub(super) fn is_readable(&self) -> bool {
        self.deliverable() > 0
    }

    /// Delivers up to `max` bytes, without a copy.
    pub(super) fn read_chunk(&mut self, max: usize) -> Option<Bytes> {
        let len = self.deliverable().min(max);
        let front = self.blocks.front_mut().filter(|_| len > 0)?;
        let bytes = front.buf.split_to(len).freeze();
        self.advance(len);
        Some(bytes)
    }

    /// Delivers bytes into `out`; returns how many.
    pub(super) fn read(&mut self, out: &mut [u8]) -> usize {
        let mut total = 0;
        while let Some(space) = out.get_mut(total..).filter(|space| !space.is_empty()) {
            let len = self.deliverable().min(space.len());
            let Some(front) = self.blocks.front_mut().filter(|_| len > 0) else {
                break;
            };
            let bytes = front.buf.split_to(len);
            space[..len].copy_from_slice(&bytes);
            self.advance(len);
            total += len;
        }
        total
    }

    /// Notes that `len` bytes left the first block.
    fn advance(&mut self, len: usize) {
        self.read += len as u64;
        if let Some(front) = self.blocks.front_mut() {
            front.start = self.read;
            if self.read >= front.end {
                self.fragments -= front.filled.len() as u64;
                self.blocks.pop_front();
            }
        }
    }

    /// Throws away what was not delivered: nobody will read it.
    pub(super) fn discard(&mut self) {
        self.blocks = VecDeque::new();
        self.fragments = 0;
    }

    /// Bytes of storage held.
    pub(super) fn allocated(&self) -> usize {
        self.blocks.iter().map(|block| block.buf.capacity()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NO_END: u64 = u64::MAX;

    /// Byte `offset` of the stream that the tests send.
    fn byte(offset: u64) -> u8 {
        (offset ^ (offset >> 8)).wrapping_mul(31) as u8
    }

    fn bytes(range: Range<u64>) -> Vec<u8> {
        range.map(byte).collect()
    }

    #[test]
    fn blocks_tile_the_stream() {
        let mut offset = 0;
        while offset < 5 * MAX_BLOCK {
            let bounds = block_bounds(offset);
            assert_eq!(bounds.start, offset);
            assert_eq!(block_bounds(bounds.end - 1), bounds);
            assert!((MIN_BLOCK..=MAX_BLOCK).contains(&(bounds.end - bounds.start)));
            offset = bounds.end;
        }
        let last = block_bounds(crate::wire::coding::VARINT_MAX);
        assert_eq!(last.end, 1 << 62);
    }

    #[test]
    fn a_chunk_is_a_view_of_the_block_and_no_copy() {
        let mut assembler = Assembler::default();
        assembler.insert(0, &bytes(0..600), NO_END).unwrap();
        let first = assembler.read_chunk(100).unwrap();
        let second = assembler.read_chunk(usize::MAX).unwrap();
        assert_eq!(first.as_ptr().wrapping_add(100), second.as_ptr());
        // The rest of the block is still used after its beginning was handed out.
        assembler.insert(600, &bytes(600..1000), NO_END).unwrap();
        let third = assembler.read_chunk(usize::MAX).unwrap();
        assert_eq!(second.as_ptr().wrapping_add(500), third.as_ptr());
        assert_eq!([first, second, third].concat(), bytes(0..1000));
    }

    #[test]
    fn the_first_copy_wins() {
        let mut assembler = Assembler::default();
        assembler.insert(2, b"cd", NO_END).unwrap();
        assert_eq!(assembler.insert(0, b"ABCDEF", NO_END), Ok(4));
        assert_eq!(assembler.insert(0, b"xxxxxx", NO_END), Ok(0));
        assert_eq!(assembler.read_chunk(4).unwrap(), b"ABcd"[..]);
        assert_eq!(assembler.insert(0, b"yyyyyyg", NO_END), Ok(1));
        let mut out = [0; 8];
        assert_eq!(assembler.read(&mut out), 3);
        assert_eq!(out[..3], b"EFg"[..]);
    }

    #[test]
    fn a_short_stream_takes_no_more_than_its_length() {
        let mut assembler = Assembler::default();
        assembler.insert(0, &bytes(0..20), 20).unwrap();
        assert_eq!(assembler.allocated(), 20);
    }

    #[test]
    fn sparse_bytes_cost_no_more_than_the_window_and_a_block() {
        let mut assembler = Assembler::default();
        let window = 64 * MAX_BLOCK;
        for offset in (1..window).step_by(MAX_BLOCK as usize) {
            assembler.insert(offset, &[0], NO_END).unwrap();
        }
        assert!(assembler.allocated() as u64 <= window + MAX_BLOCK);
    }

    #[test]
    fn confetti_is_refused() {
        let mut assembler = Assembler::default();
        let mut accepted: u64 = 0;
        while assembler.insert(accepted * 2 + 1, &[0], NO_END).is_ok() {
            accepted += 1;
        }
        // Each of them is two bytes apart: 1/64 of a further gap is earned by each.
        assert!((MAX_GAPS..MAX_GAPS + MAX_GAPS / 32).contains(&accepted), "{accepted}");
    }

    #[test]
    fn every_second_packet_of_a_large_window_may_be_missing() {
        let mut assembler = Assembler::default();
        let (packet, window) = (1200, 24 << 20);
        for start in (0..window).step_by(2 * packet) {
            let start = (start + packet) as u64;
            assembler.insert(start, &bytes(start..start + packet as u64), NO_END).unwrap();
        }
        for start in (0..window).step_by(2 * packet) {
            let start = start as u64;
            assembler.insert(start, &bytes(start..start + packet as u64), NO_END).unwrap();
        }
        let mut at = 0;
        while let Some(chunk) = assembler.read_chunk(usize::MAX) {
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
            assert_eq!(assembler.insert(offset, &[byte(offset)], NO_END), Ok(1));
        }
        let mut out = vec![0; 200_001];
        assert_eq!(assembler.read(&mut out), 200_000);
        assert_eq!(out[..200_000], bytes(0..200_000));
        // The block that the stream ended in is all that is left.
        assert!(assembler.allocated() <= MAX_BLOCK as usize);
    }

    proptest! {
        #[test]
        fn agrees_with_a_vector_of_options(
            ops in prop::collection::vec(
                (0..3u8, prop_oneof![0..3000u64, 30_000..40_000u64, 0..80_000u64], 0..2500u64),
                1..80,
            ),
        ) {
            let mut assembler = Assembler::default();
            let mut model: Vec<Option<u8>> = vec![None; 90_000];
            let mut read = 0;
            for (salt, (op, offset, len)) in ops.into_iter().enumerate() {
                match op {
                    0 | 1 => {
                        // Every write has contents of its own, so that it shows whose byte won.
                        let data: Vec<u8> = (offset..offset + len)
                            .map(|at| byte(at).wrapping_add(salt as u8))
                            .collect();
                        let mut fresh = 0;
                        for (at, &b) in (offset as usize..).zip(&data) {
                            if at >= read && model[at].is_none() {
                                model[at] = Some(b);
                                fresh += 1;
                            }
                        }
                        prop_assert_eq!(assembler.insert(offset, &data, NO_END), Ok(fresh));
                    }
                    _ => {
                        let mut out = vec![0; len as usize];
                        let got = if offset % 2 == 0 {
                            assembler.read(&mut out)
                        } else {
                            let chunk = assembler.read_chunk(len as usize).unwrap_or_default();
                            out[..chunk.len()].copy_from_slice(&chunk);
                            chunk.len()
                        };
                        for (expected, &b) in model[read..].iter().zip(&out[..got]) {
                            prop_assert_eq!(*expected, Some(b));
                        }
                        read += got;
                        if got == 0 && len > 0 {
                            prop_assert_eq!(model[read], None);
                        }
                    }
                }
                prop_assert_eq!(assembler.is_readable(), model[read].is_some());
                prop_assert_eq!(assembler.read_offset(), read as u64);
                let held: usize = assembler.blocks.iter().map(|block| block.filled.len()).sum();
                prop_assert_eq!(assembler.fragments, held as u64);
            }
        }
    }
}
