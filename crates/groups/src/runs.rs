//! A set of numbers that a peer controls.

use std::collections::BTreeMap;
use std::ops::Range;
use sutura_proto::work;

/// Numbers kept as runs that neither overlap nor touch. A change in the middle is as fast as one at the
/// ends, and takes little longer with many runs.
#[derive(Debug, Default)]
pub(super) struct Runs(BTreeMap<u64, u64>);

impl Runs {
    /// Adds all numbers of `range`.
    pub(super) fn insert(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        let before = self.0.range(..=start).next_back();
        if let Some((&first, &last)) = before.filter(|(_, last)| **last >= start) {
            (start, end) = (first, end.max(last));
        }
        while let Some((&first, &last)) = self.0.range(start + 1..=end).next() {
            work::steps(1);
            self.0.remove(&first);
            end = end.max(last);
        }
        self.0.insert(start, end);
    }

    /// Whether `number` is in it.
    pub(super) fn contains(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, end)| number < *end)
    }

    /// The first number from 0 on that is not in the set.
    pub(super) fn first_gap(&self) -> u64 {
        self.0.get(&0).copied().unwrap_or(0)
    }

    /// Number of runs.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The runs in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().map(|(start, end)| *start..*end)
    }

    /// Removes a run as [`iter`](Self::iter) names it.
    pub(super) fn remove(&mut self, run: &Range<u64>) {
        self.0.remove(&run.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_change_in_the_middle_of_many_runs_moves_none() {
        let mut runs = Runs::default();
        (0..10_000).for_each(|n| runs.insert(2 * n..2 * n + 1));
        work::take_steps();
        runs.insert(10_001..10_002);
        assert_eq!((runs.len(), work::take_steps()), (9_999, 1));
        runs.remove(&(10_000..10_003));
        assert_eq!((runs.len(), runs.contains(10_001), runs.first_gap()), (9_998, false, 1));
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_ranges(ranges in prop::collection::vec((0u64..40, 0u64..6), 0..30)) {
            let (mut runs, mut set) = (Runs::default(), BTreeSet::new());
            for (start, len) in ranges {
                runs.insert(start..start + len);
                set.extend(start..start + len);
                prop_assert!(runs.iter().flatten().eq(set.iter().copied()));
                let begins = |n: &&u64| **n == 0 || !set.contains(&(**n - 1));
                prop_assert_eq!(runs.len(), set.iter().filter(begins).count());
                prop_assert_eq!(runs.is_empty(), set.is_empty());
                let gap = (0..).find(|n| !set.contains(n));
                prop_assert_eq!(Some(runs.first_gap()), gap);
                prop_assert!((0..50).all(|n| runs.contains(n) == set.contains(&n)));
            }
        }
    }
}
