//! The repair symbols of a session that can still mend losses, and how many losses they can mend.

use crate::work;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::iter::Peekable;
use std::ops::Range;
use std::time::Instant;

/// The most repair symbols that are remembered after they arrived. Beyond this number, the oldest are
/// forgotten, so that a peer that acknowledges only repair symbols cannot make the list grow.
const MAX_ARRIVED: usize = 64;

#[derive(Debug, Clone)]
struct SentRepair {
    /// The number of the repair symbol, counted in the session.
    number: u64,
    sent: Instant,
    span: Range<u64>,
    /// The size of the frame in bytes.
    size: usize,
}

/// A repair symbol whose packet is in flight as far as we know.
#[derive(Debug, Clone)]
struct InFlight {
    repair: SentRepair,
    /// Whether this repair symbol counts as used: the peer recovered a symbol with it, or will never know a
    /// symbol of its span.
    spent: bool,
}

impl InFlight {
    /// Whether the arrival of this repair symbol may mend `id`.
    fn may_bring(&self, id: u64) -> bool {
        !self.spent && self.repair.span.contains(&id)
    }
}

/// Repair symbols, each of which can mend one symbol of its span.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// Repair symbols in flight that cover symbols of the window, oldest first.
    list: VecDeque<InFlight>,
    /// Repair symbols in flight that cover only symbols beyond the window.
    past: VecDeque<InFlight>,
    /// Repair symbols that arrived and have mended no symbol so far, oldest first. Each may still mend a
    /// symbol together with a later repair symbol: two missing symbols take two repair symbols.
    arrived: VecDeque<SentRepair>,
    /// The frame sizes of repair symbols that are used up, because the peer lacks a symbol that was sent
    /// bare, by that symbol.
    claimed: BTreeMap<u64, usize>,
    /// How many of `list` have mended no symbol so far.
    unspent: u32,
    /// The least end of a span in `list` and `arrived`, as far as known: every span ends here or later.
    least_end: u64,
    /// Whether the ends of the spans in `list` ascend.
    ascends: bool,
    /// The number of the next repair symbol.
    next: u64,
}

impl Repairs {
    /// A repair symbol over `span` was sent in a frame of `size` bytes.
    pub(super) fn on_sent(&mut self, now: Instant, span: Range<u64>, size: usize) {
        let none = self.list.is_empty() && self.arrived.is_empty();
        let least = if none { u64::MAX } else { self.least_end };
        self.least_end = least.min(span.end);
        self.ascends = self.list.back().is_none_or(|last| {
            let above = last.repair.span.end <= span.end;
            self.ascends && above
        });
        let repair = SentRepair { number: self.next, sent: now, span, size };
        self.list.push_back(InFlight { repair, spent: false });
        self.next += 1;
        self.unspent += 1;
    }

    /// A repair symbol over `span` was acknowledged. Symbols below `first` no longer matter.
    pub(super) fn on_arrived(&mut self, span: &Range<u64>, first: u64) {
        // If a repair symbol over this span has mended a symbol, the acknowledgement is taken to be for that
        // repair symbol.
        if self.take(span, true).is_none()
            && let Some(repair) = self.take(span, false)
        {
            let place = self.arrived.partition_point(|other| other.number < repair.number);
            self.arrived.insert(place, repair);
        }
        self.forget_arrived(first);
    }

    /// A repair symbol over `span` was lost.
    pub(super) fn on_lost(&mut self, span: &Range<u64>) {
        if self.take(span, false).is_none() {
            self.take(span, true);
        }
    }

    /// Removes a repair symbol in flight.
    fn take(&mut self, span: &Range<u64>, spent: bool) -> Option<SentRepair> {
        let alike = |other: &InFlight| other.spent == spent && other.repair.span == *span;
        if let Some(index) = self.past.iter().position(alike) {
            work::steps(index.min(self.past.len() - index));
            return self.past.remove(index).map(|taken| taken.repair);
        }
        if span.end < self.least_end {
            return None;
        }
        let index = self.list.iter().position(alike)?;
        work::steps(index.min(self.list.len() - index));
        let taken = self.list.remove(index)?;
        self.unspent -= u32::from(!spent);
        Some(taken.repair)
    }

    /// The peer has recovered symbol `id`, which used up a repair symbol. Returns the size of that repair
    /// symbol's frame; `None` if no repair symbol over `id` is known.
    pub(super) fn on_recovered(&mut self, id: u64) -> Option<usize> {
        if let Some(size) = self.claimed.remove(&id) {
            return Some(size);
        }
        if let Some(index) = self.arrived.iter().position(|repair| repair.span.contains(&id)) {
            return self.arrived.remove(index).map(|repair| repair.size);
        }
        if let Some(entry) = self.past.iter_mut().find(|entry| entry.may_bring(id)) {
            entry.spent = true;
            return Some(entry.repair.size);
        }
        let entry = self.list.iter_mut().find(|entry| entry.may_bring(id))?;
        entry.spent = true;
        self.unspent -= 1;
        Some(entry.repair.size)
    }

