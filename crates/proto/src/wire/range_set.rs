//! A set of integers kept as sorted disjoint ranges: packet numbers, stream offsets, symbol ids.

use smallvec::SmallVec;
use std::ops::Range;

/// A set of `u64`, stored as ascending half-open ranges that neither overlap nor touch.
///
/// Made for sets that grow at their end and mostly consist of one range: appending is O(1), other
/// changes are a binary search and a move of the ranges behind. A set that a peer drives must be
/// made [`with_cap`](Self::with_cap), or be bounded by its owner.
#[derive(Debug, Clone, Default)]
pub struct RangeSet {
    ranges: SmallVec<[Range<u64>; 2]>,
    cap: Option<usize>,
    forgotten: u64,
}

impl RangeSet {
    /// An empty set with any number of ranges.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty set that keeps at most `cap` ranges (at least one) and forgets the smallest first.
    #[must_use]
    pub fn with_cap(cap: usize) -> Self {
        Self { cap: Some(cap.max(1)), ..Self::default() }
    }

    /// Every value that the cap ever made the set forget is below this one; 0 if there is none.
    #[must_use]
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Adds a range; whether any value of it was new. With a cap, the new values may be the ones
    /// that are forgotten.
    pub fn insert(&mut self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return false;
        }
        match self.ranges.last_mut() {
            Some(last) if range.start > last.end => self.ranges.push(range),
            Some(last) if range.start >= last.start => {
                if range.end <= last.end {
                    return false;
                }
                last.end = range.end;
                return true;
            }
            Some(_) => return self.insert_before_last(range),
            None => self.ranges.push(range),
        }
        self.enforce_cap();
        true
    }

    fn insert_before_last(&mut self, range: Range<u64>) -> bool {
        let from = self.ranges.partition_point(|r| r.end < range.start);
        let to = self.ranges.partition_point(|r| r.start <= range.end);
        if from == to {
            self.ranges.insert(from, range);
            self.enforce_cap();
            return true;
        }
        let merged =
            self.ranges[from].start.min(range.start)..self.ranges[to - 1].end.max(range.end);
        if merged == self.ranges[from] {
            return false;
        }
        self.ranges[from] = merged;
        self.ranges.drain(from + 1..to);
        true
    }

    /// Adds one value; whether it was new. `u64::MAX` cannot be a member.
    pub fn insert_one(&mut self, value: u64) -> bool {
        value.checked_add(1).is_some_and(|end| self.insert(value..end))
    }

    /// Takes a range out; whether any value of it was a member.
    pub fn remove(&mut self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return false;
        }
        let from = self.ranges.partition_point(|r| r.end <= range.start);
        let to = self.ranges.partition_point(|r| r.start < range.end);
        if from >= to {
            return false;
        }
        let left = self.ranges[from].start..range.start;
        let right = range.end..self.ranges[to - 1].end;
        match (left.is_empty(), right.is_empty()) {
            (true, true) => {
                self.ranges.drain(from..to);
            }
            (false, true) => {
                self.ranges[from] = left;
                self.ranges.drain(from + 1..to);
            }
            (true, false) => {
                self.ranges[to - 1] = right;
                self.ranges.drain(from..to - 1);
            }
            (false, false) if to - from == 1 => {
                self.ranges[from] = right;
                self.ranges.insert(from, left);
                self.enforce_cap();
            }
            (false, false) => {
                self.ranges[from] = left;
                self.ranges[to - 1] = right;
                self.ranges.drain(from + 1..to - 1);
            }
        }
        true
    }

    /// Takes out every value below `bound`.
    pub fn remove_below(&mut self, bound: u64) {
        self.remove(0..bound);
    }

    /// Whether `value` is a member.
    #[must_use]
    pub fn contains(&self, value: u64) -> bool {
        self.containing(value).is_some()
    }

    /// Whether every value of `range` is a member; true for an empty range.
    #[must_use]
    pub fn covers(&self, range: Range<u64>) -> bool {
        range.is_empty() || self.containing(range.start).is_some_and(|r| r.end >= range.end)
    }

    /// The range that `value` is in.
    #[must_use]
    pub fn containing(&self, value: u64) -> Option<Range<u64>> {
        let at = self.ranges.partition_point(|r| r.end <= value);
        self.ranges.get(at).filter(|r| r.start <= value).cloned()
    }

    /// The ranges in ascending order; `.rev()` gives the descending one.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + Clone {
        self.ranges.iter().cloned()
    }

    /// The smallest member.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        self.ranges.first().map(|r| r.start)
    }

    /// The largest member.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.ranges.last().map(|r| r.end - 1)
    }

    /// The range of the smallest members.
    #[must_use]
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.first().cloned()
    }

    /// The range of the largest members.
    #[must_use]
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.last().cloned()
    }

    /// Takes the range of the smallest members out.
    pub fn pop_min(&mut self) -> Option<Range<u64>> {
        (!self.ranges.is_empty()).then(|| self.ranges.remove(0))
    }

    /// Number of ranges, not of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the set has no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of members.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|r| r.end - r.start).sum()
    }

    /// Takes everything out and keeps the storage.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    fn enforce_cap(&mut self) {
        let excess = self.cap.map_or(0, |cap| self.ranges.len().saturating_sub(cap));
        if let Some(last) = self.ranges.drain(..excess).next_back() {
            self.forgotten = self.forgotten.max(last.end);
        }
    }
}

