//! The scheduler that runs a [`Plan`].

use sutura_schedule::{Grant, KeyMap, Priority, Scheduler, StreamKey, Urgency};

use super::Resource;
use super::plan::{Place, Plan, Rank};
use crate::tree::{Order, Seat, Slot, Tree, calls_of_streams};

/// Streams in the groups of a [`Plan`], by the [`Resource`] of each.
///
/// Streams of [`Urgency::CONTROL`], which the paper did not have to schedule, stand before the
/// page, one after the other in order of their keys.
///
/// The chains of the paper's trees, in which each stream depends on the previous one, are sequences here: the
/// order of service is the same, and the depth of the tree does not grow with the number of streams.
/// Decisions take constant time, charges and changes O(log n). Memory is one entry for each of the largest
/// number of streams inserted at once, and for each group that ever had a stream.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    plan: &'static Plan,
    tree: Tree,
    control: Slot,
    /// The nodes of the plan's groups, of which each is added when a stream needs it.
    groups: Vec<Option<Slot>>,
    streams: KeyMap<PlannedEntry>,
    /// How often a stream was put into a group.
    arrivals: u64,
    /// How many streams are in the group that another one yields to.
    preferred: usize,
}

/// The number of the first group: after the root and the node before the page.
const GROUPS: usize = 2;

#[derive(Clone, Copy, Debug)]
struct PlannedEntry {
    slot: Slot,
    /// `None` before the page.
    place: Option<Place>,
}

impl Planned {
    /// A scheduler without streams.
    pub(super) fn new(plan: &'static Plan) -> Self {
        let mut tree = Tree::new(Order::Sequence);
        let control = tree.add_placeholder(Tree::ROOT, 1, Order::Sequence);
        let groups = vec![None; plan.groups.len()];
        let streams = KeyMap::default();
        Self { plan, tree, control, groups, streams, arrivals: 0, preferred: 0 }
    }

    fn place(&self, priority: &Priority) -> Option<Place> {
        let resource = priority.extension::<Resource>().copied().unwrap_or_default();
        (priority.urgency != Urgency::CONTROL).then(|| (self.plan.place)(&resource))
    }

    fn node(&mut self, place: Option<Place>) -> Slot {
        place.map_or(self.control, |place| self.group(place.group))
    }

    /// The node of a group. Its number and its place in a sequence are the same as if all groups had been
    /// added at the start.
    fn group(&mut self, index: usize) -> Slot {
        if let Some(slot) = self.groups[index] {
            return slot;
        }
        let group = &self.plan.groups[index];
        let parent = if index == 0 { Tree::ROOT } else { self.group(group.parent) };
        let number = GROUPS + index;
        let slot = self.tree.add_placeholder_as(number, parent, group.weight, group.order);
        self.groups[index] = Some(slot);
        slot
    }

    fn seat(&mut self, stream: StreamKey, place: Option<Place>) -> Seat {
        self.arrivals += 1;
        let by_key = place.is_none() || self.plan.rank == Rank::Key;
        let rank = if by_key { stream } else { self.arrivals };
        Seat { weight: place.map_or(1, |place| place.weight), rank }
    }

    fn count(&mut self, left: Option<Place>, entered: Option<Place>) {
        let Some(yields) = self.plan.yields else {
            return;
        };
        let is_preferred = |place: Option<Place>| place.is_some_and(|p| p.group == yields.to);
        let before = self.preferred;
        self.preferred += usize::from(is_preferred(entered));
        self.preferred -= usize::from(is_preferred(left));
        if (before == 0) != (self.preferred == 0) {
            let usual = self.plan.groups[yields.group].weight;
            let weight = if self.preferred > 0 { yields.weight } else { usual };
            let slot = self.group(yields.group);
            self.tree.set_weight(slot, weight);
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> (usize, usize) {
        (self.tree.capacity(), self.streams.capacity())
    }
}

impl Scheduler for Planned {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.streams.contains_key(&stream) {
            return self.reprioritize(stream, priority);
        }
        let place = self.place(&priority);
        let seat = self.seat(stream, place);
        let node = self.node(place);
        let slot = self.tree.add_stream(stream, node, seat);
        self.streams.insert(stream, PlannedEntry { slot, place });
        self.count(None, place);
    }

    fn remove(&mut self, stream: StreamKey) {
        if let Some(PlannedEntry { slot, place }) = self.streams.remove(&stream) {
            self.tree.remove(slot);
            self.count(place, None);
        }
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let Some(&PlannedEntry { slot, place: old }) = self.streams.get(&stream) else {
            return;
        };
        let place = self.place(&priority);
        if place == old {
            return;
        }
        if place.map(|place| place.group) == old.map(|place| place.group) {
            self.tree.reweigh(slot, place.map_or(1, |place| place.weight));
        } else {
            let seat = self.seat(stream, place);
            self.tree.reweigh(slot, seat.weight);
            self.tree.set_rank(slot, seat.rank);
            let node = self.node(place);
            self.tree.set_parent(slot, node);
            self.count(old, place);
        }
        self.streams.insert(stream, PlannedEntry { slot, place });
    }

    calls_of_streams!();
}
