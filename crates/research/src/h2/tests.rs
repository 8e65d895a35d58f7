use std::collections::HashMap;

use proptest::prelude::*;
use sutura_schedule::Extension;

use super::*;
use crate::testing::{
    Known, Naive, ROOT, active, any_calls, any_dependency, apply, calls_of_places, serve,
};
use crate::tree::Id;

/// The rules of RFC 7540 over the naive tree.
#[derive(Debug)]
struct Model {
    tree: Naive,
    places: HashMap<StreamKey, TreePlace>,
}

const CONTROL: Id = Id::Placeholder(1);
const STREAM_0: Id = Id::Placeholder(2);

impl Model {
    fn new() -> Self {
        let mut tree = Naive::new(Order::Sequence);
        tree.add(CONTROL, ROOT, Order::Sequence, 1, 1);
        tree.add(STREAM_0, ROOT, Order::Shares, 1, 2);
        Self { tree, places: HashMap::new() }
    }

    fn resolve(&self, stream: StreamKey, dependency: Option<Dependency>) -> (Id, Dependency) {
        let dependency = dependency.unwrap_or(Dependency::DEFAULT);
        match dependency.parent {
            None => (STREAM_0, dependency),
            Some(parent)
                if parent != stream
                    && matches!(self.places.get(&parent), Some(TreePlace::Dependent(_))) =>
            {
                (Id::Stream(parent), dependency)
            }
            Some(_) => (STREAM_0, Dependency::DEFAULT),
        }
    }

    fn place(&mut self, stream: StreamKey, place: TreePlace) {
        let id = Id::Stream(stream);
        match place {
            TreePlace::Control => self.tree.add(id, CONTROL, Order::Shares, 1, stream),
            TreePlace::Dependent(dependency) => {
                let (parent, dependency) = self.resolve(stream, dependency);
                self.tree.add(id, parent, Order::Shares, dependency.weight, 0);
                if dependency.exclusive {
                    self.tree.adopt_siblings(id);
                }
            }
        }
        self.places.insert(stream, place);
        self.tree.settle();
    }
}

impl Scheduler for Model {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.places.contains_key(&stream) {
            self.reprioritize(stream, priority);
        } else {
            self.place(stream, TreePlace::from(&priority));
        }
    }

    fn remove(&mut self, stream: StreamKey) {
        if self.places.remove(&stream).is_some() {
            self.tree.remove(Id::Stream(stream));
            self.tree.settle();
        }
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let place = TreePlace::from(&priority);
        let id = Id::Stream(stream);
        match (self.places.get(&stream).copied(), place) {
            (None, _) => {}
            (Some(old), _) if old == place => {}
            (Some(TreePlace::Dependent(_)), TreePlace::Dependent(dependency)) => {
                let (parent, dependency) = self.resolve(stream, dependency);
                if self.tree.is_within(parent, id) {
                    let above = self.tree.node(id).parent;
                    self.tree.set_parent(parent, above);
                }
                self.tree.reweigh(id, dependency.weight);
                self.tree.set_parent(id, parent);
                if dependency.exclusive {
                    self.tree.adopt_siblings(id);
                }
                self.places.insert(stream, place);
                self.tree.settle();
            }
            _ => {
                let ready = self.tree.node(id).ready;
                self.remove(stream);
                self.place(stream, place);
                self.tree.node(id).ready = ready;
                self.tree.settle();
            }
        }
    }

    calls_of_places!();
}

proptest! {
    #[test]
    fn decides_like_the_model(calls in any_calls(any_dependency().prop_map(Extension::new))) {
        let mut h2 = H2::new();
        let mut model = Model::new();
        let mut known = Known::default();
        for call in &calls {
            prop_assert_eq!(apply(&mut h2, call), apply(&mut model, call), "{:?}", call);
            prop_assert_eq!(h2.next(1200), model.next(1200), "after {:?}", call);
            known.note(call);
            prop_assert_eq!(h2.streams(), known.streams().count());
            for (&stream, place) in &model.places {
                if let TreePlace::Dependent(_) = place {
                    let parent = match model.tree.node(Id::Stream(stream)).parent {
                        Id::Stream(parent) => Some(parent),
                        Id::Placeholder(_) => None,
                    };
                    prop_assert_eq!(h2.parent(stream), parent, "of {} after {:?}", stream, call);
                }
            }
        }
    }
}

