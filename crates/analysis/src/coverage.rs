//! Which bytes of a sequence have arrived.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of byte positions, kept as ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Coverage {
    /// Start to end of each range.
    ranges: BTreeMap<u64, u64>,
    bytes: u64,
}

impl Coverage {
    /// Adds a range, and appends the parts of it that are new to `new`, in order.
    pub(crate) fn insert(&mut self, range: Range<u64>, new: &mut Vec<Range<u64>>) {
        new.clear();
        let Range { mut start, end } = range;
        if start >= end {
            return;
        }
        let mut merged = start..end;
        if let Some((&before, &before_end)) = self.ranges.range(..=start).next_back()
            && before_end >= start
        {
            merged = before..end.max(before_end);
            start = start.max(before_end);
            self.ranges.remove(&before);
        }
        while let Some((&next, &next_end)) = self.ranges.range(merged.start..).next()
            && next <= end
        {
            if start < next {
                new.push(start..next);
            }
            start = start.max(next_end);
            merged.end = merged.end.max(next_end);
            self.ranges.remove(&next);
        }
        if start < end {
            new.push(start..end);
        }
        self.bytes = self.bytes.saturating_add(length(new));
        self.ranges.insert(merged.start, merged.end);
    }

    /// The end of the contiguous run of bytes from position 0.
    pub(crate) fn contiguous(&self) -> u64 {
        self.ranges.get(&0).copied().unwrap_or(0)
    }

    /// The end of the last byte.
    pub(crate) fn highest(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, end)| *end)
    }

    /// The number of bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Total length of disjoint ranges, in bytes.
pub(crate) fn length(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|r| r.end.saturating_sub(r.start)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_of_positions(ranges in prop::collection::vec((0u64..60, 0u64..20), 0..30)) {
            let mut coverage = Coverage::default();
            let mut naive = BTreeSet::new();
            let mut new = Vec::new();
            for (start, length) in ranges {
                coverage.insert(start..start + length, &mut new);
                let parts: Vec<u64> = new.iter().cloned().flatten().collect();
                let expected: Vec<u64> =
                    (start..start + length).filter(|n| naive.insert(*n)).collect();
                prop_assert_eq!(parts, expected);
                let contiguous = (0..).take_while(|n| naive.contains(n)).count();
                prop_assert_eq!(coverage.contiguous(), contiguous as u64);
                prop_assert_eq!(coverage.highest(), naive.last().map_or(0, |n| n + 1));
                prop_assert_eq!(coverage.bytes(), naive.len() as u64);
                let ends = coverage.ranges.values();
                let starts = coverage.ranges.keys().skip(1);
                prop_assert!(ends.zip(starts).all(|(end, start)| end < start));
            }
        }
    }
}
