//! Counts of packets and losses that fade.

/// The quantile of the normal distribution that nine of ten values stay within.
const Z: f64 = 1.645;

/// Numbers of packets and of losses among them, of which older ones count less.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tally {
    /// Packets whose outcome is known.
    pub(super) packets: f64,
    /// How many of them were lost.
    pub(super) lost: f64,
    /// In how many runs of consecutive packets they were lost.
    pub(super) runs: f64,
}

impl Tally {
    /// Counts a packet that arrived.
    pub(super) fn on_acked(&mut self) {
        self.packets += 1.0;
    }

    /// Counts a lost packet. `begins` if the packet before it was not lost.
    pub(super) fn on_lost(&mut self, begins: bool) {
        self.packets += 1.0;
        self.lost += 1.0;
        self.runs += f64::from(u8::from(begins));
    }

    /// Counts a packet that was counted as lost as one that arrived.
    pub(super) fn on_refuted(&mut self) {
        let left = (self.lost - 1.0).max(0.0);
        self.runs = self.runs.min(left);
        self.lost = left;
    }

    /// Fades by as much as `packets` newer ones push out of a memory of `memory` packets.
    pub(super) fn fade(&mut self, packets: f64, memory: f64) {
        let kept = (1.0 - packets / memory).max(0.0);
        self.packets *= kept;
        self.lost *= kept;
        self.runs *= kept;
    }

    /// Adds the counts of `other`.
    pub(super) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.lost += other.lost;
        self.runs += other.runs;
    }

    /// The share of lost packets; 0 if there are none.
    pub(super) fn rate(&self) -> f64 {
        if self.packets > 0.0 { self.lost / self.packets } else { 0.0 }
    }

    /// How many packets in a row are lost on average.
    pub(super) fn burst(&self) -> f64 {
        if self.runs > 0.0 { (self.lost / self.runs).max(1.0) } else { 1.0 }
    }

    /// Bounds within which the true share lies in nine of ten cases: Wilson's score interval. Losses
    /// of one run are not independent, so a run counts as one observation.
    pub(super) fn interval(&self) -> (f64, f64) {
        let n = self.packets / self.burst();
        if n <= 0.0 {
            return (0.0, 1.0);
        }
        let p = self.rate();
        let z2 = Z * Z;
        let centre = p + z2 / (2.0 * n);
        let spread = Z * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z2 / n;
        (((centre - spread) / scale).max(0.0), ((centre + spread) / scale).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_random::Rng;

    #[test]
    fn nine_of_ten_intervals_hold_the_truth() {
        let mut random = Rng::new(5);
        for share in [0.005, 0.02, 0.1] {
            let mut held = 0;
            for _ in 0..1_000 {
                let mut tally = Tally::default();
                for _ in 0..400 {
                    if random.unit() < share {
                        tally.on_lost(true);
                    } else {
                        tally.on_acked();
                    }
                }
                let (low, high) = tally.interval();
                held += u32::from(low <= share && share <= high);
            }
            assert!((860..=960).contains(&held), "{share}: {held}");
        }
    }

    #[test]
    fn bursts_are_less_certain() {
        let tally = |run: u32| {
            let mut tally = Tally::default();
            (0..40).for_each(|i| tally.on_lost(i % run == 0));
            (0..960).for_each(|_| tally.on_acked());
            tally
        };
        assert_eq!((tally(1).burst(), tally(4).burst()), (1.0, 4.0));
        let width = |tally: Tally| tally.interval().1 - tally.interval().0;
        assert!(width(tally(4)) > 1.8 * width(tally(1)));
        assert_eq!(tally(1).rate(), tally(4).rate());
    }

    #[test]
    fn nothing_known_is_anything_possible() {
        assert_eq!(Tally::default().interval(), (0.0, 1.0));
        let mut tally = Tally::default();
        (0..100).for_each(|_| tally.on_acked());
        let (low, high) = tally.interval();
        assert!(low == 0.0 && (0.02..0.04).contains(&high), "{high}");
    }

    #[test]
    fn old_counts_fade_and_refuted_losses_arrived() {
        let mut tally = Tally { packets: 100.0, lost: 10.0, runs: 10.0 };
        tally.fade(50.0, 200.0);
        assert_eq!(tally, Tally { packets: 75.0, lost: 7.5, runs: 7.5 });
        tally.fade(1e9, 200.0);
        tally.on_lost(true);
        tally.on_refuted();
        tally.on_refuted();
        assert_eq!(tally, Tally { packets: 1.0, lost: 0.0, runs: 0.0 });
    }
}
