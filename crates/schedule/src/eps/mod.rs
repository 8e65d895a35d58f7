//! The Extensible Prioritization Scheme (RFC 9218).

mod heap;
mod node;
mod ring;
#[cfg(test)]
mod tests;

use heap::Heap;
use node::{Node, Place, Rank, Slot};
use ring::Ring;

use std::sync::Arc;

use crate::hash::KeyMap;
use crate::registry::Entry;
use crate::{Grant, Priority, Scheduler, SchedulerFactory, Scheme, StreamKey, Urgency};

impl Scheme {
    /// The Extensible Prioritization Scheme of RFC 9218: [`Eps`].
    pub const EPS: Self = Self::new("eps", || Box::new(Eps::new()));
}

pub(crate) const ENTRY: Entry<dyn SchedulerFactory> =
    Entry::new(Scheme::EPS.name(), "by urgency, then in sequence or in turns (RFC 9218)", |_| {
        Ok(Arc::new(Scheme::EPS))
    });

/// The scheduler suggested by RFC 9218, section 10.
///
/// * Streams are served in order of urgency, [`Urgency::CONTROL`] before urgency 0. A stream only
///   sends while no more urgent one can.
/// * Within an urgency, the non-incremental streams go first, one after the other in order of their
///   keys: a response that is useful only as a whole gains nothing from sharing. The RFC recommends
///   to avoid, where possible, that either kind starves the other, and leaves the split open. Here,
///   incremental streams wait; to avoid that, they need a more urgent priority.
/// * Then the incremental streams share. The one that has waited longest is granted all of the
///   room, and moves behind all others once it is charged for anything. Turns are counted in
///   packets, so a repair symbol or a retransmission charged to a stream is a turn too.
///
/// A stream that becomes active queues behind the active incremental streams of its urgency.
///
/// Decisions take constant time. Activating and deactivating take constant time for incremental
/// streams and O(log n) for others. Memory grows with the largest number of streams inserted at
/// once; beyond that, nothing is allocated.
#[derive(Clone, Debug, Default)]
pub struct Eps {
    nodes: Vec<Node>,
    vacant: Vec<Slot>,
    slots: KeyMap<Slot>,
    classes: [Class; Urgency::CLASSES],
    /// Bit `n` is set while urgency `n` has an active stream.
    occupied: u16,
}

/// The active streams of one urgency.
#[derive(Clone, Debug, Default)]
struct Class {
    sequential: Heap,
    incremental: Ring,
}

impl Eps {
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

    fn slot(&self, stream: StreamKey) -> Option<Slot> {
        self.slots.get(&stream).copied()
    }

    /// Adds a stream to the queue of its priority, unless it is in one already.
    fn enqueue(&mut self, slot: Slot) {
        let Node { rank, place, .. } = self.nodes[slot];
        if place != Place::Nowhere {
            return;
        }
        let index = rank.urgency.class();
        let class = &mut self.classes[index];
        if rank.incremental {
            class.incremental.push_back(&mut self.nodes, slot);
        } else {
            class.sequential.push(&mut self.nodes, slot);
        }
        self.occupied |= 1 << index;
    }

    /// Removes a stream from its queue. Returns whether it was in one.
    fn dequeue(&mut self, slot: Slot) -> bool {
        let Node { rank, place, .. } = self.nodes[slot];
        let index = rank.urgency.class();
        let class = &mut self.classes[index];
        match place {
            Place::Nowhere => return false,
            Place::Heap(position) => class.sequential.remove(&mut self.nodes, position),
            Place::Ring { .. } => class.incremental.remove(&mut self.nodes, slot),
        }
        if class.sequential.is_empty() && class.incremental.is_empty() {
            self.occupied &= !(1 << index);
        }
        true
    }
}

impl Scheduler for Eps {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.slots.contains_key(&stream) {
            return self.reprioritize(stream, priority);
        }
        let node = Node { key: stream, rank: Rank::from(&priority), place: Place::Nowhere };
        let slot = if let Some(slot) = self.vacant.pop() {
            self.nodes[slot] = node;
            slot
        } else {
            self.nodes.push(node);
            self.nodes.len() - 1
        };
        self.slots.insert(stream, slot);
    }

    fn remove(&mut self, stream: StreamKey) {
        if let Some(slot) = self.slots.remove(&stream) {
            self.dequeue(slot);
            self.vacant.push(slot);
        }
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let Some(slot) = self.slot(stream) else {
            return;
        };
        let rank = Rank::from(&priority);
        if self.nodes[slot].rank == rank {
            return;
        }
        let waited = self.dequeue(slot);
        self.nodes[slot].rank = rank;
        if waited {
            self.enqueue(slot);
        }
    }

    fn activate(&mut self, stream: StreamKey) {
        if let Some(slot) = self.slot(stream) {
            self.enqueue(slot);
        }
    }

    fn deactivate(&mut self, stream: StreamKey) {
        if let Some(slot) = self.slot(stream) {
            self.dequeue(slot);
        }
    }

    fn next(&self, room: usize) -> Option<Grant> {
        if room == 0 {
            return None;
        }
        let class = self.classes.get(self.occupied.trailing_zeros() as usize)?;
        let slot = class.sequential.first().or_else(|| class.incremental.first())?;
        Some(Grant { stream: self.nodes[slot].key, bytes: room })
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        let Some(slot) = self.slot(stream) else {
            return;
        };
        let Node { rank, place, .. } = self.nodes[slot];
        if bytes > 0 && matches!(place, Place::Ring { .. }) {
            let class = &mut self.classes[rank.urgency.class()];
            class.incremental.move_to_back(&mut self.nodes, slot);
        }
    }

    fn is_empty(&self) -> bool {
        self.occupied == 0
    }
}
