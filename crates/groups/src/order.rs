//! In which order the messages of one group are delivered.

use super::header::Before;
use super::runs::Runs;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A complete message that must wait for other messages.
#[derive(Debug)]
struct WaitingMessage<T> {
    before: Before,
    size: usize,
    message: T,
}

/// The obstacle to delivering a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Obstacle {
    /// Not all messages below this number are settled.
    Fence(u64),
    /// This message is not settled.
    Message(u64),
}

/// The messages of a group, as their receiver knows them. A message is *settled* once it was delivered or
/// is known to have been cancelled.
#[derive(Debug)]
pub(super) struct Order<T> {
    settled: Runs,
    held: BTreeMap<u64, WaitingMessage<T>>,
    /// Bytes of the held messages.
    bytes: usize,
    /// Held messages that wait for all below a number.
    behind: BTreeMap<u64, BTreeSet<u64>>,
    /// Held messages that wait for a single one.
    after: BTreeMap<u64, BTreeSet<u64>>,
    /// How many messages the group has in the end.
    end: Option<u64>,
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self {
            settled: Runs::default(),
            held: BTreeMap::new(),
            bytes: 0,
            behind: BTreeMap::new(),
            after: BTreeMap::new(),
            end: None,
        }
    }
}

impl<T> Order<T> {
    /// The first message that is not settled.
    pub(super) fn frontier(&self) -> u64 {
        self.settled.first_gap()
    }

    /// The obstacle to delivering a message with this header, if there is one once the message is complete.
    pub(super) fn obstacle(&self, before: &Before) -> Option<Obstacle> {
        if self.frontier() < before.fence {
            return Some(Obstacle::Fence(before.fence));
        }
        let mut after = before.after.iter().filter(|id| !self.settled.contains(**id));
        after.next().map(|id| Obstacle::Message(*id))
    }

    /// Whether a message was delivered or cancelled, or is complete.
    pub(super) fn is_known(&self, number: u64) -> bool {
        self.settled.contains(number) || self.held.contains_key(&number)
    }

    /// Number of complete messages that wait for other messages.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Bytes of the held messages.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Runs of messages that are not settled, between settled ones.
    pub(super) fn gaps(&self) -> usize {
        self.settled.len()
    }

    /// The group has `end` messages in the end.
    pub(super) fn set_end(&mut self, end: u64) {
        self.end = Some(end);
    }

