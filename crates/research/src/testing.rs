//! Helpers for the tests of several schemes: random calls, and a simple reference tree.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;

pub(crate) use sutura_schedule::conformance::{Call, Known, apply};
use sutura_schedule::{Extension, Priority, Scheduler, StreamKey, Urgency};

use crate::h2::Dependency;
use crate::marx::{Bucket, Kind, Resource};
use crate::tree::{Id, Order};

/// A value with some fields changed: the views that policies see cannot be made field by field outside of the
/// core.
pub(crate) fn with<T>(mut value: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut value);
    value
}

/// Few keys, so that unknown and repeated keys are common.
pub(crate) const KEYS: u64 = 16;

/// Random calls, and priorities with the extensions that `extension` draws.
pub(crate) fn any_calls(
    extension: impl Strategy<Value = Extension> + Clone + 'static,
) -> impl Strategy<Value = Vec<Call>> {
    let key = 0..KEYS;
    let bytes = prop_oneof![Just(0usize), Just(1), 1..3000usize, Just(1400), Just(usize::MAX)];
    let used = prop_oneof![Just(1400usize), 0..=1400usize];
    let urgency = prop_oneof![19 => Just(Urgency::DEFAULT), 1 => Just(Urgency::CONTROL)];
    let priority = (urgency, prop::option::weighted(0.9, extension));
    let priority = priority
        .prop_map(|(urgency, extension)| {
            let mut priority = Priority::default().with_urgency(urgency);
            priority.extension = extension;
            priority
        })
        .boxed();
    let call = prop_oneof![
        4 => (key.clone(), priority.clone()).prop_map(|(s, p)| Call::Insert(s, p)),
        1 => key.clone().prop_map(Call::Remove),
        3 => (key.clone(), priority).prop_map(|(s, p)| Call::Reprioritize(s, p)),
        6 => key.clone().prop_map(Call::Activate),
        3 => key.clone().prop_map(Call::Deactivate),
        8 => (1..6usize, used).prop_map(|(turns, used)| Call::Serve { turns, room: 1400, used }),
        2 => (key, bytes).prop_map(|(s, bytes)| Call::Charge(s, bytes)),
        1 => (0..20_000u64).prop_map(Call::Window),
        1 => Just(Call::Rest),
    ];
    prop::collection::vec(call, 0..200)
}

pub(crate) fn any_dependency() -> impl Strategy<Value = Dependency> + Clone {
    let weight = prop_oneof![0..=300u16, Just(1), Just(256)];
    (prop::option::weighted(0.8, 0..KEYS), weight.boxed(), prop::bool::weighted(0.3))
        .prop_map(|(parent, weight, exclusive)| Dependency { parent, weight, exclusive })
}

pub(crate) fn any_resource() -> impl Strategy<Value = Resource> + Clone {
    any::<u64>().prop_map(resource)
}

/// A resource for each number.
pub(crate) fn resource(number: u64) -> Resource {
    let flag = |bit: u32| number >> bit & 1 == 1;
    Resource {
        kind: Kind::ALL[(number >> 8) as usize % Kind::ALL.len()],
        main: flag(0),
        in_head: flag(1),
        after_first_image: flag(2),
        deferred: flag(3),
        preload: flag(4),
        critical: flag(5),
        above_the_fold: flag(6),
        bucket: Bucket::from_byte((number >> 16) as u8).filter(|_| number >> 24 & 7 == 0),
        weight: (number >> 27 & 7 == 0).then_some((number >> 30) as u8),
    }
}

/// Extensions that the schedulers of this crate read, for the conformance kit.
pub(crate) fn any_extension(number: u64, streams: Range<StreamKey>) -> Option<Extension> {
    match number >> 56 {
        0..64 => None,
        64..160 => Some(Extension::new(resource(number))),
        _ => {
            let among = (streams.end - streams.start).max(1);
            Some(Extension::new(Dependency {
                parent: (!number.is_multiple_of(5)).then(|| streams.start + (number >> 8) % among),
                weight: (number >> 16) as u16 % 300,
                exclusive: number >> 32 & 3 == 0,
            }))
        }
    }
}

