//! A ring buffer of ranges in which a single range needs no allocation.

use std::collections::VecDeque;
use std::ops::Range;

/// Ranges in ascending order. Most sets hold one range: the bytes of a stream that arrived in order.
#[derive(Debug, Clone)]
pub(super) enum Ranges {
    /// At most one range.
    One(Option<Range<u64>>),
    /// Any number of ranges. Stays, so that a set that shrinks and grows does not allocate each time.
    Many(VecDeque<Range<u64>>),
}

impl Default for Ranges {
    fn default() -> Self {
        Self::One(None)
    }
}

impl Ranges {
    /// Number of ranges.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(range) => usize::from(range.is_some()),
            Self::Many(ranges) => ranges.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&Range<u64>> {
        match self {
            Self::One(range) => range.as_ref().filter(|_| index == 0),
            Self::Many(ranges) => ranges.get(index),
        }
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Range<u64>> {
        match self {
            Self::One(range) => range.as_mut().filter(|_| index == 0),
            Self::Many(ranges) => ranges.get_mut(index),
        }
    }

    /// The last range.
    #[inline]
    pub(super) fn last_mut(&mut self) -> Option<&mut Range<u64>> {
        match self {
            Self::One(range) => range.as_mut(),
            Self::Many(ranges) => ranges.back_mut(),
        }
    }

    /// Index of the first range that ends after `value`.
    pub(super) fn position(&self, value: u64) -> usize {
        match self {
            Self::One(range) => usize::from(range.as_ref().is_some_and(|range| range.end <= value)),
            Self::Many(ranges) => ranges.partition_point(|range| range.end <= value),
        }
    }

    /// Inserts a range in front of the range with this index.
    pub(super) fn insert(&mut self, index: usize, new: Range<u64>) {
        match self {
            Self::One(range) => match range.take() {
                None => *range = Some(new),
                Some(held) if index == 0 => *self = Self::Many(VecDeque::from([new, held])),
                Some(held) => *self = Self::Many(VecDeque::from([held, new])),
            },
            Self::Many(ranges) => ranges.insert(index, new),
        }
    }

    /// Removes the ranges with these indices.
    pub(super) fn remove(&mut self, indices: Range<usize>) {
        match self {
            Self::One(range) => {
                range.take_if(|_| indices.contains(&0));
            }
            Self::Many(ranges) => drop(ranges.drain(indices)),
        }
    }
}
