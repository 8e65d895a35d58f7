//! Intervals of quantiles: how far a quantile of other runs of the same kind may be.
//!
//! Of independent values, two of them bound the true quantile whatever their distribution is: the number of values
//! below it is binomial (David and Nagaraja, *Order Statistics*, 3rd ed., section 7.1). Values of one run are not
//! independent: a burst of losses delays many messages. For these, the share of values that do not exceed the quantile
//! is taken from each of several parts, and the interval is where the distribution has the shares at the ends of
//! Student's interval of that share (Woodruff 1952).
//!
//! A share of independent trials has the exact interval of Clopper and Pearson (1934). The difference and the ratio of
//! two estimates have the interval that follows from both (Zou and Donner 2008).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::statistics::{Distribution, mean, millis, quantile};

/// How often an interval fails to hold the quantile, at most, or about so often for parts of runs.
const OUTSIDE: f64 = 0.05;
/// Student's t for [`OUTSIDE`] on both sides together, by the number of parts less one.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same for many parts.
const NORMAL: f64 = 1.960;
/// The same as [`STUDENT`] and [`NORMAL`] for an interval that fails twice as often.
const STUDENT_OF_NINE_IN_TEN: [f64; 10] =
    [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812];
const NORMAL_OF_NINE_IN_TEN: f64 = 1.645;

/// How often an interval of a mean holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nine times in ten.
    NineInTen,
    /// Nineteen times in twenty.
    NineteenInTwenty,
}

/// An interval that holds a quantile nineteen times in twenty. An end is open where there are too few values to tell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// A quantile and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The [quantile](quantile()) of the values.
    pub value: f64,
    /// Where the quantile of all values of the kind is.
    #[serde(flatten)]
    pub within: Interval,
}

impl Estimate {
    /// The quantile `q`, from 0 to 1, of independent values in ascending order; 0 if there are none.
    pub fn of(sorted: &[f64], q: f64) -> Self {
        let [low, high] =
            ranks(q, sorted.len()).map(|rank| sorted.get(rank?.checked_sub(1)?).copied());
        Self { value: quantile(sorted, q), within: Interval { low, high } }
    }

    /// The share of independent trials that succeeded, 0 to 1, and its exact interval; 0 without trials.
    pub fn of_share(successes: usize, trials: usize) -> Self {
        let within = exact_share(successes.min(trials), trials);
        Self { value: successes as f64 / trials.max(1) as f64, within }
    }

    /// The mean of shares, each of an independent run, with Student's interval as far as it is from 0 to 1. Where all
    /// runs agree that a share is 0 or 1, its other end is not known.
    pub fn of_mean_share(shares: &[f64]) -> Self {
        Self::of_mean(shares, Level::NineteenInTwenty).as_share()
    }

    /// This less the other, with the interval that follows from both if they are independent. Of runs with the same
    /// seeds it is wider than need be.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        let value = self.value - other.value;
        let end = |this: Option<f64>, that: Option<f64>, sign: f64| {
            let half = (this? - self.value).hypot(that? - other.value);
            Some(sign.mul_add(half, value))
        };
        let low = end(self.within.low, other.within.high, -1.0);
        let high = end(self.within.high, other.within.low, 1.0);
        Self { value, within: Interval { low, high } }
    }

    /// This divided by the other, with the interval that follows from both, for positive values: that of the difference
    /// of their logarithms.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        let of = |map: fn(f64) -> f64, Self { value, within: Interval { low, high } }: Self| Self {
            value: map(value),
            within: Interval { low: low.map(map), high: high.map(map) },
        };
        let Self { within, .. } = of(f64::exp, of(f64::ln, self).minus(of(f64::ln, other)));
        // An end that is not positive has no logarithm: the ratio has no bound there.
        let known = |end: &f64| end.is_finite();
        let Interval { low, high } = within;
        let within = Interval { low: low.filter(known), high: high.filter(known) };
        Self { value: self.value / other.value, within }
    }

    /// The same of a share, with the interval as far as it is from 0 to 1. What never happened may be rare or not: at
    /// 0 and 1 only that end is known.
    #[must_use]
    pub fn as_share(self) -> Self {
        let Interval { low, high } = self.within;
        let clamp = |end: f64| end.clamp(0.0, 1.0);
        let within = if self.value <= 0.0 {
            Interval { low: Some(0.0), high: None }
        } else if self.value >= 1.0 {
            Interval { low: None, high: Some(1.0) }
        } else {
            Interval { low: low.map(clamp), high: high.map(clamp) }
        };
        Self { within, ..self }
    }

    /// A value that is known.
    pub const fn exact(value: f64) -> Self {
        Self { value, within: Interval { low: Some(value), high: Some(value) } }
    }

    /// The mean of independent values that are not too far from normal, and Student's interval of it.
    pub fn of_mean(values: &[f64], level: Level) -> Self {
        let (value, count) = (mean(values.iter().copied()), values.len());
        let Some(freedom) = count.checked_sub(2) else {
            return Self { value, within: Interval { low: None, high: None } };
        };
        let squares: f64 = values.iter().map(|other| (other - value).powi(2)).sum();
        let half = level.student(freedom) * (squares / (count - 1) as f64 / count as f64).sqrt();
        Self { value, within: Interval { low: Some(value - half), high: Some(value + half) } }
    }
}

