//! How likely repair symbols are to mend losses, on a channel whose losses come in bursts.

use crate::loss_floor::LossFloor;
use std::time::Duration;

/// The most repair symbols that are considered at a time.
pub(super) const MOST: usize = 32;
/// The most source symbols that are considered; further symbols of a longer run are left out.
const MOST_SOURCES: u32 = 256;
/// The most losses that count as mendable.
const MOST_LOST: usize = 2 * MOST;

/// A channel that remembers for a while whether it lost the packet before (Gilbert's model).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Channel {
    /// The share of lost packets.
    loss: f64,
    /// How much the fate of a packet depends on the fate of the packet right before it: 0 if not at all, 1 if
    /// both fates are the same.
    memory: f64,
    /// How long the memory lasts on average.
    time: Duration,
}

impl Channel {
    pub(super) fn new(floor: &LossFloor) -> Self {
        let memory = 1.0 - 1.0 / floor.burst.max(1.0);
        let time = if floor.by_number { Duration::MAX } else { floor.burst_time };
        Self { loss: floor.rate, memory, time }
    }

    /// The memory that is left after `gap`.
    fn memory(&self, gap: Duration) -> f64 {
        if self.time.is_zero() {
            return if gap.is_zero() { self.memory } else { 0.0 };
        }
        self.memory * (-gap.as_secs_f64() / self.time.as_secs_f64()).exp()
    }
}

/// Symbols that are sent one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Train {
    /// Number of symbols.
    pub(super) symbols: u32,
    /// The time from one symbol to the next.
    pub(super) gap: Duration,
}

/// How many symbols the peer misses and whether the newest packet was lost, as probabilities.
struct LossState {
    /// The probability of each number of missing symbols, if the newest packet arrived.
    good: [f64; MOST_LOST + 1],
    /// The same if the newest packet was lost.
    bad: [f64; MOST_LOST + 1],
    /// The largest number of missing symbols that has a probability.
    top: usize,
}

impl LossState {
    fn new(loss: f64) -> Self {
        let (mut good, mut bad) = ([0.0; MOST_LOST + 1], [0.0; MOST_LOST + 1]);
        (good[0], bad[0]) = (1.0 - loss, loss);
        Self { good, bad, top: 0 }
    }

    /// Lets the channel move on to the next packet.
    fn turn(&mut self, loss: f64, memory: f64) {
        let forget = 1.0 - memory;
        for (good, bad) in self.good.iter_mut().zip(&mut self.bad).take(self.top + 1) {
            let all = *good + *bad;
            *bad = memory * *bad + forget * loss * all;
            *good = all - *bad;
        }
    }

    /// A source symbol is sent: if it is lost, one more symbol is missing.
    fn source(&mut self) {
        self.top = (self.top + 1).min(MOST_LOST);
        let beyond = self.bad[MOST_LOST];
        self.bad.copy_within(0..MOST_LOST, 1);
        self.bad[0] = 0.0;
        self.bad[MOST_LOST] += beyond;
    }

    /// A repair symbol is sent: if it arrives, one symbol less is missing.
    fn repair(&mut self) {
        let none = self.good[0];
        self.good.copy_within(1.., 0);
        self.good[MOST_LOST] = 0.0;
        self.good[0] += none;
    }

    fn nothing_missing(&self) -> f64 {
        self.good[0] + self.bad[0]
    }
}

