//! Queues of datagrams (RFC 9221), bounded in bytes: a queue of datagrams to be sent, and a queue of
//! datagrams that the application has not read.

use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// The cost of a queued datagram in addition to its bytes. It bounds floods of empty datagrams,
/// too.
pub const OVERHEAD: usize = 64;
/// A queue of datagrams, each with a key, bounded in bytes, that drops the oldest datagram when it overflows.
#[derive(Debug)]
pub struct DatagramQueue<K> {
    items: VecDeque<(K, Bytes)>,
    cost: usize,
    limit: usize,
    dropped: u64,
}

impl<K> DatagramQueue<K> {
    /// Creates a queue for at most `limit` bytes. Each datagram counts 64 bytes more than its
    /// length.
    pub fn new(limit: usize) -> Self {
        Self { items: VecDeque::new(), cost: 0, limit, dropped: 0 }
    }

    /// Adds a datagram, dropping the oldest to make room. Returns the keys of the dropped datagrams.
    pub fn push(&mut self, key: K, data: Bytes) -> SmallVec<[K; 1]> {
        self.cost += data.len() + OVERHEAD;
        self.items.push_back((key, data));
        let mut dropped = SmallVec::new();
        while self.cost > self.limit {
            let Some(key) = self.drop_oldest() else { break };
            dropped.push(key);
        }
        dropped
    }

    /// Takes the oldest datagram.
    pub fn pop(&mut self) -> Option<(K, Bytes)> {
        let (key, item) = self.items.pop_front()?;
        self.cost -= item.len() + OVERHEAD;
        Some((key, item))
    }

    /// Drops the oldest datagram because it can no longer be sent. Returns its key.
    pub fn drop_oldest(&mut self) -> Option<K> {
        let (key, _) = self.pop()?;
        self.dropped += 1;
        Some(key)
    }

    /// Drops all datagrams except those whose key `stays`.
    pub fn retain(&mut self, mut stays: impl FnMut(&K) -> bool) {
        let (cost, dropped) = (&mut self.cost, &mut self.dropped);
        self.items.retain(|(key, data)| {
            let stay = stays(key);
            if !stay {
                *cost -= data.len() + OVERHEAD;
                *dropped += 1;
            }
            stay
        });
    }

    /// The size of the oldest datagram.
    pub fn peek_size(&self) -> Option<usize> {
        self.items.front().map(|(_, data)| data.len())
    }

    /// The sizes of all datagrams, the oldest first.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.items.iter().map(|(_, data)| data.len())
    }

    /// Bytes that all datagrams take, each with its overhead.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Whether no datagram is queued.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
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
        assert!(q.push(1, Bytes::from_static(b"aaaaaaaaaa")).is_empty());
        assert!(q.push(2, Bytes::from_static(b"bbbbbbbbbb")).is_empty());
        assert_eq!(q.push(3, Bytes::from_static(b"cccccccccc"))[..], [1]);
        assert_eq!(q.pop().unwrap().0, 2);
        assert_eq!((q.dropped(), q.peek_size()), (1, Some(10)));
        q.retain(|key| *key != 3);
        assert_eq!((q.dropped(), q.is_empty(), q.cost), (2, true, 0));
    }

    #[test]
    fn flood_of_empty_datagrams_is_bounded() {
        let mut q = DatagramQueue::new(64 * 100);
        for _ in 0..100_000 {
            q.push((), Bytes::new());
        }
        assert_eq!(q.items.len(), 100);
        assert_eq!(q.cost, 6400);
    }
}
