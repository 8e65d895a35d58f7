//! Random trees against an exact solution of the max-min fair allocation.
//!
//! `SUTURA_CASES` sets how many trees are tried; a million by default.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;

use sutura_random::Rng;
use sutura_schedule::{Class, Hls, Hmm, Priority, Scheduler, Urgency, Weight};

/// The largest packet, also in the quantum of `hls`.
const L: u64 = 1350;

/// A node of the test's own tree. The root is node 0; the classes come before the streams.
#[derive(Clone, Debug)]
struct Node {
    parent: usize,
    urgency: u8,
    incremental: bool,
    weight: u64,
    depth: usize,
    /// `None` for a class.
    stream: Option<u64>,
    /// The bytes that a stream, or all streams below a class, have to send.
    demand: u64,
    served: u64,
}

#[derive(Debug)]
struct Tree {
    nodes: Vec<Node>,
    children: Vec<Vec<usize>>,
}

impl Tree {
    fn random(random: &mut Rng) -> Self {
        let extreme = random.below(16) == 0;
        let mut nodes: Vec<Node> = Vec::new();
        let classes = 1 + random.below(5) as usize;
        let streams = 1 + random.below(8);
        let mut node = |random: &mut Rng, parents: usize, stream: Option<u64>| {
            let parent = random.below(parents.max(1) as u64) as usize;
            let depth = nodes.get(parent).map_or(0, |parent| parent.depth + 1);
            let weight = if extreme {
                [1, 1_000_000, 999_999, 3][random.below(4) as usize]
            } else {
                250 * (1 + random.below(16))
            };
            let urgency = if random.below(4) == 0 { random.below(3) as u8 } else { 3 };
            let incremental = random.below(8) != 0;
            let (demand, served) = (0, 0);
            nodes.push(Node {
                parent,
                urgency,
                incremental,
                weight,
                depth,
                stream,
                demand,
                served,
            });
        };
        for class in 0..classes {
            node(random, class, None);
        }
        for stream in 0..streams {
            node(random, classes, Some(4 * stream));
        }
        let mut children = vec![Vec::new(); nodes.len()];
        for (index, node) in nodes.iter().enumerate().skip(1) {
            children[node.parent].push(index);
        }
        Self { nodes, children }
    }

    fn streams(&self) -> impl Iterator<Item = (usize, u64)> + use<> {
        let streams = self.nodes.iter().enumerate();
        let streams = streams.filter_map(|(index, node)| Some((index, node.stream?)));
        streams.collect::<Vec<_>>().into_iter()
    }

    fn priority(&self, index: usize, names: &[Arc<str>]) -> Priority {
        let mut above = Vec::new();
        let mut at = self.nodes[index].parent;
        while at != 0 {
            let node = &self.nodes[at];
            above.push(
                Class::default()
                    .with_name(Some(Arc::clone(&names[at])))
                    .with_urgency(Urgency::new(node.urgency).unwrap())
                    .with_incremental(node.incremental)
                    .with_weight(Weight::new(node.weight as u32).unwrap()),
            );
            at = node.parent;
        }
        let node = &self.nodes[index];
        Priority::new(node.urgency, node.incremental)
            .unwrap()
            .with_weight(Weight::new(node.weight as u32).unwrap())
            .with_parents((!above.is_empty()).then(|| above.into()))
    }

    /// A node with data to send has positive demand. Wraps, to take away as well.
    fn add_demand(&mut self, mut index: usize, bytes: u64) {
        loop {
            let demand = &mut self.nodes[index].demand;
            *demand = demand.wrapping_add(bytes);
            if index == 0 {
                return;
            }
            index = self.nodes[index].parent;
        }
    }

    fn serve(&mut self, mut index: usize, bytes: u64) {
        loop {
            self.nodes[index].served += bytes;
            if index == 0 {
                return;
            }
            index = self.nodes[index].parent;
        }
    }

    /// The members of a class with demand, in groups that share, the group that is served first at the
    /// beginning. Groups of one urgency are ordered by key, which for a class is the key of its first stream.
    fn groups(&self, class: usize, keys: &BTreeMap<usize, u64>) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<(u8, bool, u64), Vec<usize>> = BTreeMap::new();
        for &child in self.children[class].iter().filter(|&&child| self.nodes[child].demand > 0) {
            let Node { urgency, incremental, stream, .. } = self.nodes[child];
            // A class never has the key of a stream beside it: the stream whose key the class has is below
            // the class.
            let key = if incremental { 0 } else { stream.unwrap_or_else(|| keys[&child]) };
            groups.entry((urgency, incremental, key)).or_default().push(child);
        }
        groups.into_values().collect()
    }

    /// For each class the stream for which it was made: the first inserted below it.
    fn keys(&self) -> BTreeMap<usize, u64> {
        let mut keys = BTreeMap::new();
        for (index, stream) in self.streams() {
            let mut at = self.nodes[index].parent;
            while at != 0 {
                keys.entry(at).or_insert(stream);
                at = self.nodes[at].parent;
            }
        }
        keys
    }

    /// An upper bound of the bytes of a round while any of these streams are active: the quantum, and the
    /// same amount that classes were left with.
    fn round(&self) -> u64 {
        let mut reciprocal = vec![1f64; self.nodes.len()];
        let mut largest = 1f64;
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            let siblings = &self.children[node.parent];
            let sum: u64 = siblings.iter().map(|&sibling| self.nodes[sibling].weight).sum();
            reciprocal[index] = reciprocal[node.parent] * sum as f64 / node.weight as f64;
            if node.stream.is_some() {
                largest = largest.max(reciprocal[index]);
            }
        }
        (2.0 * (1.0 + largest) * L as f64).ceil().min((1u64 << 60) as f64) as u64
    }
}

