//! The connection-wide limit on send buffers.
//!
//! The limit bounds the memory of a connection. But less urgent streams that have used it up must
//! not block a stream that becomes urgent. So every stream may always hold [`STREAM_RESERVE`]
//! bytes, and streams that wait for more are woken in the order in which they queued.

use super::send::SendHalf;
use crate::ids::StreamId;
use std::collections::BTreeMap;

/// Bytes that a stream may always hold (within its own limit), even if the connection's limit is
/// used up.
pub(super) const STREAM_RESERVE: usize = 64 * 1024;

/// The send-buffer budget of a connection.
///
/// All streams together hold at most the limit plus [`STREAM_RESERVE`] for each stream.
#[derive(Debug)]
pub(super) struct SendPool {
    limit: usize,
    used: usize,
    /// Streams that found no room, each once, by turn.
    waiting: BTreeMap<u64, StreamId>,
    /// The turn of the next stream that finds no room.
    next: u64,
}

impl SendPool {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, used: 0, waiting: BTreeMap::new(), next: 0 }
    }

    /// Number of bytes that a stream which holds `retained` bytes may add.
    pub(super) fn room(&self, retained: usize) -> usize {
        self.limit.saturating_sub(self.used).max(STREAM_RESERVE.saturating_sub(retained))
    }

    /// A stream now holds `now` bytes instead of `before`.
    pub(super) fn account(&mut self, before: usize, now: usize) {
        self.used = self.used.saturating_sub(before).saturating_add(now);
    }

    /// Queues a stream that found no room behind the others.
    pub(super) fn queue(&mut self, id: StreamId, send: &mut SendHalf) {
        if send.pool_turn.is_none() {
            send.pool_turn = Some(self.next);
            self.waiting.insert(self.next, id);
            self.next += 1;
        }
    }

    /// Takes the first waiting stream if a quarter of the limit is free. Call this until it returns
    /// `None`.
    pub(super) fn wake(&mut self) -> Option<StreamId> {
        let free = self.limit.saturating_sub(self.used);
        if free < (self.limit / 4).max(1) {
            return None;
        }
        self.waiting.pop_first().map(|(_, id)| id)
    }

    /// Removes a waiting stream that is over.
    pub(super) fn forget(&mut self, send: &mut SendHalf) {
        if let Some(turn) = send.pool_turn.take() {
            self.waiting.remove(&turn);
        }
    }

    /// Number of bytes that all streams hold.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Number of streams that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
