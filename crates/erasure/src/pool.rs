//! Recycled buffers with a bound on what they take together.

use alloc::vec::Vec;

/// A supply of byte buffers that are used again and again.
///
/// Buffers keep their capacity when they come back, so that a steady stream of symbols allocates
/// nothing. Left alone, short symbols would in time come to sit in long buffers and a limit on
/// symbol bytes would say little about memory. Hence the budget: as long as all capacity together
/// is within it, nobody asks how well it is used; above it, spare buffers are freed and those in
/// use fit their contents. Total capacity is then at most the budget and the contents.
#[derive(Debug)]
pub(crate) struct Pool {
    spare: Vec<Vec<u8>>,
    /// Capacity of the spare buffers and of those handed out.
    held: usize,
    budget: usize,
}

impl Pool {
    pub(crate) fn new(budget: usize) -> Self {
        Self { spare: Vec::new(), held: 0, budget }
    }

    /// Capacity of all buffers, spare ones and those handed out.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// An empty buffer with room for `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        self.held -= buffer.capacity();
        buffer.reserve_exact(len);
        self.held += buffer.capacity();
        self.fit(&mut buffer, len);
        buffer
    }

    /// Takes note that the contents of a buffer changed and its capacity may have, from
    /// `capacity_before`.
    pub(crate) fn settle(&mut self, buffer: &mut Vec<u8>, capacity_before: usize) {
        self.held = self.held.saturating_sub(capacity_before) + buffer.capacity();
        let len = buffer.len();
        self.fit(buffer, len);
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        if self.held > self.budget || buffer.capacity() == 0 {
            self.held = self.held.saturating_sub(buffer.capacity());
        } else {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    fn fit(&mut self, buffer: &mut Vec<u8>, len: usize) {
        while self.held > self.budget
            && let Some(spare) = self.spare.pop()
        {
            self.held -= spare.capacity();
        }
        if self.held > self.budget && buffer.capacity() > len {
            self.held -= buffer.capacity();
            buffer.shrink_to(len);
            self.held += buffer.capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_used_again() {
        let mut pool = Pool::new(1000);
        let buffer = pool.take(100);
        let address = buffer.as_ptr();
        pool.give(buffer);
        let again = pool.take(60);
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
        assert_eq!(pool.held(), again.capacity());
    }

    #[test]
    fn above_the_budget_buffers_fit_their_contents() {
        let mut pool = Pool::new(1000);
        let long: Vec<_> = (0..10).map(|_| pool.take(100)).collect();
        long.into_iter().for_each(|buffer| pool.give(buffer));
        // Ten short contents in the long buffers are within the budget.
        let mut used: Vec<_> = (0..10).map(|_| pool.take(10)).collect();
        assert_eq!(pool.held(), 1000);
        used.extend((0..50).map(|_| pool.take(10)));
        assert_eq!(pool.held(), 1500);
        // None of them is kept until the total is within the budget again.
        used.drain(..).for_each(|buffer| pool.give(buffer));
        assert!(pool.held() <= 1000);
        assert_eq!(pool.take(2000).capacity(), 2000);
        assert_eq!(pool.held(), 2000);
    }

    #[test]
    fn growth_outside_is_accounted_for() {
        let mut pool = Pool::new(100);
        let mut buffer = pool.take(10);
        let before = buffer.capacity();
        buffer.resize(500, 1);
        buffer.truncate(20);
        pool.settle(&mut buffer, before);
        assert_eq!((buffer.len(), pool.held()), (20, buffer.capacity()));
        assert!(pool.held() <= 100);
    }
}
