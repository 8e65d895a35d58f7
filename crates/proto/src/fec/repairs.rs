//! The repair symbols of a session that can still mend something, and how much they can mend.

use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::ops::Range;
use std::time::Instant;

/// Repair symbols that are remembered after they arrived. Others are forgotten, oldest first, so
/// that a peer that acknowledges nothing else cannot make the list grow.
const MAX_ARRIVED: usize = 64;

/// What is known about a repair symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing yet.
    InFlight,
    /// Its packet is in flight as far as we know, but the peer reports a symbol that only it can
    /// have mended.
    Spent,
    /// It arrived, and has mended nothing so far. Together with a later one it may: two symbols that
    /// are missing take two repair symbols.
    Arrived,
}

#[derive(Debug, Clone)]
struct Repair {
    sent: Instant,
    span: Range<u64>,
    /// The size of its frame in bytes.
    size: usize,
    fate: Fate,
}

impl Repair {
    fn can_mend(&self) -> bool {
        match self.fate {
            Fate::InFlight | Fate::Arrived => true,
            Fate::Spent => false,
        }
    }

    fn is_in_flight(&self) -> bool {
        match self.fate {
            Fate::InFlight | Fate::Spent => true,
            Fate::Arrived => false,
        }
    }

    /// Whether its arrival may mend `id`.
    fn may_bring(&self, id: u64) -> bool {
        self.fate == Fate::InFlight && self.span.contains(&id)
    }
}

/// Repair symbols, oldest first. Each can mend one symbol of its span.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    list: VecDeque<Repair>,
    /// How many of the list have arrived.
    arrived: usize,
    /// How many of the list are in flight and have mended nothing so far.
    unspent: u32,
    /// None of the list covers only symbols below this.
    least_end: u64,
}

impl Repairs {
    /// A repair symbol over `span` was sent in a frame of `size` bytes.
    pub(super) fn on_sent(&mut self, now: Instant, span: Range<u64>, size: usize) {
        let least = if self.list.is_empty() { u64::MAX } else { self.least_end };
        self.least_end = least.min(span.end);
        self.list.push_back(Repair { sent: now, span, size, fate: Fate::InFlight });
        self.unspent += 1;
    }

    /// A repair symbol over `span` was acknowledged. Symbols below `first` are not of interest.
    pub(super) fn on_arrived(&mut self, span: &Range<u64>, first: u64) {
        // One that has mended something accounts for this acknowledgement, if there is one.
        let spent = self.position(span, Fate::Spent);
        if let Some(index) = spent {
            self.list.remove(index);
        } else if let Some(repair) =
            self.position(span, Fate::InFlight).and_then(|index| self.list.get_mut(index))
        {
            repair.fate = Fate::Arrived;
            self.arrived += 1;
            self.unspent -= 1;
        }
        self.forget_arrived(first);
    }

    /// A repair symbol over `span` was lost.
    pub(super) fn on_lost(&mut self, span: &Range<u64>) {
        if let Some(index) = self.position(span, Fate::InFlight) {
            self.list.remove(index);
            self.unspent -= 1;
        } else if let Some(index) = self.position(span, Fate::Spent) {
            self.list.remove(index);
        }
    }

    /// The peer has recovered symbol `id`, which took one of the repair symbols. Returns the size of
    /// that one's frame, unless none is known.
    pub(super) fn on_recovered(&mut self, id: u64) -> Option<usize> {
        let arrived =
            self.list.iter().position(|r| r.fate == Fate::Arrived && r.span.contains(&id));
        if let Some(index) = arrived {
            self.arrived -= 1;
            return self.list.remove(index).map(|repair| repair.size);
        }
        let repair = self.list.iter_mut().find(|repair| repair.may_bring(id))?;
        repair.fate = Fate::Spent;
        self.unspent -= 1;
        Some(repair.size)
    }

    fn position(&self, span: &Range<u64>, fate: Fate) -> Option<usize> {
        self.list.iter().position(|r| r.fate == fate && r.span == *span)
    }

    /// Forgets those that cover nothing from `first` on: whatever becomes of them, they mend nothing
    /// any more.
    pub(super) fn release_below(&mut self, first: u64) {
        if first < self.least_end {
            return;
        }
        self.list.retain(|repair| repair.span.end > first);
        let fates = || self.list.iter().map(|repair| repair.fate);
        self.arrived = fates().filter(|fate| *fate == Fate::Arrived).count();
        let unspent = fates().filter(|fate| *fate == Fate::InFlight).count();
        self.unspent = u32::try_from(unspent).unwrap_or(u32::MAX);
        self.least_end = self.list.iter().map(|repair| repair.span.end).min().unwrap_or(u64::MAX);
    }

