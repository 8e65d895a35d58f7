use std::collections::HashMap;

use proptest::prelude::*;

use crate::conformance::{Call, apply};

use super::*;

/// A straightforward model of EPS: a list of active streams in order of when they last used the
/// link.
#[derive(Debug, Default)]
struct Model {
    known: HashMap<StreamKey, Priority>,
    active: Vec<StreamKey>,
}

impl Scheduler for Model {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        self.reprioritize(stream, priority.clone());
        self.known.entry(stream).or_insert(priority);
    }

    fn remove(&mut self, stream: StreamKey) {
        self.known.remove(&stream);
        self.deactivate(stream);
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        if self.known.get(&stream).is_none_or(|old| *old == priority) {
            return;
        }
        self.known.insert(stream, priority);
        if self.active.contains(&stream) {
            self.deactivate(stream);
            self.activate(stream);
        }
    }

    fn activate(&mut self, stream: StreamKey) {
        if self.known.contains_key(&stream) && !self.active.contains(&stream) {
            self.active.push(stream);
        }
    }

    fn deactivate(&mut self, stream: StreamKey) {
        self.active.retain(|&other| other != stream);
    }

    fn next(&self, room: usize) -> Option<Grant> {
        let rank = |&(at, stream): &(usize, &StreamKey)| {
            let priority = &self.known[stream];
            let order = if priority.incremental { at as u64 } else { *stream };
            (priority.urgency, priority.incremental, order)
        };
        let (_, &stream) = self.active.iter().enumerate().min_by_key(rank)?;
        (room > 0).then_some(Grant { stream, bytes: room })
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        if bytes > 0 && self.active.contains(&stream) {
            self.active.retain(|&other| other != stream);
            self.active.push(stream);
        }
    }

    fn is_empty(&self) -> bool {
        self.active.is_empty()
    }
}

fn any_priority() -> impl Strategy<Value = Priority> {
    (0..=8u8, any::<bool>()).prop_map(|(class, incremental)| Priority {
        urgency: class.checked_sub(1).and_then(Urgency::new).unwrap_or(Urgency::CONTROL),
        incremental,
        ..Priority::default()
    })
}

fn any_call() -> impl Strategy<Value = Call> {
    // Few keys, so that unknown and repeated keys are common.
    let key = 0..24u64;
    prop_oneof![
        3 => (key.clone(), any_priority()).prop_map(|(s, p)| Call::Insert(s, p)),
        1 => key.clone().prop_map(Call::Remove),
        2 => (key.clone(), any_priority()).prop_map(|(s, p)| Call::Reprioritize(s, p)),
        6 => key.clone().prop_map(Call::Activate),
        2 => key.clone().prop_map(Call::Deactivate),
        8 => (0..1500usize, 0..1500usize)
            .prop_map(|(room, used)| Call::Serve { turns: 1, room, used }),
        2 => (key, 0..3usize).prop_map(|(s, bytes)| Call::Charge(s, bytes)),
    ]
}

proptest! {
    #[test]
    fn decides_like_the_model(calls in prop::collection::vec(any_call(), 0..400)) {
        let mut eps = Eps::new();
        let mut model = Model::default();
        for call in &calls {
            prop_assert_eq!(apply(&mut eps, call), apply(&mut model, call), "{:?}", call);
            prop_assert_eq!(eps.next(1200), model.next(1200), "after {:?}", call);
            prop_assert_eq!(eps.is_empty(), model.is_empty());
            prop_assert_eq!(eps.streams(), model.known.len());
        }
    }
}

fn priority(urgency: u8, incremental: bool) -> Priority {
    Priority::new(urgency, incremental).unwrap()
}

fn active(scheduler: &mut Eps, stream: StreamKey, priority: Priority) {
    scheduler.insert(stream, priority);
    scheduler.activate(stream);
}

/// Sends `packets` full packets. Returns the stream of each.
fn serve(scheduler: &mut Eps, packets: usize) -> Vec<StreamKey> {
    let turn = |_| {
        let grant = scheduler.next(1200)?;
        scheduler.charge(grant.stream, grant.bytes);
        Some(grant.stream)
    };
    (0..packets).map_while(turn).collect()
}

