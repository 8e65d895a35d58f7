//! The non-incremental streams of one class: a binary heap whose members know their position.

use super::node::{Node, Place, Slot};

/// A min-heap by stream key. Any member can be removed in O(log n).
#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    slots: Vec<Slot>,
}

impl Heap {
    /// The member with the smallest key.
    pub(super) fn first(&self) -> Option<Slot> {
        self.slots.first().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn push(&mut self, nodes: &mut [Node], slot: Slot) {
        let position = self.slots.len();
        self.slots.push(slot);
        nodes[slot].place = Place::Heap(position);
        self.sift_up(nodes, position);
    }

    /// Removes the member at `position`, which its [`Place`] contains.
    pub(super) fn remove(&mut self, nodes: &mut [Node], position: usize) {
        let slot = self.slots.swap_remove(position);
        nodes[slot].place = Place::Nowhere;
        if let Some(&moved) = self.slots.get(position) {
            nodes[moved].place = Place::Heap(position);
            // The last member came from another branch, so it may have to move up as well as down.
            let position = self.sift_up(nodes, position);
            self.sift_down(nodes, position);
        }
    }

    fn sift_up(&mut self, nodes: &mut [Node], mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.key(nodes, parent) <= self.key(nodes, position) {
                break;
            }
            self.swap(nodes, parent, position);
            position = parent;
        }
        position
    }

    fn sift_down(&mut self, nodes: &mut [Node], mut position: usize) {
        loop {
            let left = 2 * position + 1;
            if left >= self.slots.len() {
                return;
            }
            let right = left + 1;
            let right_is_smaller =
                right < self.slots.len() && self.key(nodes, right) < self.key(nodes, left);
            let child = if right_is_smaller { right } else { left };
            if self.key(nodes, position) <= self.key(nodes, child) {
                return;
            }
            self.swap(nodes, position, child);
            position = child;
        }
    }

    fn key(&self, nodes: &[Node], position: usize) -> u64 {
        nodes[self.slots[position]].key
    }

    fn swap(&mut self, nodes: &mut [Node], a: usize, b: usize) {
        self.slots.swap(a, b);
        nodes[self.slots[a]].place = Place::Heap(a);
        nodes[self.slots[b]].place = Place::Heap(b);
    }
}
