//! DATAGRAM frames (RFC 9221): queues in both directions, bounded in bytes.

use bytes::Bytes;
use std::collections::VecDeque;

/// The cost of a queued datagram in addition to its bytes. It bounds floods of empty datagrams,
/// too.
const OVERHEAD: usize = 64;

/// Why a datagram could not be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendDatagramError {
    /// The peer does not support datagrams.
    #[error("datagrams not supported by peer")]
    UnsupportedByPeer,
    /// The datagram does not fit in a packet, or exceeds the peer's limit.
    #[error("datagram too large")]
    TooLarge,
    /// The connection is over.
    #[error("connection closed")]
    Closed,
}

/// A queue of datagrams, bounded in bytes, that drops the oldest when it overflows.
#[derive(Debug)]
pub struct DatagramQueue {
    items: VecDeque<Bytes>,
    cost: usize,
    limit: usize,
    dropped: u64,
}

impl DatagramQueue {
    /// Creates a queue for at most `limit` bytes. Each datagram counts 64 bytes more than its
    /// length.
    pub fn new(limit: usize) -> Self {
        Self { items: VecDeque::new(), cost: 0, limit, dropped: 0 }
    }

    /// Adds a datagram, dropping the oldest to make room. Returns whether any was dropped.
    pub fn push(&mut self, data: Bytes) -> bool {
        self.cost += data.len() + OVERHEAD;
        self.items.push_back(data);
        let before = self.dropped;
        while self.cost > self.limit {
            let Some(_) = self.pop() else { break };
            self.dropped += 1;
        }
        self.dropped > before
    }

    /// Takes the oldest datagram.
    pub fn pop(&mut self) -> Option<Bytes> {
        let item = self.items.pop_front()?;
        self.cost -= item.len() + OVERHEAD;
        Some(item)
    }

    /// Drops the oldest datagram because it can no longer be sent.
    pub fn drop_oldest(&mut self) {
        self.dropped += u64::from(self.pop().is_some());
    }

    /// The size of the oldest datagram.
    pub fn peek_size(&self) -> Option<usize> {
        self.items.front().map(Bytes::len)
    }

    /// Whether nothing is queued.
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
        assert!(!q.push(Bytes::from_static(b"aaaaaaaaaa")));
        assert!(!q.push(Bytes::from_static(b"bbbbbbbbbb")));
        assert!(q.push(Bytes::from_static(b"cccccccccc")));
        assert_eq!(q.pop().unwrap()[0], b'b');
        assert_eq!((q.dropped(), q.peek_size()), (1, Some(10)));
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
