use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use sutura_schedule::{Extension, Grant, Priority, Scheduler, StreamKey, Urgency};

use super::*;
use crate::testing::{
    self, Known, Naive, ROOT, active, any_calls, any_resource, apply, calls_of_places,
};
use crate::tree::{Id, Order};

fn plan(name: &str) -> &'static Plan {
    PLANS.iter().find(|plan| plan.0 == name).unwrap().1
}

fn resource(priority: &Priority) -> Resource {
    priority.extension().copied().unwrap_or_default()
}

/// The groups of a plan over the naive tree.
#[derive(Debug)]
struct Model {
    plan: &'static Plan,
    tree: Naive,
    places: HashMap<StreamKey, Option<Place>>,
    arrivals: u64,
}

const CONTROL: Id = Id::Placeholder(1);

fn group(place: Option<Place>) -> Id {
    place.map_or(CONTROL, |place| Id::Placeholder(2 + place.group))
}

impl Model {
    fn new(plan: &'static Plan) -> Self {
        let mut tree = Naive::new(Order::Sequence);
        tree.add(CONTROL, ROOT, Order::Sequence, 1, 1);
        for (n, entry) in plan.groups.iter().enumerate() {
            let parent = if n == 0 { ROOT } else { Id::Placeholder(2 + entry.parent) };
            let id = Id::Placeholder(2 + n);
            tree.add(id, parent, entry.order, entry.weight, 2 + n as u64);
        }
        Self { plan, tree, places: HashMap::new(), arrivals: 0 }
    }

    fn place(&self, priority: &Priority) -> Option<Place> {
        let control = priority.urgency == Urgency::CONTROL;
        (!control).then(|| (self.plan.place)(&resource(priority)))
    }

    fn rank(&mut self, stream: StreamKey, place: Option<Place>) -> u64 {
        self.arrivals += 1;
        let by_key = self.plan.rank == Rank::Key || place.is_none();
        if by_key { stream } else { self.arrivals }
    }

    fn weight(place: Option<Place>) -> u16 {
        place.map_or(1, |place| place.weight)
    }

    fn update_yield(&mut self) {
        if let Some(yields) = self.plan.yields {
            let full = self.places.values().flatten().any(|place| place.group == yields.to);
            let usual = self.plan.groups[yields.group].weight;
            let weight = if full { yields.weight } else { usual };
            let id = Id::Placeholder(2 + yields.group);
            if self.tree.node(id).weight != weight {
                self.tree.set_weight(id, weight);
            }
        }
    }
}

impl Scheduler for Model {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.places.contains_key(&stream) {
            return self.reprioritize(stream, priority);
        }
        let place = self.place(&priority);
        let rank = self.rank(stream, place);
        let weight = Self::weight(place);
        self.tree.add(Id::Stream(stream), group(place), Order::Shares, weight, rank);
        self.places.insert(stream, place);
        self.update_yield();
    }

    fn remove(&mut self, stream: StreamKey) {
        if self.places.remove(&stream).is_some() {
            self.tree.remove(Id::Stream(stream));
            self.tree.settle();
            self.update_yield();
        }
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let Some(&old) = self.places.get(&stream) else { return };
        let place = self.place(&priority);
        let id = Id::Stream(stream);
        if group(place) != group(old) {
            self.tree.node(id).rank = self.rank(stream, place);
            self.tree.set_parent(id, group(place));
            self.tree.node(id).weight = Self::weight(place);
        } else {
            self.tree.reweigh(id, Self::weight(place));
        }
        self.places.insert(stream, place);
        self.tree.settle();
        self.update_yield();
    }

    calls_of_places!();
}

