//! The Extensible Prioritization Scheme (RFC 9218).

mod node;
mod ring;
#[cfg(test)]
mod tests;

use node::{EpsRank, Slot, StreamNode, Turn};
use ring::Ring;

use std::sync::Arc;

use crate::hash::KeyMap;
use crate::queue::{Place as QueuePlace, Queue, Queued};
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
///   incremental streams wait; to avoid starvation, they need a more urgent priority.
/// * Then the incremental streams share. The stream that has waited longest is granted all of the room, and
///   moves behind all others once it is charged for anything. Turns are counted in packets, so a repair
///   symbol or a retransmission charged to a stream is a turn too.
///
/// A stream that becomes active queues behind the active incremental streams of its urgency.
///
/// Decisions take constant time. Activating and deactivating take constant time for incremental
/// streams and O(log n) for others. Memory grows with the largest number of streams inserted at
/// once; beyond that number, nothing is allocated.
#[derive(Clone, Debug, Default)]
pub struct Eps {
    nodes: Vec<StreamNode>,
    vacant: Vec<Slot>,
    slots: KeyMap<Slot>,
    /// The active non-incremental streams, by urgency and key.
    sequential: Queue,
    /// The active incremental streams of each urgency.
    rings: [Ring; Urgency::CLASSES],
    /// Bit `n` is set while ring `n` has a member.
    occupied: u16,
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
        let StreamNode { key, rank, place } = self.nodes[slot];
        if !matches!(place, Turn::Nowhere) {
            return;
        }
        let class = rank.urgency.class();
        if rank.incremental {
            self.rings[class].push_back(&mut self.nodes, slot);
            self.occupied |= 1 << class;
        } else {
            let mut place = QueuePlace::new(0);
            self.sequential.push(&mut place, slot, class as u128, key);
            self.nodes[slot].place = Turn::Queue(place);
        }
    }

    /// Removes a stream from its queue. Returns whether it was in one.
    fn dequeue(&mut self, slot: Slot) -> bool {
        let StreamNode { rank, place, .. } = self.nodes[slot];
        match place {
            Turn::Nowhere => return false,
            Turn::Queue(mut place) => {
                self.sequential.remove(&mut place);
                self.nodes[slot].place = Turn::Nowhere;
            }
            Turn::Ring { .. } => {
                let class = rank.urgency.class();
                self.rings[class].remove(&mut self.nodes, slot);
                self.occupied &= !(u16::from(self.rings[class].is_empty()) << class);
            }
        }
        true
    }

    /// The stream that goes first.
    fn first(&self) -> Option<&StreamNode> {
        let class = self.occupied.trailing_zeros() as usize;
        let sequential = self.sequential.first().map(Queued::slot).filter(|&slot| {
            // Non-incremental streams go before the incremental ones of their urgency.
            self.nodes[slot].rank.urgency.class() <= class
        });
        let slot = sequential.or_else(|| self.rings.get(class)?.first())?;
        Some(&self.nodes[slot])
    }

    /// Whether a stream of [`Urgency::CONTROL`] is active.
    pub(crate) fn has_control(&self) -> bool {
        self.first().is_some_and(|first| first.rank.urgency == Urgency::CONTROL)
    }
}

impl Scheduler for Eps {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.slots.contains_key(&stream) {
            return self.reprioritize(stream, priority);
        }
        let node = StreamNode { key: stream, rank: EpsRank::from(&priority), place: Turn::Nowhere };
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
        let rank = EpsRank::from(&priority);
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
        let stream = self.first()?.key;
        (room > 0).then_some(Grant { stream, bytes: room })
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        let Some(slot) = self.slot(stream) else {
            return;
        };
        let StreamNode { rank, place, .. } = self.nodes[slot];
        if bytes > 0 && matches!(place, Turn::Ring { .. }) {
            self.rings[rank.urgency.class()].move_to_back(&mut self.nodes, slot);
        }
    }

    fn is_empty(&self) -> bool {
        self.sequential.is_empty() && self.occupied == 0
    }
}
