//! The incremental streams of one class: a doubly linked ring through the nodes.

use super::node::{Node, Place, Slot};

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
    pub(super) fn push_back(&mut self, nodes: &mut [Node], slot: Slot) {
        let Some(head) = self.head else {
            nodes[slot].place = Place::Ring { previous: slot, next: slot };
            self.head = Some(slot);
            return;
        };
        let (tail, _) = neighbours(nodes, head);
        nodes[slot].place = Place::Ring { previous: tail, next: head };
        set_next(nodes, tail, slot);
        set_previous(nodes, head, slot);
    }

    /// Removes a member. If it was the head, the turn passes to the next member.
    pub(super) fn remove(&mut self, nodes: &mut [Node], slot: Slot) {
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
        nodes[slot].place = Place::Nowhere;
    }

    /// Moves a member to the back.
    pub(super) fn move_to_back(&mut self, nodes: &mut [Node], slot: Slot) {
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
fn neighbours(nodes: &[Node], slot: Slot) -> (Slot, Slot) {
    match nodes[slot].place {
        Place::Ring { previous, next } => (previous, next),
        Place::Nowhere | Place::Queue(_) => (slot, slot),
    }
}

fn set_next(nodes: &mut [Node], slot: Slot, to: Slot) {
    if let Place::Ring { next, .. } = &mut nodes[slot].place {
        *next = to;
    }
}

fn set_previous(nodes: &mut [Node], slot: Slot, to: Slot) {
    if let Place::Ring { previous, .. } = &mut nodes[slot].place {
        *previous = to;
    }
}
