//! Packets that an application sends at once, now and then.
//!
//! Such packets wait for each other at the bottleneck. That queue is gone before the next of them
//! come, and has nothing to do with what is lost, so its first packet tells whether there was a queue
//! before.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Clumps that are remembered.
const MAX_CLUMPS: usize = 64;
/// A clump is sent within this part of a round trip.
const LONGEST_DIVISOR: u32 = 8;

#[derive(Debug)]
struct Clump {
    first: Instant,
    last: Instant,
    /// What its first packet that arrived says of the queue.
    empty: Option<bool>,
}

/// The newest clumps, oldest first.
#[derive(Debug, Default)]
pub(super) struct Clumps {
    list: VecDeque<Clump>,
    /// Whether the newest packet belongs to the newest clump.
    open: bool,
}

impl Clumps {
    /// Handles a packet that is sent; `limited` if the application does not fill the window.
    pub(super) fn on_sent(&mut self, now: Instant, rtt: Duration, limited: bool) {
        let newest = self.list.back_mut().filter(|_| self.open && limited);
        let longest = rtt / LONGEST_DIVISOR;
        if let Some(clump) =
            newest.filter(|clump| now.saturating_duration_since(clump.first) <= longest)
        {
            clump.last = now;
            return;
        }
        self.open = limited;
        if limited {
            if self.list.len() == MAX_CLUMPS {
                self.list.pop_front();
            }
            self.list.push_back(Clump { first: now, last: now, empty: None });
        }
    }

    fn index(&self, sent: Instant) -> Option<usize> {
        let index = self.list.partition_point(|clump| clump.first <= sent).checked_sub(1)?;
        self.list.get(index).filter(|clump| sent <= clump.last).map(|_| index)
    }

    /// Whether a packet that was sent at `sent` and arrived found the queue empty: what itself says is
    /// `own`.
    pub(super) fn on_arrived(&mut self, sent: Instant, own: Option<bool>) -> Option<bool> {
        let Some(clump) = self.index(sent).and_then(|index| self.list.get_mut(index)) else {
            return own;
        };
        if clump.empty.is_none() {
            clump.empty = own;
        }
        clump.empty
    }

    /// The same for a packet that was lost; `None` if it is not known.
    pub(super) fn was_empty(&self, sent: Instant) -> Option<bool> {
        self.list.get(self.index(sent)?)?.empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_that_arrives_speaks_for_all() {
        let (start, mut clumps) = (Instant::now(), Clumps::default());
        let at = |ms: u32| start + MS * ms;
        for ms in [0, 1, 2, 20, 21] {
            clumps.on_sent(at(ms), 80 * MS, true);
        }
        assert_eq!(clumps.on_arrived(at(1), Some(true)), Some(true));
        assert_eq!(clumps.on_arrived(at(2), Some(false)), Some(true), "it waits for the others");
        assert_eq!(clumps.on_arrived(at(20), Some(false)), Some(false), "there was a queue");
        assert_eq!(clumps.on_arrived(at(21), Some(true)), Some(false));
        assert_eq!((clumps.was_empty(at(0)), clumps.was_empty(at(10))), (Some(true), None));
    }

    #[test]
    fn a_sender_that_fills_the_window_has_none() {
        let (start, mut clumps) = (Instant::now(), Clumps::default());
        clumps.on_sent(start, 80 * MS, true);
        clumps.on_sent(start + MS, 80 * MS, false);
        clumps.on_sent(start + 2 * MS, 80 * MS, true);
        assert_eq!(clumps.list.len(), 2);
        assert_eq!(clumps.on_arrived(start + MS, Some(false)), Some(false));
        assert_eq!(clumps.on_arrived(start, Some(true)), Some(true));
        assert_eq!(clumps.was_empty(start + 2 * MS), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut now, mut clumps) = (Instant::now(), Clumps::default());
        for _ in 0..1_000 {
            now += 80 * MS;
            clumps.on_sent(now, 80 * MS, true);
        }
        assert_eq!(clumps.list.len(), MAX_CLUMPS);
        clumps.on_sent(now + 10 * MS, 80 * MS, true);
        assert_eq!(
            clumps.list.len(),
            MAX_CLUMPS,
            "all that is sent within ten milliseconds is one"
        );
    }
}
