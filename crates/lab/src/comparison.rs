//! Configurations that are run with the same seeds, and how they compare: means and quantiles over the
//! runs, and ratios to runs without protection.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sutura_analysis::interval::{Estimate, Interval, Level};
use sutura_analysis::statistics::{self, Distribution};
use sutura_proto::Protection;
use sutura_proto::policy::RedundancyFactory;
use sutura_sim::{Failure, FailureKind};

use crate::report::Cell;
use crate::results::ResultError;
use crate::{Error, Options, parallel};

/// A seed for one part of an experiment. Parts that are compared get the same seed, so that the channel
/// treats them alike.
pub fn seed(base: u64, part: u64) -> u64 {
    sutura_random::Rng::stream(base, part).next_u64()
}

/// A configuration and its outcome with each seed.
#[derive(Clone, Debug)]
pub struct Runs<S, R> {
    /// The configuration.
    pub setup: S,
    /// The outcome with each seed.
    pub runs: Vec<R>,
}

impl<S, R> Runs<S, R> {
    /// Runs `work` with each of `setups` and each number below `count`, on the number of threads that the
    /// options allow.
    ///
    /// # Errors
    /// The error of the first run that fails.
    pub fn measure<E>(
        options: &Options,
        setups: &[S],
        count: u64,
        work: impl Fn(&S, u64) -> Result<R, E> + Sync,
    ) -> Result<Vec<Self>, E>
    where
        S: Clone + Sync,
        R: Serialize + DeserializeOwned + Send,
        E: From<ResultError> + Send,
    {
        Self::measure_each(options, setups, |_| count, work)
    }

    /// Does the same with a count for each setup.
    ///
    /// # Errors
    /// As for [`measure`](Self::measure).
    pub fn measure_each<E>(
        options: &Options,
        setups: &[S],
        count: impl Fn(&S) -> u64,
        work: impl Fn(&S, u64) -> Result<R, E> + Sync,
    ) -> Result<Vec<Self>, E>
    where
        S: Clone + Sync,
        R: Serialize + DeserializeOwned + Send,
        E: From<ResultError> + Send,
    {
        let jobs = setups.iter().flat_map(|setup| (0..count(setup)).map(move |n| (setup, n)));
        let jobs: Vec<(&S, u64)> = jobs.collect();
        let mut results = parallel::map(options, &jobs, |(setup, n)| work(setup, *n))?.into_iter();
        let of_setup = |setup: &S| {
            let runs = (0..count(setup)).zip(results.by_ref()).map(|(_, run)| run).collect();
            Self { setup: setup.clone(), runs }
        };
        Ok(setups.iter().map(of_setup).collect())
    }

    /// The mean of a figure; 0 without runs.
    pub fn mean(&self, value: impl Fn(&R) -> f64) -> f64 {
        mean_of(&self.runs, value)
    }

    /// The mean of a figure of each run, with the interval for values that are not too far from normal.
    pub fn mean_cell(&self, value: impl Fn(&R) -> f64) -> Cell {
        Cell::NumberWithin(self.mean_estimate(value))
    }

    /// The same as an estimate.
    pub fn mean_estimate(&self, value: impl Fn(&R) -> f64) -> Estimate {
        mean_within(self.runs.iter().map(value))
    }

    /// The mean of milliseconds of each run, with its interval.
    pub fn mean_millis_cell(&self, value: impl Fn(&R) -> f64) -> Cell {
        Cell::MillisWithin(self.mean_estimate(value))
    }

    /// A quantity of a figure of each run, divided by the same of others with the same seeds, with its
    /// [interval](paired_ratio).
    pub fn ratio_to(
        &self,
        others: &Self,
        figure: impl Fn(&R) -> f64,
        of: impl Fn(&[f64]) -> f64,
    ) -> Estimate {
        let [these, others] =
            [self, others].map(|all| all.runs.iter().map(&figure).collect::<Vec<f64>>());
        paired_ratio(&these, &others, of)
    }

    /// The [ratio](Self::ratio_to) of the means of a figure.
    pub fn mean_ratio_to(&self, others: &Self, figure: impl Fn(&R) -> f64) -> Estimate {
        self.ratio_to(others, figure, |figures| mean_of(figures, |figure| *figure))
    }

    /// How much more the mean of a figure is than that of others with the same seeds, as a share of theirs.
    pub fn more_cell(&self, others: &Self, figure: impl Fn(&R) -> f64) -> Cell {
        let ratio = self.mean_ratio_to(others, figure);
        Cell::ShareWithin(ratio.minus(Estimate::exact(1.0)))
    }