impl H2 {
    /// The stream that another one depends on in the tree.
    fn parent(&self, stream: StreamKey) -> Option<StreamKey> {
        let parent = self.tree.parent(self.streams[&stream].slot);
        self.streams.iter().find(|(_, entry)| entry.slot == parent).map(|(&key, _)| key)
    }
}

fn on(parent: Option<StreamKey>, weight: u16, exclusive: bool) -> Priority {
    Priority::default().with_extension(Dependency { parent, weight, exclusive })
}

fn below(parent: StreamKey) -> Priority {
    on(Some(parent), 16, false)
}

const A: StreamKey = 1;
const B: StreamKey = 3;
const C: StreamKey = 5;
const D: StreamKey = 7;
const E: StreamKey = 9;
const F: StreamKey = 11;

/// The tree of RFC 7540, section 5.3.3, before anything moves.
fn figure_5() -> H2 {
    let mut h2 = H2::new();
    h2.insert(A, on(None, 16, false));
    for (stream, parent) in [(B, A), (C, A), (D, C), (E, C), (F, D)] {
        h2.insert(stream, below(parent));
    }
    h2
}

#[test]
fn an_exclusive_stream_becomes_the_sole_dependant_of_its_parent() {
    for exclusive in [false, true] {
        let mut h2 = H2::new();
        h2.insert(A, on(None, 16, false));
        h2.insert(B, below(A));
        h2.insert(C, below(A));
        h2.insert(D, on(Some(A), 16, exclusive));
        let expected = if exclusive { D } else { A };
        assert_eq!([B, C].map(|stream| h2.parent(stream)), [Some(expected); 2]);
        assert_eq!(h2.parent(D), Some(A));
        // As for a stream that was there already.
        h2.reprioritize(C, on(Some(A), 16, true));
        assert_eq!(h2.parent(C), Some(A));
        assert_eq!(h2.parent(D), Some(C));
    }
}

#[test]
fn a_stream_can_be_moved_below_one_of_its_dependants() {
    let parents = |h2: &H2| [A, B, C, D, E, F].map(|stream| h2.parent(stream));
    let mut h2 = figure_5();
    h2.reprioritize(A, below(D));
    assert_eq!(parents(&h2), [Some(D), Some(A), Some(A), None, Some(C), Some(D)]);
    let mut h2 = figure_5();
    h2.reprioritize(A, on(Some(D), 16, true));
    assert_eq!(parents(&h2), [Some(D), Some(A), Some(A), None, Some(C), Some(A)]);
}

#[test]
fn a_missing_parent_is_the_default_priority() {
    let mut h2 = H2::new();
    active(&mut h2, D, on(None, 16, false));
    // C is gone when E comes to depend on it: E becomes a sibling of D with the default weight, and D does
    // not become a dependant of E.
    active(&mut h2, E, on(Some(C), 256, true));
    active(&mut h2, F, on(Some(F), 256, true));
    assert_eq!([D, E, F].map(|stream| h2.parent(stream)), [None; 3]);
    assert_eq!(serve(&mut h2, 6), [D, E, F, D, E, F]);
    active(&mut h2, A, Priority::default());
    // A new stream, as if it had been served with the others just now.
    assert_eq!(serve(&mut h2, 4), [A, D, E, F]);
}

#[test]
fn the_dependants_of_a_removed_stream_share_its_weight() {
    let mut h2 = H2::new();
    active(&mut h2, A, on(None, 40, false));
    active(&mut h2, B, on(Some(A), 100, false));
    active(&mut h2, C, on(Some(A), 300, false)); // counts as 256
    active(&mut h2, D, on(None, 40, false));
    h2.remove(A);
    assert_eq!(h2.parent(B), None);
    let packets = 3560;
    let count = shares(&mut h2, packets);
    // 40 * 100 / 356 = 11 and 40 * 256 / 356 = 28.
    for (stream, weight) in [(B, 11), (C, 28), (D, 40)] {
        let expected = packets * weight / 79;
        assert!(count[&stream].abs_diff(expected) <= expected / 100, "{count:?}");
    }
}

fn shares(scheduler: &mut dyn Scheduler, packets: usize) -> HashMap<StreamKey, usize> {
    let mut count = HashMap::new();
    for stream in serve(scheduler, packets) {
        *count.entry(stream).or_default() += 1;
    }
    count
}

