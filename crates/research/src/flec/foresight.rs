//! The losses that a sender expects, and the repair symbols that make up for them.

use sutura_proto::policy::{PathView, View};

/// The share of packets that an unknown path is expected to lose.
const PRIOR_LOSS: f64 = 0.02;
/// How many packets that expectation is worth: after this many packets, the measured losses count as much.
const PRIOR_PACKETS: f64 = 25.0;
/// How many packets it is worth if it comes from earlier connections to the same peer.
const REMEMBERED_PACKETS: f64 = 100.0;
/// How many packets back the share of lost packets looks.
const RECENT_PACKETS: f64 = 256.0;
/// No share above this is planned for: more redundancy would not help a path with such losses.
const MAX_LOSS: f64 = 0.3;
/// With this many standard deviations above the expected losses, repair symbols are too few one time in
/// fifty.
const DEVIATIONS: f64 = 2.05;

/// The share of packets that will be lost, as far as one can tell: the measured losses, and, as long as few
/// packets were measured, losses of earlier connections or experience. From 0 to 0.3.
pub(super) fn expected_loss(path: &PathView) -> f64 {
    let known = path.floor.high < 1.0;
    let (prior, worth) =
        if known { (path.floor.rate, REMEMBERED_PACKETS) } else { (PRIOR_LOSS, PRIOR_PACKETS) };
    // If no packet was ever lost, all outcomes count, as evidence of a path without losses.
    let most = if path.loss > 0.0 { RECENT_PACKETS } else { f64::MAX };
    let seen = (path.outcomes as f64).min(most);
    ((path.loss * seen + prior * worth) / (seen + worth)).min(MAX_LOSS)
}

/// How many of `packets` will be lost, but for one time in fifty: the [expected](expected_loss) losses and
/// their deviations, which grow with the length of bursts.
pub(super) fn most_lost(path: &PathView, packets: f64) -> f64 {
    most_lost_at(packets, expected_loss(path), path.floor.burst)
}

/// Whether the repair symbols in flight are too few to make up for all missing symbols, for coming losses
/// among the symbols in flight, and for lost repair symbols, but for one time in fifty.
pub(super) fn lacks_repairs(view: &View) -> bool {
    let open = view.unacked.saturating_sub(view.missing);
    let lost = most_lost(&view.path, f64::from(open) + f64::from(view.added));
    // Beyond two repair symbols for each source symbol, a copy of every symbol would be cheaper.
    view.added < 2 * view.unacked && f64::from(view.added) < f64::from(view.missing) + lost
}

fn most_lost_at(packets: f64, loss: f64, burst: f64) -> f64 {
    let expected = packets * loss;
    let variance = expected * (1.0 - loss) * (2.0 * burst - 1.0);
    // Half a packet less, because counts are whole numbers (continuity correction).
    (expected + DEVIATIONS * variance.sqrt() - 0.5).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with;
    use sutura_proto::policy::LossFloor;

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
                let most = most_lost_at(packets.into(), loss, 1.0).ceil() as u32;
                let chance = chance_of_more(packets, loss, most.min(packets));
                assert!(chance < 0.045, "{packets}, {loss}: {most}, {chance}");
                // Nor is it much more than it takes.
                let fewer = most.checked_sub(3).map_or(1.0, |m| chance_of_more(packets, loss, m));
                assert!(fewer > 0.02, "{packets}, {loss}: {most}, {fewer}");
            }
        }
        assert!(most_lost_at(100.0, 0.05, 3.0) > most_lost_at(100.0, 0.05, 1.0) + 3.0, "bursts");
    }

    #[test]
    fn experience_gives_way_to_what_is_seen() {
        let at = |loss, outcomes, floor| {
            let path = with(PathView::default(), |path| {
                (path.loss, path.outcomes, path.floor) = (loss, outcomes, floor);
            });
            expected_loss(&path)
        };
        let unknown = LossFloor::default();
        assert_eq!(at(0.0, 0, unknown), PRIOR_LOSS);
        assert!((at(0.08, 25, unknown) - 0.05).abs() < 1e-9);
        assert!((at(0.08, 1 << 40, unknown) - 0.08).abs() < 0.01);
        assert!(at(0.0, 5_000, unknown) < 1e-3, "nothing was ever lost");
        let remembered = with(unknown, |floor| {
            (floor.rate, floor.low, floor.high) = (0.04, 0.02, 0.06);
        });
        assert!((at(0.0, 0, remembered) - 0.04).abs() < 1e-9);
        assert_eq!(at(1.0, 1 << 40, unknown), MAX_LOSS);
    }
}