    /// The peer will never know symbol `id`, which therefore uses up a repair symbol over it. Returns the
    /// size of that repair symbol's frame; `None` if no repair symbol over `id` is known.
    pub(super) fn on_abandoned(&mut self, id: u64) -> Option<usize> {
        let arrived =
            self.arrived.iter().enumerate().filter(|(_, repair)| repair.span.contains(&id));
        let arrived = arrived.min_by_key(|(_, repair)| repair.span.end).map(|(index, _)| index);
        if let Some(index) = arrived {
            return self.arrived.remove(index).map(|repair| repair.size);
        }
        if let Some(entry) = self.past.iter_mut().find(|entry| entry.may_bring(id)) {
            entry.spent = true;
            return Some(entry.repair.size);
        }
        let entry = self.list.iter_mut().find(|entry| entry.may_bring(id))?;
        entry.spent = true;
        self.unspent -= 1;
        Some(entry.repair.size)
    }

    /// The frames of symbol `id` are sent again as bare data. The peer then lacks the symbol, unless it
    /// reports that it recovered the symbol nevertheless. Returns whether any repair symbol may have brought
    /// it.
    pub(super) fn on_sent_bare(&mut self, id: u64) -> bool {
        let size = self.on_abandoned(id);
        size.is_some_and(|size| self.claimed.insert(id, size).is_none())
    }

    /// The window begins with `first` now, and no symbol below `oldest` matters. Forgets repair symbols that
    /// cover only symbols below `oldest`: whether or not they arrive, they cannot mend a symbol any more.
    pub(super) fn release_below(&mut self, first: u64, oldest: u64) {
        let past = |entry: &InFlight| entry.repair.span.end <= oldest;
        while self.past.pop_front_if(|entry| past(entry)).is_some() {}
        while self.claimed.first_key_value().is_some_and(|(id, _)| *id < oldest) {
            self.claimed.pop_first();
        }
        if first < self.least_end {
            return;
        }
        if !self.ascends {
            self.ascend_from(first);
        }
        let left = |entry: &mut InFlight| entry.repair.span.end <= first;
        while let Some(entry) = self.list.pop_front_if(left) {
            work::steps(1);
            self.unspent -= u32::from(!entry.spent);
            if !past(&entry) {
                self.past.push_back(entry);
            }
        }
        work::steps(self.arrived.len());
        self.arrived.retain(|repair| repair.span.end > oldest);
        let arrived = self.arrived.iter().map(|repair| repair.span.end).filter(|end| *end > first);
        self.least_end = arrived.chain(self.least_in_list()).min().unwrap_or(u64::MAX);
    }

    /// Moves the repair symbols that cover only symbols below `first` to the beginning of `list`.
    fn ascend_from(&mut self, first: u64) {
        work::steps(self.list.len());
        self.list.make_contiguous().sort_by_key(|entry| entry.repair.span.end > first);
    }

    /// The least end of a span in `list`.
    fn least_in_list(&self) -> Option<u64> {
        let considered = if self.ascends { 1 } else { self.list.len() };
        work::steps(considered);
        self.list.iter().take(considered).map(|entry| entry.repair.span.end).min()
    }

    /// Forgets repair symbols that arrived and cover no symbol from `first` on, and the oldest beyond
    /// [`MAX_ARRIVED`].
    fn forget_arrived(&mut self, first: u64) {
        let mut surplus = self.arrived.len().saturating_sub(MAX_ARRIVED);
        self.arrived.retain(|repair| {
            let stays = repair.span.end > first && surplus == 0;
            surplus -= usize::from(!stays && surplus > 0);
            stays
        });
    }

    /// Forgets all repair symbols that arrived: they have mended all that they could.
    pub(super) fn forget_all_arrived(&mut self) {
        self.arrived.clear();
    }

    /// Number of repair symbols in flight that cover a symbol from `first` on and have mended no symbol so
    /// far.
    pub(super) fn in_flight(&self, first: u64) -> u32 {
        if first < self.least_end {
            return self.unspent;
        }
        let covers = |entry: &&InFlight| !entry.spent && entry.repair.span.end > first;
        u32::try_from(self.list.iter().filter(covers).count()).unwrap_or(u32::MAX)
    }

