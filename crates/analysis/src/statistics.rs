//! Quantiles, means and spreads.
//!
//! There is one definition of a quantile: the *nearest rank*, the smallest value such that at least
//! a share `q` of the values does not exceed it. The quantile is always a value that occurred; the median is
//! the 0.5 quantile.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration in milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// The mean; 0 if there are no values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let add = |(sum, count): (f64, f64), value| (sum + value, count + 1.0);
    let (sum, count) = values.into_iter().fold((0.0, 0.0), add);
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Jain's fairness index of the shares of several parties (Jain, Chiu and Hawe 1984): 1 if all get the same,
/// 1 / n if one of n gets everything; 1 if there is nothing to share.
pub fn fairness(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

/// The values in ascending order, as [`quantile()`] expects them.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The quantile `q`, from 0 to 1, of `sorted` values; 0 if there are none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let index = usize::try_from(rank(q, sorted.len() as u64) - 1).unwrap_or(usize::MAX);
    sorted.get(index).or(sorted.last()).copied().unwrap_or(0.0)
}

/// The rank of the quantile `q` among `count` values, counted from 1.
fn rank(q: f64, count: u64) -> u64 {
    (q.clamp(0.0, 1.0) * count as f64).ceil().max(1.0) as u64
}

/// A distribution of durations with weights, such as message delays weighted by size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Columns", into = "Columns")]
pub struct Distribution {
    /// In ascending order.
    pub(crate) steps: Vec<Step>,
}

/// A distribution as it is written: a row for each step, without the names of the fields in each.
#[derive(Serialize, Deserialize)]
struct Columns {
    nanos: Vec<u64>,
    sums: Vec<u64>,
    parts: Vec<u32>,
}

impl From<Distribution> for Columns {
    fn from(Distribution { steps }: Distribution) -> Self {
        let nanos = |step: &Step| u64::try_from(step.duration.as_nanos()).unwrap_or(u64::MAX);
        Self {
            nanos: steps.iter().map(nanos).collect(),
            sums: steps.iter().map(|step| step.sum).collect(),
            parts: steps.iter().map(|step| step.part).collect(),
        }
    }
}

impl From<Columns> for Distribution {
    fn from(Columns { nanos, sums, parts }: Columns) -> Self {
        let rows = nanos.into_iter().zip(sums).zip(parts);
        let step = |((nanos, sum), part)| Step { duration: Duration::from_nanos(nanos), sum, part };
        Self { steps: rows.map(step).collect() }
    }
}

/// A duration of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    pub duration: Duration,
    /// The weight up to and including it.
    pub sum: u64,
    /// The part that it is from, which is independent of other parts.
    pub part: u32,
}

impl Distribution {
    /// The distribution of independent durations with weights.
    pub fn weighted(samples: impl IntoIterator<Item = (Duration, u64)>) -> Self {
        Self::of_parts(samples.into_iter().map(std::iter::once))
    }

    /// The distribution of independent durations with equal weights.
    pub fn of(samples: impl IntoIterator<Item = Duration>) -> Self {
        Self::weighted(samples.into_iter().map(|sample| (sample, 1)))
    }

    /// The distribution of durations with weights that need not be independent within a part, such as those of the
    /// messages of a connection.
    pub fn of_parts<P>(parts: impl IntoIterator<Item = P>) -> Self
    where
        P: IntoIterator<Item = (Duration, u64)>,
    {
        let of_part = |(part, samples): (u32, P)| {
            samples.into_iter().map(move |(duration, sum)| Step { duration, sum, part })
        };
        let mut steps: Vec<_> = (0..).zip(parts).flat_map(of_part).collect();
        steps.sort_unstable();
        let mut sum = 0;
        for step in &mut steps {
            sum += step.sum;
            step.sum = sum;
        }
        Self { steps }
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.sum)
    }

    /// The quantile `q`, from 0 to 1; zero if there are no durations.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = rank(q, self.total());
        let index = self.steps.partition_point(|step| step.sum < rank);
        self.steps.get(index).or(self.steps.last()).map_or(Duration::ZERO, |step| step.duration)
    }

    /// The share above `limit`, 0 to 1.
    pub fn share_above(&self, limit: Duration) -> f64 {
        let index = self.steps.partition_point(|step| step.duration <= limit);
        let below = index.checked_sub(1).and_then(|i| self.steps.get(i)).map_or(0, |step| step.sum);
        if self.total() == 0 { 0.0 } else { (self.total() - below) as f64 / self.total() as f64 }
    }

    /// Points of the cumulative distribution: milliseconds, and the share at or below them.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let shares = (0..=200).map(|i| f64::from(i) / 200.0);
        shares.map(|q| (millis(self.quantile(q)), q)).collect()
    }

    /// Points of the complementary cumulative distribution, for a logarithmic axis: milliseconds,
    /// and the share above them, down to `least` or to the share of a single unit of weight.
    pub fn tail(&self, least: f64) -> Vec<(f64, f64)> {
        let least = least.max(1.0 / self.total().max(1) as f64).min(1.0);
        let steps = (-30.0 * least.log10()).ceil() as u32;
        let shares = (0..=steps).map(|i| 10f64.powf(-f64::from(i) / 30.0).max(least));
        shares.map(|share| (millis(self.quantile(1.0 - share)), share)).collect()
    }
}

