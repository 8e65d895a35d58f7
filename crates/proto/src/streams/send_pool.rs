//! What all streams together may hold in their send buffers.
//!
//! The limit keeps a connection's memory within bounds. It must not stop a stream that becomes
//! urgent from writing because less urgent ones have used it up. So every stream may always hold
//! [`STREAM_RESERVE`] bytes, and streams that wait for more are woken in the order in which they
//! came.

use super::send::SendHalf;
use crate::ids::StreamId;
use std::collections::VecDeque;

/// Bytes that a stream may hold (within its own limit) though the connection's limit is used up.
pub(super) const STREAM_RESERVE: usize = 64 * 1024;

/// The connection's share of send buffers.
///
/// It holds at most its limit and [`STREAM_RESERVE`] for each stream.
#[derive(Debug)]
pub(super) struct SendPool {
    limit: usize,
    used: usize,
    /// Streams that found no room here, each once.
    waiting: VecDeque<StreamId>,
}

impl SendPool {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, used: 0, waiting: VecDeque::new() }
    }

    /// Bytes that a stream which holds `retained` may add.
    pub(super) fn room(&self, retained: usize) -> usize {
        self.limit.saturating_sub(self.used).max(STREAM_RESERVE.saturating_sub(retained))
    }

    /// A stream holds `now` bytes, and held `before`.
    pub(super) fn account(&mut self, before: usize, now: usize) {
        self.used = self.used.saturating_sub(before).saturating_add(now);
    }

    /// A stream found no room: it queues, behind those that do already.
    pub(super) fn queue(&mut self, id: StreamId, send: &mut SendHalf) {
        if !std::mem::replace(&mut send.pool_queued, true) {
            self.waiting.push_back(id);
        }
    }

    /// The first stream that waits, if a quarter of the limit is free: to be called until `None`.
    /// It waits no longer.
    pub(super) fn wake(&mut self) -> Option<StreamId> {
        let free = self.limit.saturating_sub(self.used);
        if free < (self.limit / 4).max(1) {
            return None;
        }
        self.waiting.pop_front()
    }

    /// A stream that waited is over.
    pub(super) fn forget(&mut self, id: StreamId) {
        self.waiting.retain(|waiting| *waiting != id);
    }

    /// Bytes that all streams hold.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Streams that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