    /// The [ratio](Self::ratio_to) of the medians of a figure.
    pub fn median_ratio_to(&self, others: &Self, figure: impl Fn(&R) -> f64) -> Estimate {
        self.ratio_to(others, figure, |figures| Values::of(figures.iter().copied()).at(0.5))
    }

    /// The mean of a share of each run, 0 to 1, with its interval.
    pub fn mean_share_cell(&self, share: impl Fn(&R) -> f64) -> Cell {
        let shares: Vec<f64> = self.runs.iter().map(share).collect();
        Cell::ShareWithin(Estimate::of_mean_share(&shares))
    }

    /// The sum of a count.
    pub fn sum(&self, count: impl Fn(&R) -> u64) -> f64 {
        self.runs.iter().map(count).sum::<u64>() as f64
    }

    /// The largest value of a figure.
    pub fn most(&self, value: impl Fn(&R) -> f64) -> f64 {
        self.runs.iter().map(value).fold(f64::NEG_INFINITY, f64::max)
    }

    /// A figure of each run.
    pub fn values(&self, value: impl Fn(&R) -> f64) -> Values {
        Values::of(self.runs.iter().map(value))
    }

    /// The distribution of one time of each run.
    pub fn times(&self, time: impl Fn(&R) -> Duration) -> Distribution {
        Distribution::of(self.runs.iter().map(time))
    }

    /// The distribution of all times of a kind.
    pub fn all_times(&self, times: impl Fn(&R) -> &[Duration]) -> Distribution {
        pooled(self.runs.iter().map(times), |time| (*time, 1))
    }
}

/// The distribution of what is made of the values of several runs, which need not be independent within a run.
pub fn pooled<'a, T: 'a>(
    runs: impl IntoIterator<Item = &'a [T]>,
    time: impl Fn(&T) -> (Duration, u64) + Copy,
) -> Distribution {
    /// Each run is divided until there are as many parts, each of values in a row: enough for an interval.
    const PARTS: usize = 20;
    let runs: Vec<&[T]> = runs.into_iter().collect();
    let each = PARTS.div_ceil(runs.len().max(1));
    let parts = runs.iter().flat_map(|run| run.chunks(run.len().div_ceil(each).max(1)));
    Distribution::of_parts(parts.map(|part| part.iter().map(time)))
}

/// The share of what holds of the values of several runs, which need not be independent within a run, as a cell of a
/// table.
pub fn pooled_share<'a, T: 'a>(
    runs: impl IntoIterator<Item = &'a [T]>,
    holds: impl Fn(&T) -> bool,
) -> Cell {
    let holds = &holds;
    let values = pooled(runs, |value| (Duration::from_nanos(holds(value).into()), 1));
    values.cell_above(Duration::ZERO)
}

/// Numbers in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Values(Vec<f64>);

impl Values {
    /// These numbers, which may be in any order.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        Self(statistics::sorted(values))
    }

    /// The [quantile](statistics::quantile()) `q`.
    pub fn at(&self, q: f64) -> f64 {
        statistics::quantile(&self.0, q)
    }

    /// The same as a cell of a table, with the interval for values that are independent.
    pub fn cell(&self, q: f64) -> Cell {
        Cell::NumberWithin(Estimate::of(&self.0, q))
    }

    /// The same of milliseconds.
    pub fn millis_cell(&self, q: f64) -> Cell {
        Cell::MillisWithin(Estimate::of(&self.0, q))
    }

    /// The share of the numbers for which `holds` returns true; 0 if there are none.
    pub fn share(&self, holds: impl Fn(f64) -> bool) -> f64 {
        share(&self.0, |value| holds(*value))
    }

    /// The same as a cell of a table, with the interval for numbers that are independent.
    pub fn share_cell(&self, holds: impl Fn(f64) -> bool) -> Cell {
        let count = self.0.iter().filter(|value| holds(**value)).count();
        Cell::ShareWithin(Estimate::of_share(count, self.0.len()))
    }

    /// The distribution function: at each number, the share that does not exceed it.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let count = self.0.len().max(1) as f64;
        (1..).zip(&self.0).map(|(n, value)| (*value, f64::from(n) / count)).collect()
    }
}

impl Deref for Values {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.0
    }
}

/// The mean of independent values that are not too far from normal, with its interval.
pub fn mean_within(values: impl IntoIterator<Item = f64>) -> Estimate {
    let values: Vec<f64> = values.into_iter().collect();
    Estimate::of_mean(&values, Level::NineteenInTwenty)
}