impl PartialEq for RangeSet {
    fn eq(&self, other: &Self) -> bool {
        self.ranges == other.ranges
    }
}

impl Eq for RangeSet {}

impl Extend<Range<u64>> for RangeSet {
    fn extend<I: IntoIterator<Item = Range<u64>>>(&mut self, ranges: I) {
        for range in ranges {
            self.insert(range);
        }
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::new();
        set.extend(ranges);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The ranges that a plain set of values amounts to.
    fn runs(model: &BTreeSet<u64>) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for &value in model {
            match runs.last_mut() {
                Some(last) if last.end == value => last.end += 1,
                _ => runs.push(value..value + 1),
            }
        }
        runs
    }

    #[derive(Debug, Clone)]
    enum Op {
        Insert(Range<u64>),
        Remove(Range<u64>),
        PopMin,
    }

    fn op() -> impl Strategy<Value = Op> {
        let range = (0u64..120, 0u64..12).prop_map(|(start, len)| start..start + len);
        prop_oneof![
            5 => range.clone().prop_map(Op::Insert),
            3 => range.prop_map(Op::Remove),
            1 => Just(Op::PopMin),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_set_of_values(ops in proptest::collection::vec(op(), 0..80)) {
            let mut set = RangeSet::new();
            let mut model = BTreeSet::new();
            for op in ops {
                match op {
                    Op::Insert(range) => {
                        let new = range.clone().filter(|&v| model.insert(v)).count() > 0;
                        prop_assert_eq!(set.insert(range), new);
                    }
                    Op::Remove(range) => {
                        let had = range.clone().filter(|v| model.remove(v)).count() > 0;
                        prop_assert_eq!(set.remove(range), had);
                    }
                    Op::PopMin => {
                        let expected = runs(&model).first().cloned();
                        model.retain(|v| expected.as_ref().is_none_or(|r| !r.contains(v)));
                        prop_assert_eq!(set.pop_min(), expected);
                    }
                }
                let expected = runs(&model);
                prop_assert_eq!(set.iter().collect::<Vec<_>>(), expected.clone());
                prop_assert!(set.iter().rev().eq(expected.iter().rev().cloned()));
                prop_assert_eq!(set.last(), expected.last().cloned());
                prop_assert_eq!(set.first(), expected.first().cloned());
                prop_assert_eq!(set.len(), expected.len());
                prop_assert_eq!(set.count(), model.len() as u64);
                prop_assert_eq!((set.min(), set.max()),
                    (model.first().copied(), model.last().copied()));
                for value in 0..140 {
                    prop_assert_eq!(set.contains(value), model.contains(&value));
                    let covered = (value..value + 3).all(|v| model.contains(&v));
                    prop_assert_eq!(set.covers(value..value + 3), covered);
                }
            }
        }

        #[test]
        fn a_cap_forgets_the_smallest_and_says_so(
            values in proptest::collection::vec(0u64..200, 0..150), cap in 1usize..6,
        ) {
            let mut set = RangeSet::with_cap(cap);
            let mut model = BTreeSet::new();
            for value in values {
                set.insert_one(value);
                model.insert(value);
                prop_assert!(set.len() <= cap);
                for &v in &model {
                    prop_assert!(set.contains(v) || v < set.forgotten());
                }
                prop_assert!(set.iter().flatten().all(|v| model.contains(&v)));
            }
        }
    }

    #[test]
    fn a_flood_of_gaps_stays_within_the_cap() {
        let mut set = RangeSet::with_cap(64);
        for i in 0..100_000 {
            set.insert_one(i * 2);
            assert!(set.len() <= 64);
        }
        assert_eq!(set.max(), Some(199_998));
        assert_eq!(set.forgotten(), set.min().unwrap() - 1);
        // Older than anything kept while full: forgotten at once.
        set.insert_one(5);
        assert!(!set.contains(5));
    }

    #[test]
    fn a_split_by_removal_respects_the_cap() {
        let mut set = RangeSet::with_cap(1);
        set.insert(0..10);
        assert!(set.remove(4..5));
        assert_eq!((set.first(), set.len()), (Some(5..10), 1));
        assert_eq!(set.forgotten(), 4);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut set = RangeSet::new();
        assert!(!set.insert_one(u64::MAX));
        assert!(set.insert(0..u64::MAX));
        assert!(!set.insert_one(u64::MAX - 1));
        assert!(set.remove(1..u64::MAX));
        assert_eq!((set.first(), set.len()), (Some(0..1), 1));
    }
}