    /// How many of the symbols `missing` from `first` on remain if each repair symbol that has arrived stands for one
    /// of these symbols, in its span. Visits no more symbols than repair symbols have arrived, and those below `first`.
    pub(super) fn not_arrived_for(&self, missing: &BTreeSet<u64>, first: u64) -> u32 {
        let below = missing.range(..first).inspect(|_| work::steps(1)).count();
        let mut remain = missing.len() - below;
        if remain > 0 && !self.arrived.is_empty() {
            let mut spans = Spans::new(self.arrived.iter().map(|repair| &repair.span));
            let mut from = first;
            while let Some(start) = spans.next_start(from)
                && let Some(id) = missing.range(start..).next()
            {
                work::steps(1);
                remain -= usize::from(spans.mend(*id));
                from = id + 1;
            }
        }
        u32::try_from(remain).unwrap_or(u32::MAX)
    }

    /// When the newest repair symbol in flight was sent that may mend `id`.
    pub(super) fn newest(&self, id: u64) -> Option<Instant> {
        self.newest_for(id).map(|repair| repair.sent)
    }

    /// The number of the newest repair symbol in flight that may mend `id`.
    pub(super) fn newest_number(&self, id: u64) -> Option<u64> {
        self.newest_for(id).map(|repair| repair.number)
    }

    fn newest_for(&self, id: u64) -> Option<&SentRepair> {
        let in_flight = self.past.iter().chain(&self.list);
        let mut newest_first = in_flight.rev().inspect(|_| work::steps(1));
        newest_first.find(|entry| entry.may_bring(id)).map(|entry| &entry.repair)
    }

    /// The number of the oldest repair symbol in flight that may still mend a symbol.
    pub(super) fn oldest_number(&self) -> Option<u64> {
        let oldest = |queue: &VecDeque<InFlight>| {
            let mut oldest_first = queue.iter().inspect(|_| work::steps(1));
            oldest_first.find(|entry| !entry.spent).map(|entry| entry.repair.number)
        };
        oldest(&self.past).into_iter().chain(oldest(&self.list)).min()
    }

    /// The number of the oldest repair symbol in flight, whether or not it has mended a symbol.
    pub(super) fn oldest_in_flight(&self) -> Option<u64> {
        let queues = [self.past.front(), self.list.front()];
        queues.into_iter().flatten().map(|entry| entry.repair.number).min()
    }

    /// How many repair symbols in flight may mend `id`, which left the window.
    pub(super) fn bringing(&self, id: u64) -> usize {
        let in_flight = self.past.iter().chain(&self.list).inspect(|_| work::steps(1));
        in_flight.filter(|entry| entry.may_bring(id)).count()
    }

    /// The spans of the repair symbols that may still mend a symbol of the window.
    fn useful(&self) -> impl Iterator<Item = &Range<u64>> {
        let in_flight = self.list.iter().filter(|entry| !entry.spent).map(|entry| &entry.repair);
        in_flight.chain(&self.arrived).map(|repair| &repair.span).inspect(|_| work::steps(1))
    }

    /// Whether a repair symbol that has arrived, and has mended no symbol so far, covers both symbols.
    pub(super) fn have_arrived_over(&self, one: u64, other: u64) -> bool {
        let mut spans = self.arrived.iter().map(|repair| &repair.span).inspect(|_| work::steps(1));
        spans.any(|span| span.contains(&one) && span.contains(&other))
    }

    /// The spans of the repair symbols that have arrived, have mended no symbol so far, and cover any of
    /// `ids`.
    pub(super) fn arrived_over<'a>(
        &self,
        ids: &(impl Iterator<Item = &'a u64> + Clone),
    ) -> SmallVec<[Range<u64>; 4]> {
        let spans = self.arrived.iter().map(|repair| &repair.span);
        let covers = |span: &&Range<u64>| {
            let mut ids = ids.clone().inspect(|_| work::steps(1));
            ids.any(|id| span.contains(id))
        };
        spans.filter(covers).cloned().collect()
    }

    /// Number of repair symbols that cover `id`, arrived or in flight.
    pub(super) fn covering(&self, id: u64) -> usize {
        self.useful().filter(|span| span.contains(&id)).count()
    }

    /// Which of the symbols `ids`, in ascending order, remain if each repair symbol mends one symbol of its
    /// span. An identifier may occur more than once.
    pub(super) fn beyond(&self, ids: impl Iterator<Item = u64>) -> SmallVec<[u64; 4]> {
        let mut spans = Spans::new(self.useful());
        ids.filter(|id| !spans.mend(*id)).collect()
    }
}

/// The spans of repair symbols, each of which mends one symbol. As few symbols remain as possible: each
/// symbol takes the repair symbol whose span ends first, and leaves repair symbols that reach further to
/// later symbols.
struct Spans {
    /// Spans that begin after the last symbol.
    waiting: Peekable<std::vec::IntoIter<(u64, u64)>>,
    /// The ends of the other spans, as far as their repair symbols have mended no symbol.
    ends: BinaryHeap<Reverse<u64>>,
}