/// A quantity of runs, divided by the same of others; 1 if there are none, or the others have nothing of it.
fn ratio<R>(these: &[R], others: &[R], of: impl Fn(&[R]) -> f64) -> f64 {
    let others = of(others);
    if others > 0.0 && !these.is_empty() { of(these) / others } else { 1.0 }
}

/// A quantity of runs, divided by the same of as many others with the same seeds, with its interval by the bootstrap:
/// the same of pairs of runs drawn again and again from those that there are (Efron and Tibshirani 1993, chapter 13).
/// A single pair has no interval.
pub fn paired_ratio<R: Clone>(these: &[R], others: &[R], of: impl Fn(&[R]) -> f64) -> Estimate {
    const DRAWS: usize = 1000;
    let count = these.len().min(others.len());
    let (these, others) = (&these[..count], &others[..count]);
    let value = ratio(these, others, &of);
    if count < 2 {
        return Estimate { value, within: Interval { low: None, high: None } };
    }
    let mut rng = sutura_random::Rng::new(0);
    let mut draw = |_| {
        let drawn = (0..count).map(|_| rng.index(count));
        let pair = |at: usize| (these[at].clone(), others[at].clone());
        let (these, others): (Vec<R>, Vec<R>) = drawn.map(pair).unzip();
        ratio(&these, &others, &of)
    };
    let draws = Values::of((0..DRAWS).map(&mut draw));
    let [low, high] = [0.025, 0.975].map(|q| Some(draws.at(q)));
    Estimate { value, within: Interval { low, high } }
}

/// The mean of a figure of `all`; 0 if there are none.
pub fn mean_of<T>(all: &[T], value: impl Fn(&T) -> f64) -> f64 {
    statistics::mean(all.iter().map(value))
}

/// The share of `all` for which `holds` returns true, 0 to 1; 0 if there are none.
pub fn share<T>(all: &[T], holds: impl Fn(&T) -> bool) -> f64 {
    all.iter().filter(|value| holds(value)).count() as f64 / all.len().max(1) as f64
}

/// A configuration that can be run without protection and with it.
pub trait Subject: Clone + Sync {
    /// The outcome of a run.
    type Outcome: Serialize + DeserializeOwned + Send;

    /// How far apart the seeds of a configuration and of the next one are; 0 if all have the same seeds.
    const APART: u64;

    /// The same over a path without losses.
    #[must_use]
    fn lossless(&self) -> Self;

    /// Runs it once.
    ///
    /// # Errors
    /// The simulation fails.
    fn run(&self, protection: Option<&Protection>, seed: u64) -> Result<Self::Outcome, Error>;
}

/// A configuration without protection and with each of several policies, with the same seeds.
#[derive(Clone, Debug)]
pub struct Compared<S: Subject> {
    /// The configuration.
    pub setup: S,
    /// Without protection.
    pub plain: Vec<S::Outcome>,
    /// With each policy; no more runs than in `plain`.
    pub policies: Vec<Vec<S::Outcome>>,
    /// Without protection on the same path without losses, if that was run.
    pub ideal: Option<S::Outcome>,
}

impl<S: Subject> Compared<S> {
    /// Runs each of `setups` with each of `policies` and without: with the first policy `seeds` times, as
    /// without, and with each further policy `others` times.
    ///
    /// # Errors
    /// There is no such policy, or a simulation fails.
    pub fn measure(
        options: &Options,
        setups: &[S],
        policies: &[&str],
        [seeds, others]: [u64; 2],
    ) -> Result<Vec<Self>, Error> {
        let others = others.min(seeds);
        let named = std::iter::once(None).chain(policies.iter().copied().map(Some));
        let protection = |name| Ok(options.redundancy(name)?.map(Protection::new));
        let protections = named.map(protection).collect::<Result<Vec<_>, Error>>()?;
        let runs = |index: usize| if index < 2 { seeds } else { others };
        let mut jobs = Vec::new();
        for (place, setup) in (0u64..).zip(setups) {
            for (index, protection) in protections.iter().enumerate() {
                let first = place * S::APART;
                jobs.extend((0..runs(index)).map(|n| (setup, protection, first + n)));
            }
        }
        let outcomes = parallel::map(options, &jobs, |(setup, protection, part)| {
            setup.run(protection.as_ref(), seed(options.seed, *part))
        })?;
        let mut outcomes = outcomes.into_iter();
        let mut take = |index| {
            let count = usize::try_from(runs(index)).unwrap_or(usize::MAX);
            outcomes.by_ref().take(count).collect::<Vec<_>>()
        };
        let of_setup = |setup: &S| Self {
            setup: setup.clone(),
            plain: take(0),
            policies: (1..protections.len()).map(&mut take).collect(),
            ideal: None,
        };
        Ok(setups.iter().map(of_setup).collect())
    }

