//! Lost datagrams that are mended after the loss, because nobody sends them again.
//!
//! Each gets a repair symbol over it alone, which mends it wherever other repair symbols are: a repair symbol over
//! several missing datagrams mends none of them until as many have arrived as datagrams are missing, and what is missing
//! is known here.

use super::model::MOST;
use std::collections::VecDeque;
use std::time::Instant;

/// The most datagrams that wait: no more repair symbols are ever affordable at a time. Beyond this number, the oldest,
/// which has waited longest for its repair symbol, is given up.
const MAX_WAITING: usize = MOST;

/// The datagrams that are to be mended, oldest first.
#[derive(Debug, Default)]
pub(super) struct LostDatagrams {
    ids: VecDeque<u64>,
    /// When the newest was added.
    added: Option<Instant>,
}

impl LostDatagrams {
    /// Adds a datagram, unless it waits already.
    pub(super) fn add(&mut self, now: Instant, id: u64) {
        let place = self.ids.partition_point(|waiting| *waiting < id);
        if self.ids.get(place) == Some(&id) {
            return;
        }
        self.ids.insert(place, id);
        self.added = Some(now);
        if self.ids.len() > MAX_WAITING {
            self.ids.pop_front();
        }
    }

    /// The first that is not below `timely`.
    pub(super) fn first(&self, timely: u64) -> Option<u64> {
        self.ids.iter().copied().find(|id| *id >= timely)
    }

    /// Since when repair symbols are due; `None` if no datagram waits.
    pub(super) fn due(&self) -> Option<Instant> {
        self.added.filter(|_| !self.ids.is_empty())
    }

    /// Forgets those below `timely`, which come too late.
    pub(super) fn expire(&mut self, timely: u64) {
        self.ids.retain(|id| *id >= timely);
    }

    /// Forgets a datagram: a repair symbol over it was sent, or it has arrived.
    pub(super) fn remove(&mut self, id: u64) {
        self.ids.retain(|waiting| *waiting != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_can_be_in_time_goes_first_and_beyond_the_bound_it_is_given_up() {
        let (now, mut lost) = (Instant::now(), LostDatagrams::default());
        assert_eq!((lost.first(0), lost.due()), (None, None));
        let all = MAX_WAITING as u64 + 2;
        (0..all).rev().chain([5, 5]).for_each(|id| lost.add(now, id));
        assert_eq!((lost.ids.len(), lost.first(0), lost.first(9)), (MAX_WAITING, Some(2), Some(9)));
        lost.remove(9);
        lost.expire(9);
        assert_eq!((lost.first(0), lost.due()), (Some(10), Some(now)));
        lost.expire(all);
        assert_eq!((lost.first(0), lost.due()), (None, None));
    }
}
