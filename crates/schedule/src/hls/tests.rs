//! The paper's statements about its rounds, section by section.

use std::sync::Arc;

use super::*;
use crate::{Class, Priority, Weight};

/// Active incremental streams of urgency 3 with these weights in thousandths, below these classes.
fn hls(streams: &[(StreamKey, u32, &[&Class])]) -> Hls {
    let mut hls = Hls::new();
    for (stream, weight, parents) in streams {
        let parents: Vec<Class> = parents.iter().map(|&class| class.clone()).collect();
        let parents = (!parents.is_empty()).then(|| parents.into());
        insert(&mut hls, *stream, Priority { parents, ..weighted(*weight) });
    }
    hls
}

fn weighted(thousandths: u32) -> Priority {
    Priority { incremental: true, weight: Weight::new(thousandths).unwrap(), ..Priority::default() }
}

fn urgent() -> Priority {
    Priority { urgency: Urgency::HIGHEST, ..weighted(1000) }
}

fn class(name: &str) -> Class {
    Class { name: Some(Arc::from(name)), incremental: true, ..Class::default() }
}

fn insert(hls: &mut Hls, stream: StreamKey, priority: Priority) {
    hls.insert(stream, priority);
    hls.activate(stream);
}

/// Uses the next grant for a frame in a packet with room for 1200 bytes.
fn turn(hls: &mut Hls) -> (StreamKey, usize) {
    let grant = hls.next(1200).unwrap();
    hls.charge(grant.stream, grant.bytes);
    (grant.stream, grant.bytes)
}

fn turns(hls: &mut Hls, times: usize) -> Vec<(StreamKey, usize)> {
    (0..times).map(|_| turn(hls)).collect()
}

/// III-B1 and III-B3: `Q* = 1350 (1 + 2)`.
#[test]
fn a_stream_sends_while_its_balance_is_positive_and_frames_are_cut_to_it() {
    let mut hls = hls(&[(0, 1000, &[]), (4, 1000, &[])]);
    let round = [(0, 1200), (0, 825), (4, 1200), (4, 825)];
    assert_eq!(turns(&mut hls, 8), [round, round].concat());
    // Down to a single byte.
    hls.charge(0, 1200);
    hls.charge(0, 824);
    assert_eq!(turns(&mut hls, 3), [(0, 1), (4, 1200), (4, 825)]);
}

/// III-B3: the lightest stream, with a quarter, gets a packet and a quarter of one more.
#[test]
fn the_quantum_follows_from_the_lightest_stream() {
    let mut hls = hls(&[(0, 1000, &[]), (4, 3000, &[])]);
    let round = [(0, 1200), (0, 487), (4, 1200), (4, 1200), (4, 1200), (4, 1200), (4, 263)];
    assert_eq!(turns(&mut hls, 14), [round, round].concat());
}

/// III-B3: a fair share is a share of the class's balance.
#[test]
fn a_class_divides_what_it_got() {
    let [x, y] = [class("x"), class("y")];
    let mut hls = hls(&[(0, 1000, &[&x]), (4, 1000, &[&x]), (8, 1000, &[&y])]);
    let round = [(0, 1200), (0, 487), (4, 1200), (4, 488), (8, 1200), (8, 1200), (8, 975)];
    assert_eq!(turns(&mut hls, 7), round);
}

/// III-B3: stream 0 leaves 487 bytes to its class, whose other stream gets them in the next round.
#[test]
fn what_a_stream_does_not_use_goes_back_to_its_class() {
    let [x, y] = [class("x"), class("y")];
    let mut hls = hls(&[(0, 1000, &[&x]), (4, 1000, &[&x]), (8, 1000, &[&y])]);
    assert_eq!(turn(&mut hls).0, 0);
    hls.remove(0);
    assert_eq!(turns(&mut hls, 5), [(4, 1200), (4, 488), (8, 1200), (8, 1200), (8, 975)]);
    assert_eq!(turns(&mut hls, 5), [(4, 1200), (4, 1200), (4, 112), (8, 1200), (8, 825)]);
    assert_eq!(turns(&mut hls, 3), [(4, 1200), (4, 825), (8, 1200)]);
}

/// III-B5.
#[test]
fn newcomers_wait_for_the_end_of_the_round_however_urgent_they_are() {
    let mut hls = hls(&[(0, 1000, &[]), (8, 1000, &[])]);
    assert_eq!(turn(&mut hls), (0, 1200));
    insert(&mut hls, 4, weighted(1000));
    insert(&mut hls, 12, urgent());
    assert_eq!(turns(&mut hls, 3), [(0, 825), (8, 1200), (8, 825)]);
    assert_eq!(turns(&mut hls, 5), [(12, 1200); 5]);
    hls.remove(12);
    assert_eq!(turns(&mut hls, 3), [(0, 1200), (0, 600), (4, 1200)]);
}

