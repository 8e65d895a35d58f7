//! Finds out that a path loses more or less than it did.

use super::tally::Tally;
use std::collections::VecDeque;

/// How many stretches of packets are remembered, and how many packets each has at least. The change
/// is looked for between them.
const MAX_STRETCHES: usize = 16;
const STRETCH: f64 = 50.0;
/// The fewest packets since a change that prove it.
const FEWEST: f64 = 100.0;
/// The statistic of the likelihood-ratio test above which a change is proven. A comparison of equals
/// exceeds it by chance in one of 15 000 cases, and there are many comparisons.
const PROOF: f64 = 16.0;

/// The same statistic below which two states of a path count as one: equals exceed it in one of 20 cases.
const ALIKE: f64 = 3.84;

/// Whether two sets of packets may have been lost with the same probability.
pub(super) fn is_alike(a: &Tally, b: &Tally) -> bool {
    a.difference(b) < ALIKE
}

/// The newest packets that met an empty queue, in stretches.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Oldest first.
    stretches: VecDeque<Tally>,
}

impl Recent {
    /// Adds the newest packets.
    pub(super) fn add(&mut self, tally: &Tally) {
        match self.stretches.back_mut().filter(|newest| newest.packets < STRETCH) {
            Some(newest) => newest.add(tally),
            None => {
                if self.stretches.len() == MAX_STRETCHES {
                    self.stretches.pop_front();
                }
                self.stretches.push_back(*tally);
            }
        }
    }

    /// Takes back the newest loss.
    pub(super) fn on_refuted(&mut self) {
        if let Some(stretch) = self.stretches.iter_mut().rev().find(|s| s.lost > 0.0) {
            stretch.on_refuted();
        }
    }

    /// If the newest of `all` packets were lost with another probability than earlier packets, returns a
    /// tally of the newest ones, and forgets the others.
    pub(super) fn take_change(&mut self, all: &Tally) -> Option<Tally> {
        if all.lost <= 0.0 && self.stretches.iter().all(|stretch| stretch.lost <= 0.0) {
            // Without losses, no stretch differs from another.
            return None;
        }
        let mut newest = Tally::default();
        let mut best: Option<(f64, usize, Tally)> = None;
        for (index, stretch) in self.stretches.iter().enumerate().rev() {
            newest.add(stretch);
            let proof = newest.difference(&all.without(&newest));
            let enough = newest.packets >= FEWEST && proof > PROOF;
            if enough && best.as_ref().is_none_or(|(most, ..)| proof > *most) {
                best = Some((proof, index, newest));
            }
        }
        let (_, first, newest) = best?;
        self.stretches.drain(..first);
        Some(newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tally of `packets`, of which every `nth` is lost; no packet if `nth` is 0.
    fn tally(packets: u32, nth: u32) -> Tally {
        let mut tally = Tally::default();
        for i in 1..=packets {
            if nth > 0 && i % nth == 0 { tally.on_lost(1) } else { tally.on_acked() }
        }
        tally
    }

    fn play(parts: &[(u32, u32)]) -> (Recent, Option<Tally>) {
        let (mut recent, mut all) = (Recent::default(), Tally::default());
        let mut change = None;
        for (packets, nth) in parts {
            for _ in 0..packets / 100 {
                let part = tally(100, *nth);
                recent.add(&part);
                all.add(&part);
                change = recent.take_change(&all);
            }
        }
        (recent, change)
    }

    #[test]
    fn what_stays_the_same_is_no_change() {
        for nth in [0, 5, 50] {
            assert_eq!(play(&[(5_000, nth)]).1, None, "{nth}");
        }
    }

    #[test]
    fn only_what_came_after_a_change_remains() {
        let (recent, change) = play(&[(2_000, 50), (500, 0)]);
        let change = change.unwrap();
        assert_eq!((change.packets, change.lost), (500.0, 0.0));
        assert_eq!(recent.stretches.len(), 5);
        let (_, change) = play(&[(2_000, 0), (200, 25)]);
        assert_eq!(change.map(|c| (c.packets, c.lost)), Some((200.0, 8.0)));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_losses_are_taken_back() {
        let mut recent = Recent::default();
        (0..1_000).for_each(|_| recent.add(&tally(60, 60)));
        (0..1_000).for_each(|_| recent.add(&tally(1, 0)));
        assert_eq!(recent.stretches.len(), MAX_STRETCHES);
        let lost = |recent: &Recent| recent.stretches.iter().map(|s| s.lost).sum::<f64>();
        recent.add(&tally(60, 60));
        let before = lost(&recent);
        recent.on_refuted();
        assert_eq!(lost(&recent), before - 1.0);
        (0..100).for_each(|_| recent.on_refuted());
        assert_eq!(lost(&recent), 0.0);
    }
}
