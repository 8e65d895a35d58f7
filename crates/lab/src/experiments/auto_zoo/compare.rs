//! The policies on one case, and their distances with the same seeds.

use sutura_analysis::interval::{Estimate, Interval, Level};
use sutura_analysis::statistics::mean;

use super::apps::ZooApp;
use super::bed::Outcome;
use super::case::ZooCase;
use super::neighbour::NeighbourTime;
use super::{ArmRuns, ZooArm};
use crate::comparison::Values;

/// How much worse than none counts as harm: percentage points of late messages, and percent of the time of
/// files or of a neighbour.
pub const HARM: [f64; 2] = [0.1, 2.0];
/// What is added to both sides of a ratio of scores, since shares of late messages are 0 on many paths: what is
/// of no matter, as a share of the messages. Times of files are never 0, and nothing is added to them.
const RATIO_FLOOR: [f64; 2] = [HARM[0] / 100.0, 0.0];
/// Bytes that are equal but for chance.
const SAME_BYTES: f64 = 1.005;
/// A case with all policies: the first arm has none.
#[derive(Clone, Copy)]
pub struct Lineup<'a> {
    arms: &'a [ArmRuns],
    pub case: &'a ZooCase,
}

/// A figure of each seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BySeed(pub Vec<f64>);

impl BySeed {
    pub fn mean(&self) -> f64 {
        mean(self.0.iter().copied())
    }

    /// The mean of all seeds but one, or of that one if there are no others.
    fn mean_without(&self, seed: usize) -> f64 {
        let others =
            self.0.iter().enumerate().filter(|(other, _)| *other != seed || self.0.len() == 1);
        mean(others.map(|(_, value)| *value))
    }

    /// The interval that holds the mean nine times in ten; all numbers with a single seed.
    pub fn interval(&self) -> [f64; 2] {
        let Interval { low, high } = Estimate::of_mean(&self.0, Level::NineInTen).within;
        [low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY)]
    }
}

/// What a policy is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    None,
    /// What a perfect code makes of the policy's own packets; behind managed queues and policers and beside
    /// others, where other packets would have had other fates, the best fixed policy.
    Ideal,
    /// The best fixed policy that sends no more bytes, chosen afterwards.
    Fixed,
    /// The same, but chosen for each seed by the others, as somebody chooses who has measured the path before.
    Foreseen,
}

impl<'a> Lineup<'a> {
    /// The row of these arms, of which there is at least one.
    pub fn of(arms: &'a [ArmRuns]) -> Self {
        Self { arms, case: &arms[0].setup.case }
    }

