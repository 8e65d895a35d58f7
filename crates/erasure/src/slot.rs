//! Symbol buffers that the kernels can read at full speed.

use alloc::{vec, vec::Vec};

use crate::simd;

/// Bytes of a cache line, and of the longest vector.
const LINE: usize = 64;

/// A growable buffer whose bytes start at a multiple of 64 and are followed by zeros up to the next
/// multiple.
///
/// A vector load from it never touches two cache lines, and its end is never inside a vector: a
/// symbol of 1500 bytes takes 1536.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// Padding up to a multiple of 64, the buffer, zeros, and room of any contents. With common allocators,
    /// aligned allocations take a fifth more memory than slightly longer unaligned ones. All of the memory is
    /// initialized once, so that no later change of the length is more than a copy.
    memory: Vec<u8>,
    /// Where the buffer starts.
    start: u32,
    len: u32,
}

/// `len` and the zeros behind it.
pub(crate) const fn padded(len: usize) -> usize {
    len.next_multiple_of(LINE)
}

/// The most zeros that follow a buffer.
pub(crate) const MAX_PADDING: usize = LINE - 1;

/// The most by which [`memory`] exceeds the length.
pub(crate) const MAX_OVERHEAD: usize = MAX_PADDING + LINE - 1;

/// The memory that a buffer of `len` bytes takes.
pub(crate) const fn memory(len: usize) -> usize {
    padded(len) + LINE - 1
}

impl Slot {
    /// An empty buffer with room for exactly `len` bytes.
    pub(crate) fn with_capacity(len: usize) -> Self {
        let memory = vec![0; memory(len)];
        let start = memory.as_ptr().align_offset(LINE).min(LINE - 1);
        Self { memory, start: start as u32, len: 0 }
    }

    /// What is left of a buffer that gave its memory back: its length.
    pub(crate) fn hollow(len: usize) -> Self {
        Self { memory: Vec::new(), start: 0, len: len as u32 }
    }

    /// Brings the memory of a buffer that will be overwritten into the cache, up to `len` bytes.
    pub(crate) fn prefetch(&self, len: usize) {
        let end = self.memory.len().min(self.start() + len);
        simd::prefetch(&self.memory[..end]);
    }

    /// Bytes of memory behind the buffer.
    pub(crate) fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// How long the buffer may become without being reallocated.
    fn room(&self) -> usize {
        self.memory.len().saturating_sub(self.start()) / LINE * LINE
    }

    /// Moves the buffer to memory for `len` bytes, unless it already has just that.
    fn reallocate(&mut self, len: usize) {
        let mut moved = Self::with_capacity(len);
        let kept = self.len().min(len);
        moved.write([], &self.bytes()[..kept]);
        *self = moved;
    }

    /// Shrinks the memory to fit the buffer.
    pub(crate) fn shrink(&mut self) {
        if self.capacity() > memory(self.len()) {
            self.reallocate(self.len());
        }
    }

    fn start(&self) -> usize {
        self.start as usize
    }

    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Sets the length, for which there is room, and puts zeros behind the first `kept` bytes.
    fn set_len(&mut self, len: usize, kept: usize) {
        // Symbols are shorter than 64 KiB.
        self.len = len as u32;
        self.padded_mut()[kept..].fill(0);
    }

    /// Truncates the buffer or appends zeros.
    pub(crate) fn resize(&mut self, len: usize) {
        if len > self.room() {
            self.reallocate(len);
        }
        let kept = self.len().min(len);
        self.set_len(len, kept);
    }

    /// Replaces the contents by `head` and, behind it, `tail`.
    pub(crate) fn write<const N: usize>(&mut self, head: [u8; N], tail: &[u8]) {
        let len = N + tail.len();
        if len > self.room() {
            *self = Self::with_capacity(len);
        }
        self.len = len as u32;
        let buffer = self.padded_mut();
        // The last line as a whole, which takes no call: the rest of it is padding.
        if let Some(last) = buffer.last_chunk_mut::<LINE>() {
            last.fill(0);
        }
        buffer[..N].copy_from_slice(&head);
        buffer[N..len].copy_from_slice(tail);
    }

    pub(crate) fn extend_from_slice(&mut self, bytes: &[u8]) {
        let kept = self.len();
        let len = kept + bytes.len();
        if len > self.room() {
            self.reallocate(len);
        }
        self.set_len(len, len);
        self.bytes_mut()[kept..].copy_from_slice(bytes);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.padded().get(..self.len()).unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.len();
        &mut self.padded_mut()[..len]
    }

    /// The bytes and the zeros behind them.
    pub(crate) fn padded(&self) -> &[u8] {
        let end = self.start() + padded(self.len());
        self.memory.get(self.start()..end).unwrap_or_default()
    }

    /// The bytes and the zeros behind them, for arithmetic that keeps the latter zero: adding other
    /// slots, none of them longer.
    pub(crate) fn padded_mut(&mut self) -> &mut [u8] {
        let (start, end) = (self.start(), self.start() + padded(self.len()));
        self.memory.get_mut(start..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(slot: &Slot, expected: &[u8]) {
        assert_eq!(slot.bytes(), expected);
        assert_eq!(slot.padded().len(), padded(expected.len()));
        assert!(slot.padded()[expected.len()..].iter().all(|&byte| byte == 0));
        let address = slot.padded().as_ptr().addr();
        assert!(expected.is_empty() || address.is_multiple_of(LINE));
    }

    #[test]
    fn zeros_follow_whatever_was_there_before() {
        let mut slot = Slot::default();
        check(&slot, &[]);
        slot.extend_from_slice(&[7; 100]);
        check(&slot, &[7; 100]);
        slot.resize(65);
        check(&slot, &[7; 65]);
        slot.resize(64);
        check(&slot, &[7; 64]);
        slot.resize(3);
        check(&slot, &[7; 3]);
        slot.resize(130);
        check(&slot, &[[7; 3].as_slice(), &[0; 127]].concat());
        slot.bytes_mut().fill(9);
        check(&slot, &[9; 130]);
        slot.clear();
        slot.extend_from_slice(&[1]);
        check(&slot, &[1]);
        slot.write([2], &[3; 70]);
        check(&slot, &[[2].as_slice(), &[3; 70]].concat());
        slot.write([], &[4; 500]);
        check(&slot, &[4; 500]);
        slot.write([5], &[]);
        check(&slot, &[5]);
    }

    #[test]
    fn no_length_takes_more_than_the_overhead() {
        let most = |excess: fn(usize) -> usize| (0..1000).map(excess).max();
        assert_eq!(most(|len| padded(len) - len), Some(MAX_PADDING));
        assert_eq!(most(|len| memory(len) - len), Some(MAX_OVERHEAD));
    }

    #[test]
    fn memory_is_that_of_whole_lines() {
        let mut slot = Slot::with_capacity(1500);
        assert_eq!(slot.capacity(), 1599);
        slot.extend_from_slice(&[1; 100]);
        slot.shrink();
        assert_eq!((slot.capacity(), slot.len()), (191, 100));
        check(&slot, &[1; 100]);
    }
}
