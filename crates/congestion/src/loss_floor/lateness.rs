//! Packets that arrive late because the path reorders them.
//!
//! To an application, a packet that arrives long after those that were sent with it is as bad as a lost one that is
//! sent again. The loss of packets does not count it: it arrives in the end.

use super::tally::Tally;
use std::time::Duration;

/// By how much a packet is later than others to be late: what no application notices, as with retransmissions.
const NOTICED: Duration = Duration::from_millis(10);
/// The weight of a late packet in the mean of how late they are, as a divisor.
const WEIGHT: u32 = 16;

/// How many packets are late.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// Packets that arrived and late ones since the tally was brought up to date.
    arrived: u32,
    late: u32,
    /// Late packets count as lost.
    tally: Tally,
    /// By how much late packets are late, on average.
    by: Duration,
}

impl Lateness {
    /// Counts a packet that arrived in order.
    #[inline]
    pub(super) fn on_arrived(&mut self) {
        self.arrived += 1;
    }

    /// Counts a packet that later ones overtook: it took `beyond` longer than the newest of these.
    pub(super) fn on_overtaken(&mut self, beyond: Duration) {
        self.arrived += 1;
        if beyond < NOTICED {
            return;
        }
        self.late += 1;
        self.by =
            if self.by.is_zero() { beyond } else { self.by - self.by / WEIGHT + beyond / WEIGHT };
    }

    /// Brings the tally up to date, with a memory of so many packets.
    pub(super) fn update(&mut self, memory: f64) {
        let (arrived, late) = (std::mem::take(&mut self.arrived), std::mem::take(&mut self.late));
        let [packets, lost] = [arrived, late].map(f64::from);
        if late == 0 && self.tally.lost <= 0.0 {
            // Spares paths that reorder nothing the other counts.
            self.tally.packets = (self.tally.packets + packets).min(memory);
            return;
        }
        self.tally.fade(packets, memory);
        // They are late one by one: what holds up several in a row does not reorder them.
        self.tally.add(&Tally { packets, lost, runs: lost, squares: lost });
    }

    /// The share of late packets, once the fates of `confident` packets are known, and by how much they are late.
    pub(super) fn get(&self, confident: f64) -> (f64, Duration) {
        (self.tally.lost / self.tally.packets.max(confident), self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn only_those_that_are_noticed_are_late() {
        let mut lateness = Lateness::default();
        for packet in 0..1_000 {
            match packet % 50 {
                0 => lateness.on_overtaken(20 * MS),
                1 => lateness.on_overtaken(5 * MS),
                _ => lateness.on_arrived(),
            }
        }
        assert_eq!(lateness.get(100.0).0, 0.0, "not up to date");
        lateness.update(2_000.0);
        assert_eq!(lateness.get(100.0), (0.02, 20 * MS));
    }

    #[test]
    fn what_was_late_long_ago_is_forgotten() {
        let mut lateness = Lateness::default();
        lateness.on_overtaken(20 * MS);
        lateness.update(2_000.0);
        assert_eq!(lateness.get(100.0).0, 0.01);
        (0..2_000).for_each(|_| lateness.on_arrived());
        lateness.update(2_000.0);
        assert_eq!(lateness.get(100.0).0, 0.0);
    }
}
