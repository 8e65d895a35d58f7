//! A zoo of channels: random applications over random paths for which nobody has tuned the policies, and how far
//! each policy is from the ideal, from the best fixed redundancy and from none.

mod apps;
mod bed;
mod case;
mod compare;
mod ideal;
mod neighbour;
mod packets;
mod paths;
mod report;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

pub(super) use self::apps::ZooApp;
pub(super) use self::bed::Outcome;
pub(super) use self::case::ZooCase;
pub(super) use self::compare::{Lineup, Reference};
#[cfg(test)]
pub(super) use self::paths::Extent;
pub(super) use self::report::{interval, name as policy_name};
use crate::comparison::{Runs, seed};
use crate::report::Report;
use crate::{Error, Options};

/// Cases, unless the options name a number.
const PATHS: u64 = 500;
/// Runs of each case with each policy.
const SEEDS: u64 = 5;
/// Runs of each case that the first policy seems to harm, with other seeds: of hundreds of cases, chance alone makes
/// some look harmed.
const FURTHER_SEEDS: u64 = 25;
/// The policies, unless the options name some. The report goes into the details of the first.
const POLICIES: [&str; 8] = [
    "auto",
    "tail:burst=1",
    "tail:burst=3",
    "incremental:burst=1",
    "incremental:burst=3",
    "block",
    "bulk",
    "background",
];

experiment! {
    "auto-zoo": "Random applications over random paths, with every kind of redundancy" (Seeds, Paths, Only, Policies, Traces),
    one in 12 takes 15 s
}

/// A case with a policy.
#[derive(Clone, Debug)]
pub(super) struct ZooArm {
    case: Arc<ZooCase>,
    /// `None` for none.
    policy: Option<String>,
}

/// The runs of an arm.
pub(super) type ArmRuns = Runs<ZooArm, Outcome>;

fn run(options: &Options) -> Result<Report, Error> {
    let cases = cases(options)?;
    let policies = policies(options);
    let seeds = options.seeds(SEEDS);
    let arms = measure(options, &cases, &policies, 0..seeds)?;
    let rows = lineups(&arms, &policies);
    let alone = report::Alone::of(options);
    if options.only.is_some() {
        return Ok(report::of_one(&rows, &alone));
    }
    let further = further(options, &rows, &policies, seeds)?;
    Ok(report::of_all(&rows, &lineups(&further, &policies[..1]), &policies, &alone))
}

pub(super) fn lineups<'a>(arms: &'a [ArmRuns], policies: &[String]) -> Vec<Lineup<'a>> {
    arms.chunks(policies.len() + 1).map(Lineup::of).collect()
}

/// Runs the cases that the first policy seems to harm with further seeds, to tell harm from chance.
fn further(
    options: &Options,
    rows: &[Lineup<'_>],
    policies: &[String],
    seeds: u64,
) -> Result<Vec<ArmRuns>, Error> {
    let harmed = rows.iter().filter(|row| row.is_harmed(1) || row.is_slowed(1));
    let cases: Vec<ZooCase> = harmed.map(|row| row.case.clone()).collect();
    let count = options.reduced(FURTHER_SEEDS);
    measure(options, &cases, &policies[..1], seeds..seeds + count)
}

/// The cases that the options ask for.
fn cases(options: &Options) -> Result<Vec<ZooCase>, Error> {
    let numbers = match options.only {
        Some(number) => number..number + 1,
        None => 0..options.paths.unwrap_or_else(|| options.reduced(PATHS)),
    };
    numbers.map(|number| ZooCase::draw(options.seed, number, &options.traces)).collect()
}

fn policies(options: &Options) -> Vec<String> {
    options.policies_or(&POLICIES).into_iter().map(str::to_owned).collect()
}

/// Runs each case without redundancy and with each policy, with the seeds of these numbers.
pub(super) fn measure(
    options: &Options,
    cases: &[ZooCase],
    policies: &[String],
    seeds: Range<u64>,
) -> Result<Vec<ArmRuns>, Error> {
    let mut arms = Vec::new();
    for case in cases {
        let case = Arc::new(case.clone());
        let named = std::iter::once(None).chain(policies.iter().cloned().map(Some));
        arms.extend(named.map(|policy| ZooArm { case: case.clone(), policy }));
    }
    Runs::measure(options, &arms, seeds.end - seeds.start, |arm, n| {
        let policy = options.redundancy(arm.policy.as_deref())?;
        // Its seeds stay the same when a case is run alone.
        let own = seed(options.seed ^ arm.case.number.rotate_left(32), seeds.start + n);
        bed::run(&arm.case, &policy, own)
    })
}
