//! The entry of a stream, linked into the queue in which it waits.

use crate::queue;
use crate::{Priority, StreamKey, Urgency};

pub(super) use crate::queue::Slot;

/// Where a stream waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// In no queue, because the stream is not active.
    Nowhere,
    /// In the queue of non-incremental streams.
    Queue(queue::Place),
    /// Between these two members in the ring of its class.
    Ring { previous: Slot, next: Slot },
}

/// The state of a stream.
#[derive(Clone, Debug)]
pub(super) struct StreamNode {
    pub(super) key: StreamKey,
    pub(super) rank: EpsRank,
    pub(super) place: Turn,
}

/// The part of a priority that this scheme uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EpsRank {
    pub(super) urgency: Urgency,
    pub(super) incremental: bool,
}

impl From<&Priority> for EpsRank {
    fn from(priority: &Priority) -> Self {
        Self { urgency: priority.urgency, incremental: priority.incremental }
    }
}
