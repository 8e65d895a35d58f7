use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use sutura_schedule::{Extension, Grant, Priority, Scheduler, StreamKey, Urgency};

use super::*;
use crate::testing::{
    Known, Naive, ROOT, active, any_calls, any_resource, apply, calls_of_places, serve,
};
use crate::tree::{Id, Order};

const PLANS: [(&str, &Plan); 13] = [
    ("rr", &rr::PLAN),
    ("wrr", &wrr::PLAN),
    ("fifo", &fifo::PLAN),
    ("dfifo", &dfifo::PLAN),
    ("firefox", &firefox::PLAN),
    ("firefox-measured", &firefox_measured::PLAN),
    ("pplus", &pplus::PLAN),
    ("splus", &splus::PLAN),
    ("spdyrr", &spdyrr::PLAN),
    ("bucket", &bucket::PLAN),
    ("bucket-html", &bucket_html::PLAN),
    ("zeroweight", &zeroweight::PLAN),
    ("zeroweight-atf", &zeroweight_atf::PLAN),
];

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
        // The streams of concurrency 3 of a bucket before the others.
        "bucket" | "bucket-html" => [0, 0, 0, 0, 1, 1, 0, 2, 0, 3, 3, 4][group],
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn decide_like_the_model(calls in any_calls(any_resource().prop_map(Extension::new))) {
        for (name, plan) in PLANS {
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
        for (name, plan) in PLANS {
            let Place { group, weight } = (plan.place)(&resource);
            prop_assert!(group < plan.groups.len(), "{}", name);
            prop_assert!((1..=256).contains(&weight), "{}", name);
        }
    }
}

/// A small page: (stream, packets, resource).
fn page() -> Vec<(StreamKey, usize, Resource)> {
    let of = |kind| Resource { kind, ..Resource::default() };
    vec![
        (0, 2, Resource { main: true, ..of(Kind::Html) }),
        (4, 2, Resource { in_head: true, critical: true, ..of(Kind::Css) }),
        (8, 2, Resource { in_head: true, ..of(Kind::Js) }),
        (12, 1, of(Kind::Font)),
        (16, 2, of(Kind::Image)),
        (20, 2, Resource { above_the_fold: true, ..of(Kind::Image) }),
        (24, 1, Resource { deferred: true, ..of(Kind::Js) }),
        (28, 1, of(Kind::Xhr)),
        (32, 1, of(Kind::Other)),
        (36, 1, Resource { after_first_image: true, ..of(Kind::Js) }),
    ]
}

fn of(resource: Resource) -> Priority {
    Priority::default().with_extension(resource)
}

/// Loads resources that are all requested at once; says which stream each packet was for.
fn load(plan: &'static Plan, page: &[(StreamKey, usize, Resource)]) -> Vec<StreamKey> {
    let mut planned = Planned::new(plan);
    let mut left = HashMap::new();
    for &(stream, packets, resource) in page {
        active(&mut planned, stream, of(resource));
        left.insert(stream, packets);
    }
    let mut order = Vec::new();
    while let Some(grant) = planned.next(1400) {
        planned.charge(grant.stream, 1400);
        order.push(grant.stream);
        *left.get_mut(&grant.stream).unwrap() -= 1;
        if left[&grant.stream] == 0 {
            planned.remove(grant.stream);
        }
    }
    order
}

