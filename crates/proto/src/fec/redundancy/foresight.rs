//! What a sender expects to be lost, and how many repair symbols make up for it.

use super::{PathView, View};

/// The share of packets that a path is expected to lose of which nothing is known.
const PRIOR_LOSS: f64 = 0.02;
/// How many packets that expectation is worth: after as many, what was seen counts as much.
const PRIOR_PACKETS: f64 = 25.0;
/// How many packets it is worth if it comes from earlier connections to the same peer.
const REMEMBERED_PACKETS: f64 = 100.0;
/// How many packets back the share of lost packets looks.
const RECENT_PACKETS: f64 = 256.0;
/// No share above this is planned for: more redundancy would not help a path that loses so much.
const MAX_LOSS: f64 = 0.3;
/// With this many standard deviations in addition to what is expected, one time in fifty is too few.
const DEVIATIONS: f64 = 2.05;

impl PathView {
    /// The share of packets that will be lost, as far as one can tell: what was seen, and, as long as
    /// that is little, what earlier connections or experience say. From 0 to 0.3.
    #[must_use]
    pub fn expected_loss(&self) -> f64 {
        let known = self.floor.high < 1.0;
        let (prior, worth) =
            if known { (self.floor.rate, REMEMBERED_PACKETS) } else { (PRIOR_LOSS, PRIOR_PACKETS) };
        // Without any loss, everything ever seen speaks for a path that loses nothing.
        let most = if self.loss > 0.0 { RECENT_PACKETS } else { f64::MAX };
        let seen = (self.outcomes as f64).min(most);
        ((self.loss * seen + prior * worth) / (seen + worth)).min(MAX_LOSS)
    }

    /// How many of `packets` will be lost, but for one time in fifty: what is
    /// [expected](Self::expected_loss) and its deviations, which grow with the length of bursts.
    #[must_use]
    pub fn most_lost(&self, packets: f64) -> f64 {
        most_lost(packets, self.expected_loss(), self.floor.burst)
    }
}

impl View {
    /// Whether the repair symbols in flight are too few to make up for all that is missing, for what
    /// is yet going to be lost of the symbols in flight, and for those of them that are lost
    /// themselves, but for one time in fifty.
    #[must_use]
    pub fn lacks_repairs(&self) -> bool {
        let open = self.unacked.saturating_sub(self.missing);
        let lost = self.path.most_lost(f64::from(open) + f64::from(self.added));
        // Beyond two for each symbol, a copy of every symbol would be cheaper.
        self.added < 2 * self.unacked && f64::from(self.added) < f64::from(self.missing) + lost
    }
}

fn most_lost(packets: f64, loss: f64, burst: f64) -> f64 {
    let expected = packets * loss;
    let variance = expected * (1.0 - loss) * (2.0 * burst - 1.0);
    // Counts are whole numbers: half a packet is the rounding.
    (expected + DEVIATIONS * variance.sqrt() - 0.5).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::LossFloor;

    /// The probability that more than `most` of `packets` independent packets are lost.
    fn chance_of_more(packets: u32, loss: f64, most: u32) -> f64 {
        let mut term = (1.0 - loss).powi(packets as i32);
        let mut sum = term;
        for lost in 1..=most {
            term *= f64::from(packets - lost + 1) / f64::from(lost) * loss / (1.0 - loss);
            sum += term;
        }
        1.0 - sum
    }

    #[test]
    fn more_is_lost_one_time_in_fifty() {
        for packets in [5, 10, 30, 100, 500] {
            for loss in [0.001, 0.01, 0.03, 0.08, 0.2] {
                let most = most_lost(packets.into(), loss, 1.0).ceil() as u32;
                let chance = chance_of_more(packets, loss, most.min(packets));
                assert!(chance < 0.045, "{packets}, {loss}: {most}, {chance}");
                // Nor is it much more than it takes.
                let fewer = most.checked_sub(3).map_or(1.0, |m| chance_of_more(packets, loss, m));
                assert!(fewer > 0.02, "{packets}, {loss}: {most}, {fewer}");
            }
        }
        assert!(most_lost(100.0, 0.05, 3.0) > most_lost(100.0, 0.05, 1.0) + 3.0, "bursts");
    }

    #[test]
    fn experience_gives_way_to_what_is_seen() {
        let at = |loss, outcomes, floor| {
            PathView { loss, outcomes, floor, ..PathView::default() }.expected_loss()
        };
        let unknown = LossFloor::default();
        assert_eq!(at(0.0, 0, unknown), PRIOR_LOSS);
        assert!((at(0.08, 25, unknown) - 0.05).abs() < 1e-9);
        assert!((at(0.08, 1 << 40, unknown) - 0.08).abs() < 0.01);
        assert!(at(0.0, 5_000, unknown) < 1e-3, "nothing was ever lost");
        let remembered = LossFloor { rate: 0.04, low: 0.02, high: 0.06, ..unknown };
        assert!((at(0.0, 0, remembered) - 0.04).abs() < 1e-9);
        assert_eq!(at(1.0, 1 << 40, unknown), MAX_LOSS);
    }
}
