//! The send buffer of a stream: keeps bytes until the peer has acknowledged them.

#[cfg(feature = "testing")]
use crate::invariant::ensure;
use crate::wire::range_set::RangeSet;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::ops::Range;

/// Chunks shorter than this are copied into a shared block. To keep them separate would cost more memory than
/// the copies cost time. The limit also bounds the bookkeeping that an application can cause.
const COPY_BELOW: usize = 512;
/// Size of the smallest block for copied bytes. A stream that has few bytes at a time, such as instructions of
/// HTTP/3, keeps such a block while it has none, and uses it again.
const MIN_BLOCK: usize = 64;
/// Size of the first block of a stream: many streams have no more bytes.
const FIRST_BLOCK: usize = 1024;
/// Size of the largest block.
const MAX_BLOCK: usize = 16 * 1024;

/// A stretch of the stream that is still needed.
#[derive(Debug)]
struct StoredChunk {
    start: u64,
    bytes: Bytes,
    /// The length of the chunk when it was stored: acknowledging its beginning frees no memory.
    stored: usize,
}

impl StoredChunk {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// The bytes of a stream from the first unacknowledged byte to the last written byte.
///
/// Bytes below `acked_prefix` are gone. Above `acked_prefix`, acknowledged bytes are recorded as ranges. A
/// chunk's storage is freed once all of it is acknowledged, wherever it is in the stream: a peer that
/// acknowledges only the tail keeps no more in memory than the missing part.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// Unacknowledged chunks in stream order; there may be acknowledged holes between them.
    chunks: VecDeque<StoredChunk>,
    /// The end of the stream: copied bytes in the block that is still growing.
    tail: BytesMut,
    /// The least size of the next block: twice the size of the last one, up to [`MAX_BLOCK`].
    block: usize,
    /// Maximum number of bytes in `chunks` and `tail`.
    limit: usize,
    /// Number of bytes in `chunks` and `tail`.
    retained: usize,
    /// Bytes of storage of `chunks`, including the acknowledged parts of chunks that are not freed yet.
    stored: usize,
    /// Every byte below this offset is acknowledged.
    acked_prefix: u64,
    /// First byte that was never sent.
    unsent: u64,
    /// End of the data written.
    end: u64,
    /// Acknowledged bytes above `acked_prefix`.
    acked: RangeSet,
}