    /// Whether the group is over: no message of it will come, and none is held.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| self.frontier() >= end) && self.held.is_empty()
    }

    /// A message of `size` bytes is complete. Appends the messages that can now be delivered to `out`, in
    /// order. A message that is known already is dropped.
    pub(super) fn complete(
        &mut self,
        number: u64,
        before: Before,
        size: usize,
        message: T,
        out: &mut Vec<(u64, T)>,
    ) {
        if self.is_known(number) {
            return;
        }
        match self.obstacle(&before) {
            None => {
                out.push((number, message));
                self.settle(number, out);
            }
            Some(obstacle) => {
                self.bytes += size;
                self.held.insert(number, WaitingMessage { before, size, message });
                self.wait(number, obstacle);
            }
        }
    }

    /// Messages were cancelled. If they are held, they are dropped. Appends the messages that can now be
    /// delivered to `out`, in order.
    pub(super) fn cancel(&mut self, numbers: Range<u64>, out: &mut Vec<(u64, T)>) {
        if numbers.is_empty() {
            return;
        }
        let dropped: Vec<u64> = self.held.range(numbers.clone()).map(|(id, _)| *id).collect();
        for id in dropped {
            self.forget(id);
        }
        self.settled.insert(numbers.clone());
        let freed: Vec<u64> = self.after.range(numbers).map(|(id, _)| *id).collect();
        let freed = freed.into_iter().filter_map(|id| self.after.remove(&id)).flatten().collect();
        self.deliver(freed, out);
    }

    /// Forgets a held message.
    fn forget(&mut self, number: u64) {
        let Some(held) = self.held.remove(&number) else { return };
        self.bytes -= held.size;
        let waits = |map: &mut BTreeMap<u64, BTreeSet<u64>>, key: u64| {
            if let Some(waiting) = map.get_mut(&key)
                && waiting.remove(&number)
                && waiting.is_empty()
            {
                map.remove(&key);
            }
        };
        waits(&mut self.behind, held.before.fence);
        held.before.after.iter().for_each(|id| waits(&mut self.after, *id));
    }

    fn wait(&mut self, number: u64, obstacle: Obstacle) {
        let waiting = match obstacle {
            Obstacle::Fence(fence) => self.behind.entry(fence).or_default(),
            Obstacle::Message(id) => self.after.entry(id).or_default(),
        };
        waiting.insert(number);
    }

    /// A message was delivered.
    fn settle(&mut self, number: u64, out: &mut Vec<(u64, T)>) {
        self.settled.insert(number..number + 1);
        let freed = self.after.remove(&number).unwrap_or_default();
        self.deliver(freed, out);
    }

    /// Delivers the messages that no obstacle keeps any more: some of `freed`, and of the messages that
    /// waited for a fence.
    fn deliver(&mut self, mut freed: BTreeSet<u64>, out: &mut Vec<(u64, T)>) {
        loop {
            let frontier = self.frontier();
            while let Some(entry) = self.behind.first_entry()
                && *entry.key() <= frontier
            {
                freed.extend(entry.remove());
            }
            let Some(number) = freed.pop_first() else { return };
            let Some(held) = self.held.remove(&number) else { continue };
            match self.obstacle(&held.before) {
                None => {
                    self.bytes -= held.size;
                    out.push((number, held.message));
                    self.settled.insert(number..number + 1);
                    freed.extend(self.after.remove(&number).unwrap_or_default());
                }
                Some(obstacle) => {
                    self.held.insert(number, held);
                    self.wait(number, obstacle);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_random::Rng;

    fn before(fence: u64, after: &[u64]) -> Before {
        Before { fence, after: after.into() }
    }

    fn numbers(out: &mut Vec<(u64, ())>) -> Vec<u64> {
        out.drain(..).map(|(number, ())| number).collect()
    }

    /// Eghbal and Lu 2025, Figs. 1 and 2: message 6 is lost, and 7 to 9 need not wait for it.
    #[test]
    fn a_graph_of_dependencies() {
        let graph: [(u64, &[u64]); 11] = [
            (0, &[]),
            (1, &[]),
            (2, &[]),
            (3, &[0, 1]),
            (4, &[2]),
            (5, &[3]),
            (6, &[8]),
            (7, &[4]),
            (8, &[4]),
            (9, &[5]),
            (10, &[6]),
        ];
        let (mut order, mut out) = (Order::default(), Vec::new());
        for (number, after) in graph.into_iter().filter(|(number, _)| *number != 5) {
            order.complete(number, before(0, after), 1, (), &mut out);
        }
        assert_eq!(numbers(&mut out), [0, 1, 2, 3, 4, 7, 8, 6, 10]);
        assert_eq!(order.held(), 1);
        order.complete(5, before(0, &[3]), 1, (), &mut out);
        assert_eq!(numbers(&mut out), [5, 9]);
    }

    #[test]
    fn what_is_behind_a_fence_waits_for_all_before_it() {
        let (mut order, mut out) = (Order::default(), Vec::new());
        order.complete(4, before(3, &[]), 1, (), &mut out);
        order.complete(2, before(0, &[]), 1, (), &mut out);
        order.complete(0, before(0, &[]), 1, (), &mut out);
        order.complete(3, before(3, &[]), 1, (), &mut out);
        assert_eq!(numbers(&mut out), [2, 0]);
        assert_eq!(order.obstacle(&before(3, &[])), Some(Obstacle::Fence(3)));
        assert_eq!(order.obstacle(&before(1, &[2])), None);
        order.cancel(1..2, &mut out);
        assert_eq!(numbers(&mut out), [3, 4]);
        // Delivered and cancelled messages are not delivered again.
        order.complete(1, before(0, &[]), 1, (), &mut out);
        order.complete(4, before(3, &[]), 1, (), &mut out);
        assert_eq!((numbers(&mut out), order.held(), order.gaps()), (vec![], 0, 1));
        assert!(!order.is_over());
        order.set_end(5);
        assert!(order.is_over());
    }

    #[test]
    fn a_cancelled_message_that_is_held_is_dropped() {
        let (mut order, mut out) = (Order::default(), Vec::new());
        order.complete(1, before(1, &[]), 1, (), &mut out);
        order.complete(2, before(1, &[1]), 1, (), &mut out);
        order.cancel(1..2, &mut out);
        assert_eq!((order.held(), numbers(&mut out)), (1, vec![]));
        order.complete(0, before(0, &[]), 1, (), &mut out);
        assert_eq!(numbers(&mut out), [0, 2]);
        assert!(order.behind.is_empty() && order.after.is_empty());
    }

    /// Delivers by trying every message again after each step.
    #[derive(Default)]
    struct Naive {
        settled: BTreeSet<u64>,
        held: BTreeMap<u64, Before>,
        delivered: Vec<u64>,
    }

    impl Naive {
        fn settle(&mut self) {
            loop {
                let ready = self.held.iter().find(|(_, before)| {
                    (0..before.fence)
                        .chain(before.after.iter().copied())
                        .all(|id| self.settled.contains(&id))
                });
                let Some(number) = ready.map(|(number, _)| *number) else { return };
                self.held.remove(&number);
                self.settled.insert(number);
                self.delivered.push(number);
            }
        }
    }

    #[test]
    fn any_order_of_arrival_gives_what_a_naive_model_gives() {
        for seed in 0..500 {
            let mut random = Rng::new(seed);
            let count = 1 + random.below(40);
            let mut fence = 0;
            let mut steps: Vec<(u64, Before)> = (0..count)
                .map(|number| {
                    if random.chance(0.2) {
                        fence = number;
                    }
                    let mut after = Vec::new();
                    while number > fence && random.chance(0.3) {
                        after.push(fence + random.below(number - fence));
                    }
                    (number, before(fence, &after))
                })
                .collect();
            for index in (1..steps.len()).rev() {
                steps.swap(index, random.below(index as u64 + 1) as usize);
            }
            let (mut order, mut naive, mut out) = (Order::default(), Naive::default(), Vec::new());
            for (number, before) in steps {
                if random.chance(0.2) {
                    order.cancel(number..number + 1, &mut out);
                    naive.held.remove(&number);
                    naive.settled.insert(number);
                } else {
                    order.complete(number, before.clone(), 1, (), &mut out);
                    naive.held.insert(number, before);
                }
                naive.settle();
                let sorted: BTreeSet<u64> = out.iter().map(|(number, ())| *number).collect();
                assert_eq!(sorted, naive.delivered.iter().copied().collect(), "seed {seed}");
                assert_eq!(order.held(), naive.held.len(), "seed {seed}");
                assert_eq!(order.held_bytes(), order.held(), "seed {seed}");
            }
            order.set_end(count);
            assert!(order.is_over(), "seed {seed}");
            assert!(order.behind.is_empty() && order.after.is_empty(), "seed {seed}");
        }
    }
}