    /// Forgets those that arrived and cover nothing from `first` on, and the oldest beyond
    /// [`MAX_ARRIVED`].
    fn forget_arrived(&mut self, first: u64) {
        let mut surplus = self.arrived.saturating_sub(MAX_ARRIVED);
        self.list.retain(|repair| {
            let stays = repair.is_in_flight() || repair.span.end > first && surplus == 0;
            surplus -= usize::from(!stays && surplus > 0);
            stays
        });
        self.arrived = self.list.iter().filter(|repair| !repair.is_in_flight()).count();
    }

    /// Forgets all that arrived: they mended what they could.
    pub(super) fn forget_all_arrived(&mut self) {
        self.list.retain(Repair::is_in_flight);
        self.arrived = 0;
    }

    /// Number of repair symbols in flight that cover a symbol from `first` on and have mended
    /// nothing so far.
    pub(super) fn in_flight(&self, first: u64) -> u32 {
        if first < self.least_end {
            return self.unspent;
        }
        let covering = self.list.iter().filter(|r| r.fate == Fate::InFlight && r.span.end > first);
        u32::try_from(covering.count()).unwrap_or(u32::MAX)
    }

    /// How many of the symbols `missing` remain if each repair symbol that has arrived stands for one
    /// of its span.
    pub(super) fn not_arrived_for(&self, missing: &BTreeSet<u64>) -> u32 {
        let remain = if missing.is_empty() || self.arrived == 0 {
            missing.len()
        } else {
            self.unmatched(missing.iter().copied(), |repair| repair.fate == Fate::Arrived).len()
        };
        u32::try_from(remain).unwrap_or(u32::MAX)
    }

    /// When the newest repair symbol in flight was sent that may mend `id`.
    pub(super) fn newest(&self, id: u64) -> Option<Instant> {
        self.list.iter().rev().find(|repair| repair.may_bring(id)).map(|repair| repair.sent)
    }

    /// Number of repair symbols that cover `id`, arrived or in flight.
    pub(super) fn covering(&self, id: u64) -> usize {
        self.list.iter().filter(|repair| repair.can_mend() && repair.span.contains(&id)).count()
    }

    /// Which of the symbols `ids`, in ascending order, remain if each repair symbol mends one of its
    /// span. An identifier may occur more than once.
    pub(super) fn beyond(&self, ids: impl Iterator<Item = u64>) -> SmallVec<[u64; 4]> {
        self.unmatched(ids, Repair::can_mend)
    }