#[test]
fn a_small_page_in_the_order_of_each_scheme() {
    let expected: [(&str, [StreamKey; 15]); 13] = [
        ("rr", [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 0, 4, 8, 16, 20]),
        ("wrr", [0, 4, 0, 4, 8, 24, 36, 12, 8, 16, 20, 28, 32, 16, 20]),
        ("fifo", [0, 0, 4, 4, 8, 8, 12, 16, 16, 20, 20, 24, 28, 32, 36]),
        ("dfifo", [0, 0, 4, 4, 12, 8, 8, 28, 36, 16, 16, 20, 20, 24, 32]),
        ("firefox", [4, 24, 8, 36, 28, 4, 8, 12, 0, 16, 20, 0, 16, 20, 32]),
        ("firefox-measured", [4, 24, 8, 36, 28, 4, 8, 0, 12, 16, 20, 0, 16, 20, 32]),
        ("pplus", [0, 0, 4, 4, 8, 8, 12, 28, 36, 16, 20, 24, 32, 16, 20]),
        ("splus", [4, 4, 8, 8, 24, 0, 28, 36, 12, 16, 20, 0, 16, 20, 32]),
        ("spdyrr", [0, 4, 12, 0, 4, 8, 28, 8, 36, 16, 20, 24, 16, 20, 32]),
        ("bucket", [4, 4, 8, 8, 12, 20, 20, 28, 36, 0, 16, 0, 16, 24, 32]),
        ("bucket-html", [4, 4, 8, 8, 0, 20, 0, 20, 12, 28, 36, 24, 16, 16, 32]),
        ("zeroweight", [0, 0, 4, 4, 8, 24, 36, 12, 8, 20, 20, 16, 16, 28, 32]),
        ("zeroweight-atf", [0, 0, 4, 4, 12, 20, 20, 8, 28, 36, 8, 16, 16, 24, 32]),
    ];
    for (name, order) in expected {
        assert_eq!(load(plan(name), &page()), order, "{name}");
    }
    assert_eq!(expected.map(|(name, _)| name), PLANS.map(|(name, _)| name));
}

#[test]
fn svg_is_data_where_xml_is_looked_for_first() {
    let svg = Resource { kind: Kind::Svg, ..Resource::default() };
    let [image, data] = [Kind::Image, Kind::Xhr].map(|kind| Resource { kind, ..svg });
    for (name, plan) in PLANS {
        let [svg, image, data] = [svg, image, data].map(|resource| (plan.place)(&resource));
        match name {
            "rr" | "wrr" | "fifo" => assert!(svg == image && svg == data, "{name}"),
            "zeroweight" | "zeroweight-atf" => assert!(svg == image && svg != data, "{name}"),
            // One test for the group, and another one for the weight.
            "firefox" | "firefox-measured" => {
                assert_eq!((svg.group, svg.weight), (data.group, image.weight), "{name}");
            }
            _ => assert!(svg == data && svg != image, "{name}"),
        }
    }
}

#[test]
fn the_order_of_the_tests_decides() {
    let everything = Resource {
        kind: Kind::Js,
        main: false,
        in_head: true,
        after_first_image: true,
        deferred: true,
        preload: true,
        critical: true,
        above_the_fold: true,
    };
    let group = |name: &str, kind: Kind| {
        let resource = Resource { kind, ..everything };
        (plan(name).place)(&resource).group
    };
    let low = (plan("dfifo").place)(&Resource { kind: Kind::Image, ..Resource::default() });
    assert_eq!(group("dfifo", Kind::Js), low.group);
    // A script is a leader in the head, preloaded or not; anything else is speculative then.
    let css = (plan("firefox").place)(&Resource { kind: Kind::Css, ..Resource::default() });
    assert_eq!(group("firefox", Kind::Js), css.group);
    assert_ne!(group("firefox", Kind::Css), css.group);
    for kind in [Kind::Html, Kind::Font, Kind::Image, Kind::Other] {
        assert_eq!(group("firefox", kind), group("firefox", Kind::Css));
        assert_eq!(group("splus", kind), group("splus", Kind::Css));
    }
    // Deferred is asked for first, whatever the kind.
    for kind in [Kind::Html, Kind::Css, Kind::Font, Kind::Image, Kind::Other] {
        assert_eq!(group("bucket", kind), group("bucket", Kind::Js));
        assert_eq!(group("bucket-html", kind), group("bucket", Kind::Js));
    }
}