#[test]
fn who_comes_before_the_first_byte_of_a_round_takes_part() {
    let mut hls = hls(&[(8, 1000, &[])]);
    assert_eq!(hls.next(1200), Some(Grant { stream: 8, bytes: 1200 }));
    insert(&mut hls, 4, weighted(1000));
    assert_eq!(turns(&mut hls, 4), [(4, 1200), (4, 825), (8, 1200), (8, 825)]);
    insert(&mut hls, 0, urgent());
    assert_eq!(turn(&mut hls), (0, 1200));
}

#[test]
fn streams_that_carry_the_protocol_wait_for_no_round() {
    let mut hls = hls(&[(0, 1000, &[]), (4, 1000, &[])]);
    assert_eq!(turn(&mut hls), (0, 1200));
    insert(&mut hls, 8, Priority::CONTROL);
    assert_eq!(turns(&mut hls, 2), [(8, 1200); 2]);
    hls.deactivate(8);
    assert_eq!(turns(&mut hls, 2), [(0, 825), (4, 1200)]);
}

/// III-B5: each other stream gets a third of the round until it is over.
#[test]
fn a_finished_stream_has_its_share_until_the_round_is_over() {
    let mut hls = hls(&[(0, 1000, &[]), (4, 1000, &[]), (8, 1000, &[])]);
    assert_eq!(turn(&mut hls), (0, 1200));
    hls.remove(0);
    assert_eq!(turns(&mut hls, 4), [(4, 1200), (4, 600), (8, 1200), (8, 600)]);
    assert_eq!(turns(&mut hls, 2), [(4, 1200), (4, 825)]);
}

/// III-B5: a stream that becomes less urgent keeps its turn, and gets nothing in the next round.
#[test]
fn a_priority_changes_on_the_fly_and_the_round_goes_on() {
    let mut hls = hls(&[(0, 1000, &[]), (4, 1000, &[])]);
    assert_eq!(turn(&mut hls), (0, 1200));
    hls.reprioritize(4, Priority { urgency: Urgency::LOWEST, ..weighted(1000) });
    assert_eq!(turns(&mut hls, 3), [(0, 825), (4, 1200), (4, 825)]);
    assert_eq!(turns(&mut hls, 3), [(0, 1200); 3]);
    // A stream whose weight changes in the middle of its turn gives back its balance.
    hls.reprioritize(4, weighted(1000));
    while turn(&mut hls).0 == 0 {}
    hls.reprioritize(4, weighted(1000 + 1));
    assert_eq!(turn(&mut hls).0, 0);
}

#[test]
fn a_stream_that_is_alone_fills_its_packets() {
    let mut hls = hls(&[(0, 1000, &[])]);
    // 9600 bytes are three rounds of 2700 and 1500 of the fourth.
    assert_eq!(turns(&mut hls, 8), [(0, 1200); 8]);
    insert(&mut hls, 4, urgent());
    assert_eq!(turns(&mut hls, 2), [(0, 1200), (4, 1200)]);
}

/// A ratio of a thousand makes a round of 1.35 MB, which all others wait for.
#[test]
fn the_ratio_of_weights_is_the_length_of_a_round_in_packets() {
    let mut hls = hls(&[(0, 1000, &[]), (4, 1, &[])]);
    assert_eq!(turn(&mut hls).0, 0);
    insert(&mut hls, 8, urgent());
    let mut bytes = 1200;
    let last = loop {
        match turn(&mut hls) {
            (8, _) => break bytes,
            (_, sent) => bytes += sent,
        }
    };
    assert_eq!(last, 1350 * (1 + 1001));
}

/// A light class with a heavy stream beside it at each level: the product of the ratios does not overflow.
#[test]
fn a_round_has_at_most_the_largest_quantum() {
    let light = |n: usize| Class { weight: Weight::MIN, ..class(&format!("{n}")) };
    let chain: Vec<Class> = (0..crate::MAX_DEPTH).map(light).collect();
    let mut hls = Hls::new();
    let below = |depth: usize, weight: u32| Priority {
        parents: Some(chain[depth..].into()),
        ..weighted(weight)
    };
    insert(&mut hls, 0, below(0, 1));
    for depth in 0..=crate::MAX_DEPTH {
        insert(&mut hls, 4 + 4 * depth as u64, below(depth, 1_000_000));
    }
    assert_eq!(turn(&mut hls), (0, 1200));
    assert_eq!(hls.tree.inners[ROOT_INNER as usize].state.base, MAX_QUANTUM);
    assert!(turns(&mut hls, 1000).iter().all(|(stream, bytes)| *stream != 0 && *bytes > 0));
}