impl Distribution {
    /// The share above `limit`, 0 to 1.
    pub fn estimate_above(&self, limit: Duration) -> Estimate {
        let parts: Vec<[f64; 2]> =
            self.parts(limit).into_iter().map(|[within, all]| [all - within, all]).collect();
        if parts.len() as u64 == self.total() {
            let above = parts.iter().filter(|[above, _]| *above > 0.0).count();
            return Estimate::of_share(above, parts.len());
        }
        let value = self.share_above(limit);
        let [low, high] = shares(value, self.total() as f64, &parts);
        Estimate { value, within: Interval { low, high } }.as_share()
    }

    /// The quantile `q`, from 0 to 1, in milliseconds.
    pub fn estimate(&self, q: f64) -> Estimate {
        Estimate { value: millis(self.quantile(q)), within: self.interval(q) }
    }

    fn interval(&self, q: f64) -> Interval {
        let count = self.steps.len();
        let parts = self.parts(self.quantile(q));
        let [low, high] = if parts.len() == count && self.total() == count as u64 {
            let duration = |rank: usize| Some(self.steps.get(rank.checked_sub(1)?)?.duration);
            ranks(q, count).map(|rank| duration(rank?))
        } else {
            let total = self.total() as f64;
            let known = |q: &f64| (0.5 / total..=1.0 - 0.5 / total).contains(q);
            shares(q, total, &parts).map(|share| Some(self.quantile(share.filter(known)?)))
        };
        Interval { low: low.map(millis), high: high.map(millis) }
    }

    /// Of each part, the weight of the durations that do not exceed `limit`, and the weight of all.
    fn parts(&self, limit: Duration) -> Vec<[f64; 2]> {
        let mut parts: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
        let mut before = 0;
        for step in &self.steps {
            let weight = (step.sum - before) as f64;
            let [within, all] = parts.entry(step.part).or_default();
            *within += if step.duration <= limit { weight } else { 0.0 };
            *all += weight;
            before = step.sum;
        }
        parts.into_values().collect()
    }
}

/// The ends of Student's interval of the share of a distribution of this total weight that does not exceed the
/// quantile `q`. Each of its `parts` has the weight of what does not exceed it, and of all.
fn shares(q: f64, total: f64, parts: &[[f64; 2]]) -> [Option<f64>; 2] {
    let count = parts.len() as f64;
    let Some(freedom) = parts.len().checked_sub(2) else { return [None; 2] };
    let share = parts.iter().map(|[within, _]| within).sum::<f64>() / total;
    let squares: f64 = parts.iter().map(|[within, all]| (within - share * all).powi(2)).sum();
    let between = count / (count - 1.0) * squares / (total * total);
    // Parts that agree by chance tell no more than one value each.
    let error = between.max(q * (1.0 - q) / total).sqrt();
    let half = Level::NineteenInTwenty.student(freedom) * error;
    [Some(q - half), Some(q + half)]
}

