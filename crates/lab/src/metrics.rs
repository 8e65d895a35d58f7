//! Distributions of durations.

use std::time::Duration;

/// Durations with weights, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Each with its weight and all weights up to and including it.
    steps: Vec<(Duration, u64)>,
}

impl Distribution {
    /// Of durations that weigh as much as is told.
    #[must_use]
    pub fn weighted(samples: impl IntoIterator<Item = (Duration, u64)>) -> Self {
        let mut steps: Vec<_> = samples.into_iter().collect();
        steps.sort_unstable();
        let mut sum = 0;
        for (_, weight) in &mut steps {
            sum += *weight;
            *weight = sum;
        }
        Self { steps }
    }

    /// Of durations that weigh the same.
    #[must_use]
    pub fn of(samples: impl IntoIterator<Item = Duration>) -> Self {
        Self::weighted(samples.into_iter().map(|sample| (sample, 1)))
    }

    /// The sum of all weights.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.steps.last().map_or(0, |(_, sum)| *sum)
    }

    /// The smallest duration that is not exceeded by a share of `q`; zero if there is none.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (q.clamp(0.0, 1.0) * self.total() as f64).ceil().max(1.0) as u64;
        let index = self.steps.partition_point(|(_, sum)| *sum < rank);
        self.steps.get(index).or(self.steps.last()).map_or(Duration::ZERO, |(d, _)| *d)
    }

    /// The share of what is above `limit`, 0 to 1.
    #[must_use]
    pub fn share_above(&self, limit: Duration) -> f64 {
        let index = self.steps.partition_point(|(duration, _)| *duration <= limit);
        let below = index.checked_sub(1).and_then(|i| self.steps.get(i)).map_or(0, |(_, sum)| *sum);
        if self.total() == 0 { 0.0 } else { (self.total() - below) as f64 / self.total() as f64 }
    }

    /// Points of the cumulative distribution: milliseconds, and the share at or below. They are
    /// dense towards 1, where loss shows.
    #[must_use]
    pub fn curve(&self) -> (Vec<f64>, Vec<f64>) {
        let shares = (0..90).map(|i| f64::from(i) / 100.0);
        let tail = (0..=90).map(|i| 1.0 - 10f64.powf(-1.0 - f64::from(i) / 30.0));
        let shares: Vec<f64> = shares.chain(tail).collect();
        (shares.iter().map(|q| millis(self.quantile(*q))).collect(), shares)
    }
}

/// The smallest of `sorted` that is not exceeded by a share of `q`; 0 if there is none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q.clamp(0.0, 1.0) * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).or(sorted.last()).copied().unwrap_or(0.0)
}

/// Milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn quantiles_of_a_hundred() {
        let d = Distribution::of((1..=100).rev().map(|i| i * MS));
        assert_eq!(d.total(), 100);
        for (q, expected) in [(0.0, 1), (0.01, 1), (0.5, 50), (0.501, 51), (0.99, 99), (1.0, 100)] {
            assert_eq!(d.quantile(q), expected * MS, "{q}");
        }
    }

    #[test]
    fn weights_count() {
        let d = Distribution::weighted([(10 * MS, 1), (5 * MS, 97), (20 * MS, 2)]);
        assert_eq!(d.quantile(0.97), 5 * MS);
        assert_eq!(d.quantile(0.98), 10 * MS);
        assert_eq!(d.quantile(0.981), 20 * MS);
        assert_eq!(d.share_above(5 * MS), 0.03);
        assert_eq!(d.share_above(4 * MS), 1.0);
        assert_eq!(d.share_above(20 * MS), 0.0);
    }

    #[test]
    fn quantiles_of_numbers() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        for (q, expected) in [(0.0, 1.0), (0.25, 1.0), (0.5, 2.0), (0.51, 4.0), (1.0, 8.0)] {
            assert_eq!(quantile(&sorted, q), expected, "{q}");
        }
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn nothing_has_no_distribution() {
        let d = Distribution::default();
        assert_eq!((d.quantile(0.5), d.share_above(MS)), (Duration::ZERO, 0.0));
    }

    #[test]
    fn the_curve_rises() {
        let (x, y) = Distribution::of((1..=1000).map(|i| i * MS)).curve();
        assert!(x.is_sorted() && y.is_sorted());
        assert!((y[y.len() - 1] - 0.9999).abs() < 1e-9);
    }
}
