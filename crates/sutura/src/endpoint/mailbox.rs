//! How one worker of an endpoint hands over a datagram that belongs to a connection of another.
//!
//! The system sends all datagrams of one address of a client to the same worker. Only a client that moves, or
//! that a NAT moves, reaches another one, whose socket its datagrams then go on arriving at.

use crate::dirty::Dirty;
use crate::socket::Received;
use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Most datagrams that wait for a worker. Those beyond are lost, as in a full socket buffer: anybody may send
/// datagrams that seem to be another worker's.
const MAX_DATAGRAMS: usize = 1024;
/// Most bytes of them.
const MAX_BYTES: usize = 2 << 20;

/// The datagrams that others have for a worker.
#[derive(Debug)]
pub(crate) struct Mailbox {
    waiting: Mutex<Waiting>,
    /// Wakes the worker's driver.
    dirty: Arc<Dirty>,
}

#[derive(Debug, Default)]
struct Waiting {
    datagrams: VecDeque<(Received, Vec<u8>)>,
    bytes: usize,
}

impl Mailbox {
    /// A mailbox of the worker whose driver this wakes.
    pub(crate) fn new(dirty: Arc<Dirty>) -> Self {
        Self { waiting: Mutex::default(), dirty }
    }

    /// Leaves a datagram, if there is room.
    pub(crate) fn push(&self, meta: &Received, datagram: &[u8]) {
        let mut waiting = lock(&self.waiting);
        let bytes = waiting.bytes + datagram.len();
        if waiting.datagrams.len() >= MAX_DATAGRAMS || bytes > MAX_BYTES {
            return;
        }
        waiting.bytes = bytes;
        waiting.datagrams.push_back((*meta, datagram.to_vec()));
        drop(waiting);
        self.dirty.wake();
    }

    /// Takes all datagrams, the oldest first.
    pub(crate) fn take(&self) -> impl Iterator<Item = (Received, Vec<u8>)> {
        let mut waiting = lock(&self.waiting);
        waiting.bytes = 0;
        std::mem::take(&mut waiting.datagrams).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox() -> Mailbox {
        Mailbox::new(Arc::default())
    }

    #[test]
    fn datagrams_arrive_in_order_with_their_addresses() {
        let mailbox = mailbox();
        for n in 0..10 {
            mailbox.push(&Received::new(([192, 0, 2, n], 7).into()), &[n]);
        }
        let taken: Vec<_> = mailbox.take().collect();
        let expected = |n| (Received::new(([192, 0, 2, n], 7).into()), vec![n]);
        assert_eq!(taken, (0..10).map(expected).collect::<Vec<_>>());
        assert_eq!(mailbox.take().count(), 0);
    }

    #[test]
    fn a_flood_stays_within_bounds_and_leaves_room_when_it_is_over() {
        let (mailbox, meta) = (mailbox(), Received::new(([192, 0, 2, 1], 7).into()));
        for (size, expected) in [(21, MAX_DATAGRAMS), (65_507, MAX_BYTES / 65_507)] {
            (0..10 * MAX_DATAGRAMS).for_each(|_| mailbox.push(&meta, &vec![0; size]));
            assert_eq!(mailbox.take().count(), expected);
            mailbox.push(&meta, &[1]);
            assert_eq!(mailbox.take().collect::<Vec<_>>(), [(meta, vec![1])]);
        }
    }
}
