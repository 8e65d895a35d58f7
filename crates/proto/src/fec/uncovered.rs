//! The source symbols of a session that no repair symbol covers yet, by deadline.

use std::collections::BTreeMap;
use std::time::Instant;

/// Counts symbols that are not known to have arrived, that no repair symbol covers, and that can
/// still be in time. The window bounds their number.
#[derive(Debug, Default)]
pub(crate) struct Uncovered {
    /// Symbols below this are covered.
    start: u64,
    /// How many symbols must be at the receiver by each time. No time is before `expired`.
    dated: BTreeMap<Instant, u32>,
    /// How many symbols have no deadline.
    undated: u32,
    /// How many symbols have a deadline.
    count: u32,
    /// Symbols that must be at the receiver before this time come too late.
    expired: Option<Instant>,
}

impl Uncovered {
    /// The first symbol that may be uncovered.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The number of symbols.
    pub(crate) fn count(&self) -> u32 {
        self.undated + self.count
    }

    /// The earliest deadline.
    pub(crate) fn earliest(&self) -> Option<Instant> {
        self.dated.first_key_value().map(|(deadline, _)| *deadline)
    }

    /// A symbol was sent.
    pub(crate) fn add(&mut self, deadline: Option<Instant>) {
        match deadline {
            None => self.undated += 1,
            Some(deadline) if self.expired.is_none_or(|expired| deadline >= expired) => {
                *self.dated.entry(deadline).or_default() += 1;
                self.count += 1;
            }
            Some(_) => {}
        }
    }

    /// Symbol `id` with this deadline was sent before, and is settled or covered now.
    pub(crate) fn remove(&mut self, id: u64, deadline: Option<Instant>) {
        if id < self.start {
            return;
        }
        let Some(deadline) = deadline else {
            self.undated -= 1;
            return;
        };
        let Some(count) = self.dated.get_mut(&deadline) else { return };
        self.count -= 1;
        *count -= 1;
        if *count == 0 {
            self.dated.remove(&deadline);
        }
    }

    /// Repair symbols cover all symbols below `end`, which were removed before.
    pub(crate) fn cover(&mut self, end: u64) {
        self.start = self.start.max(end);
    }

    /// Repair symbols cover all symbols that were sent, those below `end`.
    pub(crate) fn cover_all(&mut self, end: u64) {
        self.dated.clear();
        (self.undated, self.count) = (0, 0);
        self.cover(end);
    }

    /// Forgets the symbols whose deadline is before `time`.
    pub(crate) fn expire(&mut self, time: Instant) {
        if self.expired.is_some_and(|expired| expired >= time) {
            return;
        }
        self.expired = Some(time);
        while let Some(first) = self.dated.first_entry().filter(|entry| *entry.key() < time) {
            self.count -= first.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_earliest_deadline_is_of_what_is_neither_covered_nor_settled_nor_late() {
        let now = Instant::now();
        let at = |ms| Some(now + Duration::from_millis(ms));
        let mut uncovered = Uncovered::default();
        // Symbols 0 to 4.
        for deadline in [at(30), None, at(10), at(10), at(20)] {
            uncovered.add(deadline);
        }
        assert_eq!((uncovered.count(), uncovered.earliest()), (5, at(10)));
        uncovered.remove(2, at(10));
        assert_eq!((uncovered.count(), uncovered.earliest()), (4, at(10)));
        uncovered.expire(now + Duration::from_millis(11));
        assert_eq!((uncovered.count(), uncovered.earliest()), (3, at(20)));
        // Late symbols no longer count, whether they are settled now or sent only now.
        uncovered.remove(3, at(10));
        uncovered.add(at(10));
        uncovered.remove(5, at(10));
        assert_eq!((uncovered.count(), uncovered.earliest()), (3, at(20)));
        for (id, deadline) in [(0, at(30)), (1, None), (4, at(20))] {
            uncovered.remove(id, deadline);
        }
        uncovered.cover(6);
        assert_eq!((uncovered.count(), uncovered.earliest()), (0, None));
        uncovered.remove(1, None);
        uncovered.add(at(40));
        assert_eq!((uncovered.count(), uncovered.earliest()), (1, at(40)));
        uncovered.add(None);
        uncovered.cover_all(8);
        assert_eq!((uncovered.count(), uncovered.earliest(), uncovered.start()), (0, None, 8));
        uncovered.remove(6, at(40));
        uncovered.remove(7, None);
        uncovered.add(at(50));
        assert_eq!((uncovered.count(), uncovered.earliest()), (1, at(50)));
    }
}
