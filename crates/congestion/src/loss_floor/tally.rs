//! Counts of packets and losses that fade.

use super::MEMORY;

/// The quantile of the normal distribution that nine of ten values stay within.
const Z: f64 = 1.645;
/// A run of losses that was not seen, but might have been: the next losses may come in runs.
const SUSPECTED: Tally = Tally { packets: 0.0, lost: 3.0, runs: 1.0, squares: 9.0 };

/// Numbers of packets and of losses among them. Older packets count less.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tally {
    /// Packets whose outcome is known.
    pub(super) packets: f64,
    /// How many of them were lost.
    pub(super) lost: f64,
    /// In how many runs of consecutive packets they were lost.
    pub(super) runs: f64,
    /// The sum of the squares of the lengths of the runs.
    pub(super) squares: f64,
}

impl Tally {
    /// Counts a packet that arrived.
    pub(super) fn on_acked(&mut self) {
        self.packets += 1.0;
    }

    /// Counts a lost packet, the `nth` in a row.
    pub(super) fn on_lost(&mut self, nth: u32) {
        self.packets += 1.0;
        self.lost += 1.0;
        self.runs += f64::from(u8::from(nth <= 1));
        // By which the square of the run's length grows.
        self.squares += 2.0 * f64::from(nth.max(1)) - 1.0;
    }

    /// Counts a packet that was counted as lost as arrived instead.
    pub(super) fn on_refuted(&mut self) {
        let left = (self.lost - 1.0).max(0.0);
        self.squares *= if left > 0.0 { left / self.lost } else { 0.0 };
        self.runs = self.runs.min(left);
        self.lost = left;
    }

    /// Fades as much as a memory of `memory` packets does when `packets` newer packets enter it.
    pub(super) fn fade(&mut self, packets: f64, memory: f64) {
        let kept = (1.0 - packets / memory).max(0.0);
        self.packets *= kept;
        self.lost *= kept;
        self.runs *= kept;
        self.squares *= kept;
    }

    /// Adds newer counts, so that no more than [`MEMORY`] packets are remembered.
    pub(super) fn fade_and_add(&mut self, newer: &Self) {
        self.fade(newer.packets, MEMORY);
        self.add(newer);
    }

    /// The same shares as evidence of at most so many packets.
    pub(super) fn at_most(mut self, packets: f64) -> Self {
        let surplus = (self.packets - packets).max(0.0);
        self.fade(surplus, self.packets.max(1.0));
        self
    }

    /// Adds the counts of `other`.
    pub(super) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.lost += other.lost;
        self.runs += other.runs;
        self.squares += other.squares;
    }

    /// The packets without `part`, which may have faded less.
    pub(super) fn without(&self, part: &Self) -> Self {
        let lost = (self.lost - part.lost).max(0.0);
        Self {
            packets: (self.packets - part.packets).max(lost),
            lost,
            runs: (self.runs - part.runs).max(0.0),
            squares: (self.squares - part.squares).max(0.0),
        }
    }

    /// How much the shares of losses of two sets of packets differ: twice the logarithm of how many
    /// times as likely the losses are with a share for each than with a common share (Wilks), less if losses
    /// come in runs.
    pub(super) fn difference(&self, other: &Self) -> f64 {
        let mut both = *self;
        both.add(other);
        if both.lost <= 0.0 {
            // Spares paths without losses the logarithms.
            return 0.0;
        }
        let gain = |part: &Self| {
            let term = |count: f64, own: f64, common: f64| {
                if count > 0.0 { count * (own / common).ln() } else { 0.0 }
            };
            let (own, common) = (part.rate(), both.rate());
            term(part.lost, own, common) + term(part.packets - part.lost, 1.0 - own, 1.0 - common)
        };
        2.0 * (gain(self) + gain(other)) / both.dispersion()
    }

    /// The share of lost packets; 0 if there are none.
    pub(super) fn rate(&self) -> f64 {
        if self.packets > 0.0 { self.lost / self.packets } else { 0.0 }
    }

    /// How many packets in a row are lost on average.
    pub(super) fn burst(&self) -> f64 {
        if self.runs > 0.0 { (self.lost / self.runs).max(1.0) } else { 1.0 }
    }

    /// How many times as much the number of losses varies as if they were independent: the mean
    /// square of the runs' lengths over their mean. The fewer runs were seen, the more the true lengths may
    /// differ from the lengths seen.
    fn dispersion(&self) -> f64 {
        if self.lost <= 0.0 {
            return 1.0;
        }
        let surplus = (self.squares / self.lost - 1.0).max(0.0);
        1.0 + surplus * (1.0 + 1.0 / self.runs.max(1.0))
    }

    /// Bounds within which the true share lies in nine of ten cases: Wilson's score interval, with as many
    /// packets as would be equal evidence if losses were independent. As long as few runs are known, they are
    /// assumed to be long.
    pub(super) fn interval(&self) -> (f64, f64) {
        let mut cautious = *self;
        cautious.add(&SUSPECTED);
        let n = self.packets / cautious.dispersion();
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
                        tally.on_lost(1);
                    } else {
                        tally.on_acked();
                    }
                }
                let (low, high) = tally.interval();
                held += u32::from(low <= share && share <= high);
            }
            assert!((860..=990).contains(&held), "{share}: {held}");
        }
    }

    #[test]
    fn they_do_on_gilbert_channels_too() {
        for (share, burst, packets) in [0.005, 0.0235, 0.1].into_iter().flat_map(|share| {
            [1.0, 2.0, 4.0]
                .into_iter()
                .flat_map(move |burst| [100, 400, 2_000].map(|packets| (share, burst, packets)))
        }) {
            let held = (0..1_000).filter(|seed| {
                let (mut random, mut tally) = (Rng::new(*seed), Tally::default());
                let r = 1.0 / burst;
                let p = share * r / (1.0 - share);
                let (mut bad, mut run) = (random.unit() < share, 0);
                for _ in 0..packets {
                    run = if bad { run + 1 } else { 0 };
                    if bad {
                        tally.on_lost(run);
                    } else {
                        tally.on_acked();
                    }
                    bad = random.unit() < if bad { 1.0 - r } else { p };
                }
                let (low, high) = tally.interval();
                low <= share && share <= high
            });
            let held = held.count();
            println!("{share} in runs of {burst}, {packets} packets: {held} of 1000");
            assert!(held >= 850);
        }
    }

    #[test]
    fn bursts_are_less_certain() {
        let tally = |run: u32| {
            let mut tally = Tally::default();
            (0..40).for_each(|i| tally.on_lost(i % run + 1));
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
        assert!(low == 0.0 && (0.1..0.13).contains(&high), "{high}");
    }

    #[test]
    fn old_counts_fade_and_refuted_losses_arrived() {
        let mut tally = Tally { packets: 100.0, lost: 10.0, runs: 10.0, squares: 10.0 };
        tally.fade(50.0, 200.0);
        assert_eq!(tally, Tally { packets: 75.0, lost: 7.5, runs: 7.5, squares: 7.5 });
        tally.fade(1e9, 200.0);
        tally.on_lost(1);
        tally.on_refuted();
        tally.on_refuted();
        assert_eq!(tally, Tally { packets: 1.0, ..Tally::default() });
    }
}
