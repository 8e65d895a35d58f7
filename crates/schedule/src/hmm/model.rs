//! Compares [`Hmm`] with a simple model that keeps everything in lists and searches them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use crate::conformance::{Call, apply};

use super::*;
use crate::{Class, Grant, MAX_DEPTH, Priority, Scheduler, StreamKey, Urgency, Weight};

/// The root is class 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Id {
    Stream(StreamKey),
    Class(u32),
}

pub(crate) const ROOT: Id = Id::Class(0);

#[derive(Clone, Debug)]
pub(crate) struct ModelMember {
    pub(crate) parent: Id,
    key: StreamKey,
    name: Option<Arc<str>>,
    pub(crate) urgency: Urgency,
    pub(crate) incremental: bool,
    pub(crate) weight: Weight,
    start: u128,
}

impl ModelMember {
    /// Its position and rank.
    pub(crate) fn place(&self) -> (Id, Urgency, bool, Weight) {
        (self.parent, self.urgency, self.incremental, self.weight)
    }

    fn price(&self) -> u128 {
        (1 << 44) / u128::from(self.weight.thousandths())
    }
}

/// Start-time fair queueing in each class.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) members: BTreeMap<Id, ModelMember>,
    pub(crate) priorities: BTreeMap<StreamKey, Priority>,
    active: BTreeSet<StreamKey>,
    clocks: BTreeMap<(Id, Urgency), u128>,
    classes: u32,
}

impl Model {
    fn children(&self, class: Id) -> impl Iterator<Item = Id> {
        self.members.iter().filter(move |(_, member)| member.parent == class).map(|(&id, _)| id)
    }

    fn backlogged(&self, id: Id) -> bool {
        match id {
            Id::Stream(stream) => self.active.contains(&stream),
            Id::Class(_) => self.children(id).any(|child| self.backlogged(child)),
        }
    }

    pub(crate) fn all_backlogged(&self) -> BTreeSet<Id> {
        self.members.keys().copied().filter(|&id| self.backlogged(id)).collect()
    }

    fn clock(&self, member: &ModelMember) -> u128 {
        self.clocks.get(&(member.parent, member.urgency)).copied().unwrap_or_default()
    }

    /// The member of a class that is served next.
    fn first(&self, class: Id) -> Option<Id> {
        let order = |id: &Id| {
            let member = &self.members[id];
            let start = if member.incremental { member.start } else { 0 };
            let born = if let Id::Class(born) = *id { born } else { 0 };
            (member.urgency, member.incremental, start, member.key, born)
        };
        self.children(class).filter(|&child| self.backlogged(child)).min_by_key(order)
    }

    /// The members of a class that the paper's search finds, in order.
    pub(crate) fn found(&self, class: Id) -> Vec<Id> {
        let mut active: Vec<Id> =
            self.children(class).filter(|&child| self.backlogged(child)).collect();
        active.sort_by_key(|id| {
            let member = &self.members[id];
            let born = if let Id::Class(born) = *id { born } else { 0 };
            (member.urgency, member.incremental, member.key, born)
        });
        let best = active.first().map(|id| self.members[id].urgency);
        let is_best = |id: &Id| Some(self.members[id].urgency) == best;
        let many = active.iter().take_while(|id| is_best(id) && self.members[id].incremental);
        active.truncate(many.count().max(1).min(active.len()));
        active
    }

    /// The paper's search: all streams that may be served next.
    fn scheduled(&self) -> BTreeSet<StreamKey> {
        let (mut classes, mut found) = (vec![ROOT], BTreeSet::new());
        while let Some(class) = classes.pop() {
            for id in self.found(class) {
                match id {
                    Id::Stream(stream) => drop(found.insert(stream)),
                    Id::Class(_) => classes.push(id),
                }
            }
        }
        found
    }

    /// Changes the position or rank of a member. It keeps its debt, in bytes.
    fn place(&mut self, id: Id, mut new: ModelMember) {
        // A new member starts as if it had just been served.
        let mut owed = u128::from(LMAX);
        if let Some(old) = self.members.get(&id) {
            if old.place() == new.place() {
                return;
            }
            let ahead = old.start.saturating_sub(self.clock(old));
            owed = if old.incremental { ahead / old.price() } else { old.start };
        }
        new.start = owed;
        if new.incremental {
            new.start = self.clock(&new) + owed.min(u128::from(MAX_DEBT)) * new.price();
        }
        self.members.insert(id, new);
    }