impl Level {
    /// Student's t, by the number of values less two.
    fn student(self, freedom: usize) -> f64 {
        let (student, normal): (&[f64], f64) = match self {
            Self::NineInTen => (&STUDENT_OF_NINE_IN_TEN, NORMAL_OF_NINE_IN_TEN),
            Self::NineteenInTwenty => (&STUDENT, NORMAL),
        };
        student.get(freedom).copied().unwrap_or(normal)
    }
}

/// The exact interval of a share of independent trials: its ends are the shares with which as many successes or more, or
/// as many or fewer, are seen once in 40 times.
fn exact_share(successes: usize, trials: usize) -> Interval {
    /// Halvings of the interval from 0 to 1.
    const STEPS: u32 = 40;
    // The largest share for which `is_below` holds, which holds up to there.
    let last = |is_below: &dyn Fn(f64) -> bool| {
        let halve = |(low, high): (f64, f64), _| {
            let middle = f64::midpoint(low, high);
            if is_below(middle) { (middle, high) } else { (low, middle) }
        };
        (0..STEPS).fold((0.0, 1.0), halve).0
    };
    let low = (successes > 0).then(|| {
        let fewer = successes - 1;
        last(&|share| 1.0 - at_most(fewer, trials, share) <= OUTSIDE / 2.0)
    });
    let high = (successes < trials)
        .then(|| last(&|share| at_most(successes, trials, share) > OUTSIDE / 2.0));
    if trials == 0 {
        return Interval { low: None, high: None };
    }
    Interval { low: Some(low.unwrap_or(0.0)), high: Some(high.unwrap_or(1.0)) }
}

/// The chance that at most so many of `trials` independent trials succeed, each with this chance.
fn at_most(successes: usize, trials: usize, share: f64) -> f64 {
    let mut chance = trials as f64 * (1.0 - share).ln();
    let mut sum = 0.0;
    for count in 0..=successes {
        sum += chance.exp();
        chance += ((trials - count) as f64 / (count + 1) as f64 * share / (1.0 - share)).ln();
    }
    sum
}