#[test]
fn a_late_urgent_stream_interrupts() {
    for (name, expected) in [("dfifo", 4), ("spdyrr", 4), ("bucket", 4), ("fifo", 0)] {
        let mut planned = Planned::new(plan(name));
        let image = Resource { kind: Kind::Image, ..Resource::default() };
        let css = Resource { kind: Kind::Css, in_head: true, ..Resource::default() };
        active(&mut planned, 0, of(image));
        assert_eq!(serve(&mut planned, 2), [0, 0]);
        active(&mut planned, 4, of(css));
        assert_eq!(serve(&mut planned, 2), [expected; 2], "{name}");
        // It need not be active for others to go on, and comes back before them.
        planned.deactivate(4);
        assert_eq!(serve(&mut planned, 2), [0, 0]);
        planned.activate(4);
        assert_eq!(serve(&mut planned, 2), [expected; 2], "{name}");
    }
}

/// The share of each stream in `packets` packets, of which every fourth is short.
fn shares(planned: &mut Planned, packets: usize) -> HashMap<StreamKey, f64> {
    let mut sent = HashMap::new();
    let mut total = 0.0;
    for n in 0..packets {
        let bytes = if n % 4 == 0 { 333 } else { 1400 };
        let grant = planned.next(bytes).unwrap();
        planned.charge(grant.stream, bytes);
        *sent.entry(grant.stream).or_default() += bytes as f64;
        total += bytes as f64;
    }
    sent.values_mut().for_each(|bytes| *bytes /= total);
    sent
}

fn assert_shares(name: &str, resources: &[(Resource, f64)], packets: usize) {
    let mut planned = Planned::new(plan(name));
    for (n, &(resource, _)) in resources.iter().enumerate() {
        active(&mut planned, n as u64, of(resource));
    }
    let sent = shares(&mut planned, packets);
    let all: f64 = resources.iter().map(|(_, share)| share).sum();
    for (n, (resource, share)) in resources.iter().enumerate() {
        let (got, due) = (sent[&(n as u64)], share / all);
        assert!((got - due).abs() <= due / 100.0, "{name}: {resource:?} {got} for {due}");
    }
}

#[test]
fn weights_are_honoured_in_the_long_run() {
    let r = |kind| Resource { kind, ..Resource::default() };
    let hero = Resource { above_the_fold: true, ..r(Kind::Image) };
    let deferred = Resource { deferred: true, ..r(Kind::Js) };
    let late = Resource { after_first_image: true, ..r(Kind::Js) };
    let preload = Resource { preload: true, ..r(Kind::Image) };
    assert_shares("rr", &[(r(Kind::Html), 1.0), (r(Kind::Image), 1.0), (late, 1.0)], 10_000);
    let wrr = [
        (r(Kind::Html), 256.0),
        (r(Kind::Css), 256.0),
        (r(Kind::Js), 24.0),
        (r(Kind::Font), 16.0),
        (r(Kind::Image), 8.0),
        (r(Kind::Other), 8.0),
    ];
    assert_shares("wrr", &wrr, 100_000);
    let zeroweight = [
        (r(Kind::Html), 254.0),
        (r(Kind::Css), 254.0),
        (r(Kind::Js), 24.0),
        (r(Kind::Font), 16.0),
        (hero, 8.0),
        (r(Kind::Image), 1.0),
    ];
    assert_shares("zeroweight", &zeroweight, 300_000);
    // Leaders 201: a style sheet, two scripts and the followers (1); unblocked 101; background 1.
    let leaders = 201.0 / (32.0 + 32.0 + 1.0);
    let firefox = [
        (r(Kind::Css), leaders * 32.0),
        (r(Kind::Js), leaders * 32.0),
        (r(Kind::Html), leaders * 32.0 / (32.0 + 22.0 + 42.0)),
        (r(Kind::Image), leaders * 22.0 / (32.0 + 22.0 + 42.0)),
        (r(Kind::Font), leaders * 42.0 / (32.0 + 22.0 + 42.0)),
        (deferred, 101.0 / 2.0),
        (r(Kind::Xhr), 101.0 / 2.0),
        (r(Kind::Other), 16.0 / 17.0),
        (preload, 1.0 / 17.0),
    ];
    assert_shares("firefox", &firefox, 1_500_000);
}

