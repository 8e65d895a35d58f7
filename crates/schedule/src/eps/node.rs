//! One entry for each stream, linked into the queue that it waits in.

use crate::{Priority, StreamKey, Urgency};

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
    pub(super) rank: Rank,
    pub(super) place: Place,
}

/// What this scheme reads of a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) urgency: Urgency,
    pub(super) incremental: bool,
}

impl From<&Priority> for Rank {
    fn from(priority: &Priority) -> Self {
        Self { urgency: priority.urgency, incremental: priority.incremental }
    }
}
