//! The tree of the schemes: parents before children, and siblings by weight, in turns or in sequence.
//!
//! A decision walks down from the root, always to the foremost active child, until it reaches a
//! stream with bytes of its own: a parent sends before its children (RFC 7540, section 5.3.1).
//!
//! Siblings that share by weight are kept in order of a pseudo time. Serving a child sets the clock
//! of its parent to the child's time, and moves the child's time on by the bytes that it was
//! charged, divided by its weight. A child that becomes active is placed as if it had just been served with
//! the same number of bytes as last time: it gets nothing for the time when it was inactive. Bytes charged
//! without a decision, such as retransmissions, still count after a pause.
//!
//! Ties go to placeholders and then to the smaller stream key.

mod family;
mod node;
mod queue;

pub(crate) use node::{Id, Order, Slot};

use node::{Node, Nodes};
use sutura_schedule::StreamKey;

/// The trait's calls of a scheduler with a `tree` and an entry with a `slot` of it for each of its
/// `streams`, as far as they only concern the tree.
macro_rules! calls_of_streams {
    () => {
        fn activate(&mut self, stream: StreamKey) {
            if let Some(entry) = self.streams.get(&stream) {
                self.tree.set_ready(entry.slot, true);
            }
        }

        fn deactivate(&mut self, stream: StreamKey) {
            if let Some(entry) = self.streams.get(&stream) {
                self.tree.set_ready(entry.slot, false);
            }
        }

        fn next(&self, room: usize) -> Option<Grant> {
            let stream = self.tree.next()?;
            (room > 0).then_some(Grant { stream, bytes: room })
        }

        fn charge(&mut self, stream: StreamKey, bytes: usize) {
            if let Some(entry) = self.streams.get(&stream)
                && bytes > 0
            {
                self.tree.charge(entry.slot, bytes);
            }
        }

        fn is_empty(&self) -> bool {
            self.tree.is_empty()
        }
    };
}
pub(crate) use calls_of_streams;

/// The weight of a stream for which none was given (RFC 7540, section 5.3.5).
pub(crate) const DEFAULT_WEIGHT: u16 = 16;

/// The largest weight (RFC 7540, section 5.3.2).
pub(crate) const MAX_WEIGHT: u16 = 256;

/// The bytes that a child which was never served is taken to have used before: one packet.
const PACKET: usize = 1400;

/// Pseudo time that a byte takes at weight 1. Every weight up to 24, and most of those that are
/// used, divide it, so that shares which are equal on paper are equal here.
const BYTE: u128 = 5_354_228_880 * MAX_WEIGHT as u128;

/// A tree of streams and placeholders under one root.
///
/// A decision and a charge take O(depth); so does a change of activity, and O(log n) for each level
/// on which it changes the order of n active siblings. Moving and removing a node takes O(1) for
/// each child that gets another parent beyond that. Memory is one entry for each of the largest
/// number of nodes there ever were at once, after which nothing is allocated.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    nodes: Nodes,
    vacant: Vec<Slot>,
    placeholders: usize,
}

impl Tree {
    /// The root. It cannot be moved or removed.
    pub(crate) const ROOT: Slot = 0;

    /// A tree of a root alone, whose children are served in `order`.
    pub(crate) fn new(order: Order) -> Self {
        let root = Node::new(Id::Placeholder(0), order);
        Self { nodes: Nodes(vec![root]), vacant: Vec::new(), placeholders: 1 }
    }

    /// Adds a placeholder below another one. Placeholders of a sequence go by age.
    pub(crate) fn add_placeholder(&mut self, parent: Slot, weight: u16, order: Order) -> Slot {
        let number = self.placeholders;
        self.placeholders += 1;
        self.add_placeholder_as(number, parent, weight, order)
    }

    /// Adds a placeholder with a number of its own, which must not be in use: it decides ties, and the
    /// place in a sequence.
    pub(crate) fn add_placeholder_as(
        &mut self,
        number: usize,
        parent: Slot,
        weight: u16,
        order: Order,
    ) -> Slot {
        let node = Node::new(Id::Placeholder(number), order);
        self.add(Node { weight, rank: number as u64, ..node }, parent)
    }

    /// Adds a stream, not active.
    pub(crate) fn add_stream(&mut self, key: StreamKey, parent: Slot, seat: Seat) -> Slot {
        let Seat { weight, rank } = seat;
        self.add(Node { weight, rank, ..Node::new(Id::Stream(key), Order::Shares) }, parent)
    }

