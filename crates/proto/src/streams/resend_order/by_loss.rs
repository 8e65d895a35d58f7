//! Resending in the order of loss.

use super::{Precedence, ResendOrder, ResendOrderFactory};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use sutura_schedule::registry::Entry;
use sutura_schedule::{KeyHash, Priority, Scheduler, StreamKey};

pub(super) const ENTRY: Entry<dyn ResendOrderFactory> =
    Entry::new("by-loss", "lost data goes first, in the order of loss", |_| Ok(Arc::new(ByLoss)));

/// Lost data is sent first, in the order of loss, whatever the streams' priorities: the data that was lost
/// first has kept a reader waiting longest. The default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByLoss;

impl ResendOrderFactory for ByLoss {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn build(&self, _scheduler: &dyn Fn() -> Box<dyn Scheduler>) -> Box<dyn ResendOrder> {
        Box::new(Losses::default())
    }
}

/// Minimum number of stale places before the queue is compacted. Stale places must also outnumber the other
/// places.
const STALE_PLACES: usize = 64;

/// A stream's places in the queue.
#[derive(Debug, Default)]
struct Places {
    /// Number of frames that wait.
    waiting: usize,
    /// Number of the stream's first places in the queue whose frames no longer wait.
    stale: usize,
}

/// The waiting frames, in the order of loss.
#[derive(Debug, Default)]
struct Losses {
    /// The streams that exist; frames of other streams are not queued.
    streams: HashSet<StreamKey, KeyHash>,
    /// The stream of each frame, oldest loss first. The first place is never stale.
    queue: VecDeque<StreamKey>,
    /// The streams in the queue.
    places: BTreeMap<StreamKey, Places>,
    stale: usize,
}

impl Losses {
    /// Removes the first place if its frame no longer waits.
    fn skip_stale(&mut self) -> bool {
        let Some(front) = self.queue.front() else { return false };
        let Some(places) = self.places.get_mut(front).filter(|p| p.stale > 0) else { return false };
        places.stale -= 1;
        self.stale -= 1;
        if places.stale + places.waiting == 0 {
            self.places.remove(front);
        }
        self.queue.pop_front();
        true
    }

    /// Removes all stale places.
    fn compact(&mut self) {
        let places = &mut self.places;
        self.queue.retain(|stream| match places.get_mut(stream) {
            Some(p) if p.stale > 0 => {
                p.stale -= 1;
                false
            }
            _ => true,
        });
        self.places.retain(|_, p| p.waiting > 0);
        self.stale = 0;
    }
}

impl ResendOrder for Losses {
    fn precedence(&self) -> Precedence {
        Precedence::First
    }

    fn insert(&mut self, stream: StreamKey, _priority: &Priority) {
        self.streams.insert(stream);
    }

    fn remove(&mut self, stream: StreamKey) {
        self.dequeued(stream, 0);
        self.streams.remove(&stream);
    }

    fn reprioritize(&mut self, _stream: StreamKey, _priority: &Priority) {}

    fn queued(&mut self, stream: StreamKey) {
        if !self.streams.contains(&stream) {
            return;
        }
        self.queue.push_back(stream);
        self.places.entry(stream).or_default().waiting += 1;
    }

    fn dequeued(&mut self, stream: StreamKey, left: usize) {
        let Some(places) = self.places.get_mut(&stream) else { return };
        let gone = places.waiting.saturating_sub(left);
        places.waiting -= gone;
        places.stale += gone;
        self.stale += gone;
        while self.skip_stale() {}
        if self.stale > STALE_PLACES.max(self.queue.len() / 2) {
            self.compact();
        }
    }

    fn charge(&mut self, _stream: StreamKey, _bytes: usize) {}

    fn next(&self) -> Option<StreamKey> {
        self.queue.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An order with five streams.
    fn five_streams() -> Losses {
        let mut order = Losses::default();
        (0..5).for_each(|stream| order.insert(stream, &Priority::default()));
        order
    }

    #[test]
    fn a_frame_of_an_unknown_stream_does_not_wait() {
        let mut order = five_streams();
        order.queued(7);
        order.remove(3);
        order.queued(3);
        assert_eq!(order.next(), None);
    }

    #[test]
    fn streams_come_as_often_as_they_lost_frames_and_in_that_order() {
        let mut order = five_streams();
        let mut left = BTreeMap::new();
        for stream in [1, 2, 1, 3] {
            order.queued(stream);
            *left.entry(stream).or_insert(0) += 1;
        }
        let mut served = Vec::new();
        while let Some(stream) = order.next() {
            served.push(stream);
            let left = left.get_mut(&stream).unwrap();
            *left -= 1;
            order.dequeued(stream, *left);
        }
        assert_eq!(served, [1, 2, 1, 3]);
    }

    #[test]
    fn a_stream_that_was_cleared_out_of_turn_gives_up_no_turn_of_another() {
        let mut order = five_streams();
        [1, 2].into_iter().for_each(|stream| order.queued(stream));
        order.dequeued(2, 0);
        assert_eq!(order.next(), Some(1));
        order.dequeued(1, 0);
        assert_eq!(order.next(), None, "nothing of 2 waits any more");
    }

    proptest! {
        /// The model keeps a list of frames and removes them one by one.
        #[test]
        fn behaves_like_a_list_of_frames(ops in prop::collection::vec((0..5u64, 0..4usize), 0..600)) {
            let mut order = five_streams();
            let mut model: Vec<StreamKey> = Vec::new();
            for (stream, op) in ops {
                let waiting = model.iter().filter(|s| **s == stream).count();
                let gone = match op {
                    0 | 1 => {
                        order.queued(stream);
                        model.push(stream);
                        0
                    }
                    2 => waiting.min(1),
                    _ => waiting,
                };
                for _ in 0..gone {
                    let first = model.iter().position(|s| *s == stream).unwrap();
                    model.remove(first);
                }
                if op >= 2 {
                    order.dequeued(stream, waiting - gone);
                }
                prop_assert_eq!(order.next(), model.first().copied());
                prop_assert!(order.queue.len() <= 2 * model.len() + 2 * STALE_PLACES);
            }
        }
    }
}
