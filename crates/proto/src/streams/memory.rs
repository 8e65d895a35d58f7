//! The memory that the streams of a connection hold, and its limits.

use super::Streams;
use super::recv::RecvHalf;
use crate::ids::StreamId;

/// Bytes that the state of a stream takes, apart from the data that it holds: its entry in the table,
/// in the scheduler and in the order of resending.
pub(crate) const STREAM_COST: usize = 2048;

/// How much the streams of a connection may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes in all send buffers together.
    pub send: usize,
    /// Bytes that the peer may send on all streams before the application has read any byte.
    pub receive: u64,
    /// Unfinished streams of each direction that the peer may have opened.
    pub streams: u64,
}

impl Streams {
    /// Bytes of storage for data that was written and that the peer may still need.
    #[must_use]
    pub fn send_storage(&self) -> usize {
        self.out.pool.stored()
    }

    /// An upper bound of the bytes of storage for received data that was not read yet.
    #[must_use]
    pub fn receive_storage(&self) -> usize {
        self.received_storage
    }

    /// How many streams have state.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.table.len()
    }

    /// Bytes of stream data that need no more storage: sent bytes that the peer acknowledged, and received
    /// bytes that the application has read. Only ever grows.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.out.pool.freed().saturating_add(self.window.consumed())
    }

    /// Sets how much may be held from now on. Data that is held and credit that was promised already stay.
    pub fn set_allowance(&mut self, Allowance { send, receive, streams }: Allowance) {
        if self.out.pool.set_allowance(send) {
            self.wake_all_writers();
        } else {
            self.wake_writers();
        }
        if self.window.set_allowance(receive) && self.window.is_due() {
            self.control.max_data = true;
        }
        for (remote, due) in self.table.remote.iter_mut().zip(&mut self.control.max_streams) {
            *due |= remote.set_lent(streams);
        }
    }

    /// Gives back the memory that is kept for the next data, events and streams.
    pub(crate) fn rest(&mut self) {
        self.table.shrink();
        self.events.shrink();
        self.control.shrink();
        self.out.rest();
        for recv in self.table.iter_mut().filter_map(|stream| stream.halves.recv_mut()) {
            recv.rest();
            count_storage(&mut self.received_storage, recv);
        }
    }

    /// Counts the storage of a stream's received data anew after it may have changed.
    pub(super) fn count_received(&mut self, id: StreamId) {
        let Some(recv) = self.table.get_mut(id).and_then(|stream| stream.halves.recv_mut()) else {
            return;
        };
        count_storage(&mut self.received_storage, recv);
    }
}

/// Corrects `sum`, the storage of all streams for received data, after one of them changed.
pub(super) fn count_storage(sum: &mut usize, recv: &mut RecvHalf) {
    let stored = recv.storage();
    let before = std::mem::replace(&mut recv.stored, stored);
    *sum = *sum + stored - before;
}
