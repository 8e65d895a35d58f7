//! The connection-wide limit on send buffers.
//!
//! The limit bounds the memory of a connection. But less urgent streams that have used it up must not block a
//! stream that becomes urgent. So every stream may always hold a reserve, usually [`STREAM_RESERVE`] bytes,
//! and streams that wait for more room are woken in the order in which they queued.
//!
//! The process may lend the connection less than the limit ([`SendPool::set_allowance`]). Then all streams
//! share one half of the allowance, and the other half is the sum of their reserves: together they stay
//! within the allowance, and still no stream can keep another stream from sending.

use super::optional_number::OptionalNumber;
use super::send::SendHalf;
use crate::ids::StreamId;
use std::collections::BTreeMap;

/// Bytes that a stream may always hold (within its own limit), even if the connection's limit is
/// used up, unless the connection is allowed less than its limit.
pub(super) const STREAM_RESERVE: usize = 64 * 1024;

/// The send-buffer budget of a connection.
///
/// All streams together hold at most the limit plus [`STREAM_RESERVE`] for each stream, and write no
/// more than the allowance.
#[derive(Debug)]
pub(super) struct SendPool {
    limit: usize,
    /// Bytes that all streams together may hold.
    allowance: usize,
    /// The least allowance under which one of the waiting streams found no room.
    tried: usize,
    used: usize,
    /// Bytes of storage that all streams hold. Storage is freed later than the bytes in it are acknowledged.
    stored: usize,
    /// Bytes that streams held and hold no more.
    freed: u64,
    /// Streams that may hold a reserve.
    streams: usize,
    /// Streams that found no room, each once, by turn.
    waiting: BTreeMap<u64, StreamId>,
    /// The turn of the next stream that finds no room.
    next: u64,
}

impl SendPool {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            allowance: usize::MAX,
            tried: usize::MAX,
            used: 0,
            stored: 0,
            freed: 0,
            streams: 0,
            waiting: BTreeMap::new(),
            next: 0,
        }
    }

    /// Bytes that a stream may always hold.
    pub(super) fn reserve(&self) -> usize {
        self.reserve_of(self.streams)
    }

    fn reserve_of(&self, streams: usize) -> usize {
        STREAM_RESERVE.min(self.allowance / 2 / streams.max(1))
    }

    /// Bytes that all streams share.
    fn shared(&self) -> usize {
        self.limit.min(self.allowance / 2)
    }

    /// Number of bytes that a stream which holds `retained` bytes may add.
    pub(super) fn room(&self, retained: usize) -> usize {
        self.free().max(self.reserve().saturating_sub(retained))
    }

    /// Number of bytes that a stream which is opened now may hold.
    pub(super) fn room_of_new(&self) -> usize {
        self.free().max(self.reserve_of(self.streams + 1))
    }

    /// The free part of the bytes that all streams share. Acknowledged bytes that are still stored count only
    /// when storage would exceed the allowance otherwise.
    fn free(&self) -> usize {
        let left = self.allowance.saturating_sub(self.stored);
        self.shared().saturating_sub(self.used).min(left)
    }

    /// A stream may hold a reserve from now on.
    pub(super) fn opened(&mut self) {
        self.streams += 1;
    }

    /// A stream that had `stored` bytes of storage is over.
    pub(super) fn closed(&mut self, stored: usize) {
        self.streams = self.streams.saturating_sub(1);
        self.stored = self.stored.saturating_sub(stored);
    }

    /// Sets how many bytes all streams together may hold. The bytes that they hold already stay. Returns
    /// whether all waiting streams should try again, because they are allowed considerably more.
    pub(super) fn set_allowance(&mut self, bytes: usize) -> bool {
        self.allowance = bytes;
        bytes / 5 > self.tried / 4 && !self.waiting.is_empty()
    }

    /// A stream now holds `now` bytes instead of `before`.
    pub(super) fn account(&mut self, before: usize, now: usize) {
        self.used = self.used.saturating_sub(before).saturating_add(now);
        self.freed = self.freed.saturating_add(before.saturating_sub(now) as u64);
    }

    /// Bytes that streams held and hold no more. Only ever grows.
    pub(super) fn freed(&self) -> u64 {
        self.freed
    }

    /// A stream now has `now` bytes of storage instead of `before`.
    pub(super) fn account_storage(&mut self, before: usize, now: usize) {
        self.stored = self.stored.saturating_sub(before).saturating_add(now);
    }

    /// Bytes of storage that all streams hold.
    pub(super) fn stored(&self) -> usize {
        self.stored
    }

    /// Queues a stream that found no room behind the other waiting streams.
    pub(super) fn queue(&mut self, id: StreamId, send: &mut SendHalf) {
        self.tried =
            self.allowance.min(if self.waiting.is_empty() { usize::MAX } else { self.tried });
        if send.pool_turn.get().is_none() {
            send.pool_turn = OptionalNumber::some(self.next);
            self.waiting.insert(self.next, id);
            self.next += 1;
        }
    }

    /// Takes the first waiting stream if a quarter of the shared bytes is free. Call this until it returns
    /// `None`.
    pub(super) fn wake(&mut self) -> Option<StreamId> {
        if self.free() < (self.shared() / 4).max(1) {
            return None;
        }
        self.waiting.pop_first().map(|(_, id)| id)
    }

    /// Takes all waiting streams.
    pub(super) fn take_waiting(&mut self) -> impl Iterator<Item = StreamId> + use<> {
        std::mem::take(&mut self.waiting).into_values()
    }

    /// Removes a waiting stream that is over.
    pub(super) fn forget(&mut self, send: &mut SendHalf) {
        if let Some(turn) = send.pool_turn.take() {
            self.waiting.remove(&turn);
        }
    }

    /// Number of bytes that all streams hold.
    #[cfg(feature = "testing")]
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Number of streams that wait.
    #[cfg(feature = "testing")]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