#[test]
fn a_parent_goes_before_its_children_and_siblings_go_by_weight() {
    let mut h2 = H2::new();
    active(&mut h2, A, on(None, 128, false));
    active(&mut h2, B, on(None, 64, false));
    active(&mut h2, C, below(A));
    // The sequence of Marx 2020, section 4.1.
    assert_eq!(serve(&mut h2, 9), [A, A, B, A, A, B, A, A, B]);
    h2.deactivate(A);
    // C uses the share of A.
    assert_eq!(serve(&mut h2, 6), [C, C, B, C, C, B]);
    h2.activate(A);
    assert_eq!(serve(&mut h2, 3), [A, A, B]);
    h2.deactivate(B);
    assert_eq!(serve(&mut h2, 3), [A, A, A]);
}

#[test]
fn weights_hold_in_bytes_whatever_the_packets() {
    let weights = [(A, 1u64), (B, 3), (C, 16), (D, 101), (E, 201), (F, 256)];
    let mut h2 = H2::new();
    for (stream, weight) in weights {
        active(&mut h2, stream, on(None, weight as u16, false));
    }
    let mut sent: HashMap<StreamKey, u64> = HashMap::new();
    for n in 0..300_000usize {
        let room = [1400, 40, 1333, 7][n % 4];
        let Some(grant) = h2.next(room) else { panic!("all are active") };
        h2.charge(grant.stream, room);
        *sent.entry(grant.stream).or_default() += room as u64;
        // Retransmissions and repair symbols are charged to the stream for which they are sent, even while it
        // is inactive.
        if n % 10 == 0 {
            let stream = weights[n / 10 % 6].0;
            h2.deactivate(stream);
            h2.charge(stream, 100);
            h2.activate(stream);
            *sent.entry(stream).or_default() += 100;
        }
    }
    let total: u64 = sent.values().sum();
    let all: u64 = weights.iter().map(|(_, weight)| weight).sum();
    // Charges without grants alone give A more than its share, so it is left out.
    for (stream, weight) in &weights[1..] {
        let (got, due) = (sent[stream], total * weight / all);
        assert!(got.abs_diff(due) <= due / 100 + 1400, "{stream}: {got} of {due}");
    }
}

#[test]
fn a_changed_weight_counts_at_once() {
    let mut h2 = H2::new();
    active(&mut h2, A, on(None, 256, false));
    active(&mut h2, B, on(None, 1, false));
    assert_eq!(serve(&mut h2, 3), [A, A, A]);
    h2.reprioritize(B, on(None, 256, false));
    let count = shares(&mut h2, 10);
    assert!(count[&A].abs_diff(count[&B]) <= 1, "{count:?}");
}

#[test]
fn a_pause_earns_nothing() {
    let mut h2 = H2::new();
    for stream in [A, B] {
        active(&mut h2, stream, on(None, 16, false));
    }
    h2.deactivate(A);
    assert_eq!(serve(&mut h2, 100).len(), 100);
    h2.activate(A);
    let count = shares(&mut h2, 10);
    assert_eq!((count[&A], count[&B]), (5, 5));
}

#[test]
fn ten_thousand_streams_in_one_chain_and_in_one_family() {
    const STREAMS: u64 = 10_000;
    for chain in [true, false] {
        let mut h2 = H2::new();
        for stream in 0..STREAMS {
            let parent = stream.checked_sub(1).filter(|_| chain);
            active(&mut h2, stream, on(parent, 16, false));
        }
        assert_eq!(h2.streams() as u64, STREAMS);
        // A root, two placeholders and the streams.
        assert_eq!(h2.tree.capacity() as u64, STREAMS + 3);
        // Everybody below one, and back.
        h2.insert(STREAMS, on(None, 16, true));
        h2.remove(STREAMS);
        let mut done = Vec::new();
        while let Some(grant) = h2.next(1400) {
            h2.charge(grant.stream, 1400);
            h2.remove(grant.stream);
            done.push(grant.stream);
        }
        assert!(done.iter().copied().eq(0..STREAMS));
        assert_eq!(h2.tree.capacity() as u64, STREAMS + 4);
        assert!(h2.is_empty() && h2.streams() == 0);
    }
}

#[test]
fn slots_are_used_again() {
    let mut h2 = H2::new();
    for n in 0..10_000u64 {
        active(&mut h2, 4 * n, on(n.checked_sub(1).map(|n| 4 * n), 16, n % 3 == 0));
        if let Some(old) = n.checked_sub(16) {
            h2.remove(4 * old);
        }
    }
    assert_eq!(h2.streams(), 16);
    assert_eq!(h2.tree.capacity(), 3 + 17);
}
