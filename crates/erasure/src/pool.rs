//! Recycled buffers with a common memory bound.

use alloc::vec::Vec;

use crate::slot::{self, Slot};

/// A pool of reusable buffers.
///
/// Returned buffers keep their capacity, so that a steady stream of symbols allocates nothing. By
/// itself, this would let short symbols end up in long buffers, and a limit on symbol bytes would
/// not bound memory. Hence the budget: while the total capacity is within it, unused capacity does
/// not matter; above it, spare buffers are freed and buffers in use are shrunk to fit. The total capacity is
/// then at most the budget plus the contents.
#[derive(Debug)]
pub(crate) struct Pool {
    spare: Vec<Slot>,
    /// Capacity of all buffers, spare or in use.
    held: usize,
    budget: usize,
}

impl Pool {
    pub(crate) fn new(budget: usize) -> Self {
        Self { spare: Vec::new(), held: 0, budget }
    }

    /// Capacity of all buffers, spare or in use.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// All memory: the buffers and the list of spare buffers.
    pub(crate) fn allocated(&self) -> usize {
        self.held + self.spare.capacity() * size_of::<Slot>()
    }

    /// Frees all spare buffers.
    pub(crate) fn shrink(&mut self) {
        self.held -= self.spare.drain(..).map(|spare| spare.capacity()).sum::<usize>();
        self.spare.shrink_to_fit();
    }

    /// An empty buffer with room for `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Slot {
        // Mostly symbols are as long as the symbols before them.
        let fits = |buffer: &mut Slot| buffer.capacity() >= slot::memory(len);
        if self.held <= self.budget
            && let Some(buffer) = self.spare.pop_if(fits)
        {
            return buffer;
        }
        self.take_other(len)
    }

    /// The same where the last spare buffer is too short, there is none, or the budget is exceeded.
    fn take_other(&mut self, len: usize) -> Slot {
        let mut buffer = self.spare.pop().unwrap_or_default();
        if buffer.capacity() < slot::memory(len) {
            self.replace(&mut buffer, len);
        }
        if self.held > self.budget {
            self.free_spare();
            if self.held > self.budget && buffer.capacity() > slot::memory(len) {
                self.replace(&mut buffer, len);
            }
        }
        buffer
    }

    /// Replaces a buffer by one with room for exactly `len` bytes.
    fn replace(&mut self, buffer: &mut Slot, len: usize) {
        self.held -= buffer.capacity();
        *buffer = Slot::with_capacity(len);
        self.held += buffer.capacity();
    }

    /// Brings the buffer that is taken next into the cache, up to `len` bytes.
    pub(crate) fn prefetch_next(&self, len: usize) {
        if let Some(next) = self.spare.last() {
            next.prefetch(len);
        }
    }

    /// Records that a buffer will not grow any more.
    pub(crate) fn settle(&mut self, buffer: &mut Slot) {
        self.free_spare();
        if self.held > self.budget {
            self.held -= buffer.capacity();
            buffer.shrink();
            self.held += buffer.capacity();
        }
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, mut buffer: Slot) {
        if self.held > self.budget || buffer.capacity() == 0 {
            self.held -= buffer.capacity();
        } else {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Frees spare buffers while the total exceeds the budget.
    fn free_spare(&mut self) {
        while self.held > self.budget
            && let Some(spare) = self.spare.pop()
        {
            self.held -= spare.capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_used_again() {
        let mut pool = Pool::new(1000);
        let mut buffer = pool.take(100);
        buffer.resize(1);
        let address = buffer.bytes().as_ptr();
        pool.give(buffer);
        let mut again = pool.take(60);
        assert_eq!(again.len(), 0);
        again.resize(1);
        assert_eq!(again.bytes().as_ptr(), address);
        assert_eq!(pool.held(), again.capacity());
    }

    #[test]
    fn above_the_budget_buffers_fit_their_contents() {
        let mut pool = Pool::new(7030);
        let long: Vec<_> = (0..10).map(|_| pool.take(640)).collect();
        long.into_iter().for_each(|buffer| pool.give(buffer));
        // Ten short contents in the long buffers are within the budget.
        let mut used: Vec<_> = (0..10).map(|_| pool.take(10)).collect();
        assert_eq!(pool.held(), 7030);
        used.extend((0..50).map(|_| pool.take(10)));
        assert_eq!(pool.held(), 7030 + 50 * 127);
        // No buffer is kept until the total is back within the budget.
        used.drain(..).for_each(|buffer| pool.give(buffer));
        assert!(pool.held() <= 7030);
        assert_eq!(pool.take(12_800).capacity(), 12_863);
        assert_eq!(pool.held(), 12_863);
    }

    #[test]
    fn a_pool_that_shrinks_keeps_what_is_in_use() {
        let mut pool = Pool::new(10_000);
        let used = pool.take(100);
        for spare in [pool.take(640), pool.take(10)] {
            pool.give(spare);
        }
        pool.shrink();
        assert_eq!((pool.held(), pool.allocated()), (used.capacity(), used.capacity()));
        pool.give(used);
        pool.shrink();
        assert_eq!(pool.allocated(), 0);
    }

    #[test]
    fn a_buffer_that_turns_out_shorter_gives_the_rest_back() {
        let mut pool = Pool::new(100);
        let mut buffer = pool.take(640);
        buffer.resize(20);
        assert_eq!(pool.held(), 703);
        pool.settle(&mut buffer);
        assert_eq!((buffer.len(), pool.held()), (20, 127));
    }
}
