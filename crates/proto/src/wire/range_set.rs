//! A set of integers kept as sorted disjoint ranges: packet numbers, stream offsets, symbol ids.

mod ranges;

use crate::work;
use ranges::Ranges;
use std::ops::Range;

/// A set of `u64` kept as disjoint, non-adjacent half-open ranges in ascending order.
///
/// Bytes and packets are mostly sent, acknowledged and lost in order, so most operations are at
/// either end. A ring buffer makes both ends cheap, and a set of one range allocates no memory. If a peer
/// controls the inserted numbers, the set must be created [`with_cap`](Self::with_cap), or its owner must bound
/// it.
#[derive(Debug, Clone)]
pub struct RangeSet {
    ranges: Ranges,
    /// The most ranges.
    cap: usize,
}

impl Default for RangeSet {
    fn default() -> Self {
        Self::new()
    }
}

impl RangeSet {
    /// An empty set of any number of ranges.
    pub const fn new() -> Self {
        Self { ranges: Ranges::One(None), cap: usize::MAX }
    }

    /// An empty set that keeps at most `cap` ranges (at least one) and forgets the smallest first.
    #[must_use]
    pub fn with_cap(cap: usize) -> Self {
        Self { cap: cap.max(1), ..Self::new() }
    }

    /// Number of disjoint ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.get(0).cloned()
    }

    /// The largest member.
    #[cfg(feature = "testing")]
    pub fn max(&self) -> Option<u64> {
        self.ranges.get(self.len().checked_sub(1)?).map(|range| range.end - 1)
    }

    /// The ranges in ascending order; `.rev()` gives the descending one.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + Clone + '_ {
        (0..self.len()).map(|index| self.ranges.get(index).cloned().unwrap_or_default())
    }

    /// Removes every member and frees the memory.
    pub fn clear(&mut self) {
        self.ranges = Ranges::default();
    }

    /// Index of the first range that ends after `value`.
    fn position(&self, value: u64) -> usize {
        self.ranges.position(value)
    }

    /// The range that holds `value`.
    pub fn range_of(&self, value: u64) -> Option<Range<u64>> {
        self.ranges.get(self.position(value)).filter(|range| range.start <= value).cloned()
    }

    /// The gap around `value`, which must not be a member: the values up to the next members,
    /// within `bounds`.
    pub fn gap_of(&self, value: u64, bounds: Range<u64>) -> Range<u64> {
        let next = self.position(value);
        let before = next.checked_sub(1).and_then(|index| self.ranges.get(index));
        let start = before.map_or(bounds.start, |held| held.end.max(bounds.start));
        let end = self.ranges.get(next).map_or(bounds.end, |held| held.start.min(bounds.end));
        start..end
    }

    /// Whether `value` is a member.
    pub fn contains(&self, value: u64) -> bool {
        self.range_of(value).is_some()
    }

    /// Whether every value of `range` is a member.
    pub fn contains_range(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.range_of(range.start).is_some_and(|held| held.end >= range.end)
    }

    /// Adds a range, which must not be empty, that begins at or behind the end of all others, as most do that
    /// come in order. Returns false and changes nothing if this one does not.
    #[inline]
    pub fn append(&mut self, range: &Range<u64>) -> bool {
        debug_assert!(!range.is_empty());
        let Some(last) = self.ranges.last_mut() else {
            self.ranges.insert(0, range.clone());
            return true;
        };
        if last.end == range.start {
            last.end = range.end;
        } else if last.end < range.start {
            self.ranges.insert(self.len(), range.clone());
            self.enforce_cap();
        } else {
            return false;
        }
        true
    }

    /// Adds every value of `range`; returns how many were new. With a cap, the new values may
    /// themselves be forgotten.
    #[inline]
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        if self.append(&range) { range.end - range.start } else { self.insert_among(range) }
    }

    /// Adds a range that begins before the end of the last one.
    fn insert_among(&mut self, range: Range<u64>) -> u64 {
        // Ranges that overlap or touch the new one are merged with it.
        let from = match range.start.checked_sub(1) {
            Some(before) => self.position(before),
            None => 0,
        };
        let mut merged = range.clone();
        let mut present = 0;
        let mut to = from;
        while let Some(held) = self.ranges.get(to).filter(|held| held.start <= range.end) {
            merged.start = merged.start.min(held.start);
            merged.end = merged.end.max(held.end);
            present += held.end.min(range.end).saturating_sub(held.start.max(range.start));
            to += 1;
        }
        match self.ranges.get_mut(from) {
            Some(slot) if to > from => {
                *slot = merged;
                self.ranges.remove(from + 1..to);
            }
            _ => {
                work::steps(from.min(self.ranges.len() - from));
                self.ranges.insert(from, merged);
                self.enforce_cap();
            }
        }
        range.end - range.start - present
    }

    fn enforce_cap(&mut self) {
        let excess = self.ranges.len().saturating_sub(self.cap);
        self.ranges.remove(0..excess);
    }

    /// Removes every value of `range`; returns how many were members before.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let from = self.position(range.start);
        let mut to = from;
        let mut removed = 0;
        let mut head = None;
        let mut tail = None;
        while let Some(held) = self.ranges.get(to).filter(|held| held.start < range.end) {
            removed += held.end.min(range.end) - held.start.max(range.start);
            if held.start < range.start {
                head = Some(held.start..range.start);
            }
            if held.end > range.end {
                tail = Some(range.end..held.end);
            }
            to += 1;
        }
        match (head, tail) {
            // If the cut is in the middle of one range, that becomes two.
            (Some(head), Some(tail)) if to == from + 1 => {
                if let Some(slot) = self.ranges.get_mut(from) {
                    *slot = head;
                }
                self.ranges.insert(to, tail);
                self.enforce_cap();
            }
            (head, tail) => {
                let mut from = from;
                if let (Some(head), Some(slot)) = (head, self.ranges.get_mut(from)) {
                    *slot = head;
                    from += 1;
                }
                if let Some(tail) = tail {
                    to -= 1;
                    if let Some(slot) = self.ranges.get_mut(to) {
                        *slot = tail;
                    }
                }
                self.ranges.remove(from..to);
            }
        }
        removed
    }

    /// The parts of `range` that are not members, in ascending order.
    pub fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut at = range.start;
        let mut index = self.position(range.start);
        std::iter::from_fn(move || {
            while at < range.end {
                let held = self.ranges.get(index).filter(|held| held.start < range.end);
                let gap = at..held.map_or(range.end, |held| held.start.max(at));
                at = held.map_or(range.end, |held| held.end);
                index += 1;
                if !gap.is_empty() {
                    return Some(gap);
                }
            }
            None
        })
    }
}