#[test]
fn the_normal_group_of_p_plus_yields_while_the_high_one_has_streams() {
    let mut planned = Planned::new(&pplus::PLAN);
    let [html, image] =
        [Kind::Html, Kind::Image].map(|kind| of(Resource { kind, ..Resource::default() }));
    let late = of(Resource { kind: Kind::Js, after_first_image: true, ..Resource::default() });
    active(&mut planned, 0, html);
    active(&mut planned, 4, late);
    active(&mut planned, 8, image);
    let expect = |planned: &mut Planned, weights: [f64; 3]| {
        let sent = shares(planned, 100_000);
        let all: f64 = weights.iter().sum();
        for (stream, weight) in [0, 4, 8].into_iter().zip(weights) {
            let (got, due) = (sent.get(&stream).copied().unwrap_or_default(), weight / all);
            assert!((got - due).abs() <= due / 100.0, "{stream}: {got} for {due}");
        }
    };
    expect(&mut planned, [256.0, 1.0, 1.0]);
    // A stream that is there but has nothing to send still holds the others' weights.
    planned.deactivate(0);
    expect(&mut planned, [0.0, 1.0, 1.0]);
    planned.remove(0);
    expect(&mut planned, [0.0, 256.0, 1.0]);
}

#[test]
fn the_kinds_that_share_a_bucket_take_packets_in_turn() {
    let mut planned = Planned::new(&bucket::PLAN);
    let [html, image] =
        [Kind::Html, Kind::Image].map(|kind| of(Resource { kind, ..Resource::default() }));
    active(&mut planned, 0, html.clone());
    active(&mut planned, 4, html);
    assert_eq!(serve(&mut planned, 3), [0, 0, 0]);
    // The pictures' turn has come, though they were not there before.
    active(&mut planned, 8, image.clone());
    active(&mut planned, 12, image);
    assert_eq!(serve(&mut planned, 6), [8, 0, 12, 0, 8, 0]);
    planned.deactivate(0);
    assert_eq!(serve(&mut planned, 4), [12, 4, 8, 4]);
    planned.deactivate(4);
    assert_eq!(serve(&mut planned, 3), [12, 8, 12]);
}

#[test]
fn a_resource_that_changes_its_group_stands_behind_those_that_are_there() {
    let mut planned = Planned::new(&dfifo::PLAN);
    let [image, css] =
        [Kind::Image, Kind::Css].map(|kind| of(Resource { kind, ..Resource::default() }));
    active(&mut planned, 0, image.clone());
    active(&mut planned, 4, image.clone());
    active(&mut planned, 8, css.clone());
    planned.reprioritize(0, css.clone());
    assert_eq!(serve(&mut planned, 1), [8]);
    planned.remove(8);
    assert_eq!(serve(&mut planned, 1), [0]);
    // To say what is known already changes nothing, and neither does another kind of the group.
    active(&mut planned, 12, css.clone());
    planned.reprioritize(0, css);
    planned.reprioritize(0, of(Resource { kind: Kind::Html, ..Resource::default() }));
    assert_eq!(serve(&mut planned, 1), [0]);
    planned.reprioritize(0, image);
    assert_eq!(serve(&mut planned, 1), [12]);
    planned.remove(12);
    assert_eq!(serve(&mut planned, 1), [4]);
}

#[test]
fn ten_thousand_streams_and_slots_used_again() {
    const STREAMS: u64 = 10_000;
    for (name, plan) in PLANS {
        let mut planned = Planned::new(plan);
        let (groups, _) = planned.capacity();
        for round in 0..2 {
            for n in 0..STREAMS {
                let (_, _, resource) = page()[(n * 7 % 10) as usize];
                active(&mut planned, (n * 7919 % STREAMS) * 4 + round, of(resource));
            }
            let mut done = HashSet::new();
            while let Some(grant) = planned.next(1400) {
                planned.charge(grant.stream, 1400);
                planned.remove(grant.stream);
                assert!(done.insert(grant.stream), "{name}");
            }
            assert_eq!(done.len() as u64, STREAMS, "{name}");
            assert_eq!(planned.capacity().0 as u64, groups as u64 + STREAMS, "{name}");
        }
        assert!(planned.is_empty() && planned.capacity().1 < 40_000, "{name}");
    }
}
