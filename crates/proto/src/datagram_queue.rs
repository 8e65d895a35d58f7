//! A queue of datagrams (RFC 9221) that the application has not read, bounded in bytes.

use bytes::Bytes;
use std::collections::VecDeque;

/// The cost of a queued datagram in addition to its bytes. It bounds floods of empty datagrams,
/// too.
pub const OVERHEAD: usize = 64;

/// A queue of datagrams, bounded in bytes, that drops the oldest datagram when it overflows.
#[derive(Debug)]
pub struct DatagramQueue {
    items: VecDeque<Bytes>,
    cost: usize,
    limit: usize,
    dropped: u64,
    /// Bytes of the datagrams that were read.
    taken: u64,
}

impl DatagramQueue {
    /// Creates a queue for at most `limit` bytes. Each datagram counts 64 bytes more than its
    /// length.
    pub fn new(limit: usize) -> Self {
        Self { items: VecDeque::new(), cost: 0, limit, dropped: 0, taken: 0 }
    }

    /// Adds a datagram, dropping the oldest to make room.
    pub fn push(&mut self, data: Bytes) {
        self.cost += data.len() + OVERHEAD;
        self.items.push_back(data);
        while self.cost > self.limit && self.remove_oldest().is_some() {
            self.dropped += 1;
        }
    }

    /// Takes the oldest datagram.
    pub fn pop(&mut self) -> Option<Bytes> {
        let item = self.remove_oldest()?;
        self.taken += item.len() as u64;
        Some(item)
    }

    fn remove_oldest(&mut self) -> Option<Bytes> {
        let item = self.items.pop_front()?;
        self.cost -= item.len() + OVERHEAD;
        Some(item)
    }

    /// Bytes that all datagrams take, each with its overhead.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Bytes of the datagrams that were read.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// How many datagrams were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_make_room() {
        let mut q = DatagramQueue::new(2 * (10 + OVERHEAD));
        for data in [b"aaaaaaaaaa", b"bbbbbbbbbb", b"cccccccccc"] {
            q.push(Bytes::from_static(data));
        }
        assert_eq!((q.dropped(), q.cost()), (1, 2 * (10 + OVERHEAD)));
        assert_eq!([q.pop().unwrap(), q.pop().unwrap()], ["bbbbbbbbbb", "cccccccccc"]);
        assert_eq!((q.pop(), q.dropped(), q.cost), (None, 1, 0));
        assert_eq!(q.taken(), 20, "what was dropped was not read");
    }

    #[test]
    fn flood_of_empty_datagrams_is_bounded() {
        let mut q = DatagramQueue::new(64 * 100);
        for _ in 0..100_000 {
            q.push(Bytes::new());
        }
        assert_eq!(q.items.len(), 100);
        assert_eq!(q.cost, 6400);
    }
}