/// The exact max-min fair shares of `capacity` for members with (demand, weight): numerators, and their
/// common denominator.
fn water_fill(members: &[(u64, u64)], capacity: u64) -> (Vec<u128>, u128) {
    let mut order: Vec<usize> = (0..members.len()).collect();
    // Sorted by demand / weight, the level at which a member has enough.
    order.sort_by(|&a, &b| {
        let ((da, wa), (db, wb)) = (members[a], members[b]);
        (u128::from(da) * u128::from(wb)).cmp(&(u128::from(db) * u128::from(wa)))
    });
    let mut rest = u128::from(capacity);
    let mut weights: u128 = members.iter().map(|&(_, weight)| u128::from(weight)).sum();
    let mut satisfied = vec![false; members.len()];
    for &member in &order {
        let (demand, weight) = (u128::from(members[member].0), u128::from(members[member].1));
        if demand * weights > rest * weight {
            break;
        }
        satisfied[member] = true;
        rest -= demand;
        weights -= weight;
    }
    let denominator = weights.max(1);
    let share = |(&(demand, weight), satisfied): (&(u64, u64), bool)| {
        if satisfied { u128::from(demand) * denominator } else { u128::from(weight) * rest }
    };
    (members.iter().zip(satisfied).map(share).collect(), denominator)
}

#[test]
fn the_solver_solves_what_can_be_solved_by_hand() {
    assert_eq!(water_fill(&[(100, 1), (100, 1)], 50), (vec![50, 50], 2));
    // The first member needs only 10; the other two get a third and two thirds of the remaining 90.
    assert_eq!(water_fill(&[(10, 5), (80, 1), (80, 2)], 100), (vec![30, 90, 180], 3));
    assert_eq!(water_fill(&[(10, 1), (20, 7)], 30), (vec![10, 20], 1));
    assert_eq!(water_fill(&[(7, 1)], 3), (vec![3], 1));
}

/// How far a scheme lets one of this many members be ahead of its share of the class's service, and how far
/// behind, in bytes.
type Slack = fn(&Tree, u64) -> (u64, u64);

type New = fn() -> Box<dyn Scheduler>;

const SCHEMES: [(New, Slack); 2] = [
    // A packet for each member, as all are new, which is less than a quantum. The price of a byte is rounded,
    // hence the additional byte.
    (|| Box::new(Hmm::new()), |_, members| (members * (L + 1), members * (L + 1))),
    // A round for each stream that ends, since other streams of its class wait for the next round, and the
    // first and the last round.
    (
        || Box::new(Hls::new()),
        |tree, _| {
            let rounds = tree.round().saturating_mul(tree.streams().count() as u64 + 2);
            (rounds, rounds)
        },
    ),
];

fn packet(random: &mut Rng, small: bool) -> u64 {
    if small { 1 + random.below(L) } else { L }
}

/// All demands are there from the start; the link carries only a part of them.
fn demands(random: &mut Rng, names: &[Arc<str>]) {
    let mut tree = Tree::random(random);
    for (index, _) in tree.streams() {
        let demand = match random.below(4) {
            0 => 0,
            1 => random.below(3000),
            _ => random.below(30_000),
        };
        tree.add_demand(index, demand);
    }
    let capacity = random.below(tree.nodes[0].demand + 1);
    let small = random.below(3) == 0;
    let seed = random.next_u64();
    for (new, slack) in SCHEMES {
        let mut random = Rng::new(seed);
        let mut scheduler = new();
        let mut tree = Tree { nodes: tree.nodes.clone(), children: tree.children.clone() };
        for (index, stream) in tree.streams() {
            scheduler.insert(stream, tree.priority(index, names));
        }
        let first = tree.nodes.len() - tree.streams().count();
        for (index, stream) in tree.streams() {
            if tree.nodes[index].demand > 0 {
                scheduler.activate(stream);
            }
        }
        while tree.nodes[0].served < capacity {
            let room = packet(&mut random, small);
            let grant = scheduler.next(room as usize).expect("there is work left");
            let index = first + grant.stream as usize / 4;
            let left = tree.nodes[index].demand - tree.nodes[index].served;
            assert!(left > 0, "served what is not active");
            let used = left.min(grant.bytes as u64);
            scheduler.charge(grant.stream, used as usize);
            tree.serve(index, used);
            if used == left {
                scheduler.deactivate(grant.stream);
            }
        }
        if tree.nodes[0].served == tree.nodes[0].demand {
            assert!(scheduler.is_empty() && scheduler.next(1).is_none());
        }
        check_demands(&tree, slack);
    }
}

