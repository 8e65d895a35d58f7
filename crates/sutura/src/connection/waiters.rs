//! The tasks that wait for an event of a connection.

use super::turns::Turns;
use crate::sync::wake;
use std::collections::HashMap;
use std::task::Waker;
use sutura_proto::StreamId;
use sutura_schedule::KeyHash;

/// What a task waits for on a stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum StreamWait {
    /// Bytes or an end that can be read.
    Readable,
    /// Room for bytes.
    Writable,
    /// That the peer has all bytes, or wants no more.
    Finished,
}

/// The tasks that wait for streams: for each stream and each event of it the task that asked last.
#[derive(Debug, Default)]
pub(super) struct StreamWaiters(HashMap<u64, Waker, KeyHash>);

impl StreamWaiters {
    /// Identifiers of streams are shorter than 62 bits (RFC 9000 section 2.1), which leaves two for the event.
    fn key(id: StreamId, awaited: StreamWait) -> u64 {
        id.0 << 2 | awaited as u64
    }

    /// Lets a task wait in place of the one that waited before.
    pub(super) fn insert(&mut self, id: StreamId, awaited: StreamWait, waker: Waker) {
        self.0.insert(Self::key(id, awaited), waker);
    }

    /// Forgets the task that waits.
    pub(super) fn remove(&mut self, id: StreamId, awaited: StreamWait) {
        self.0.remove(&Self::key(id, awaited));
    }

    /// Wakes the task that waits. Returns whether there is one.
    pub(super) fn wake(&mut self, id: StreamId, awaited: StreamWait) -> bool {
        self.0.remove(&Self::key(id, awaited)).map(Waker::wake).is_some()
    }

    fn wake_all(&mut self) {
        self.0.drain().for_each(|(_, waker)| waker.wake());
    }
}

/// Tasks that wait for an event of a connection.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    pub(super) connected: Vec<Waker>,
    pub(super) closed: Vec<Waker>,
    /// Tasks that open a stream, by direction.
    pub(super) open: [Turns; 2],
    pub(super) accept: [Vec<Waker>; 2],
    pub(super) datagram: Vec<Waker>,
    /// Tasks that wait for room for datagrams.
    pub(super) datagram_room: Vec<Waker>,
    /// Tasks that have a message to send.
    pub(super) messages: Vec<Waker>,
    /// Tasks that wait for the outcome of a message.
    pub(super) outcomes: Vec<Waker>,
    pub(super) streams: StreamWaiters,
}

impl Waiters {
    /// Wakes the tasks that wait for streams.
    pub(super) fn wake_streams(&mut self) {
        self.streams.wake_all();
        self.open.iter_mut().for_each(|openers| openers.call(u64::MAX));
    }

    pub(super) fn wake_all(&mut self) {
        self.wake_streams();
        let Self { connected, closed, datagram, datagram_room, messages, outcomes, .. } = self;
        let lists = [connected, closed, datagram, datagram_room, messages, outcomes];
        lists.into_iter().chain(&mut self.accept).for_each(wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::tests::Task;
    use std::sync::Arc;

    #[test]
    fn each_stream_and_event_has_its_own_task() {
        let ids = [0, 1, 4, (1 << 62) - 1].map(StreamId);
        let events = [StreamWait::Readable, StreamWait::Writable, StreamWait::Finished];
        let all: Vec<_> = ids.iter().flat_map(|id| events.map(|event| (*id, event))).collect();
        let tasks: Vec<_> = all.iter().map(|_| Arc::<Task>::default()).collect();
        let mut waiters = StreamWaiters::default();
        for ((id, event), task) in all.iter().zip(&tasks) {
            waiters.insert(*id, *event, task.clone().into());
        }
        for (at, (id, event)) in all.iter().enumerate() {
            assert!(waiters.wake(*id, *event));
            assert!(!waiters.wake(*id, *event));
            let woken = |task: &Arc<Task>| task.woken() > 0;
            assert_eq!(tasks.iter().map(woken).filter(|woken| *woken).count(), at + 1);
            assert!(woken(&tasks[at]));
        }
    }
}
