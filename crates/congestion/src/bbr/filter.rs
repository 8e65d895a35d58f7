//! Windowed maximum filters.

/// The most rounds that [`RoundMax`] can look back.
pub(super) const MAX_ROUNDS: usize = 10;

/// The highest delivery rate of the current and the previous probing cycle (section 5.5.6).
#[derive(Debug, Clone, Default)]
pub(super) struct MaxBandwidth {
    previous: u64,
    current: u64,
}

impl MaxBandwidth {
    /// The rate in bytes per second; 0 before the first sample.
    pub(super) fn get(&self) -> u64 {
        self.previous.max(self.current)
    }

    /// Adds a sample to the current cycle.
    pub(super) fn update(&mut self, rate: u64) {
        self.current = self.current.max(rate);
    }

    /// Begins a new cycle, unless the current one has no samples: then the known rates are kept.
    pub(super) fn advance(&mut self) {
        if self.current > 0 {
            self.previous = self.current;
            self.current = 0;
        }
    }
}

/// The highest value of the last few rounds, with one slot for each round.
#[derive(Debug, Clone, Default)]
pub(super) struct RoundMax {
    /// Values beyond 4 GiB count as that.
    slots: [u32; MAX_ROUNDS],
    round: u64,
}

impl RoundMax {
    /// Adds a value of `round` (rounds never go back).
    pub(super) fn update(&mut self, round: u64, value: u64) {
        let passed = round.saturating_sub(self.round).min(MAX_ROUNDS as u64);
        for skipped in 0..passed {
            if let Some(slot) = self.slots.get_mut(Self::slot(round - skipped)) {
                *slot = 0;
            }
        }
        self.round = self.round.max(round);
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        if let Some(slot) = self.slots.get_mut(Self::slot(self.round)) {
            *slot = (*slot).max(value);
        }
    }

    /// The highest value of the newest `rounds` rounds, including the current one.
    pub(super) fn get(&self, rounds: usize) -> u64 {
        let newest = (0..rounds.min(MAX_ROUNDS) as u64).filter_map(|age| {
            let round = self.round.checked_sub(age)?;
            self.slots.get(Self::slot(round)).copied()
        });
        newest.max().map_or(0, u64::from)
    }

    fn slot(round: u64) -> usize {
        (round % MAX_ROUNDS as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_outlives_one_cycle_and_not_two() {
        let mut filter = MaxBandwidth::default();
        filter.update(100);
        filter.advance();
        filter.update(40);
        assert_eq!(filter.get(), 100);
        filter.advance();
        assert_eq!(filter.get(), 40);
    }

    #[test]
    fn empty_cycles_forget_nothing() {
        let mut filter = MaxBandwidth::default();
        filter.update(100);
        for _ in 0..5 {
            filter.advance();
        }
        assert_eq!(filter.get(), 100);
    }

    #[test]
    fn what_is_more_than_four_gigabytes_counts_as_that() {
        let mut filter = RoundMax::default();
        filter.update(1, u64::MAX);
        assert_eq!(filter.get(MAX_ROUNDS), u64::from(u32::MAX));
    }

    #[test]
    fn round_maximum_matches_a_plain_scan() {
        let mut filter = RoundMax::default();
        let mut prng = sutura_random::SplitMix64::new(3);
        let mut all: Vec<(u64, u64)> = Vec::new();
        let mut round = 0;
        for _ in 0..2_000 {
            round += prng.below(16).saturating_sub(12);
            let value = prng.below(1_000);
            all.push((round, value));
            filter.update(round, value);
            for window in [1, 5, MAX_ROUNDS] {
                let recent = all.iter().filter(|(at, _)| at + window as u64 > round);
                assert_eq!(filter.get(window), recent.map(|&(_, v)| v).max().unwrap());
            }
        }
    }
}
