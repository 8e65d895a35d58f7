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
/// * Then all others, in the order of [`Eps`].
///
/// A scheduler has no clock, so it does not know whether a deadline can still be met. FlEC skips
/// messages that cannot arrive in time. Here, a caller that knows the time and the delay of the
/// path can reset or deactivate their streams, or remove their deadlines so that they are sent
/// after all others.
///
/// Activating and deactivating a stream with a deadline takes O(log n). Decisions and charges cost
/// as much as with [`Eps`].
#[derive(Clone, Debug, Default)]
pub struct Deadline {
    slots: KeyMap<Slot>,
    nodes: Vec<Node>,
    places: Vec<Place>,
    vacant: Vec<Slot>,
    control: Eps,
    /// The active streams with a deadline.
    dated: Queue,
    others: Eps,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    part: Part,
    active: bool,
}

/// The group of streams that a stream belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Control,
    /// A stream with a deadline, and its rank among these.
    Dated(u128),
    Others,
}

impl Part {
    fn of(priority: &Priority) -> Self {
        match priority.deadline {
            _ if priority.urgency == Urgency::CONTROL => Self::Control,
            Some(deadline) => {
                Self::Dated(u128::from(deadline) << 8 | priority.urgency.class() as u128)
            }
            None => Self::Others,
        }
    }
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

    /// The scheduler of a group without deadlines.
    fn eps(&mut self, part: Part) -> Option<&mut Eps> {
        match part {
            Part::Control => Some(&mut self.control),
            Part::Dated(_) => None,
            Part::Others => Some(&mut self.others),
        }
    }

    /// Queues a stream in its group, unless it is queued already.
    fn enqueue(&mut self, stream: StreamKey, slot: Slot) {
        let part = self.nodes[slot].part;
        if let Part::Dated(rank) = part {
            if !self.places[slot].is_queued() {
                self.dated.push(&mut self.places[slot], slot, rank, stream);
            }
        } else if let Some(eps) = self.eps(part) {
            eps.activate(stream);
        }
    }

    fn dequeue(&mut self, stream: StreamKey, slot: Slot) {
        if let Some(eps) = self.eps(self.nodes[slot].part) {
            eps.deactivate(stream);
        } else if self.places[slot].is_queued() {
            self.dated.remove(&mut self.places[slot]);
        }
    }
}

