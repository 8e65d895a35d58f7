//! The active children of one node: a pairing heap through the nodes, by position and then by id.
//!
//! A node names the foremost member of its queue; nothing is allocated. Pushing is O(1), taking
//! out any member O(log n), amortised.

use super::node::{Nodes, QueueLinks, Slot};

/// Adds `slot`, whose links are clear, to the queue of which `front` is the foremost member.
pub(super) fn push(nodes: &mut Nodes, front: Option<Slot>, slot: Slot) -> Slot {
    match front {
        Some(front) => meld(nodes, front, slot),
        None => slot,
    }
}

/// Takes a member out, clears its links, and names the new foremost member.
pub(super) fn remove(nodes: &mut Nodes, front: Slot, slot: Slot) -> Option<Slot> {
    let links = std::mem::take(&mut nodes[slot].queue_links);
    let below = meld_all(nodes, links.first_below);
    if slot == front {
        return below;
    }
    if let Some(next) = links.next {
        nodes[next].queue_links.previous = links.previous;
    }
    if let Some(previous) = links.previous {
        let before = &mut nodes[previous].queue_links;
        if before.first_below == Some(slot) {
            before.first_below = links.next;
        } else {
            before.next = links.next;
        }
    }
    Some(below.map_or(front, |below| meld(nodes, front, below)))
}

/// Puts the later of two heaps below the earlier one, and names that.
fn meld(nodes: &mut Nodes, a: Slot, b: Slot) -> Slot {
    let key = |slot: Slot| (nodes[slot].at, nodes[slot].id);
    let (above, below) = if key(b) < key(a) { (b, a) } else { (a, b) };
    let next = nodes[above].queue_links.first_below.replace(below);
    if let Some(next) = next {
        nodes[next].queue_links.previous = Some(below);
    }
    nodes[below].queue_links.next = next;
    nodes[below].queue_links.previous = Some(above);
    above
}

/// Melds a list of siblings into one heap: in pairs from the left, then all pairs from the right.
fn meld_all(nodes: &mut Nodes, first: Option<Slot>) -> Option<Slot> {
    let mut rest = first;
    // The pairs, the last one first.
    let mut pairs = None;
    while let Some(a) = rest {
        rest = unlink(nodes, a);
        let mut pair = a;
        if let Some(b) = rest {
            rest = unlink(nodes, b);
            pair = meld(nodes, a, b);
        }
        nodes[pair].queue_links.next = pairs.replace(pair);
    }
    let mut heap: Option<Slot> = None;
    while let Some(pair) = pairs {
        pairs = unlink(nodes, pair);
        heap = Some(push(nodes, heap, pair));
    }
    heap
}

/// Takes a member out of the list of its siblings, and names the next one.
fn unlink(nodes: &mut Nodes, slot: Slot) -> Option<Slot> {
    let QueueLinks { next, previous, .. } = &mut nodes[slot].queue_links;
    *previous = None;
    next.take()
}