/// The median of some values, and a range around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest value, or the lower decile.
    pub low: f64,
    /// The largest value, or the upper decile.
    pub high: f64,
}

impl Spread {
    /// The median with the smallest and the largest value. `None` if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        Self::between(values, 0.0, 1.0)
    }

    /// The median with the lower and the upper decile. `None` if there are no values.
    pub fn of_deciles(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        Self::between(values, 0.1, 0.9)
    }

    fn between(values: impl IntoIterator<Item = f64>, low: f64, high: f64) -> Option<Self> {
        let values = sorted(values);
        let [low, median, high] = [low, 0.5, high].map(|q| quantile(&values, q));
        (!values.is_empty()).then_some(Self { median, low, high })
    }
}

impl fmt::Display for Spread {
    /// Two decimal places, or as many as the format's precision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let Self { median, low, high } = self;
        write!(f, "{median:.digits$} [{low:.digits$} {high:.digits$}]")
    }
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
        let sorted = sorted([4.0, 8.0, 1.0, 2.0]);
        for (q, expected) in [(0.0, 1.0), (0.25, 1.0), (0.5, 2.0), (0.51, 4.0), (1.0, 8.0)] {
            assert_eq!(quantile(&sorted, q), expected, "{q}");
        }
        assert_eq!((quantile(&[], 0.5), mean([]), mean(sorted)), (0.0, 0.0, 3.75));
    }

    #[test]
    fn fairness_is_between_one_for_all_and_one_for_equals() {
        assert_eq!([fairness(&[3.0; 4]), fairness(&[]), fairness(&[0.0, 0.0])], [1.0; 3]);
        assert_eq!((fairness(&[5.0, 0.0]), fairness(&[1.0, 3.0])), (0.5, 0.8));
    }

    #[test]
    fn nothing_has_no_distribution() {
        let d = Distribution::default();
        assert_eq!((d.quantile(0.5), d.share_above(MS)), (Duration::ZERO, 0.0));
        assert_eq!((d.curve().len(), d.tail(0.1)), (201, vec![(0.0, 1.0)]));
    }

    #[test]
    fn curves_rise_and_tails_fall() {
        let d = Distribution::of((1..=1000).map(|i| i * MS));
        let curve = d.curve();
        assert_eq!((curve[0], curve[100], curve[200]), ((1.0, 0.0), (500.0, 0.5), (1000.0, 1.0)));
        let tail = d.tail(1e-6);
        assert!(tail.is_sorted_by(|a, b| a.0 <= b.0 && a.1 > b.1), "{tail:?}");
        // A share of a tenth is above 900 ms and a hundredth above 990 ms, where the curve ends.
        assert_eq!((tail[0], tail[30], tail[60]), ((1.0, 1.0), (900.0, 0.1), (990.0, 0.01)));
        let last = tail.last().copied();
        assert!(last.is_some_and(|(at, share)| at == 999.0 && (share - 1e-3).abs() < 1e-12));
        assert!(d.tail(0.05).iter().all(|(_, share)| *share >= 0.05));
    }

    #[test]
    fn spreads_have_the_digits_asked_for() {
        assert_eq!(Spread::of([]), None);
        let spread = Spread::of([3.0, 1.0, 12.346]);
        assert_eq!(spread, Some(Spread { median: 3.0, low: 1.0, high: 12.346 }));
        assert_eq!(spread.map(|s| s.to_string()).as_deref(), Some("3.00 [1.00 12.35]"));
        assert_eq!(spread.map(|s| format!("{s:.0}")).as_deref(), Some("3 [1 12]"));
        let deciles = Spread::of_deciles((1..=41).map(f64::from));
        assert_eq!(deciles, Some(Spread { median: 21.0, low: 5.0, high: 37.0 }));
    }
}