/// The strict level of a resource, the smallest first, in the schemes that have such levels.
fn level(name: &str, resource: &Resource) -> usize {
    let Place { group, .. } = (plan(name).place)(resource);
    match name {
        "dfifo" | "spdyrr" | "zeroweight" | "zeroweight-atf" => group,
        // In a bucket, the streams of concurrency 3 go before the others.
        "bucket" | "bucket-html" => (group - 1) / 5 * 2 + usize::from((group - 1) % 5 > 1),
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn decide_like_the_model(calls in any_calls(any_resource().prop_map(Extension::new))) {
        for &(name, plan) in PLANS {
            let mut planned = Planned::new(plan);
            let mut model = Model::new(plan);
            let mut known = Known::default();
            for call in &calls {
                let grants = apply(&mut planned, call);
                prop_assert_eq!(&grants, &apply(&mut model, call), "{}: {:?}", name, call);
                prop_assert_eq!(planned.next(1200), model.next(1200), "{}: {:?}", name, call);
                known.note(call);
                let of = |priority: &Priority| {
                    let control = priority.urgency == Urgency::CONTROL;
                    if control { None } else { Some(level(name, &resource(priority))) }
                };
                if let Some(grant) = planned.next(1200) {
                    let granted = known.active().find(|(stream, _)| *stream == grant.stream);
                    let first = known.active().map(|(_, priority)| of(priority)).min();
                    prop_assert_eq!(granted.map(|(_, priority)| of(priority)), first, "{}", name);
                }
            }
        }
    }

    #[test]
    fn every_resource_has_a_group(resource in any_resource()) {
        for &(name, plan) in PLANS {
            let Place { group, weight } = (plan.place)(&resource);
            prop_assert!(group < plan.groups.len(), "{}", name);
            prop_assert!((1..=256).contains(&weight), "{}", name);
        }
    }
}

#[test]
fn ten_thousand_streams_and_slots_used_again() {
    const STREAMS: u64 = 10_000;
    for &(name, plan) in PLANS {
        let mut planned = Planned::new(plan);
        let (without, _) = planned.capacity();
        let mut most = None;
        for round in 0..2 {
            for n in 0..STREAMS {
                let priority = Priority::default().with_extension(testing::resource(n));
                active(&mut planned, (n * 7919 % STREAMS) * 4 + round, priority);
            }
            let mut done = HashSet::new();
            while let Some(grant) = planned.next(1400) {
                planned.charge(grant.stream, 1400);
                planned.remove(grant.stream);
                assert!(done.insert(grant.stream), "{name}");
            }
            assert_eq!(done.len() as u64, STREAMS, "{name}");
            let (nodes, _) = planned.capacity();
            let groups = nodes - without - STREAMS as usize;
            assert!((1..=plan.groups.len()).contains(&groups), "{name}: {groups}");
            assert_eq!(*most.get_or_insert(nodes), nodes, "{name}");
        }
        assert!(planned.is_empty() && planned.capacity().1 < 40_000, "{name}");
    }
}

/// A priority with the server's own bucket and weight.
fn own(bucket: &str, weight: u8) -> Priority {
    let bucket = bucket.parse().ok();
    Priority::default().with_extension(Resource {
        bucket,
        weight: Some(weight),
        ..Resource::from_mime("image/png")
    })
}

#[test]
fn a_byte_puts_a_stream_into_any_bucket_and_can_be_changed() {
    let mut scheduler = Planned::new(&bucket::PLAN);
    let streams = [(0, "62/3"), (4, "63/1"), (8, "63/2"), (12, "63/2"), (16, "63/1"), (24, "63/3")];
    for (stream, byte) in streams {
        active(&mut scheduler, stream, own(byte, 0));
    }
    assert_eq!(testing::serve(&mut scheduler, 3), [24, 24, 24]);
    scheduler.remove(24);
    // Half for the first stream of level 2, half for the streams of level 1 in turns.
    assert_eq!(testing::serve(&mut scheduler, 6), [8, 4, 8, 16, 8, 4]);
    // The streams of level 3 go in the order of their keys, not of their arrival at the level.
    scheduler.reprioritize(12, own("63/3", 0));
    assert_eq!(testing::serve(&mut scheduler, 1), [12]);
    scheduler.reprioritize(0, own("63/3", 0));
    assert_eq!(testing::serve(&mut scheduler, 1), [0]);
    for demoted in [0, 12] {
        scheduler.reprioritize(demoted, own("0/1", 0));
    }
    scheduler.remove(8);
    assert_eq!(testing::serve(&mut scheduler, 3), [16, 4, 16]);
    scheduler.remove(4);
    scheduler.remove(16);
    assert_eq!(testing::serve(&mut scheduler, 4), [0, 12, 0, 12]);
}

#[test]
fn a_weight_puts_a_stream_into_any_tier_and_can_be_changed() {
    let mut scheduler = Planned::new(&zeroweight::PLAN);
    let streams = [(0, 0), (4, 0), (8, 100), (12, 200), (16, 255), (20, 255)];
    for (stream, weight) in streams {
        active(&mut scheduler, stream, own("", weight));
    }
    assert_eq!(testing::serve(&mut scheduler, 2), [16, 16]);
    scheduler.reprioritize(0, own("", 255));
    assert_eq!(testing::serve(&mut scheduler, 1), [0]);
    for demoted in [0, 16, 20] {
        scheduler.reprioritize(demoted, own("", 0));
    }
    let served = testing::serve(&mut scheduler, 30);
    let heavy = served.iter().filter(|stream| **stream == 12).count();
    assert_eq!((served.iter().filter(|stream| **stream == 8).count(), heavy), (10, 20));
    scheduler.remove(8);
    scheduler.remove(12);
    assert_eq!(testing::serve(&mut scheduler, 2), [0, 0]);
}
