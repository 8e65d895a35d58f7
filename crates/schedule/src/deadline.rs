//! Earliest deadline first.

use std::sync::Arc;

use crate::hash::KeyMap;
use crate::queue::{Place, Queue, Slot};
use crate::registry::Entry;
use crate::{Eps, Grant, Priority, Scheduler, SchedulerFactory, Scheme, StreamKey, Urgency};

impl Scheme {
    /// Earliest deadline first: [`Deadline`].
    pub const DEADLINE: Self = Self::new("deadline", || Box::new(Deadline::new()));
}

pub(crate) const ENTRY: Entry<dyn SchedulerFactory> = Entry::new(
    Scheme::DEADLINE.name(),
    "the earliest deadline first, streams without one last",
    |_| Ok(Arc::new(Scheme::DEADLINE)),
);

/// Earliest deadline first, for messages that are useful only until a certain time (after the
/// scheduler of FlEC, Michel et al. 2022, section VIII-A2).
///
/// * [`Urgency::CONTROL`] first.
/// * Then the streams with a [`deadline`](Priority::deadline), the earliest first. Ties are broken
///   by urgency, then by key. If any order can meet all deadlines, this one does.
/// * Then all other streams, in the order of [`Eps`].
///
/// A scheduler has no clock, so it does not know whether a deadline can still be met. FlEC skips
/// messages that cannot arrive in time (its Algorithm 3). Here, that is up to the caller, which knows the
/// time and the delay of the path: before it asks for the next stream, it removes the deadlines that can no
/// longer be met, so that their streams are sent after all others, or resets the streams. `sutura-proto` does
/// so for messages.
///
/// Activating and deactivating a stream with a deadline takes O(log n). Decisions and charges cost
/// as much as with [`Eps`].
#[derive(Clone, Debug, Default)]
pub struct Deadline {
    slots: KeyMap<Slot>,
    nodes: Vec<DeadlineNode>,
    vacant: Vec<Slot>,
    /// The active streams with a deadline.
    dated: Queue,
    /// The streams without a deadline, among them the streams that carry the protocol.
    undated: Eps,
}

#[derive(Clone, Copy, Debug)]
struct DeadlineNode {
    /// The rank among the streams with a deadline; `None` without one.
    rank: Option<u128>,
    active: bool,
    place: Place,
}

fn rank(priority: &Priority) -> Option<u128> {
    let deadline = priority.deadline.filter(|_| priority.urgency != Urgency::CONTROL)?;
    Some(u128::from(deadline) << 8 | priority.urgency.class() as u128)
}

impl Deadline {
    /// A scheduler without streams.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of inserted streams, active or not.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.slots.len()
    }

    /// Queues a stream, unless it is queued already.
    fn enqueue(&mut self, stream: StreamKey, slot: Slot) {
        let DeadlineNode { rank, place, .. } = &mut self.nodes[slot];
        match *rank {
            Some(rank) if !place.is_queued() => self.dated.push(place, slot, rank, stream),
            Some(_) => {}
            None => self.undated.activate(stream),
        }
    }

    fn dequeue(&mut self, stream: StreamKey, slot: Slot) {
        let DeadlineNode { rank, place, .. } = &mut self.nodes[slot];
        match rank {
            Some(_) => self.dated.remove(place),
            None => self.undated.deactivate(stream),
        }
    }
}

