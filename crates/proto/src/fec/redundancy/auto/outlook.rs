//! What may become of the packets that are sent next: the states in which the path may be, and how likely each is.
//!
//! Redundancy is chosen before its losses are seen. So what counts is not the likeliest share of lost packets, but
//! all that are possible: a share that is known from few packets may be higher, a path whose losses come and go may
//! have changed since the last acknowledgement, and one of which nothing is known may turn out to lose packets.

use super::model::{Channel, MOST, Train, complete};
use crate::loss_floor::{LossFloor, MAX_FLOOR, Regime};
use smallvec::SmallVec;
use std::time::Duration;

/// How many paths of ten of which nothing is known lose packets whatever the rate is, and the share that they lose:
/// what radio links lose in the measurements on which the papers rest.
const LOSSY_PATHS: f64 = 0.2;
const USUAL_LOSS: f64 = 0.02;
/// Up to this many packets without such a loss, it would be worth while to complete a piece that a path of which
/// nothing else is known damages: the probability [`lossy`] is at least [`WORTHWHILE`](super::WORTHWHILE).
pub(super) const UNCERTAIN_FOR: u32 = 158;
/// The weights of the median and of the bounds of an interval of nine in ten cases that stand for a distribution
/// (Pearson and Tukey 1965).
const MEDIAN: f64 = 0.63;
const BOUND: f64 = 0.185;

/// The states in which the path may be, with their probabilities. In the others, whose probability is the rest,
/// nothing is lost.
#[derive(Debug)]
pub(super) struct Outlook(SmallVec<[(f64, Channel); 4]>);

impl Outlook {
    /// The outlook for packets that are sent over a path with this floor of loss, `age` after the newest packets
    /// whose fate is known were sent.
    pub(super) fn new(floor: &LossFloor, age: Duration) -> Self {
        let mut states = SmallVec::new();
        let other = floor.other.filter(|other| other.rate > 0.0 || floor.rate > 0.0);
        let changed = other.map_or(0.0, |other| other.probability(age));
        if let Some(Regime { rate, burst, .. }) = other {
            states.push((changed, Channel::new(&floor.with_rate(rate).with_burst(burst))));
        }
        let present = 1.0 - changed;
        if floor.rate > 0.0 {
            let of = |rate| Channel::new(&floor.with_rate(rate));
            let high = floor.high.min(MAX_FLOOR).max(floor.rate);
            states.push((present * MEDIAN, of(floor.rate)));
            states.push((present * BOUND, of(floor.low.min(floor.rate))));
            states.push((present * BOUND, of(high)));
        } else if other.is_none() {
            states.push((lossy(floor.known), Channel::new(&floor.with_rate(USUAL_LOSS))));
        }
        Self(states)
    }

    /// The probability that the peer has all of `sources` after 0, 1, 2 and up to `most` repair symbols; see
    /// [`complete`].
    pub(super) fn complete(
        &self,
        sources: Train,
        wait: Duration,
        gap: Duration,
        most: usize,
    ) -> impl Iterator<Item = f64> {
        let most = most.min(MOST);
        let rest = 1.0 - self.0.iter().map(|(weight, _)| weight).sum::<f64>();
        let mut chances = [rest.max(0.0); MOST + 1];
        for (weight, channel) in &self.0 {
            let of_state = complete(channel, sources, wait, gap, most);
            chances.iter_mut().zip(of_state).for_each(|(sum, chance)| *sum += weight * chance);
        }
        chances.into_iter().take(most + 1)
    }
}

/// The probability that a path loses packets of which none of `known` packets was lost but by congestion.
fn lossy(known: u32) -> f64 {
    let known = i32::try_from(known).unwrap_or(i32::MAX);
    let lossy = LOSSY_PATHS * (1.0 - USUAL_LOSS).powi(known);
    lossy / (lossy + 1.0 - LOSSY_PATHS)
}

#[cfg(test)]
mod tests {
    use super::super::WORTHWHILE;
    use super::*;

    #[test]
    fn a_path_is_uncertain_while_a_piece_is_worth_completing() {
        assert!(lossy(UNCERTAIN_FOR) >= WORTHWHILE);
        assert!(lossy(UNCERTAIN_FOR + 1) < WORTHWHILE);
    }
}