    fn classes_above(priority: &Priority) -> &[Class] {
        let parents = priority.parents.as_deref().unwrap_or_default();
        let parents = if priority.urgency == Urgency::CONTROL { &[] } else { parents };
        &parents[..parents.len().min(MAX_DEPTH)]
    }

    fn path(&self, id: Id) -> Vec<Id> {
        let mut path = Vec::new();
        let mut at = id;
        while let Some(member) = self.members.get(&at) {
            path.insert(0, member.parent);
            at = member.parent;
        }
        path
    }

    fn set(&mut self, stream: StreamKey, priority: &Priority) {
        let id = Id::Stream(stream);
        let path = self.path(id);
        let mut parent = ROOT;
        for (depth, class) in Self::classes_above(priority).iter().rev().enumerate() {
            let named = |id: &Id| matches!(id, Id::Class(_)) && self.members[id].name == class.name;
            let known = match class.name {
                Some(_) => self.children(parent).find(named),
                None => path.get(depth + 1).copied().filter(|own| {
                    self.members[own].parent == parent && self.members[own].name.is_none()
                }),
            };
            let mut key = stream;
            let class_id = known.unwrap_or_else(|| {
                self.classes += 1;
                Id::Class(self.classes)
            });
            if let Some(known) = self.members.get(&class_id) {
                key = known.key;
            }
            let urgency = class.urgency.max(Urgency::HIGHEST);
            let Class { incremental, weight, .. } = *class;
            let name = class.name.clone();
            let new = ModelMember { parent, key, name, urgency, incremental, weight, start: 0 };
            self.place(class_id, new);
            parent = class_id;
        }
        let Priority { urgency, incremental, weight, .. } = *priority;
        let new =
            ModelMember { parent, key: stream, name: None, urgency, incremental, weight, start: 0 };
        self.place(id, new);
        self.priorities.insert(stream, priority.clone());
    }

    /// Applies a change, then adds newly backlogged members and removes empty classes.
    fn change(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.all_backlogged();
        let places: BTreeMap<Id, ModelMember> = self.members.clone();
        change(self);
        loop {
            let empty: Vec<Id> = self.members.keys().copied().collect();
            let empty = empty
                .into_iter()
                .find(|&id| matches!(id, Id::Class(_)) && self.children(id).next().is_none());
            let Some(empty) = empty else { break };
            self.members.remove(&empty);
            self.clocks.retain(|&(class, _), _| class != empty);
        }
        for id in self.all_backlogged() {
            let member = &self.members[&id];
            let moved = places.get(&id).is_none_or(|old| old.place() != member.place());
            if (moved || !before.contains(&id)) && member.incremental {
                let start = member.start.max(self.clock(member));
                self.members.get_mut(&id).unwrap().start = start;
            }
        }
    }
}

impl Scheduler for Model {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.priorities.contains_key(&stream) {
            return self.reprioritize(stream, priority);
        }
        self.change(|model| model.set(stream, &priority));
    }

    fn remove(&mut self, stream: StreamKey) {
        self.change(|model| {
            model.members.remove(&Id::Stream(stream));
            model.priorities.remove(&stream);
            model.active.remove(&stream);
        });
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let same = |old: &Priority| {
            (old.urgency, old.incremental, old.weight, Self::classes_above(old))
                == (
                    priority.urgency,
                    priority.incremental,
                    priority.weight,
                    Self::classes_above(&priority),
                )
        };
        if self.priorities.get(&stream).is_some_and(|old| !same(old)) {
            self.change(|model| model.set(stream, &priority));
        }
    }

    fn activate(&mut self, stream: StreamKey) {
        if self.priorities.contains_key(&stream) {
            self.change(|model| {
                model.active.insert(stream);
            });
        }
    }

    fn deactivate(&mut self, stream: StreamKey) {
        self.change(|model| {
            model.active.remove(&stream);
        });
    }

    fn next(&self, room: usize) -> Option<Grant> {
        if room == 0 {
            return None;
        }
        let mut at = ROOT;
        loop {
            at = self.first(at)?;
            if let Id::Stream(stream) = at {
                return Some(Grant { stream, bytes: room });
            }
        }
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        let mut id = Id::Stream(stream);
        let bytes = bytes.min(MAX_DEBT as usize) as u128;
        while let Some(member) = self.members.get(&id).cloned().filter(|_| bytes > 0) {
            if member.incremental {
                let mut clock = self.clock(&member);
                if self.first(member.parent) == Some(id) {
                    clock = clock.max(member.start);
                    self.clocks.insert((member.parent, member.urgency), clock);
                }
                let base = member.start.max(clock);
                let most = base.max(clock + u128::from(MAX_DEBT) * member.price());
                let start = (base + bytes * member.price()).min(most);
                self.members.get_mut(&id).unwrap().start = start;
            }
            id = member.parent;
        }
    }

    fn is_empty(&self) -> bool {
        self.active.is_empty()
    }
}