    pub fn arms(&self) -> &'a [ArmRuns] {
        self.arms
    }

    /// Whether the score is a share of late messages, and not the time of files.
    pub fn is_feed(&self) -> bool {
        matches!(self.case.app, ZooApp::Feed(_))
    }

    /// How much worse than none counts as harm.
    pub fn harm(&self) -> f64 {
        HARM[usize::from(!self.is_feed())]
    }

    /// The unit of [`harm`](Self::harm) and of distances.
    pub fn unit(&self) -> &'static str {
        if self.is_feed() { "pp" } else { "%" }
    }

    /// A figure of each run of an arm.
    pub fn figures(&self, arm: usize, figure: impl Fn(&Outcome) -> f64) -> BySeed {
        BySeed(self.arms.get(arm).map_or(&[][..], |arm| &arm.runs).iter().map(figure).collect())
    }

    pub fn score(&self, arm: usize) -> BySeed {
        self.figures(arm, |run| run.score)
    }

    /// Bytes sent for each of the application.
    pub fn wire(&self, arm: usize) -> f64 {
        self.figures(arm, |run| run.wire).mean()
    }

    /// The fixed policy with the best score, which sends no more bytes than `most`.
    pub fn best_fixed(&self, most: f64) -> usize {
        self.best_fixed_by(most, BySeed::mean)
    }

    /// The fixed policy whose scores `figure` makes the least of, and which sends no more bytes than `most`.
    fn best_fixed_by(&self, most: f64, figure: impl Fn(&BySeed) -> f64) -> usize {
        let arms = self.arms.iter().enumerate().filter(|(_, arm)| is_fixed(&arm.setup));
        let able = arms.map(|(arm, _)| arm).filter(|arm| self.wire(*arm) <= most);
        let score = |arm: &usize| figure(&self.score(*arm));
        able.min_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or_default()
    }

    /// The best fixed policy, or none, that sends no more bytes than an arm.
    pub fn best_fixed_within(&self, arm: usize) -> usize {
        self.best_fixed(SAME_BYTES * self.wire(arm))
    }

    /// For each seed, the score of the fixed policy that is the best with the other seeds, if there are any, and sends
    /// no more bytes than an arm.
    pub fn foreseen(&self, arm: usize) -> BySeed {
        let most = SAME_BYTES * self.wire(arm);
        let without = |seed: usize| move |scores: &BySeed| scores.mean_without(seed);
        let seeds = 0..self.score(arm).0.len();
        let chosen = seeds.map(|seed| (seed, self.best_fixed_by(most, without(seed))));
        BySeed(chosen.filter_map(|(seed, arm)| self.score(arm).0.get(seed).copied()).collect())
    }

    fn reference(&self, arm: usize, reference: Reference) -> BySeed {
        match reference {
            Reference::None => self.score(0),
            Reference::Ideal => {
                self.ideal(arm).unwrap_or_else(|| self.score(self.best_fixed(f64::INFINITY)))
            }
            Reference::Fixed => self.score(self.best_fixed_within(arm)),
            Reference::Foreseen => self.foreseen(arm),
        }
    }

    /// The score of a perfect code with the packets of an arm, where other packets would have had the same fates.
    pub fn ideal(&self, arm: usize) -> Option<BySeed> {
        let ideal = |run: &Outcome| run.ideal.unwrap_or(run.score);
        self.case.is_plain().then(|| self.figures(arm, ideal))
    }

    /// How much worse one score is than another: in percentage points of messages, or in percent of the time of
    /// files without redundancy.
    fn change(&self, one: BySeed, other: BySeed) -> BySeed {
        let whole = if self.is_feed() { 1.0 } else { self.score(0).mean() };
        let pairs = one.0.into_iter().zip(other.0);
        BySeed(pairs.map(|(one, other)| percent(one - other, whole)).collect())
    }

    /// How much worse an arm is than what it is compared with, in the unit of [`HARM`].
    pub fn distance(&self, arm: usize, reference: Reference) -> BySeed {
        self.change(self.score(arm), self.reference(arm, reference))
    }

    /// Whether an arm other than that without redundancy has a fixed policy.
    pub fn has_fixed(&self) -> bool {
        self.arms.iter().skip(1).any(|arm| is_fixed(&arm.setup))
    }

    /// Whether an arm is no worse than what it is compared with, or by no more than is of no matter.
    pub fn is_level(&self, arm: usize, reference: Reference) -> bool {
        self.distance(arm, reference).mean() <= self.harm()
    }

    /// Whether an arm is worse than another one, certainly and by more than is of no matter.
    pub fn is_worse(&self, arm: usize, other: usize) -> bool {
        let change = self.change(self.score(arm), self.score(other));
        change.interval()[0] > self.harm()
    }

    /// The [ratio](Self::ratio_of) of an arm to what it is compared with.
    pub fn ratio(&self, arm: usize, reference: Reference) -> f64 {
        self.ratio_of(arm, &self.reference(arm, reference))
    }

    /// The mean score of an arm as a multiple of the mean of another, after [`RATIO_FLOOR`] was added to both.
    pub fn ratio_of(&self, arm: usize, other: &BySeed) -> f64 {
        let floor = RATIO_FLOOR[usize::from(!self.is_feed())];
        (self.score(arm).mean() + floor) / (other.mean() + floor)
    }

    /// Whether the ideal is known for the packets of an arm, and is better than what a perfect code makes of those
    /// of none, certainly and by more than is of no matter. Elsewhere nothing was to be gained with the arm's
    /// repair symbols, and a ratio says nothing.
    pub fn has_ideal(&self, arm: usize) -> bool {
        let gain = self.ideal(arm).zip(self.ideal(0)).map(|(own, none)| self.change(own, none));
        gain.is_some_and(|gain| gain.interval()[1] < -self.harm())
    }

    /// By how many percent the neighbour takes longer than without redundancy; `None` without a neighbour.
    pub fn neighbour(&self, arm: usize, time: NeighbourTime) -> Option<BySeed> {
        self.case.beside?;
        let pairs = self.neighbour_times(arm, time).0.into_iter();
        let pairs = pairs.zip(self.neighbour_times(0, time).0);
        Some(BySeed(pairs.map(|(with, without)| percent(with - without, without)).collect()))
    }

    /// What the neighbour takes beside an arm, in seconds.
    pub fn neighbour_times(&self, arm: usize, time: NeighbourTime) -> BySeed {
        self.figures(arm, |run| run.neighbour.as_ref().map(time).unwrap_or_default())
    }

    /// Whether the 95th percentile of the neighbour's times is longer beside an arm than beside none, certainly
    /// and by more than is of no matter.
    pub fn is_slowed(&self, arm: usize) -> bool {
        let change = self.neighbour(arm, |times| times.p95);
        change.is_some_and(|change| change.interval()[0] > HARM[1])
    }

    /// Whether an arm is worse than none on average by more than is of no matter, perhaps by chance.
    pub fn seems_harmed(&self, arm: usize) -> bool {
        self.distance(arm, Reference::None).mean() > self.harm()
    }

    /// Whether an arm is worse than none, certainly and by more than is of no matter.
    pub fn is_harmed(&self, arm: usize) -> bool {
        self.is_worse(arm, 0)
    }
}