impl PartialEq for RangeSet {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for RangeSet {}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::default();
        for range in ranges {
            set.insert(range);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The members of `set` as maximal runs.
    fn runs(set: &BTreeSet<u64>) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for &value in set {
            match runs.last_mut() {
                Some(run) if run.end == value => run.end += 1,
                _ => runs.push(value..value + 1),
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(
            ops in prop::collection::vec((0..4u8, 0..200u64, 0..30u64), 1..120),
        ) {
            let mut ranges = RangeSet::default();
            let mut model = BTreeSet::new();
            for (op, start, len) in ops {
                let range = start..start + len;
                match op {
                    0 | 1 => {
                        let fresh = range.clone().filter(|&v| model.insert(v)).count();
                        prop_assert_eq!(ranges.insert(range.clone()), fresh as u64);
                    }
                    2 => {
                        let gone = range.clone().filter(|v| model.remove(v)).count();
                        prop_assert_eq!(ranges.remove(range.clone()), gone as u64);
                    }
                    _ => {
                        ranges.remove(0..start);
                        model = model.split_off(&start);
                    }
                }
                prop_assert_eq!(ranges.iter().collect::<Vec<_>>(), runs(&model));
                prop_assert_eq!(ranges.len(), runs(&model).len());
                prop_assert_eq!(ranges.first(), runs(&model).first().cloned());
                prop_assert_eq!(ranges.contains(start), model.contains(&start));
                prop_assert_eq!(
                    ranges.contains_range(&range),
                    range.clone().all(|v| model.contains(&v))
                );
                let bounds = 10..220;
                if bounds.contains(&start) && !model.contains(&start) {
                    let absent: BTreeSet<_> =
                        bounds.clone().filter(|v| !model.contains(v)).collect();
                    let around = runs(&absent).into_iter().find(|run| run.contains(&start));
                    prop_assert_eq!(Some(ranges.gap_of(start, bounds)), around);
                }
                let absent: BTreeSet<_> = range.clone().filter(|v| !model.contains(v)).collect();
                prop_assert_eq!(ranges.gaps(range).collect::<Vec<_>>(), runs(&absent));
            }
        }
    }
    #[test]
    fn a_capped_set_forgets_its_smallest_ranges() {
        let mut set = RangeSet::with_cap(3);
        for start in (0..100).step_by(10) {
            set.insert(start..start + 1);
            assert!(set.len() <= 3);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [70..71, 80..81, 90..91]);
        // The new range is below all others and there is no room, so it is forgotten at once.
        // Splitting also counts.
        set.insert(5..6);
        assert_eq!(set.first(), Some(70..71));
        set.insert(90..99);
        set.remove(93..95);
        assert_eq!(set.iter().collect::<Vec<_>>(), [80..81, 90..93, 95..99]);
        assert_eq!(set.max(), Some(98));
    }
}