impl Spans {
    fn new<'a>(spans: impl Iterator<Item = &'a Range<u64>>) -> Self {
        let mut spans: Vec<_> = spans.map(|span| (span.start, span.end)).collect();
        spans.sort_unstable();
        Self { waiting: spans.into_iter().peekable(), ends: BinaryHeap::new() }
    }

    /// The first symbol from `from` on that any span may cover. `None` if no span is left.
    fn next_start(&mut self, from: u64) -> Option<u64> {
        if self.ends.is_empty() {
            return self.waiting.peek().map(|(start, _)| from.max(*start));
        }
        Some(from)
    }

    /// Lets a repair symbol mend `id`, which is not below the `id` of the call before; returns whether any
    /// repair symbol can.
    fn mend(&mut self, id: u64) -> bool {
        while let Some((_, end)) = self.waiting.next_if(|(start, _)| *start <= id) {
            self.ends.push(Reverse(end));
        }
        while self.ends.peek().is_some_and(|Reverse(end)| *end <= id) {
            self.ends.pop();
        }
        self.ends.pop().is_some()
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
        repairs.release_below(9, 9);
        assert_eq!((repairs.list.len(), repairs.arrived.len()), (1, 1));
        repairs.release_below(20, 20);
        assert_eq!((repairs.list.len(), repairs.arrived.len()), (1, 0));
        // The fate of the first repair symbols no longer matters.
        repairs.on_lost(&(0..10));
        repairs.on_arrived(&(10..20), 20);
        assert_eq!((repairs.in_flight(20), repairs.covering(20)), (1, 1));
        // The span of a later repair symbol may end earlier.
        repairs.on_sent(Instant::now(), 20..25, 100);
        assert_eq!(
            (repairs.in_flight(24), repairs.in_flight(25), repairs.in_flight(30)),
            (2, 1, 0)
        );
        repairs.release_below(25, 25);
        assert_eq!((repairs.list.len(), repairs.in_flight(25)), (1, 1));
    }

    #[test]
    fn one_that_arrived_helps_later_ones() {
        let mut repairs = repairs(&[0..10, 0..10]);
        repairs.on_arrived(&(0..10), 0);
        assert_eq!(beyond(&repairs, &[1, 2, 3]), [3]);
        assert_eq!(repairs.in_flight(0), 1);
        // The second repair symbol arrives, and both are used up.
        repairs.on_recovered(1);
        repairs.on_recovered(2);
        assert_eq!((beyond(&repairs, &[3]), repairs.newest(3)), (vec![3], None));
        repairs.on_arrived(&(0..10), 0);
        assert!(repairs.list.is_empty() && repairs.arrived.is_empty());
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
        assert_eq!(repairs.not_arrived_for(&missing, 0), 3);
        repairs.on_arrived(&(0..10), 0);
        assert_eq!(repairs.not_arrived_for(&missing, 0), 2);
        repairs.on_arrived(&(20..30), 0);
        assert_eq!(repairs.not_arrived_for(&missing, 0), 2, "it covers none of them");
        assert_eq!(repairs.not_arrived_for(&BTreeSet::new(), 0), 0);
        assert_eq!(repairs.not_arrived_for(&BTreeSet::from([1, 2, 9]), 2), 1);
    }

    #[test]
    fn what_arrived_is_forgotten_in_time() {
        let mut repairs = Repairs::default();
        let now = Instant::now();
        // The peer acknowledges only repair symbols.
        for _ in 0..1_000 {
            repairs.on_sent(now, 0..10, 100);
            repairs.on_arrived(&(0..10), 0);
            assert!(repairs.arrived.len() <= MAX_ARRIVED && repairs.list.is_empty());
        }
        repairs.on_sent(now, 10..20, 100);
        repairs.on_arrived(&(10..20), 10);
        assert_eq!(repairs.arrived.len(), 1);
    }

    #[test]
    fn what_is_missing_is_counted_without_visiting_it() {
        let missing: BTreeSet<u64> = (0..1000).collect();
        let mut repairs = repairs(&[0..1000, 400..500, 700..701]);
        [0..1000, 400..500, 700..701].iter().for_each(|span| repairs.on_arrived(span, 0));
        work::take_steps();
        assert_eq!(repairs.not_arrived_for(&missing, 0), 997);
        assert!(work::take_steps() <= 6);
    }

    /// The smallest number of symbols that remain, by trying all assignments.
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
            let mut repairs = repairs(&spans);
            prop_assert_eq!(beyond(&repairs, &ids).len(), remaining(&spans, &ids));
            ids.dedup();
            let missing = ids.iter().copied().collect();
            spans.iter().for_each(|span| repairs.on_arrived(span, 0));
            prop_assert_eq!(repairs.not_arrived_for(&missing, 0) as usize, remaining(&spans, &ids));
        }
    }
}