    /// Does the same, and runs each of `setups` without losses.
    ///
    /// # Errors
    /// As for [`measure`](Self::measure).
    pub fn measure_to_ideal(
        options: &Options,
        setups: &[S],
        policies: &[&str],
        seeds: [u64; 2],
    ) -> Result<Vec<Self>, Error> {
        let mut compared = Self::measure(options, setups, policies, seeds)?;
        let ideals =
            parallel::map(options, setups, |setup| setup.lossless().run(None, options.seed))?;
        for (compared, ideal) in compared.iter_mut().zip(ideals) {
            compared.ideal = Some(ideal);
        }
        Ok(compared)
    }

    /// The runs with a policy.
    pub fn with(&self, policy: usize) -> &[S::Outcome] {
        self.policies.get(policy).map_or(&[], Vec::as_slice)
    }

    /// A quantity of the runs with a policy, divided by the same quantity without protection.
    pub fn ratio(&self, policy: usize, of: impl Fn(&[S::Outcome]) -> f64) -> f64 {
        let with = self.with(policy);
        ratio(with, self.plain.get(..with.len()).unwrap_or(&self.plain), of)
    }

    /// The [`ratio`](Self::ratio) with its interval, as a cell of a table.
    pub fn ratio_cell(&self, policy: usize, of: impl Fn(&[S::Outcome]) -> f64) -> Cell
    where
        S::Outcome: Clone,
    {
        Cell::NumberWithin(paired_ratio(self.with(policy), &self.plain, of))
    }

    /// A quantity of the run without losses, divided by the same quantity without protection.
    pub fn ideal_ratio(&self, of: impl Fn(&[S::Outcome]) -> f64) -> Option<f64> {
        let ideal = self.ideal.as_ref().map(std::slice::from_ref);
        ideal.map(|ideal| of(ideal) / of(&self.plain))
    }
}

/// Comparisons of a kind, such as the comparisons over all paths.
pub type Grouped<K, S> = (K, Vec<Compared<S>>);

/// A policy on comparisons of a kind: a row of a table.
pub struct Arm<'a, K, S: Subject> {
    index: usize,
    /// The policy.
    pub policy: &'a str,
    /// Which kind it is.
    pub kind: &'a K,
    /// The comparisons.
    pub all: &'a [Compared<S>],
}