impl Scheduler for Deadline {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.slots.contains_key(&stream) {
            return self.reprioritize(stream, priority);
        }
        let rank = rank(&priority);
        let node = DeadlineNode { rank, active: false, place: Place::new(0) };
        let slot = if let Some(slot) = self.vacant.pop() {
            self.nodes[slot] = node;
            slot
        } else {
            self.nodes.push(node);
            self.nodes.len() - 1
        };
        self.slots.insert(stream, slot);
        if rank.is_none() {
            self.undated.insert(stream, priority);
        }
    }

    fn remove(&mut self, stream: StreamKey) {
        if let Some(slot) = self.slots.remove(&stream) {
            self.dequeue(stream, slot);
            self.undated.remove(stream);
            self.vacant.push(slot);
        }
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let Some(&slot) = self.slots.get(&stream) else {
            return;
        };
        let rank = rank(&priority);
        if rank != self.nodes[slot].rank {
            self.dequeue(stream, slot);
            self.undated.remove(stream);
            self.nodes[slot].rank = rank;
        }
        if rank.is_none() {
            self.undated.insert(stream, priority);
        }
        if self.nodes[slot].active {
            self.enqueue(stream, slot);
        }
    }

    fn activate(&mut self, stream: StreamKey) {
        if let Some(&slot) = self.slots.get(&stream) {
            self.nodes[slot].active = true;
            self.enqueue(stream, slot);
        }
    }

    fn deactivate(&mut self, stream: StreamKey) {
        if let Some(&slot) = self.slots.get(&stream) {
            self.nodes[slot].active = false;
            self.dequeue(stream, slot);
        }
    }

    fn next(&self, room: usize) -> Option<Grant> {
        match self.dated.first() {
            Some(first) if !self.undated.has_control() => {
                (room > 0).then_some(Grant { stream: first.key, bytes: room })
            }
            _ => self.undated.next(room),
        }
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        // Streams with a deadline are served one after the other: a charge does not change their order.
        self.undated.charge(stream, bytes);
    }

    fn is_empty(&self) -> bool {
        self.dated.is_empty() && self.undated.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conformance::{Call, Known, apply};

    fn dated(urgency: u8, deadline: u64) -> Priority {
        Priority { deadline: Some(deadline), ..Priority::new(urgency, true).unwrap() }
    }

    fn active(scheduler: &mut Deadline, stream: StreamKey, priority: Priority) {
        scheduler.insert(stream, priority);
        scheduler.activate(stream);
    }

    /// Serves all active streams until none is left, with one packet each. Returns their order.
    fn order(scheduler: &mut Deadline) -> Vec<StreamKey> {
        std::iter::from_fn(|| {
            let Grant { stream, bytes } = scheduler.next(1200)?;
            scheduler.charge(stream, bytes);
            scheduler.deactivate(stream);
            Some(stream)
        })
        .collect()
    }

    #[test]
    fn the_earliest_deadline_goes_first_and_streams_without_one_last() {
        let mut scheduler = Deadline::new();
        active(&mut scheduler, 0, Priority::new(0, false).unwrap());
        active(&mut scheduler, 4, dated(7, 300));
        active(&mut scheduler, 8, dated(3, 100));
        active(&mut scheduler, 12, dated(3, u64::MAX));
        active(&mut scheduler, 16, Priority::CONTROL);
        active(&mut scheduler, 20, Priority { deadline: Some(400), ..Priority::CONTROL });
        active(&mut scheduler, 24, Priority::new(1, true).unwrap());
        assert_eq!(order(&mut scheduler), [16, 20, 8, 4, 12, 0, 24]);
        assert!(scheduler.is_empty());
        assert_eq!(scheduler.streams(), 7);
    }

    /// If all messages can be in time, they are (Jackson's rule): compared with every other order
    /// of four messages.
    #[test]
    fn all_are_in_time_if_any_order_gets_them_there_in_time() {
        for case in 0..4096u64 {
            let jobs: Vec<(u64, u64)> = (0..4)
                .map(|n| (1 + (case >> (3 * n)) % 3, 1 + ((case * 7919) >> (2 * n)) % 10))
                .collect();
            let late = |order: &[usize]| {
                let mut now = 0;
                order.iter().any(|&job| {
                    now += jobs[job].0;
                    now > jobs[job].1
                })
            };
            let mut scheduler = Deadline::new();
            for (stream, &(_, deadline)) in (0u64..).zip(&jobs) {
                active(&mut scheduler, stream, dated(3, deadline));
            }
            let edf: Vec<usize> = order(&mut scheduler).iter().map(|&s| s as usize).collect();
            let mut orders = vec![vec![]];
            for job in 0..4usize {
                orders = orders
                    .iter()
                    .flat_map(|order| {
                        (0..=order.len()).map(move |at| {
                            let mut order = order.clone();
                            order.insert(at, job);
                            order
                        })
                    })
                    .collect();
            }
            assert!(!late(&edf) || orders.iter().all(|order| late(order)), "{jobs:?}");
        }
    }

    proptest! {
        #[test]
        fn decides_like_a_sorted_list(
            calls in prop::collection::vec((0..7u8, 0..12u64, any_priority()), 0..300)
        ) {
            let mut scheduler = Deadline::new();
            let mut known = Known::default();
            for (call, stream, priority) in calls {
                let call = match call {
                    0 => Call::Insert(stream, priority),
                    1 => Call::Reprioritize(stream, priority),
                    2 => Call::Remove(stream),
                    3 => Call::Deactivate(stream),
                    4 => Call::Charge(stream, 1200),
                    _ => Call::Activate(stream),
                };
                apply(&mut scheduler, &call);
                known.note(&call);
                let first = known.active().min_by_key(|(stream, priority)| {
                    let control = priority.urgency == Urgency::CONTROL;
                    let date = priority.deadline.filter(|_| !control);
                    (!control, date.is_none(), date, priority.urgency, *stream)
                });
                let first = first.map(|(stream, _)| Grant { stream, bytes: 900 });
                prop_assert_eq!(scheduler.next(900), first);
                prop_assert_eq!(scheduler.is_empty(), first.is_none());
                prop_assert_eq!(scheduler.streams(), known.streams().count());
            }
            prop_assert!(scheduler.nodes.len() <= 12);
        }
    }

    fn any_priority() -> impl Strategy<Value = Priority> {
        (0..=8u8, prop::option::of(0..4u64)).prop_map(|(class, deadline)| {
            let urgency = class.checked_sub(1).and_then(Urgency::new).unwrap_or(Urgency::CONTROL);
            Priority { urgency, deadline, ..Priority::default() }
        })
    }
}
