//! One entry for each stream, linked into the queue that it waits in.

use crate::{Priority, StreamKey};

/// Index of a [`Node`] in the slab.
pub(super) type Slot = usize;

/// Where a stream waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Not active.
    Nowhere,
    /// At this index of the heap of its class.
    Heap(usize),
    /// Between these two in the ring of its class.
    Ring { previous: Slot, next: Slot },
}

/// What is known of one stream.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) key: StreamKey,
    pub(super) priority: Priority,
    pub(super) place: Place,
}