/// A straightforward implementation of the tree's rules. It has no queues or links, and searches for each
/// result when it is needed.
#[derive(Debug)]
pub(crate) struct Naive {
    pub(crate) nodes: BTreeMap<Id, NaiveNode>,
}

#[derive(Clone, Debug)]
pub(crate) struct NaiveNode {
    pub(crate) parent: Id,
    pub(crate) order: Order,
    pub(crate) weight: u16,
    pub(crate) rank: u64,
    pub(crate) ready: bool,
    at: u128,
    clock: u128,
    burst: usize,
    was_active: bool,
}

pub(crate) const ROOT: Id = Id::Placeholder(0);

fn time(bytes: usize, weight: u16) -> u128 {
    (bytes as u128).saturating_mul(5_354_228_880 * 256) / u128::from(weight)
}

impl Naive {
    pub(crate) fn new(order: Order) -> Self {
        let mut naive = Self { nodes: BTreeMap::new() };
        naive.add(ROOT, ROOT, order, 16, 0);
        naive
    }

    pub(crate) fn add(&mut self, id: Id, parent: Id, order: Order, weight: u16, rank: u64) {
        let node = NaiveNode {
            parent,
            order,
            weight: weight.clamp(1, 256),
            rank,
            ready: false,
            at: 0,
            clock: 0,
            burst: 1400,
            was_active: false,
        };
        self.nodes.insert(id, node);
    }

    pub(crate) fn node(&mut self, id: Id) -> &mut NaiveNode {
        self.nodes.get_mut(&id).unwrap()
    }

    pub(crate) fn children(&self, parent: Id) -> Vec<Id> {
        let below = |id: &Id| *id != ROOT && self.nodes[id].parent == parent;
        self.nodes.keys().copied().filter(below).collect()
    }

    pub(crate) fn is_within(&self, id: Id, ancestor: Id) -> bool {
        id == ancestor || (id != ROOT && self.is_within(self.nodes[&id].parent, ancestor))
    }

    fn is_active(&self, id: Id) -> bool {
        self.nodes[&id].ready || self.children(id).into_iter().any(|child| self.is_active(child))
    }

    fn front(&self, parent: Id) -> Option<Id> {
        let active = self.children(parent).into_iter().filter(|&child| self.is_active(child));
        active.min_by_key(|id| (self.nodes[id].at, *id))
    }

    /// Sets the position of each node that has become active.
    pub(crate) fn settle(&mut self) {
        for id in self.nodes.keys().copied().filter(|&id| id != ROOT).collect::<Vec<_>>() {
            let node = self.nodes[&id].clone();
            let parent = self.nodes[&node.parent].clone();
            let active = self.is_active(id);
            if active && !node.was_active {
                match parent.order {
                    Order::Shares => {
                        let at = parent.clock.saturating_add(time(node.burst, node.weight));
                        self.node(id).at = at.max(node.at);
                    }
                    Order::Turns => {
                        if let Id::Stream(_) = id {
                            self.node(node.parent).clock += 1;
                            self.node(id).at = parent.clock + 1;
                        }
                    }
                    Order::Sequence => self.node(id).at = node.rank.into(),
                }
            }
            self.node(id).was_active = active;
        }
    }

    pub(crate) fn set_parent(&mut self, id: Id, parent: Id) {
        let node = self.node(id);
        if node.parent != parent {
            node.parent = parent;
            node.at = 0;
            node.was_active = false;
        }
    }

    pub(crate) fn adopt_siblings(&mut self, id: Id) {
        for sibling in self.children(self.nodes[&id].parent) {
            if sibling != id {
                self.set_parent(sibling, id);
            }
        }
    }