impl Scheduler for Deadline {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.slots.contains_key(&stream) {
            return self.reprioritize(stream, priority);
        }
        let node = Node { part: Part::of(&priority), active: false };
        let slot = if let Some(slot) = self.vacant.pop() {
            self.nodes[slot] = node;
            slot
        } else {
            self.nodes.push(node);
            self.places.push(Place::new(0));
            self.nodes.len() - 1
        };
        self.slots.insert(stream, slot);
        if let Some(eps) = self.eps(node.part) {
            eps.insert(stream, priority);
        }
    }

    fn remove(&mut self, stream: StreamKey) {
        if let Some(slot) = self.slots.remove(&stream) {
            self.dequeue(stream, slot);
            if let Some(eps) = self.eps(self.nodes[slot].part) {
                eps.remove(stream);
            }
            self.vacant.push(slot);
        }
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let Some(&slot) = self.slots.get(&stream) else {
            return;
        };
        let Node { part: old, active } = self.nodes[slot];
        let part = Part::of(&priority);
        if part != old {
            self.dequeue(stream, slot);
            if let Some(eps) = self.eps(old) {
                eps.remove(stream);
            }
            self.nodes[slot].part = part;
        }
        if let Some(eps) = self.eps(part) {
            eps.insert(stream, priority);
        }
        if active {
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
        if let Some(grant) = self.control.next(room) {
            return Some(grant);
        }
        match self.dated.first() {
            Some(first) => (room > 0).then_some(Grant { stream: first.key, bytes: room }),
            None => self.others.next(room),
        }
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        // Where streams are served one after the other, a charge does not change the order.
        if let Some(&slot) = self.slots.get(&stream)
            && let Some(eps) = self.eps(self.nodes[slot].part)
        {
            eps.charge(stream, bytes);
        }
    }

    fn is_empty(&self) -> bool {
        self.control.is_empty() && self.dated.is_empty() && self.others.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

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

    #[test]
    fn equal_deadlines_go_by_urgency_and_key_one_after_the_other() {
        let mut scheduler = Deadline::new();
        active(&mut scheduler, 8, dated(3, 100));
        active(&mut scheduler, 4, dated(3, 100));
        active(&mut scheduler, 12, dated(2, 100));
        for stream in [12, 4, 8] {
            for _ in 0..3 {
                assert_eq!(scheduler.next(900), Some(Grant { stream, bytes: 900 }));
                scheduler.charge(stream, 900);
            }
            scheduler.remove(stream);
        }
        assert_eq!(scheduler.next(900), None);
    }

    #[test]
    fn a_deadline_may_come_change_and_go() {
        let mut scheduler = Deadline::new();
        active(&mut scheduler, 0, dated(3, 10));
        active(&mut scheduler, 4, Priority::default());
        scheduler.reprioritize(4, dated(3, 5));
        assert_eq!(scheduler.next(1).map(|grant| grant.stream), Some(4));
        scheduler.reprioritize(4, dated(3, 20));
        assert_eq!(scheduler.next(1).map(|grant| grant.stream), Some(0));
        scheduler.reprioritize(0, Priority::new(0, false).unwrap());
        assert_eq!(scheduler.next(1).map(|grant| grant.stream), Some(4));
        scheduler.reprioritize(4, Priority::new(1, false).unwrap());
        assert_eq!(scheduler.next(1).map(|grant| grant.stream), Some(0));
        // Inactive streams stay inactive.
        scheduler.insert(8, dated(0, 1));
        scheduler.reprioritize(8, dated(0, 0));
        scheduler.reprioritize(99, dated(0, 0));
        assert_eq!(order(&mut scheduler), [0, 4]);
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
            calls in prop::collection::vec(
                (0..7u8, 0..12u64, 0..=8u8, prop::option::of(0..4u64)), 0..300)
        ) {
            let mut scheduler = Deadline::new();
            let mut known: HashMap<StreamKey, (Priority, bool)> = HashMap::new();
            for (call, stream, class, deadline) in calls {
                let urgency = class.checked_sub(1).and_then(Urgency::new);
                let urgency = urgency.unwrap_or(Urgency::CONTROL);
                let priority = Priority { urgency, deadline, ..Priority::default() };
                match call {
                    0 => {
                        scheduler.insert(stream, priority.clone());
                        known.entry(stream).or_insert((Priority::default(), false)).0 = priority;
                    }
                    1 => {
                        scheduler.reprioritize(stream, priority.clone());
                        known.entry(stream).and_modify(|entry| entry.0 = priority);
                    }
                    2 => {
                        scheduler.remove(stream);
                        known.remove(&stream);
                    }
                    3 => {
                        scheduler.deactivate(stream);
                        known.entry(stream).and_modify(|entry| entry.1 = false);
                    }
                    4 => scheduler.charge(stream, 1200),
                    _ => {
                        scheduler.activate(stream);
                        known.entry(stream).and_modify(|entry| entry.1 = true);
                    }
                }
                let first = known
                    .iter()
                    .filter(|(_, (_, active))| *active)
                    .min_by_key(|&(&stream, (priority, _))| {
                        let control = priority.urgency == Urgency::CONTROL;
                        let date = priority.deadline.filter(|_| !control);
                        (!control, date.is_none(), date, priority.urgency, stream)
                    })
                    .map(|(&stream, _)| stream);
                prop_assert_eq!(scheduler.next(1200).map(|grant| grant.stream), first);
                prop_assert_eq!(scheduler.is_empty(), first.is_none());
                prop_assert_eq!(scheduler.streams(), known.len());
            }
            prop_assert!(scheduler.nodes.len() <= 12);
        }
    }
}