/// Every class divides its service as the exact solution does.
fn check_demands(tree: &Tree, slack: Slack) {
    let keys = tree.keys();
    for class in (0..tree.nodes.len()).filter(|&index| tree.nodes[index].stream.is_none()) {
        let mut rest = tree.nodes[class].served;
        for group in tree.groups(class, &keys) {
            let of = |&member: &usize| (tree.nodes[member].demand, tree.nodes[member].weight);
            let members: Vec<_> = group.iter().map(of).collect();
            let demand: u64 = members.iter().map(|&(demand, _)| demand).sum();
            let got: u64 = group.iter().map(|&member| tree.nodes[member].served).sum();
            // Strict priorities are exact.
            assert_eq!(got, demand.min(rest), "class {class}: {tree:#?}");
            let (shares, denominator) = water_fill(&members, got);
            for (&member, share) in group.iter().zip(shares) {
                let served = u128::from(tree.nodes[member].served);
                let (ahead, behind) = slack(tree, group.len() as u64);
                let (ahead, behind) = (u128::from(ahead), u128::from(behind));
                assert!(
                    served * denominator <= share + ahead * denominator
                        && share <= (served + behind) * denominator,
                    "node {member} got {served}, share {share}/{denominator}: {tree:#?}"
                );
            }
            rest -= got;
        }
    }
}

/// Streams come and go; between two changes every open stream always has data to send.
fn intervals(random: &mut Rng, names: &[Arc<str>]) {
    let mut tree = Tree::random(random);
    // A round that was under way, the present round, and the rest of both.
    let rounds = 3 * tree.round();
    let small = random.below(3) == 0;
    let keys = tree.keys();
    let mut schemes = [(SCHEMES[0].0(), 0), (SCHEMES[1].0(), rounds)];
    for (index, stream) in tree.streams() {
        for (scheduler, _) in &mut schemes {
            scheduler.insert(stream, tree.priority(index, names));
        }
    }
    let first = tree.nodes.len() - tree.streams().count();
    for _ in 0..1 + random.below(4) {
        for (index, stream) in tree.streams() {
            if random.below(2) == 0 {
                let active = tree.nodes[index].demand > 0;
                for (scheduler, _) in &mut schemes {
                    if active { scheduler.deactivate(stream) } else { scheduler.activate(stream) }
                }
                // Only whether there is demand matters here.
                tree.add_demand(index, if active { u64::MAX } else { 1 });
            }
        }
        let packets = random.below(40);
        for (scheduler, round) in &mut schemes {
            tree.nodes.iter_mut().for_each(|node| node.served = 0);
            for _ in 0..packets {
                let room = packet(random, small);
                let Some(grant) = scheduler.next(room as usize) else {
                    assert_eq!(tree.nodes[0].demand, 0, "work conserving");
                    break;
                };
                scheduler.charge(grant.stream, grant.bytes);
                tree.serve(first + grant.stream as usize / 4, grant.bytes as u64);
            }
            check_interval(&tree, &keys, *round);
        }
    }
}

/// Siblings that share differ by a packet each and by the rounds that were under way at the ends.
fn check_interval(tree: &Tree, keys: &BTreeMap<usize, u64>, rounds: u64) {
    for class in (0..tree.nodes.len()).filter(|&index| tree.nodes[index].stream.is_none()) {
        let groups = tree.groups(class, keys);
        for (position, group) in groups.iter().enumerate() {
            for &a in group {
                let Node { served, weight, .. } = tree.nodes[a];
                assert!(
                    position == 0 || served <= rounds,
                    "node {a} is not urgent enough: {tree:#?}"
                );
                for &b in group {
                    let Node { served: other, weight: heavy, .. } = tree.nodes[b];
                    let (x, y) = (served * heavy, other * weight);
                    let bound = u128::from(L + rounds + 1) * u128::from(weight + heavy);
                    assert!(
                        u128::from(x.abs_diff(y)) <= bound,
                        "nodes {a}, {b} of {class}: {tree:#?}"
                    );
                }
            }
        }
    }
}

#[test]
fn service_is_within_a_quantum_of_the_max_min_share() {
    const THREADS: u64 = 2;
    let cases = std::env::var("SUTURA_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases: u64 = cases.unwrap_or(1_000_000);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let names: Vec<Arc<str>> = (0..8).map(|n| format!("c{n}").into()).collect();
                for case in (thread..cases).step_by(THREADS as usize) {
                    let mut random = Rng::new(case << 20);
                    if (case / THREADS).is_multiple_of(2) {
                        demands(&mut random, &names);
                    } else {
                        intervals(&mut random, &names);
                    }
                }
            });
        }
    });
}
