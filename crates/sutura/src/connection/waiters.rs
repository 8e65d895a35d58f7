//! The tasks that wait for an event of a connection.

use super::turns::Turns;
use crate::sync::wake;
use std::collections::HashMap;
use std::task::Waker;
use sutura_proto::StreamId;
use sutura_schedule::KeyHash;

/// The task that waits for each stream.
pub(super) type StreamWaiters = HashMap<StreamId, Waker, KeyHash>;

/// Tasks that wait for an event of a connection.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    pub(super) connected: Vec<Waker>,
    pub(super) closed: Vec<Waker>,
    /// Tasks that open a stream, by direction.
    pub(super) open: [Turns; 2],
    pub(super) accept: [Vec<Waker>; 2],
    pub(super) datagram: Vec<Waker>,
    /// Tasks that have a message to send.
    pub(super) messages: Vec<Waker>,
    /// Tasks that wait for the outcome of a message.
    pub(super) outcomes: Vec<Waker>,
    pub(super) readable: StreamWaiters,
    pub(super) writable: StreamWaiters,
    pub(super) finished: StreamWaiters,
}

impl Waiters {
    /// Wakes the tasks that wait for streams.
    pub(super) fn wake_streams(&mut self) {
        for map in [&mut self.readable, &mut self.writable, &mut self.finished] {
            map.drain().for_each(|(_, waker)| waker.wake());
        }
        self.open.iter_mut().for_each(|openers| openers.call(u64::MAX));
    }

    pub(super) fn wake_all(&mut self) {
        self.wake_streams();
        let Self { connected, closed, datagram, messages, outcomes, .. } = self;
        let lists = [connected, closed, datagram, messages, outcomes];
        lists.into_iter().chain(&mut self.accept).for_each(wake);
    }
}

/// Wakes the task that waits for a stream. Returns whether there is one.
pub(super) fn wake_stream(map: &mut StreamWaiters, id: StreamId) -> bool {
    map.remove(&id).map(Waker::wake).is_some()
}
