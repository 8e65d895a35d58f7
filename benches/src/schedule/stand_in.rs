//! Stand-ins for the schedulers of other libraries, which cannot be called from outside.
//!
//! quinn-proto keeps its `PendingStreams` and quiche its `StreamMap` in private modules. Through the
//! interfaces of these libraries, a decision comes only with the frame, the packet and its encryption, of
//! which the scheduler is the smallest part. So the stand-ins do to the standard library's containers only
//! what the libraries do to their containers at each STREAM frame. The libraries and our own schedulers also
//! look up the stream by its identifier and count bytes; the stand-ins do not.

use crate::Workload;
use crate::subject::Subject;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::hint::black_box;
use std::time::Duration;
use sutura_benches::cpu;

/// The form of quinn-proto 0.11: a binary heap by priority and the time of the last turn. The first stream is
/// taken out, and is put back behind all others if it has more data. A stream that pauses is put back when it
/// has data again, and a new stream is put in like an old stream: the workloads are all the same.
pub struct PriorityHeap {
    streams: BinaryHeap<(i32, Reverse<u64>, u64)>,
    turns: u64,
}

impl PriorityHeap {
    pub fn new(streams: u64) -> Self {
        Self { streams: (0..streams).map(|n| (0, Reverse(n), n)).collect(), turns: streams }
    }

    fn decide(&mut self) -> Option<u64> {
        let (priority, _, stream) = self.streams.pop()?;
        self.streams.push((priority, Reverse(self.turns), stream));
        self.turns += 1;
        Some(stream)
    }
}

/// The form of quiche: an ordered tree by urgency, the incremental flag and, for incremental streams, the
/// order in which they were put in. The first stream is taken out once its frame is written, and is put back
/// behind the streams of its urgency. quiche's tree is an intrusive red-black tree; here it is a B-tree,
/// which is the faster of the two when it is large. The workloads are all the same again.
pub struct OrderedSet {
    streams: BTreeSet<(u8, bool, u64, u64)>,
    turns: u64,
}

impl OrderedSet {
    pub fn new(streams: u64) -> Self {
        Self { streams: (0..streams).map(|n| (127, true, n, n)).collect(), turns: streams }
    }

    fn decide(&mut self) -> Option<u64> {
        let key = *self.streams.first()?;
        let (urgency, incremental, _, stream) = key;
        self.streams.remove(&key);
        self.streams.insert((urgency, incremental, self.turns, stream));
        self.turns += 1;
        Some(stream)
    }
}

fn time(decisions: u32, mut decide: impl FnMut() -> Option<u64>) -> Duration {
    let start = cpu::now();
    for _ in 0..decisions {
        if black_box(decide()).is_none() {
            break;
        }
    }
    cpu::now().saturating_sub(start)
}

impl Subject for PriorityHeap {
    fn run(&mut self, _: Workload, decisions: u32) -> Duration {
        time(decisions, || self.decide())
    }
}

impl Subject for OrderedSet {
    fn run(&mut self, _: Workload, decisions: u32) -> Duration {
        time(decisions, || self.decide())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_take_turns() {
        let (mut heap, mut set) = (PriorityHeap::new(7), OrderedSet::new(7));
        for turn in 0..50 {
            assert_eq!(heap.decide(), Some(turn % 7));
            assert_eq!(set.decide(), Some(turn % 7));
        }
    }
}