    pub(crate) fn remove(&mut self, id: Id) {
        let children = self.children(id);
        let total: u64 = children.iter().map(|child| u64::from(self.nodes[child].weight)).sum();
        let NaiveNode { weight, parent, .. } = self.nodes[&id];
        for child in children {
            let share = u64::from(weight) * u64::from(self.nodes[&child].weight) / total;
            self.node(child).weight = (share as u16).max(1);
            self.set_parent(child, parent);
        }
        self.nodes.remove(&id);
    }

    pub(crate) fn set_weight(&mut self, id: Id, weight: u16) {
        let node = self.node(id);
        node.weight = weight;
        if !node.was_active {
            node.at = 0;
        }
    }

    pub(crate) fn reweigh(&mut self, id: Id, weight: u16) {
        let weight = weight.clamp(1, 256);
        let NaiveNode { parent, at, weight: old, .. } = self.nodes[&id];
        let NaiveNode { order, clock, .. } = self.nodes[&parent];
        if order == Order::Shares && at >= clock && weight != old {
            let ahead = (at - clock).saturating_mul(old.into()) / u128::from(weight);
            self.node(id).at = clock.saturating_add(ahead);
        }
        self.node(id).weight = weight;
    }

    pub(crate) fn next(&self) -> Option<StreamKey> {
        let mut id = ROOT;
        while !self.nodes[&id].ready {
            id = self.front(id)?;
        }
        let Id::Stream(key) = id else { unreachable!("a placeholder is never ready") };
        Some(key)
    }

    pub(crate) fn charge(&mut self, mut id: Id, bytes: usize) {
        self.node(id).burst = bytes;
        while id != ROOT {
            let node = self.nodes[&id].clone();
            let parent = self.nodes[&node.parent].clone();
            match parent.order {
                Order::Shares => {
                    let start = node.at.max(parent.clock);
                    let front = self.front(node.parent);
                    if front.is_none_or(|front| front == id || self.nodes[&front].at >= start) {
                        self.node(node.parent).clock = start;
                    }
                    self.node(id).at = start.saturating_add(time(bytes, node.weight));
                }
                Order::Turns => {
                    self.node(node.parent).clock += 1;
                    self.node(id).at = parent.clock + 1;
                }
                Order::Sequence => {}
            }
            id = node.parent;
        }
    }
}

/// Sends `packets` full packets. Returns the stream of each.
pub(crate) fn serve(scheduler: &mut dyn Scheduler, packets: usize) -> Vec<StreamKey> {
    let turn = |_| {
        let grant = scheduler.next(1400)?;
        scheduler.charge(grant.stream, grant.bytes);
        Some(grant.stream)
    };
    (0..packets).map_while(turn).collect()
}

pub(crate) fn active(scheduler: &mut dyn Scheduler, stream: StreamKey, priority: Priority) {
    scheduler.insert(stream, priority);
    scheduler.activate(stream);
}

/// The methods of [`Scheduler`] that only concern the tree, for a model with a [`Naive`] `tree` and
/// the `places` of its streams.
macro_rules! calls_of_places {
    () => {
        fn activate(&mut self, stream: StreamKey) {
            if self.places.contains_key(&stream) {
                self.tree.node(Id::Stream(stream)).ready = true;
                self.tree.settle();
            }
        }

        fn deactivate(&mut self, stream: StreamKey) {
            if self.places.contains_key(&stream) {
                self.tree.node(Id::Stream(stream)).ready = false;
                self.tree.settle();
            }
        }

        fn next(&self, room: usize) -> Option<Grant> {
            let stream = self.tree.next()?;
            (room > 0).then_some(Grant { stream, bytes: room })
        }

        fn charge(&mut self, stream: StreamKey, bytes: usize) {
            if self.places.contains_key(&stream) && bytes > 0 {
                self.tree.charge(Id::Stream(stream), bytes);
            }
        }

        fn is_empty(&self) -> bool {
            self.tree.next().is_none()
        }
    };
}
pub(crate) use calls_of_places;