impl<'a, K, S: Subject> Arm<'a, K, S> {
    /// An arm for each of `policies`, in their order, and each of `groups`.
    pub fn each(policies: &[&'a str], groups: &'a [Grouped<K, S>]) -> Vec<Self> {
        let of_policy = |(index, policy): (usize, &&'a str)| {
            let policy = *policy;
            groups.iter().map(move |(kind, all)| Self { index, policy, kind, all })
        };
        policies.iter().enumerate().flat_map(of_policy).collect()
    }

    /// The [`ratio`](Compared::ratio) of each comparison.
    pub fn ratios(&self, of: impl Fn(&[S::Outcome]) -> f64 + Copy) -> Values {
        Values::of(self.all.iter().map(|compared| compared.ratio(self.index, of)))
    }

    /// The [`ideal_ratio`](Compared::ideal_ratio) of each comparison.
    pub fn ideal_ratios(&self, of: impl Fn(&[S::Outcome]) -> f64 + Copy) -> Values {
        Values::of(self.all.iter().filter_map(|compared| compared.ideal_ratio(of)))
    }

    /// How many runs with the policy a comparison has.
    pub fn runs(&self) -> Option<usize> {
        self.all.first().map(|compared| compared.with(self.index).len())
    }

    /// The mean over the comparisons of the mean of a figure of the runs with the policy, as a cell of a table.
    pub fn mean(&self, value: impl Fn(&S::Outcome) -> f64) -> Cell {
        let mean = |compared: &Compared<S>| mean_of(compared.with(self.index), &value);
        Cell::NumberWithin(mean_within(self.all.iter().map(mean)))
    }
}

/// A redundancy policy, or none.
pub type Policy = Option<Arc<dyn RedundancyFactory>>;

/// The redundancy policy `name`, or none.
///
/// # Errors
/// There is no such policy.
pub fn redundancy(name: Option<&str>) -> Result<Policy, Error> {
    Ok(name.map(|name| sutura_research::redundancy().find(name)).transpose()?)
}

/// The protection by the policy `name`, or none.
///
/// # Errors
/// There is no such policy.
pub fn protection(name: Option<&str>) -> Result<Option<Protection>, Error> {
    Ok(redundancy(name)?.map(Protection::new))
}

/// The outcome of a simulation; `None` if the connection broke, since a burst of losses may outlast all
/// probes of the idle timeout.
///
/// # Errors
/// The simulation failed in another way.
pub fn unless_broken<T>(outcome: Result<T, Failure>) -> Result<Option<T>, Error> {
    match outcome {
        Ok(outcome) => Ok(Some(outcome)),
        Err(Failure { kind: FailureKind::ConnectionLost(_), .. }) => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_stay_with_their_setup() {
        let measured = Runs::measure(&Options::default(), &[10, 20], 3, |setup, n| {
            Ok::<_, Error>(*setup as f64 + n as f64)
        });
        let measured = measured.unwrap();
        assert_eq!(measured[0].runs, [10.0, 11.0, 12.0]);
        assert_eq!((measured[1].setup, &measured[1].runs[..]), (20, &[20.0, 21.0, 22.0][..]));
        assert_eq!((measured[1].mean(|n| *n), measured[1].most(|n| *n)), (21.0, 22.0));
        assert_eq!(measured[0].values(|n| -n).at(0.5), -11.0);
    }

    #[test]
    fn few_runs_are_taken_in_parts() {
        let runs: Vec<Vec<Duration>> =
            (0..10).map(|run| vec![Duration::from_millis(run); 40]).collect();
        let all = pooled(runs.iter().map(Vec::as_slice), |time| (*time, 1));
        assert_eq!((all.total(), all.quantile(0.5)), (400, Duration::from_millis(4)));
        // Half of the 20 parts do not exceed the median with any of their values.
        assert_eq!(all.cell(0.5).to_string(), "4.0 ms (2.0..7.0)");
        assert_eq!(Distribution::of(runs.concat()).cell(0.5).to_string(), "4.0 ms (4.0..5.0)");
    }

    #[test]
    fn a_curve_ends_at_one() {
        let values = Values::of([2.0, 1.0]);
        assert_eq!(values.curve(), [(1.0, 0.5), (2.0, 1.0)]);
        assert_eq!((values.at(0.5), values.share(|value| value > 1.5)), (1.0, 0.5));
        assert_eq!((Values::of([]).share(|_| true), Values::of([]).at(0.5)), (0.0, 0.0));
    }

    /// Takes longer by its number and its seed, and half as long with protection.
    #[derive(Clone, Debug)]
    struct Numbered(f64);

    impl Subject for Numbered {
        type Outcome = f64;

        const APART: u64 = 100;

        fn lossless(&self) -> Self {
            Self(self.0 / 10.0)
        }

        fn run(&self, protection: Option<&Protection>, seed: u64) -> Result<f64, Error> {
            let time = self.0 + (seed % 1000) as f64 / 1000.0;
            Ok(if protection.is_some() { time / 2.0 } else { time })
        }
    }

    #[test]
    fn policies_are_compared_with_the_same_seeds() {
        let setups = [Numbered(1000.0), Numbered(2000.0)];
        let first = |outcomes: &[f64]| outcomes.last().copied().unwrap_or(0.0);
        let policies = ["tail", "auto"];
        let compared =
            Compared::measure_to_ideal(&Options::default(), &setups, &policies, [4, 2]).unwrap();
        for compared in &compared {
            let counts: Vec<_> = compared.policies.iter().map(Vec::len).collect();
            assert_eq!((compared.plain.len(), counts), (4, vec![4, 2]));
            assert_eq!([0, 1, 2].map(|policy| compared.ratio(policy, first)), [0.5, 0.5, 1.0]);
            assert!((compared.ideal_ratio(first).unwrap() - 0.1).abs() < 0.001);
            // Protection halves each time, whichever runs are drawn.
            assert_eq!(compared.ratio_cell(0, first).to_string(), "0.500 (0.500..0.500)");
        }
        assert_ne!(compared[0].plain[0].fract(), compared[1].plain[0].fract());
        let groups = [((), compared)];
        let arms = Arm::each(&policies, &groups);
        assert_eq!(arms[0].ratios(first), Values::of([0.5, 0.5]));
        assert_eq!((arms[0].ideal_ratios(first).len(), arms[1].policy), (2, "auto"));
        let unknown = Compared::measure(&Options::default(), &setups, &["nonsense"], [1, 1]);
        assert!(matches!(unknown, Err(Error::Policy(_))));
    }
}