/// The ranks, from 1, of the values around the quantile `q` of `count` independent values, where there are such.
fn ranks(q: f64, count: usize) -> [Option<usize>; 2] {
    let mut low = None;
    // Neither the smallest nor the largest value bounds what is beyond it.
    if !(0.0 < q && q < 1.0) {
        return [None; 2];
    }
    // The chance that exactly 0, 1, ... values do not exceed the quantile, as its logarithm: it may be tiny.
    let (mut chance, mut sum) = (count as f64 * (1.0 - q).ln(), 0.0);
    for values in 0..count {
        sum += chance.exp();
        if sum <= OUTSIDE / 2.0 {
            low = Some(values + 1);
        }
        if sum >= 1.0 - OUTSIDE / 2.0 {
            return [low, Some(values + 1)];
        }
        chance += ((count - values) as f64 / (values + 1) as f64 * q / (1.0 - q)).ln();
    }
    [low, None]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::sorted;
    use sutura_random::Rng;

    /// From tables of the binomial distribution.
    #[test]
    fn ranks_are_those_of_the_books() {
        assert_eq!(ranks(0.5, 10), [Some(2), Some(9)]);
        assert_eq!(ranks(0.5, 20), [Some(6), Some(15)]);
        assert_eq!(ranks(0.5, 100), [Some(40), Some(61)]);
        // Five values may all be above the median, once in 32 times.
        assert_eq!(ranks(0.5, 5), [None, None]);
        assert_eq!(ranks(0.99, 100), [Some(97), None]);
        assert_eq!([0.0, 1.0].map(|q| ranks(q, 1000)), [[None; 2]; 2]);
        assert_eq!(ranks(0.5, 0), [None, None]);
        let [low, high] = ranks(0.999, 1_000_000);
        assert!(low.is_some_and(|low| (998_930..998_940).contains(&low)), "{low:?}");
        assert!(high.is_some_and(|high| (999_060..999_070).contains(&high)), "{high:?}");
    }

    /// How often the true quantile of a uniform distribution up to 1 is within, of 2,000 times.
    fn held(q: f64, mut draw: impl FnMut(&mut Rng) -> Estimate) -> f64 {
        let mut rng = Rng::new(7);
        let holds = |Interval { low, high }: Interval| {
            low.is_none_or(|low| low <= q) && high.is_none_or(|high| q <= high)
        };
        (0..2000).filter(|_| holds(draw(&mut rng).within)).count() as f64 / 2000.0
    }

    #[test]
    fn independent_values_hold_the_quantile_as_often_as_promised() {
        for (q, count) in [(0.5, 8), (0.5, 95), (0.95, 95), (0.99, 300)] {
            let held = held(q, |rng| Estimate::of(&sorted((0..count).map(|_| rng.unit())), q));
            assert!((0.94..=0.999).contains(&held), "{q} of {count}: {held}");
        }
    }

    /// The values of a part are half as far from each other as those of different parts.
    #[test]
    fn parts_hold_the_quantile_though_their_values_depend_on_each_other() {
        let draw = |rng: &mut Rng, by_part: bool| {
            let parts: Vec<Vec<(Duration, u64)>> = (0..40)
                .map(|_| {
                    let base = rng.unit();
                    let value = |rng: &mut Rng| if rng.chance(0.7) { base } else { rng.unit() };
                    // In seconds a thousandth, so that the milliseconds are from 0 to 1.
                    (0..50).map(|_| (Duration::from_secs_f64(value(rng) / 1000.0), 1)).collect()
                })
                .collect();
            if by_part {
                Distribution::of_parts(parts)
            } else {
                Distribution::weighted(parts.concat())
            }
        };
        for q in [0.5, 0.8] {
            let [parts, alone] = [true, false].map(|by| held(q, |rng| draw(rng, by).estimate(q)));
            assert!(parts > 0.92 && alone < 0.7, "{q}: {parts} {alone}");
        }
    }

    /// From tables of Clopper and Pearson's interval.
    #[test]
    fn a_share_has_the_interval_of_the_books() {
        for (successes, trials, low, high) in [
            (0, 10, 0.0, 0.3085),
            (1, 10, 0.0025, 0.4450),
            (5, 10, 0.1871, 0.8129),
            (10, 10, 0.6915, 1.0),
        ] {
            let Estimate { value, within } = Estimate::of_share(successes, trials);
            assert_eq!(value, successes as f64 / 10.0);
            let ends = [within.low, within.high].map(Option::unwrap);
            assert!((ends[0] - low).abs() < 1e-4 && (ends[1] - high).abs() < 1e-4, "{ends:?}");
        }
        let many = Estimate::of_share(50_000, 100_000).within;
        assert!(many.low.is_some_and(|low| (0.4968..0.4970).contains(&low)), "{many:?}");
        assert_eq!(Estimate::of_share(0, 0).within, Interval { low: None, high: None });
    }

    #[test]
    fn shares_of_runs_stay_between_0_and_1() {
        let within = |shares: &[f64]| Estimate::of_mean_share(shares).within;
        assert_eq!(within(&[0.0; 10]), Interval { low: Some(0.0), high: None });
        assert_eq!(within(&[1.0; 10]), Interval { low: None, high: Some(1.0) });
        assert_eq!(within(&[0.9, 1.0, 1.0]).high, Some(1.0));
        assert_eq!(within(&[0.5]), Interval { low: None, high: None });
    }

    #[test]
    fn a_share_of_times_is_exact_where_they_are_independent() {
        let ms = Duration::from_millis;
        let alone = Distribution::of((1..=10).map(ms)).estimate_above(ms(9));
        assert_eq!(alone, Estimate::of_share(1, 10));
        let parts = |late: u64| (0..10).map(move |part| [(ms(1), 9), (ms(1 + part.max(late)), 1)]);
        let of_parts = Distribution::of_parts(parts(0)).estimate_above(ms(5));
        assert_eq!(of_parts.value, 0.05);
        let ends = [of_parts.within.low, of_parts.within.high].map(Option::unwrap);
        assert!((0.0..0.05).contains(&ends[0]) && (0.05..0.15).contains(&ends[1]), "{ends:?}");
        let none = Distribution::of_parts(parts(0)).estimate_above(ms(50));
        assert_eq!((none.value, none.within), (0.0, Interval { low: Some(0.0), high: None }));
    }

    /// How often the true share is within, of values that depend on each other by parts.
    #[test]
    fn a_share_of_parts_is_held_as_often_as_promised() {
        let mut rng = Rng::new(3);
        let ms = Duration::from_millis;
        let mut holds = |share: f64| {
            // A tenth of the parts is late as a whole.
            let parts =
                (0..60).map(|_| vec![(if rng.chance(share) { ms(2) } else { ms(1) }, 1); 5]);
            let Interval { low, high } = Distribution::of_parts(parts).estimate_above(ms(1)).within;
            low.is_none_or(|low| low <= share) && high.is_none_or(|high| share <= high)
        };
        let held = (0..2000).filter(|_| holds(0.1)).count() as f64 / 2000.0;
        assert!(held > 0.92, "{held}");
    }

    #[test]
    fn differences_and_ratios_follow_from_both() {
        let of = |value, low, high| Estimate {
            value,
            within: Interval { low: Some(low), high: Some(high) },
        };
        let difference = of(10.0, 7.0, 14.0).minus(of(5.0, 1.0, 8.0));
        assert_eq!(difference, of(5.0, 5.0 - 3f64.hypot(3.0), 5.0 + 4f64.hypot(4.0)));
        assert_eq!(of(10.0, 7.0, 14.0).minus(Estimate::exact(4.0)), of(6.0, 3.0, 10.0));
        let ratio = of(10.0, 5.0, 20.0).over(Estimate::exact(2.0));
        let near =
            |end: Option<f64>, wanted: f64| end.is_some_and(|end| (end - wanted).abs() < 1e-9);
        assert!(ratio.value == 5.0 && near(ratio.within.low, 2.5) && near(ratio.within.high, 10.0));
        let below = of(10.0, 0.0, 20.0).over(of(5.0, 5.0, 5.0));
        assert_eq!((below.value, below.within.low), (2.0, Some(0.0)));
        let open = of(10.0, 5.0, 20.0).over(of(5.0, 0.0, 5.0));
        assert_eq!((open.value, open.within.high), (2.0, None));
    }

    /// How often the true ratio of two shares, measured independently, is within.
    #[test]
    fn a_ratio_of_two_is_held_as_often_as_promised() {
        let mut rng = Rng::new(5);
        let mut share =
            |share| Estimate::of_share((0..200).filter(|_| rng.chance(share)).count(), 200);
        let mut holds = |_: &i32| {
            let Interval { low, high } = share(0.4).over(share(0.2)).within;
            low.is_none_or(|low| low <= 2.0) && high.is_none_or(|high| 2.0 <= high)
        };
        let held = (0..1000).filter(|n| holds(n)).count() as f64 / 1000.0;
        assert!(held > 0.94, "{held}");
    }

    #[test]
    fn a_mean_has_the_interval_of_the_books() {
        let Estimate { value, within } =
            Estimate::of_mean(&[1.0, 2.0, 3.0, 4.0], Level::NineteenInTwenty);
        let half = 3.182 * (5.0f64 / 3.0 / 4.0).sqrt();
        assert_eq!(value, 2.5);
        assert_eq!(within, Interval { low: Some(2.5 - half), high: Some(2.5 + half) });
        let alone = Estimate::of_mean(&[7.0], Level::NineteenInTwenty);
        assert_eq!(alone.within, Interval { low: None, high: None });
    }

    #[test]
    fn equal_values_and_single_parts_have_what_is_known() {
        let same = Distribution::of(vec![Duration::from_millis(3); 100]).estimate(0.5);
        assert_eq!(same.within, Interval { low: Some(3.0), high: Some(3.0) });
        let part = (1..=100).map(|ms| (Duration::from_millis(ms), 1)).collect::<Vec<_>>();
        let estimate = Distribution::of_parts([part]).estimate(0.5);
        assert_eq!(estimate, Estimate { value: 50.0, within: Interval { low: None, high: None } });
        let nothing = Distribution::default().estimate(0.5);
        assert_eq!(nothing.within, Interval { low: None, high: None });
    }
}
