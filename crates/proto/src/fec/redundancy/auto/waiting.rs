//! When the data that no repair symbol covers yet was sent.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The most parts that are told apart; later ones count as sent with the last of these, so that their
/// repair symbols leave early rather than late.
const MAX_PARTS: usize = 64;

/// The data between two pauses of the application.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The symbol after the last one of the part.
    end: u64,
    /// When the first symbol of the part was sent.
    begun: Instant,
}

/// The parts of the data that no repair symbol covers yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct Waiting(VecDeque<Part>);

impl Waiting {
    /// Symbol `id` was sent, the first one since the application paused if it is `fresh`.
    pub(super) fn on_sent(&mut self, now: Instant, id: u64, fresh: bool) {
        let end = id + 1;
        let full = self.0.len() >= MAX_PARTS;
        match self.0.back_mut().filter(|_| !fresh || full) {
            Some(part) => part.end = end,
            None => self.0.push_back(Part { end, begun: now }),
        }
    }

    /// A repair symbol covers all symbols below `end`, or they have arrived.
    pub(super) fn settle(&mut self, end: u64) {
        while self.0.front().is_some_and(|part| part.end <= end) {
            self.0.pop_front();
        }
    }

    /// The first of these times that is not before `now`: `within` after each part was sent. What is later
    /// than that can no longer be in time.
    pub(super) fn deadline(&self, now: Instant, within: Duration) -> Option<Instant> {
        let mut deadlines = self.0.iter().map(|part| part.begun + within);
        deadlines.find(|deadline| *deadline >= now)
    }

    /// Forgets all parts.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_part_that_can_be_in_time_has_the_first_deadline() {
        let (start, mut waiting) = (Instant::now(), Waiting::default());
        let deadline = |waiting: &Waiting, ms: u32| {
            let deadline = waiting.deadline(start + MS * ms, 100 * MS);
            deadline.map(|at| (at - start).as_millis())
        };
        assert_eq!(deadline(&waiting, 0), None);
        for (id, ms, fresh) in [(0, 0, true), (1, 5, false), (2, 20, true), (3, 40, true)] {
            waiting.on_sent(start + MS * ms, id, fresh);
        }
        assert_eq!(deadline(&waiting, 50), Some(100));
        waiting.settle(1);
        assert_eq!(deadline(&waiting, 50), Some(100), "symbol 1 has not arrived");
        waiting.settle(2);
        assert_eq!(deadline(&waiting, 50), Some(120));
        assert_eq!(deadline(&waiting, 121), Some(140), "the part before is late");
        assert_eq!(deadline(&waiting, 141), None);
    }

    #[test]
    fn parts_are_bounded_and_the_last_one_takes_in_what_is_beyond() {
        let (start, mut waiting) = (Instant::now(), Waiting::default());
        for id in 0..10 * MAX_PARTS as u64 {
            waiting.on_sent(start + MS * id as u32, id, true);
        }
        assert_eq!(waiting.0.len(), MAX_PARTS);
        let last = MAX_PARTS as u64 - 1;
        waiting.settle(last);
        assert_eq!(waiting.deadline(start, Duration::ZERO), Some(start + MS * last as u32));
        waiting.settle(10 * MAX_PARTS as u64);
        assert_eq!(waiting.deadline(start, Duration::ZERO), None);
    }
}