/// RFC 9218, section 10: by urgency; then one by one in the order of the stream IDs; then in turns,
/// in which a new stream stands behind all others.
#[test]
fn streams_go_by_urgency_then_one_by_one_and_then_in_turns() {
    let mut eps = Eps::new();
    active(&mut eps, 20, priority(5, true));
    for stream in [8, 0, 4] {
        active(&mut eps, stream, priority(3, true));
    }
    active(&mut eps, 16, priority(3, false));
    active(&mut eps, 12, priority(3, false));
    active(&mut eps, 24, Priority::CONTROL);
    for stream in [24, 12, 16] {
        assert_eq!(serve(&mut eps, 3), [stream; 3]);
        eps.remove(stream);
    }
    assert_eq!(serve(&mut eps, 4), [8, 0, 4, 8]);
    active(&mut eps, 28, priority(3, true));
    assert_eq!(serve(&mut eps, 8), [0, 4, 8, 28, 0, 4, 8, 28]);
}

#[test]
fn round_robin_is_fair_while_streams_come_and_go() {
    let mut eps = Eps::new();
    let steady = [0, 4, 8, 12, 16];
    for stream in steady {
        active(&mut eps, stream, priority(5, true));
    }
    let mut served: HashMap<StreamKey, i32> = HashMap::new();
    for round in 0..3000u64 {
        let visitor = 1000 + round % 7;
        match round % 11 {
            0 => active(&mut eps, visitor, priority(5, true)),
            5 => eps.deactivate(visitor),
            8 => eps.remove(visitor),
            _ => {}
        }
        for stream in serve(&mut eps, 3) {
            *served.entry(stream).or_default() += 1;
        }
        // Among the streams that never left, none is more than one turn ahead of another.
        let counts = steady.map(|stream| served.get(&stream).copied().unwrap_or_default());
        let (low, high) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(high - low <= 1, "{counts:?} in round {round}");
    }
    assert!(served[&0] > 500);
}

#[test]
fn ten_thousand_streams_of_all_priorities() {
    const STREAMS: u64 = 10_000;
    let mut eps = Eps::new();
    let of = |stream: u64| priority((stream % 8) as u8, (stream / 8).is_multiple_of(2));
    // Each key once and far from sorted: 7919 and 10000 are coprime.
    for n in 0..STREAMS {
        let stream = n * 7919 % STREAMS;
        active(&mut eps, stream, of(stream));
    }
    assert_eq!(eps.streams() as u64, STREAMS);
    // Two packets each.
    let mut left = vec![2u8; STREAMS as usize];
    let mut done = Vec::new();
    while let Some(Grant { stream, .. }) = eps.next(1200) {
        eps.charge(stream, 1200);
        left[stream as usize] -= 1;
        if left[stream as usize] == 0 {
            eps.remove(stream);
            done.push(stream);
        }
    }
    let mut expected: Vec<u64> = (0..STREAMS).collect();
    let arrival = |stream: u64| (0..STREAMS).find(|n| n * 7919 % STREAMS == stream);
    expected.sort_by_cached_key(|&stream| {
        let Priority { urgency, incremental, .. } = of(stream);
        let order = if incremental { arrival(stream).unwrap() } else { stream };
        (urgency, incremental, order)
    });
    assert_eq!(done, expected);
    assert_eq!(eps.streams(), 0);
}

#[test]
fn slots_are_used_again() {
    let mut eps = Eps::new();
    for n in 0..10_000u64 {
        active(&mut eps, 4 * n, priority((n % 8) as u8, n % 3 == 0));
        if let Some(old) = n.checked_sub(16) {
            eps.remove(4 * old);
        }
    }
    assert_eq!(eps.streams(), 16);
    assert_eq!(eps.nodes.len(), 17);
    assert!(eps.slots.capacity() < 64 && eps.vacant.capacity() < 64);
}