impl SendBuffer {
    /// An empty buffer for at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            tail: BytesMut::new(),
            block: FIRST_BLOCK,
            limit,
            retained: 0,
            stored: 0,
            acked_prefix: 0,
            unsent: 0,
            end: 0,
            acked: RangeSet::default(),
        }
    }

    /// Checks the invariants that hold between any two calls.
    ///
    /// # Errors
    /// The first contradiction.
    #[cfg(feature = "testing")]
    pub(super) fn check(&self) -> Result<(), String> {
        let bytes: usize = self.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        let held = bytes + self.tail.len();
        ensure(held == self.retained, || format!("{} bytes counted, {held} held", self.retained))?;
        Ok(())
    }

    /// Number of bytes that can be written now.
    pub(super) fn room(&self) -> usize {
        self.limit.saturating_sub(self.retained)
    }

    /// Maximum number of bytes held.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes held.
    pub(super) fn retained(&self) -> usize {
        self.retained
    }

    /// Bytes of storage held, by chunks of which any byte is needed and by the block that is still growing.
    pub(super) fn storage(&self) -> usize {
        self.stored + self.tail.capacity()
    }

    /// Every byte below this offset is acknowledged.
    pub(super) fn acked_prefix(&self) -> u64 {
        self.acked_prefix
    }

    /// End of the data written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// First byte that was never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Whether all written bytes are acknowledged.
    pub(super) fn is_all_acked(&self) -> bool {
        self.acked_prefix == self.end
    }

    /// Copies as much of `data` as fits; returns the number of bytes.
    pub(super) fn write(&mut self, data: &[u8]) -> usize {
        let accepted = data.len().min(self.room());
        let mut rest = data.get(..accepted).unwrap_or_default();
        while !rest.is_empty() {
            if self.tail.len() == self.tail.capacity() {
                self.start_block(rest.len());
            }
            let take = rest.len().min(self.tail.capacity() - self.tail.len());
            let (head, later) = rest.split_at(take);
            self.tail.extend_from_slice(head);
            self.end += take as u64;
            rest = later;
        }
        self.retained += accepted;
        accepted
    }

    /// Takes as much of `data` as fits, without copying unless it is short; returns the number of
    /// bytes.
    pub(super) fn write_chunk(&mut self, mut data: Bytes) -> usize {
        if data.len() < COPY_BELOW {
            return self.write(&data);
        }
        data.truncate(self.room());
        let accepted = data.len();
        if accepted > 0 {
            self.seal_tail();
            self.push(self.end, data);
            self.end += accepted as u64;
            self.retained += accepted;
        }
        accepted
    }

    fn push(&mut self, start: u64, bytes: Bytes) {
        let stored = bytes.len();
        self.stored += stored;
        self.chunks.push_back(StoredChunk { start, bytes, stored });
    }

    /// Stream offset of the first byte of the tail.
    fn tail_start(&self) -> u64 {
        self.end - self.tail.len() as u64
    }

    /// Turns the contents of the tail into a chunk; the rest of its block, if any, stays usable.
    fn seal_tail(&mut self) {
        let range = self.tail_start()..self.end;
        if !range.is_empty() {
            let is_full = self.tail.len() == self.tail.capacity();
            // A block that is split is counted, which takes memory of its own.
            let bytes = if is_full { std::mem::take(&mut self.tail) } else { self.tail.split() };
            self.push(range.start, bytes.freeze());
            self.free(&range);
        }
    }

    /// Starts a block suitable for `len` more bytes. Blocks grow with the bytes that the peer may need.
    fn start_block(&mut self, len: usize) {
        self.seal_tail();
        let size = len.clamp(self.block, MAX_BLOCK);
        self.block = (size * 2).min(MAX_BLOCK);
        if !self.tail.try_reclaim(size) {
            self.tail = BytesMut::with_capacity(size);
        }
    }

    /// The index of the first chunk that ends after `offset`. Chunks are mostly of one size, so that it can be
    /// guessed without a search.
    fn position(&self, offset: u64) -> usize {
        let before = || {
            let first = self.chunks.front()?.start;
            let each = (self.tail_start() - first) / self.chunks.len() as u64;
            usize::try_from(offset.checked_sub(first)?.checked_div(each)?).ok()
        };
        let holds = |index: &usize| {
            let chunk = self.chunks.get(*index);
            chunk.is_some_and(|chunk| chunk.start <= offset && offset < chunk.end())
        };
        let guess = before().unwrap_or_default();
        let guess = [guess, guess + 1].into_iter().find(holds);
        guess.unwrap_or_else(|| self.chunks.partition_point(|chunk| chunk.end() <= offset))
    }

    /// Appends the bytes of `range` to `out`. All of them must still be held.
    pub(super) fn copy_to(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let mut at = range.start;
        let mut index = self.position(at);
        while at < range.end {
            let (start, bytes) = match self.chunks.get(index) {
                Some(chunk) => (chunk.start, &chunk.bytes[..]),
                None => (self.tail_start(), &self.tail[..]),
            };
            let wanted = (range.end - start).min(bytes.len() as u64) as usize;
            let piece = at.checked_sub(start).and_then(|skip| bytes.get(skip as usize..wanted));
            let Some(piece) = piece.filter(|piece| !piece.is_empty()) else {
                debug_assert!(false, "bytes {at}..{} are not held", range.end);
                return;
            };
            out.extend_from_slice(piece);
            at += piece.len() as u64;
            index += 1;
        }
    }

    /// Records that the next `len` new bytes were sent.
    pub(super) fn sent(&mut self, len: u64) {
        self.unsent = self.unsent.saturating_add(len).min(self.end);
    }

    /// Records that the peer has `range`, whether by a packet or by repair: the storage of the range is
    /// freed.
    pub(super) fn acked(&mut self, range: Range<u64>) {
        let range = range.start.max(self.acked_prefix)..range.end.min(self.unsent);
        if range.is_empty() {
            return;
        }
        if range.start > self.acked_prefix {
            self.acked.insert(range.clone());
        } else {
            self.extend_prefix(range.end);
        }
        self.free(&range);
        self.free_tail();
    }

    /// The peer has all bytes below `end`, and those that it has behind them without a gap.
    fn extend_prefix(&mut self, end: u64) {
        self.acked.remove(self.acked_prefix..end);
        self.acked_prefix = end;
        if let Some(next) = self.acked.first().filter(|next| next.start == end) {
            self.acked_prefix = next.end;
            self.acked.remove(next);
        }
    }

    /// Whether the peer has all of `range`, as far as the range was not dropped.
    pub(super) fn is_acked(&self, range: &Range<u64>) -> bool {
        let (start, end) = (range.start.max(self.acked_prefix), range.end.min(self.end));
        start >= end || self.acked.contains_range(&(start..end))
    }

    /// Whether all of `range` was sent, and no byte of it is known to have arrived.
    pub(super) fn holds(&self, range: &Range<u64>) -> bool {
        let sent = self.acked_prefix <= range.start && range.end <= self.unsent;
        sent && self.acked.gaps(range.clone()).eq((!range.is_empty()).then(|| range.clone()))
    }

    /// Frees acknowledged data: all bytes below the prefix, and the chunks that touch `range` and of which no
    /// byte is needed any more.
    fn free(&mut self, range: &Range<u64>) {
        while let Some(front) = self.chunks.front_mut() {
            if front.end() <= self.acked_prefix {
                self.retained -= front.bytes.len();
                self.stored -= front.stored;
                self.chunks.pop_front();
                continue;
            }
            // The acknowledged part of the first chunk counts as free, although the chunk is still
            // in memory. Otherwise one large chunk would block the writer until its last byte is
            // acknowledged.
            let done = self.acked_prefix.saturating_sub(front.start);
            front.bytes.advance(done as usize);
            front.start += done;
            self.retained -= done as usize;
            break;
        }
        if self.acked.is_empty() {
            return;
        }
        let mut index = self.position(range.start);
        while let Some(chunk) = self.chunks.get(index).filter(|chunk| chunk.start < range.end) {
            if self.acked.contains_range(&(chunk.start..chunk.end())) {
                self.retained -= chunk.bytes.len();
                self.stored -= chunk.stored;
                self.chunks.remove(index);
            } else {
                index += 1;
            }
        }
    }

    /// Frees the acknowledged beginning of the tail. Once no byte is needed, a small block is used again from its
    /// beginning, and a larger one is freed.
    fn free_tail(&mut self) {
        let done = self.acked_prefix.saturating_sub(self.tail_start());
        if done > 0 {
            self.tail.advance(done as usize);
            self.retained -= done as usize;
        }
        if self.is_all_acked() {
            if self.block > 2 * MIN_BLOCK || !self.tail.try_reclaim(MIN_BLOCK) {
                self.tail = BytesMut::new();
            }
            self.block = MIN_BLOCK;
        }
    }

    /// The stretches of `range` that were sent and that the peer is not known to have.
    pub(super) fn missing(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        self.acked.gaps(range.start.max(self.acked_prefix)..range.end.min(self.unsent))
    }

    /// Drops all bytes from offset `end` on: they will not be sent any more.
    pub(super) fn truncate(&mut self, end: u64) {
        if end >= self.end {
            return;
        }
        self.seal_tail();
        while let Some(last) = self.chunks.back_mut().filter(|last| last.end() > end) {
            let kept = end.saturating_sub(last.start) as usize;
            self.retained -= last.bytes.len() - kept;
            last.bytes.truncate(kept);
            if kept > 0 {
                break;
            }
            self.stored -= last.stored;
            self.chunks.pop_back();
        }
        self.tail = BytesMut::new();
        self.acked.remove(end..u64::MAX);
        self.end = end;
        self.unsent = self.unsent.min(end);
        self.acked_prefix = self.acked_prefix.min(end);
    }

    /// Discards all bytes: the stream is reset, and no more bytes will be sent.
    pub(super) fn discard(&mut self) {
        self.chunks = VecDeque::new();
        self.tail = BytesMut::new();
        self.retained = 0;
        self.stored = 0;
        self.acked.clear();
        self.end = self.unsent;
        self.acked_prefix = self.unsent;
    }

    /// Bytes of storage, computed by visiting every chunk, to check the count.
    #[cfg(test)]
    pub(super) fn storage_by_walk(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.stored).sum::<usize>() + self.tail.capacity()
    }

    /// Where the tail is in memory.
    #[cfg(test)]
    pub(super) fn tail_address(&self) -> usize {
        self.tail.as_ptr().addr()
    }

    /// Number of separate chunks.
    #[cfg(test)]
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }
}