/// Whether an arm has none, or a policy that does not set itself.
fn is_fixed(arm: &ZooArm) -> bool {
    arm.policy.as_ref().is_none_or(|name| !name.starts_with("auto"))
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

/// A figure of many cases, and how much its quantiles differ from seed to seed.
pub struct Spread {
    all: Vec<BySeed>,
}

impl Spread {
    pub fn of(all: impl IntoIterator<Item = BySeed>) -> Self {
        Self { all: all.into_iter().collect() }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The means of the seeds of each case.
    fn means(&self) -> Values {
        Values::of(self.all.iter().map(BySeed::mean))
    }

    pub fn mean(&self) -> f64 {
        mean(self.all.iter().map(BySeed::mean))
    }

    /// The quantile of the means, and the smallest and the largest quantile of a single seed.
    pub fn quantile(&self, q: f64) -> String {
        let seeds = self.all.iter().map(|case| case.0.len()).min().unwrap_or_default();
        let of_seed = |n: usize| Values::of(self.all.iter().map(|case| case.0[n])).at(q);
        let single = Values::of((0..seeds).map(of_seed));
        let [mean, low, high] = [self.means().at(q), single.at(0.0), single.at(1.0)];
        // No minus in front of a zero.
        let [mean, low, high] = [mean, low, high].map(|v| (100.0 * v).round() / 100.0 + 0.0);
        format!("{mean:.2} ({low:.2}..{high:.2})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_narrows_with_seeds_that_agree() {
        assert_eq!(BySeed(vec![1.0, 1.0, 1.0]).interval(), [1.0, 1.0]);
        let [low, high] = BySeed(vec![0.0, 1.0, 2.0]).interval();
        assert!((high - low - 2.0 * 2.920 / 3f64.sqrt()).abs() < 1e-9 && low < 0.0);
        assert_eq!(BySeed(vec![5.0]).interval(), [f64::NEG_INFINITY, f64::INFINITY]);
    }

    #[test]
    fn a_quantile_tells_how_much_seeds_differ() {
        let spread = Spread::of([[0.0, 2.0], [1.0, 3.0], [2.0, 4.0]].map(|s| BySeed(s.to_vec())));
        assert_eq!((spread.len(), spread.mean()), (3, 2.0));
        assert_eq!(spread.quantile(0.5), "2.00 (1.00..3.00)");
    }
}