fn any_urgency() -> impl Strategy<Value = Urgency> {
    let urgency = |n: u8| n.checked_sub(1).and_then(Urgency::new).unwrap_or(Urgency::CONTROL);
    prop_oneof![6 => Just(Urgency::DEFAULT), 2 => (3..=5u8).prop_map(urgency), 1 => (0..9u8).prop_map(urgency)]
}

fn any_weight() -> impl Strategy<Value = Weight> {
    prop_oneof![
        4 => Just(Weight::default()),
        2 => (1..8u32).prop_map(|n| Weight::new(n * 500).unwrap()),
        1 => (1..=1_000_000u32).prop_map(|n| Weight::new(n).unwrap()),
        1 => prop_oneof![Just(Weight::MIN), Just(Weight::MAX)],
    ]
}

fn any_class() -> impl Strategy<Value = Class> {
    let name = prop_oneof![1 => Just(None), 2 => Just(Some("a")), 2 => Just(Some("b"))];
    (name, any_urgency(), prop::bool::weighted(0.75), any_weight()).prop_map(
        |(name, urgency, incremental, weight)| Class {
            name: name.map(Arc::from),
            urgency,
            incremental,
            weight,
        },
    )
}

fn any_priority() -> impl Strategy<Value = Priority> {
    let parents = prop_oneof![
        2 => Just(None),
        6 => prop::collection::vec(any_class(), 0..4).prop_map(Some),
        1 => prop::collection::vec(any_class(), 0..12).prop_map(Some),
    ];
    (any_urgency(), prop::bool::weighted(0.75), any_weight(), parents).prop_map(
        |(urgency, incremental, weight, parents)| Priority {
            urgency,
            incremental,
            weight,
            parents: parents.map(Arc::from),
            ..Priority::default()
        },
    )
}

pub(crate) fn any_call() -> impl Strategy<Value = Call> {
    // Few keys, so that unknown and repeated keys are common.
    let key = 0..10u64;
    let bytes = prop_oneof![4 => 0..3000usize, 1 => Just(usize::MAX), 1 => 0..500_000usize];
    prop_oneof![
        4 => (key.clone(), any_priority()).prop_map(|(s, p)| Call::Insert(s, p)),
        1 => key.clone().prop_map(Call::Remove),
        2 => (key.clone(), any_priority()).prop_map(|(s, p)| Call::Reprioritize(s, p)),
        6 => key.clone().prop_map(Call::Activate),
        2 => key.clone().prop_map(Call::Deactivate),
        12 => (0..1500usize, 0..1500usize)
            .prop_map(|(room, used)| Call::Serve { turns: 1, room, used }),
        2 => (key, bytes).prop_map(|(s, bytes)| Call::Charge(s, bytes)),
    ]
}

proptest! {
    #[test]
    fn hmm_decides_like_the_model(calls in prop::collection::vec(any_call(), 0..200)) {
        let mut hmm = Hmm::new();
        let mut model = Model::default();
        for call in &calls {
            prop_assert_eq!(apply(&mut hmm, call), apply(&mut model, call), "{:?}", call);
            prop_assert_eq!(hmm.next(1200), model.next(1200), "after {:?}", call);
            prop_assert_eq!(hmm.is_empty(), model.is_empty());
            prop_assert_eq!(hmm.streams(), model.priorities.len());
            prop_assert_eq!(hmm.streams() + hmm.classes(), model.members.len());
            let scheduled = model.scheduled();
            prop_assert!(hmm.next(1).is_none_or(|grant| scheduled.contains(&grant.stream)));
        }
    }
}
