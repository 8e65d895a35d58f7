//! The incremental streams of one class: a doubly linked ring through the nodes.

use super::node::{Slot, StreamNode, Turn};

/// A ring in order of service. All operations take O(1) and do not allocate.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    head: Option<Slot>,
}

impl Ring {
    /// The member whose turn it is.
    pub(super) fn first(&self) -> Option<Slot> {
        self.head
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Adds a member at the back.
    pub(super) fn push_back(&mut self, nodes: &mut [StreamNode], slot: Slot) {
        let Some(head) = self.head else {
            nodes[slot].place = Turn::Ring { previous: slot, next: slot };
            self.head = Some(slot);
            return;
        };
        let (tail, _) = neighbours(nodes, head);
        nodes[slot].place = Turn::Ring { previous: tail, next: head };
        set_next(nodes, tail, slot);
        set_previous(nodes, head, slot);
    }

    /// Removes a member. If it was the head, the turn passes to the next member.
    pub(super) fn remove(&mut self, nodes: &mut [StreamNode], slot: Slot) {
        let (previous, next) = neighbours(nodes, slot);
        if next == slot {
            self.head = None;
        } else {
            set_next(nodes, previous, next);
            set_previous(nodes, next, previous);
            if self.head == Some(slot) {
                self.head = Some(next);
            }
        }
        nodes[slot].place = Turn::Nowhere;
    }

    /// Moves a member to the back.
    pub(super) fn move_to_back(&mut self, nodes: &mut [StreamNode], slot: Slot) {
        if self.head == Some(slot) {
            // In a ring, the tail precedes the head, so passing the turn on suffices.
            self.head = Some(neighbours(nodes, slot).1);
        } else {
            self.remove(nodes, slot);
            self.push_back(nodes, slot);
        }
    }
}

/// The previous and the next member; a node that is in no ring is its own neighbour.
fn neighbours(nodes: &[StreamNode], slot: Slot) -> (Slot, Slot) {
    match nodes[slot].place {
        Turn::Ring { previous, next } => (previous, next),
        Turn::Nowhere | Turn::Queue(_) => (slot, slot),
    }
}

fn set_next(nodes: &mut [StreamNode], slot: Slot, to: Slot) {
    if let Turn::Ring { next, .. } = &mut nodes[slot].place {
        *next = to;
    }
}

fn set_previous(nodes: &mut [StreamNode], slot: Slot, to: Slot) {
    if let Turn::Ring { previous, .. } = &mut nodes[slot].place {
        *previous = to;
    }
}
