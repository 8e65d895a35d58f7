//! The policies on one case, and their distances with the same seeds.

use sutura_analysis::statistics::mean;

use super::apps::ZooApp;
use super::bed::Outcome;
use super::case::ZooCase;
use super::{ArmRuns, ZooArm};
use crate::comparison::Values;

/// How much worse than none counts as harm: percentage points of late messages, and percent of the time of
/// files or of a neighbour.
pub const HARM: [f64; 2] = [0.1, 2.0];
/// Bytes that are equal but for chance.
const SAME_BYTES: f64 = 1.005;
/// Student's t for the lower end of an interval that holds nine times in ten, by the number of seeds less one.
const STUDENT: [f64; 10] = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812];
/// The same for many seeds.
const NORMAL: f64 = 1.645;

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

    /// The interval that holds the mean nine times in ten; all numbers with a single seed.
    pub fn interval(&self) -> [f64; 2] {
        let (count, mean) = (self.0.len(), self.mean());
        let Some(freedom) = count.checked_sub(1).filter(|freedom| *freedom > 0) else {
            return [f64::NEG_INFINITY, f64::INFINITY];
        };
        let squares: f64 = self.0.iter().map(|value| (value - mean).powi(2)).sum();
        let t = STUDENT.get(freedom - 1).copied().unwrap_or(NORMAL);
        let half = t * (squares / freedom as f64 / count as f64).sqrt();
        [mean - half, mean + half]
    }
}

/// What a policy is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    None,
    /// What a perfect code makes of the policy's own packets; behind managed queues and policers and beside
    /// others, where other packets would have had other fates, the best fixed policy.
    Ideal,
    /// The best fixed policy that sends no more bytes.
    Fixed,
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

    /// A figure of each run of an arm.
    pub fn figures(&self, arm: usize, figure: impl Fn(&Outcome) -> f64) -> BySeed {
        BySeed(self.arms.get(arm).map_or(&[][..], |arm| &arm.runs).iter().map(figure).collect())
    }

    fn score(&self, arm: usize) -> BySeed {
        self.figures(arm, |run| run.score)
    }

    fn wire(&self, arm: usize) -> f64 {
        self.figures(arm, |run| run.wire).mean()
    }

    /// The fixed policy with the best score, which sends no more bytes than `most`.
    pub fn best_fixed(&self, most: f64) -> usize {
        let fixed = |arm: &ZooArm| arm.policy.as_ref().is_none_or(|name| !name.starts_with("auto"));
        let arms = self.arms.iter().enumerate().filter(|(_, arm)| fixed(&arm.setup));
        let able = arms.map(|(arm, _)| arm).filter(|arm| self.wire(*arm) <= most);
        let score = |arm: &usize| self.score(*arm).mean();
        able.min_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or_default()
    }

    fn reference(&self, arm: usize, reference: Reference) -> BySeed {
        match reference {
            Reference::None => self.score(0),
            Reference::Ideal if self.case.is_plain() => {
                self.figures(arm, |run| run.ideal.unwrap_or(run.score))
            }
            Reference::Ideal => self.score(self.best_fixed(f64::INFINITY)),
            Reference::Fixed => self.score(self.best_fixed(SAME_BYTES * self.wire(arm))),
        }
    }

    /// How much worse an arm is: in percentage points of messages, or in percent of the time of files without
    /// redundancy.
    pub fn distance(&self, arm: usize, reference: Reference) -> BySeed {
        let whole = if self.is_feed() { 1.0 } else { self.score(0).mean() };
        let pairs = self.score(arm).0.into_iter().zip(self.reference(arm, reference).0);
        BySeed(pairs.map(|(own, other)| percent(own - other, whole)).collect())
    }

    /// By how many percent the neighbour takes longer than without redundancy; `None` without a neighbour.
    pub fn neighbour(&self, arm: usize) -> Option<BySeed> {
        self.case.beside?;
        let times = |arm| self.figures(arm, |run| run.neighbour.unwrap_or_default()).0;
        let pairs = times(arm).into_iter().zip(times(0));
        Some(BySeed(pairs.map(|(with, without)| percent(with - without, without)).collect()))
    }

    /// Whether an arm is worse than none on average by more than is of no matter, perhaps by chance.
    pub fn seems_harmed(&self, arm: usize) -> bool {
        self.distance(arm, Reference::None).mean() > self.harm()
    }

    /// Whether an arm is worse than none, certainly and by more than is of no matter.
    pub fn is_harmed(&self, arm: usize) -> bool {
        self.distance(arm, Reference::None).interval()[0] > self.harm()
    }
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