    fn add(&mut self, mut node: Node, parent: Slot) -> Slot {
        node.weight = node.weight.clamp(1, MAX_WEIGHT);
        let slot = if let Some(slot) = self.vacant.pop() {
            self.nodes[slot] = node;
            slot
        } else {
            self.nodes.0.push(node);
            self.nodes.0.len() - 1
        };
        family::attach(&mut self.nodes, slot, parent);
        slot
    }

    /// Removes a node that is not the root. Its children become children of its parent and share its weight
    /// in proportion to their own weights (RFC 7540, section 5.3.4).
    pub(crate) fn remove(&mut self, slot: Slot) {
        let Node { parent, weight, .. } = self.nodes[slot];
        let total: u64 = self.children(slot).map(|child| u64::from(self.nodes[child].weight)).sum();
        while let Some(child) = self.nodes[slot].family.first_child {
            let part = u64::from(weight) * u64::from(self.nodes[child].weight) / total.max(1);
            self.nodes[child].weight = u16::try_from(part).unwrap_or(MAX_WEIGHT).max(1);
            self.rehang(child, parent);
        }
        self.nodes[slot].ready = false;
        self.settle(slot);
        family::detach(&mut self.nodes, slot);
        self.vacant.push(slot);
    }

    /// Makes a node a child of another, which must not be below it. As a child of its present
    /// parent it stays where it is.
    pub(crate) fn set_parent(&mut self, slot: Slot, parent: Slot) {
        let old = self.nodes[slot].parent;
        if old != parent {
            self.rehang(slot, parent);
            self.settle(old);
        }
    }

    /// Makes all siblings of a node its children (RFC 7540, section 5.3.1, exclusive flag).
    pub(crate) fn adopt_siblings(&mut self, slot: Slot) {
        let parent = self.nodes[slot].parent;
        let mut next = self.nodes[parent].family.first_child;
        while let Some(sibling) = next {
            next = self.nodes[sibling].family.next;
            if sibling != slot {
                self.rehang(sibling, slot);
            }
        }
        // If a sibling was active, this node is active now, so nothing changes for the parent.
    }

    /// Moves a node, without telling its old parent that it may have become inactive.
    fn rehang(&mut self, slot: Slot, parent: Slot) {
        self.dequeue(slot);
        family::detach(&mut self.nodes, slot);
        family::attach(&mut self.nodes, slot, parent);
        // A position on the old parent's clock means nothing under the new parent.
        self.nodes[slot].at = 0;
        self.settle(slot);
    }

    /// Changes the weight from now on. Earlier service is not reconsidered: a waiting node waits for as long
    /// as its old weight said.
    pub(crate) fn set_weight(&mut self, slot: Slot, weight: u16) {
        let node = &mut self.nodes[slot];
        node.weight = weight.clamp(1, MAX_WEIGHT);
        if !node.queued {
            node.at = 0;
        }
    }

    /// Changes the weight as if it had been so when the node was last served.
    pub(crate) fn reweigh(&mut self, slot: Slot, weight: u16) {
        let weight = weight.clamp(1, MAX_WEIGHT);
        let Node { weight: old, parent, at, .. } = self.nodes[slot];
        if weight == old {
            return;
        }
        self.nodes[slot].weight = weight;
        let Node { clock, order, .. } = self.nodes[parent];
        if order == Order::Shares
            && let Some(ahead) = at.checked_sub(clock)
        {
            let ahead = ahead.saturating_mul(u128::from(old)) / u128::from(weight);
            self.move_to(slot, clock.saturating_add(ahead));
        }
    }

    /// Changes the place of a stream under a parent that serves in sequence.
    pub(crate) fn set_rank(&mut self, slot: Slot, rank: u64) {
        self.nodes[slot].rank = rank;
        if self.nodes[self.nodes[slot].parent].order == Order::Sequence {
            self.move_to(slot, u128::from(rank));
        }
    }

    /// Says whether a stream has bytes of its own to send.
    pub(crate) fn set_ready(&mut self, slot: Slot, ready: bool) {
        self.nodes[slot].ready = ready;
        self.settle(slot);
    }

    pub(crate) fn is_ready(&self, slot: Slot) -> bool {
        self.nodes[slot].ready
    }

    pub(crate) fn parent(&self, slot: Slot) -> Slot {
        self.nodes[slot].parent
    }

