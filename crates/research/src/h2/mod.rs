//! The dependency tree of HTTP/2 (RFC 7540, section 5.3).

mod dependency;
#[cfg(test)]
mod tests;

pub use dependency::Dependency;

use std::sync::Arc;

use sutura_schedule::{
    Grant, KeyMap, Priority, Scheduler, SchedulerFactory, Scheme, StreamKey, Urgency, registry,
};

use crate::tree::{Order, Seat, Slot, Tree, calls_of_streams};

/// The dependency tree of HTTP/2: [`H2`].
pub const SCHEME: Scheme = Scheme::new("h2", || Box::new(H2::new()));

pub(crate) const ENTRY: registry::Entry<dyn SchedulerFactory> =
    registry::Entry::new(SCHEME.name(), "the dependency tree of HTTP/2 (RFC 7540)", |_| {
        Ok(Arc::new(SCHEME))
    });

/// The scheduler that RFC 7540, section 5.3 describes, by the [`Dependency`] of a priority.
///
/// * A stream sends before the streams that depend on it: they are served only while none above
///   them can be (section 5.3.1).
/// * Dependants of one stream share in proportion to their weights (section 5.3.2). Shares are
///   counted in bytes, whatever they were charged for.
/// * A stream that depends on itself or on a stream that is not inserted gets the default priority, and so
///   does a stream without a dependency (section 5.3.5).
/// * A stream can be made to depend on one of its own dependants: the dependant takes its place first
///   (section 5.3.3).
/// * When a stream is removed, its dependants become dependants of its parent and share its weight
///   (section 5.3.4). A caller that wants a closed stream to linger in the tree removes it later.
///
/// Streams of [`Urgency::CONTROL`] stand outside the tree and before it, one after the other in
/// order of their keys.
///
/// A decision takes O(depth), a charge O(log n) on each level with n active siblings. A change that makes one
/// stream the parent of many, by the exclusive flag or by removing their parent, takes time for each of them.
/// A peer that chooses the dependencies can make the tree as deep as it has streams: its stream limit bounds
/// the cost (RFC 9000, section 4.6).
#[derive(Clone, Debug)]
pub struct H2 {
    tree: Tree,
    control: Slot,
    /// Stream 0 of the RFC.
    root: Slot,
    /// The parent of a stream whose dependency names nothing that it can depend on: the root, but in the
    /// drafts of HTTP/3 a node behind it.
    default: Slot,
    streams: KeyMap<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: Slot,
    place: TreePlace,
}

/// The place in the tree that a priority asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TreePlace {
    Control,
    /// As wished, or by default.
    Dependent(Option<Dependency>),
}

impl From<&Priority> for TreePlace {
    fn from(priority: &Priority) -> Self {
        if priority.urgency == Urgency::CONTROL {
            Self::Control
        } else {
            Self::Dependent(priority.extension().copied())
        }
    }
}

impl Default for H2 {
    fn default() -> Self {
        Self::new()
    }
}

impl H2 {
    /// A scheduler without streams.
    #[must_use]
    pub fn new() -> Self {
        let mut tree = Tree::new(Order::Sequence);
        let control = tree.add_placeholder(Tree::ROOT, 1, Order::Sequence);
        let root = tree.add_placeholder(Tree::ROOT, 1, Order::Shares);
        Self { tree, control, root, default: root, streams: KeyMap::default() }
    }

    /// A scheduler with a node behind the root, for streams that have no place below the root.
    pub(crate) fn with_orphans() -> Self {
        let mut h2 = Self::new();
        h2.default = h2.tree.add_placeholder(Tree::ROOT, 1, Order::Shares);
        h2
    }

    /// Whether a stream is inserted.
    pub(crate) fn contains(&self, stream: StreamKey) -> bool {
        self.streams.contains_key(&stream)
    }

    /// How many streams are inserted, active or not.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The node that `stream` depends on and the dependency as it counts.
    fn resolve(&self, stream: StreamKey, wanted: Option<Dependency>) -> (Slot, Dependency) {
        let Some(wanted) = wanted else {
            return (self.default, Dependency::DEFAULT);
        };
        let Some(parent) = wanted.parent else {
            return (self.root, wanted);
        };
        match self.streams.get(&parent) {
            Some(&Entry { slot, place: TreePlace::Dependent(_) }) if parent != stream => {
                (slot, wanted)
            }
            _ => (self.default, Dependency::DEFAULT),
        }
    }

    fn add(&mut self, stream: StreamKey, place: TreePlace) -> Slot {
        let TreePlace::Dependent(dependency) = place else {
            let seat = Seat { weight: 1, rank: stream };
            return self.tree.add_stream(stream, self.control, seat);
        };
        let (parent, dependency) = self.resolve(stream, dependency);
        let seat = Seat { weight: dependency.weight, rank: 0 };
        let slot = self.tree.add_stream(stream, parent, seat);
        if dependency.exclusive {
            self.tree.adopt_siblings(slot);
        }
        slot
    }

    /// Gives a stream of the tree another place in it.
    fn change(&mut self, stream: StreamKey, slot: Slot, dependency: Option<Dependency>) {
        let (parent, dependency) = self.resolve(stream, dependency);
        if self.tree.is_within(parent, slot) {
            self.tree.set_parent(parent, self.tree.parent(slot));
        }
        self.tree.reweigh(slot, dependency.weight);
        self.tree.set_parent(slot, parent);
        if dependency.exclusive {
            self.tree.adopt_siblings(slot);
        }
    }
}

impl Scheduler for H2 {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.streams.contains_key(&stream) {
            return self.reprioritize(stream, priority);
        }
        let place = TreePlace::from(&priority);
        let slot = self.add(stream, place);
        self.streams.insert(stream, Entry { slot, place });
    }

    fn remove(&mut self, stream: StreamKey) {
        if let Some(Entry { slot, .. }) = self.streams.remove(&stream) {
            self.tree.remove(slot);
        }
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let Some(&Entry { slot, place: old }) = self.streams.get(&stream) else {
            return;
        };
        let place = TreePlace::from(&priority);
        if place == old {
            return;
        }
        let slot = if let (TreePlace::Dependent(_), TreePlace::Dependent(dependency)) = (old, place)
        {
            self.change(stream, slot, dependency);
            slot
        } else {
            let ready = self.tree.is_ready(slot);
            self.tree.remove(slot);
            let slot = self.add(stream, place);
            self.tree.set_ready(slot, ready);
            slot
        };
        self.streams.insert(stream, Entry { slot, place });
    }

    calls_of_streams!();
}
