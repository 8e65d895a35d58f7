//! A set of integers as sorted half-open ranges, for the bookkeeping of one stream.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of `u64` kept as disjoint, non-adjacent ranges in ascending order.
///
/// A stream's bytes are acknowledged, lost and received mostly in order, so that work happens at
/// either end; a ring makes both ends cheap, and an empty set holds no memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    ranges: VecDeque<Range<u64>>,
}

impl Ranges {
    /// Number of disjoint ranges.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the set has no members.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The lowest range.
    pub(super) fn first(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// Takes the lowest range out.
    #[cfg(test)]
    pub(super) fn pop_first(&mut self) -> Option<Range<u64>> {
        self.ranges.pop_front()
    }

    /// All ranges in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().cloned()
    }

    /// Removes every member and gives the memory back.
    pub(super) fn clear(&mut self) {
        self.ranges = VecDeque::new();
    }

    /// Index of the first range that ends after `value`.
    fn position(&self, value: u64) -> usize {
        self.ranges.partition_point(|range| range.end <= value)
    }

    /// The range that holds `value`.
    pub(super) fn range_of(&self, value: u64) -> Option<Range<u64>> {
        self.ranges.get(self.position(value)).filter(|range| range.start <= value).cloned()
    }

    /// Whether `value` is a member.
    pub(super) fn contains(&self, value: u64) -> bool {
        self.range_of(value).is_some()
    }

    /// Whether every value of `range` is a member.
    pub(super) fn contains_range(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.range_of(range.start).is_some_and(|held| held.end >= range.end)
    }

    /// Adds every value of `range`; returns how many were not members before.
    pub(super) fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        // Ranges that overlap or touch the new one: they merge into one.
        let from = self.ranges.partition_point(|held| held.end < range.start);
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
                self.ranges.drain(from + 1..to);
            }
            _ => self.ranges.insert(from, merged),
        }
        range.end - range.start - present
    }

    /// Removes every value of `range`; returns how many were members before.
    pub(super) fn remove(&mut self, range: Range<u64>) -> u64 {
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
            // The cut may be in the middle of one range, which then becomes two.
            (Some(head), Some(tail)) if to == from + 1 => {
                if let Some(slot) = self.ranges.get_mut(from) {
                    *slot = head;
                }
                self.ranges.insert(to, tail);
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
                self.ranges.drain(from..to);
            }
        }
        removed
    }

    /// The parts of `range` that are not members, in ascending order.
    pub(super) fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
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
            let mut ranges = Ranges::default();
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
                        let expected = runs(&model).first().cloned();
                        if let Some(first) = &expected {
                            first.clone().for_each(|v| { model.remove(&v); });
                        }
                        prop_assert_eq!(ranges.pop_first(), expected);
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
                let absent: BTreeSet<_> = range.clone().filter(|v| !model.contains(v)).collect();
                prop_assert_eq!(ranges.gaps(range).collect::<Vec<_>>(), runs(&absent));
            }
        }
    }
}
