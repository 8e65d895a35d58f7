//! One entry of the tree: a stream, or a placeholder that only groups others.

use std::ops::{Index, IndexMut};

use sutura_schedule::StreamKey;

/// Index of a [`Node`] in the slab.
pub(crate) type Slot = usize;

/// Names a node and breaks ties: placeholders before streams, the older or smaller first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Id {
    Placeholder(usize),
    Stream(StreamKey),
}

/// How the children of a node follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Each gets bytes in proportion to its weight (RFC 7540, section 5.3.2).
    Shares,
    /// Each child gets one charge. A stream that becomes active stands behind all others; a placeholder keeps
    /// its place while it is inactive.
    Turns,
    /// The child with the smallest rank is served for as long as it is active.
    Sequence,
}

/// The links of a node within the queue of its parent: a pairing heap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueLinks {
    pub(super) first_below: Option<Slot>,
    pub(super) next: Option<Slot>,
    /// The member to the left, or the member above for the leftmost.
    pub(super) previous: Option<Slot>,
}

/// The links of a node within the list of its parent's children.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FamilyLinks {
    pub(super) first_child: Option<Slot>,
    pub(super) next: Option<Slot>,
    pub(super) previous: Option<Slot>,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) id: Id,
    /// The root is its own parent.
    pub(super) parent: Slot,
    pub(super) family: FamilyLinks,
    /// Order among its children.
    pub(super) order: Order,

    /// 1 to 256.
    pub(super) weight: u16,
    /// Position under a parent that serves in sequence.
    pub(super) rank: u64,
    /// Position in the parent's queue, the smallest first: pseudo time, turn or rank.
    pub(super) at: u128,
    /// The position that was served last among the children: their clock.
    pub(super) clock: u128,
    /// Bytes of the last charge: a node is taken to have used them just before it becomes active.
    pub(super) burst: usize,

    /// A stream that has bytes of its own to send.
    pub(super) ready: bool,
    /// In the queue of its parent.
    pub(super) queued: bool,
    pub(super) queue_links: QueueLinks,
    /// The foremost of the active children.
    pub(super) front: Option<Slot>,
}

impl Node {
    pub(super) fn new(id: Id, order: Order) -> Self {
        Self {
            id,
            parent: 0,
            family: FamilyLinks::default(),
            order,
            weight: super::DEFAULT_WEIGHT,
            rank: 0,
            at: 0,
            clock: 0,
            burst: super::PACKET,
            ready: false,
            queued: false,
            queue_links: QueueLinks::default(),
            front: None,
        }
    }

    /// A node waits for service if it has bytes of its own or an active child.
    pub(super) fn is_active(&self) -> bool {
        self.ready || self.front.is_some()
    }
}

/// The slab. Every link names a node in it.
#[derive(Clone, Debug)]
pub(super) struct Nodes(pub(super) Vec<Node>);

impl Index<Slot> for Nodes {
    type Output = Node;

    fn index(&self, slot: Slot) -> &Node {
        &self.0[slot]
    }
}

impl IndexMut<Slot> for Nodes {
    fn index_mut(&mut self, slot: Slot) -> &mut Node {
        &mut self.0[slot]
    }
}