/// The probability that the peer has all of `sources` after 0, 1, 2 and up to `most` repair symbols, which
/// are sent `wait` after the last source symbol and `gap` apart.
pub(super) fn complete(
    channel: &Channel,
    sources: Train,
    wait: Duration,
    gap: Duration,
    most: usize,
) -> impl Iterator<Item = f64> {
    let channel = *channel;
    let mut state = LossState::new(channel.loss);
    let between = channel.memory(sources.gap);
    for index in 0..sources.symbols.min(MOST_SOURCES) {
        if index > 0 {
            state.turn(channel.loss, between);
        }
        state.source();
    }
    let (first, next) = (channel.memory(wait), channel.memory(gap));
    (0..=most.min(MOST)).map(move |index| {
        if index > 0 {
            state.turn(channel.loss, if index == 1 { first } else { next });
            state.repair();
        }
        state.nothing_missing()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_random::Rng;

    const MS: Duration = Duration::from_millis(1);

    fn channel(loss: f64, memory: f64, time: Duration) -> Channel {
        Channel { loss, memory, time }
    }

    fn after(channel: &Channel, sources: u32, wait: Duration, repairs: usize) -> f64 {
        let sources = Train { symbols: sources, gap: Duration::ZERO };
        complete(channel, sources, wait, Duration::ZERO, repairs).last().unwrap()
    }

    #[test]
    fn independent_losses_follow_the_binomial_distribution() {
        let channel = channel(0.1, 0.0, Duration::ZERO);
        assert!((after(&channel, 3, MS, 0) - 0.9f64.powi(3)).abs() < 1e-12);
        // No source symbol is lost, or one is lost and the repair symbol is not.
        let one = 0.9f64.powi(3) + 3.0 * 0.1 * 0.81 * 0.9;
        assert!((after(&channel, 3, MS, 1) - one).abs() < 1e-12);
        assert_eq!(after(&self::channel(0.0, 0.0, MS), 100, MS, 0), 1.0);
    }

    #[test]
    fn in_a_burst_repair_symbols_are_lost_as_well_unless_they_wait() {
        let channel = channel(0.02, 0.9, 5 * MS);
        let failures = [50, 10, 5, 2, 0].map(|ms| 1.0 - after(&channel, 3, ms * MS, 3));
        assert!(failures.is_sorted(), "{failures:?}");
        assert!(failures[4] > 5.0 * failures[0], "{failures:?}");
    }

    #[test]
    fn it_agrees_with_a_simulated_channel() {
        let (loss, memory, time) = (0.05, 0.8, 4 * MS);
        let channel = channel(loss, memory, time);
        let (sources, wait, gap, repairs) = (Train { symbols: 6, gap: MS }, 3 * MS, MS, 4);
        let model: Vec<_> = complete(&channel, sources, wait, gap, repairs).collect();
        let mut random = Rng::new(1);
        let (mut done, trials) = ([0u32; 5], 200_000);
        for _ in 0..trials {
            let mut lost = random.unit() < loss;
            let mut next = |gap: Duration| {
                let kept = memory * (-gap.as_secs_f64() / time.as_secs_f64()).exp();
                if random.unit() >= kept {
                    lost = random.unit() < loss;
                }
                lost
            };
            // The first packet follows a packet long before, so that its fate is independent.
            let gaps = std::iter::once(Duration::from_secs(1)).chain([MS; 5]);
            let mut missing = gaps.filter(|gap| next(*gap)).count();
            done[0] += u32::from(missing == 0);
            for (index, done) in done.iter_mut().enumerate().skip(1) {
                let arrived = !next(if index == 1 { wait } else { gap });
                missing = missing.saturating_sub(usize::from(arrived));
                *done += u32::from(missing == 0);
            }
        }
        for (model, done) in model.iter().zip(done) {
            let simulated = f64::from(done) / f64::from(trials);
            assert!((model - simulated).abs() < 0.003, "{model} {simulated}");
        }
    }

    #[test]
    fn probabilities_stay_probabilities_whatever_is_asked() {
        for loss in [0.0, 0.25, 1.0] {
            for memory in [0.0, 1.0] {
                let channel = channel(loss, memory, MS);
                let sources = Train { symbols: u32::MAX, gap: Duration::MAX };
                let chances = complete(&channel, sources, Duration::MAX, Duration::ZERO, 1_000);
                let chances: Vec<_> = chances.collect();
                assert_eq!(chances.len(), MOST + 1);
                assert!(chances.iter().all(|p| (0.0..=1.0).contains(p)), "{chances:?}");
                assert!(chances.is_sorted(), "{chances:?}");
            }
        }
    }
}
