//! The children of one node, active or not: a doubly linked list through the nodes.

use super::node::{Nodes, Slot};

/// Adds `slot`, which has no parent, to the children of `parent`.
pub(super) fn attach(nodes: &mut Nodes, slot: Slot, parent: Slot) {
    let next = nodes[parent].family.first_child.replace(slot);
    if let Some(next) = next {
        nodes[next].family.previous = Some(slot);
    }
    let node = &mut nodes[slot];
    node.parent = parent;
    node.family.next = next;
    node.family.previous = None;
}

/// Takes `slot` out of the children of its parent.
pub(super) fn detach(nodes: &mut Nodes, slot: Slot) {
    let parent = nodes[slot].parent;
    let next = nodes[slot].family.next.take();
    let previous = nodes[slot].family.previous.take();
    if let Some(next) = next {
        nodes[next].family.previous = previous;
    }
    match previous {
        Some(previous) => nodes[previous].family.next = next,
        None => nodes[parent].family.first_child = next,
    }
}