    /// Which of `ids` remain if each repair symbol that is `able` to mends one of its span. As few
    /// remain as possible: each symbol takes the repair symbol whose span ends first, and leaves
    /// those that reach further to later ones.
    fn unmatched(
        &self,
        ids: impl Iterator<Item = u64>,
        able: impl Fn(&Repair) -> bool,
    ) -> SmallVec<[u64; 4]> {
        let able = self.list.iter().filter(|repair| able(repair));
        let mut spans: Vec<_> = able.map(|r| (r.span.start, r.span.end)).collect();
        spans.sort_unstable();
        let mut waiting = spans.into_iter().peekable();
        let mut ends = BinaryHeap::new();
        let mut beyond = SmallVec::new();
        for id in ids {
            while let Some((_, end)) = waiting.next_if(|(start, _)| *start <= id) {
                ends.push(Reverse(end));
            }
            while ends.peek().is_some_and(|Reverse(end)| *end <= id) {
                ends.pop();
            }
            if ends.pop().is_none() {
                beyond.push(id);
            }
        }
        beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn repairs(spans: &[Range<u64>]) -> Repairs {
        let mut repairs = Repairs::default();
        let now = Instant::now();
        spans.iter().for_each(|span| repairs.on_sent(now, span.clone(), 100));
        repairs
    }

    fn beyond(repairs: &Repairs, ids: &[u64]) -> Vec<u64> {
        repairs.beyond(ids.iter().copied()).to_vec()
    }

    #[test]
    fn each_mends_one() {
        let repairs = repairs(&[0..10, 0..10, 20..30]);
        assert_eq!(beyond(&repairs, &[1, 2, 3, 20]), [3]);
        assert_eq!(beyond(&repairs, &[15, 20, 21]), [15, 21]);
        assert_eq!((repairs.covering(9), repairs.covering(10), repairs.covering(20)), (2, 0, 1));
    }

    #[test]
    fn a_lost_one_mends_nothing() {
        let mut repairs = repairs(&[0..10, 0..10]);
        repairs.on_lost(&(0..10));
        assert_eq!(beyond(&repairs, &[1, 2]), [2]);
        repairs.on_lost(&(0..10));
        assert_eq!((beyond(&repairs, &[1]), repairs.newest(1)), (vec![1], None));
    }

    #[test]
    fn those_that_cover_nothing_of_the_window_are_forgotten() {
        let mut repairs = repairs(&[0..10, 10..20, 20..30]);
        repairs.on_arrived(&(0..10), 0);
        repairs.on_arrived(&(10..20), 0);
        assert!(repairs.on_recovered(10).is_some());
        repairs.release_below(9);
        assert_eq!((repairs.list.len(), repairs.arrived), (2, 1));
        repairs.release_below(20);
        assert_eq!((repairs.list.len(), repairs.arrived), (1, 0));
        // What becomes of the first ones does not matter any more.
        repairs.on_lost(&(0..10));
        repairs.on_arrived(&(10..20), 20);
        assert_eq!((repairs.in_flight(20), repairs.covering(20)), (1, 1));
        // A later one may end earlier.
        repairs.on_sent(Instant::now(), 20..25, 100);
        assert_eq!(
            (repairs.in_flight(24), repairs.in_flight(25), repairs.in_flight(30)),
            (2, 1, 0)
        );
        repairs.release_below(25);
        assert_eq!((repairs.list.len(), repairs.in_flight(25)), (1, 1));
    }

    #[test]
    fn one_that_arrived_helps_later_ones() {
        let mut repairs = repairs(&[0..10, 0..10]);
        repairs.on_arrived(&(0..10), 0);
        assert_eq!(beyond(&repairs, &[1, 2, 3]), [3]);
        assert_eq!(repairs.in_flight(0), 1);
        // The second one arrives, and both are used up.
        repairs.on_recovered(1);
        repairs.on_recovered(2);
        assert_eq!((beyond(&repairs, &[3]), repairs.newest(3)), (vec![3], None));
        repairs.on_arrived(&(0..10), 0);
        assert!(repairs.list.is_empty());
    }

    #[test]
    fn what_mended_something_before_it_was_acknowledged_mends_nothing_more() {
        let now = Instant::now();
        let mut repairs = Repairs::default();
        repairs.on_sent(now, 0..10, 70);
        repairs.on_sent(now + Duration::from_secs(1), 0..10, 80);
        assert_eq!((repairs.on_recovered(4), repairs.on_recovered(10)), (Some(70), None));
        assert_eq!((repairs.covering(5), repairs.in_flight(0)), (1, 1));
        repairs.on_arrived(&(0..10), 0);
        assert_eq!((repairs.covering(5), repairs.in_flight(0)), (1, 1));
        repairs.on_lost(&(0..10));
        assert!(repairs.list.is_empty());
    }

    #[test]
    fn what_arrived_stands_for_a_missing_symbol_of_its_span() {
        let mut repairs = repairs(&[0..10, 0..10, 20..30]);
        let missing = BTreeSet::from([1, 2, 15]);
        assert_eq!(repairs.not_arrived_for(&missing), 3);
        repairs.on_arrived(&(0..10), 0);
        assert_eq!(repairs.not_arrived_for(&missing), 2);
        repairs.on_arrived(&(20..30), 0);
        assert_eq!(repairs.not_arrived_for(&missing), 2, "it covers none of them");
        assert_eq!(repairs.not_arrived_for(&BTreeSet::new()), 0);
    }

    #[test]
    fn what_arrived_is_forgotten_in_time() {
        let mut repairs = Repairs::default();
        let now = Instant::now();
        // Nothing but repair symbols is ever acknowledged.
        for _ in 0..1_000 {
            repairs.on_sent(now, 0..10, 100);
            repairs.on_arrived(&(0..10), 0);
            assert!(repairs.list.len() <= MAX_ARRIVED && repairs.arrived == repairs.list.len());
        }
        repairs.on_sent(now, 10..20, 100);
        repairs.on_arrived(&(10..20), 10);
        assert_eq!(repairs.list.len(), 1);
    }

    /// The smallest number of symbols that remain, by trying everything.
    fn remaining(spans: &[Range<u64>], ids: &[u64]) -> usize {
        let Some((id, rest)) = ids.split_first() else { return 0 };
        let without = 1 + remaining(spans, rest);
        let with = spans.iter().enumerate().filter(|(_, span)| span.contains(id)).map(|(i, _)| {
            let mut left = spans.to_vec();
            left.remove(i);
            remaining(&left, rest)
        });
        with.fold(without, usize::min)
    }

    proptest! {
        #[test]
        fn as_few_remain_as_possible(
            spans in prop::collection::vec((0u64..8, 1u64..6), 0..5),
            mut ids in prop::collection::vec(0u64..12, 0..5),
        ) {
            let spans: Vec<_> = spans.into_iter().map(|(start, len)| start..start + len).collect();
            ids.sort_unstable();
            let left = beyond(&repairs(&spans), &ids);
            prop_assert_eq!(left.len(), remaining(&spans, &ids));
        }
    }
}