    /// Whether `slot` is `ancestor` or below it.
    pub(crate) fn is_within(&self, mut slot: Slot, ancestor: Slot) -> bool {
        while slot != ancestor && slot != Self::ROOT {
            slot = self.nodes[slot].parent;
        }
        slot == ancestor
    }

    fn children(&self, slot: Slot) -> impl Iterator<Item = Slot> + '_ {
        let first = self.nodes[slot].family.first_child;
        std::iter::successors(first, |&child| self.nodes[child].family.next)
    }

    /// Whether no stream is ready.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes[Self::ROOT].front.is_none()
    }

    /// The stream whose turn it is.
    pub(crate) fn next(&self) -> Option<StreamKey> {
        let mut slot = Self::ROOT;
        while !self.nodes[slot].ready {
            slot = self.nodes[slot].front?;
        }
        match self.nodes[slot].id {
            Id::Stream(key) => Some(key),
            Id::Placeholder(_) => None,
        }
    }

    /// Charges bytes to a stream and to everything above it.
    pub(crate) fn charge(&mut self, slot: Slot, bytes: usize) {
        self.nodes[slot].burst = bytes;
        let mut child = slot;
        while child != Self::ROOT {
            let parent = self.nodes[child].parent;
            match self.nodes[parent].order {
                Order::Shares => self.charge_share(parent, child, bytes),
                Order::Turns => self.move_behind(parent, child),
                Order::Sequence => {}
            }
            child = parent;
        }
    }

    fn charge_share(&mut self, parent: Slot, child: Slot, bytes: usize) {
        let Node { clock, front, .. } = self.nodes[parent];
        let Node { at, weight, .. } = self.nodes[child];
        let start = at.max(clock);
        // The clock follows the child that is served, but does not pass by a child that waits.
        if front.is_none_or(|front| front == child || self.nodes[front].at >= start) {
            self.nodes[parent].clock = start;
        }
        self.move_to(child, start.saturating_add(time(bytes, weight)));
    }

    fn move_behind(&mut self, parent: Slot, child: Slot) {
        self.nodes[parent].clock += 1;
        self.move_to(child, self.nodes[parent].clock);
    }

    /// Brings the queues above a node into accord with whether the node is active.
    fn settle(&mut self, mut slot: Slot) {
        while slot != Self::ROOT && self.nodes[slot].is_active() != self.nodes[slot].queued {
            if self.nodes[slot].queued {
                self.dequeue(slot);
            } else {
                self.enqueue(slot);
            }
            slot = self.nodes[slot].parent;
        }
    }

    /// Puts a node that has become active among its siblings.
    fn enqueue(&mut self, slot: Slot) {
        let Node { id, parent, weight, rank, at, burst, .. } = self.nodes[slot];
        let Node { order, clock, .. } = self.nodes[parent];
        match (order, id) {
            (Order::Shares, _) => {
                let newcomer = clock.saturating_add(time(burst, weight));
                self.nodes[slot].at = at.max(newcomer);
            }
            (Order::Turns, Id::Stream(_)) => self.move_behind(parent, slot),
            (Order::Turns, Id::Placeholder(_)) => {}
            (Order::Sequence, _) => self.nodes[slot].at = u128::from(rank),
        }
        self.push(slot);
    }

    /// Changes the position of a node, in the queue or not.
    fn move_to(&mut self, slot: Slot, at: u128) {
        let queued = self.nodes[slot].queued;
        self.dequeue(slot);
        self.nodes[slot].at = at;
        if queued {
            self.push(slot);
        }
    }

    fn push(&mut self, slot: Slot) {
        let parent = self.nodes[slot].parent;
        let front = self.nodes[parent].front;
        self.nodes[slot].queued = true;
        self.nodes[parent].front = Some(queue::push(&mut self.nodes, front, slot));
    }

    fn dequeue(&mut self, slot: Slot) {
        let parent = self.nodes[slot].parent;
        if self.nodes[slot].queued
            && let Some(front) = self.nodes[parent].front
        {
            self.nodes[slot].queued = false;
            self.nodes[parent].front = queue::remove(&mut self.nodes, front, slot);
        }
    }

    /// How many entries the slab has.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.nodes.0.len()
    }
}

/// The pseudo time that `bytes` take at a weight.
fn time(bytes: usize, weight: u16) -> u128 {
    (bytes as u128).saturating_mul(BYTE) / u128::from(weight.max(1))
}

/// The place of a stream among its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Its share, 1 to 256.
    pub(crate) weight: u16,
    /// Its position in a sequence.
    pub(crate) rank: u64,
}
