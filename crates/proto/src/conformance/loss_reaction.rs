//! Checks whether a policy keeps the contract of [`LossReaction`].
//!
//! [`LossReaction`]: crate::policy::LossReaction

mod loss;
#[cfg(test)]
mod tests;

use crate::loss_reaction::{LossReaction, LossReactionFactory, Verdict};
use crate::wire::coding::VARINT_MAX;
use loss::Loss;
use std::time::Instant;
use sutura_random::Rng;

/// Number of histories, and of losses in each.
const HISTORIES: u64 = 48;
const LOSSES: usize = 100;
/// Maximum time, in probe timeouts, for holding data that has no deadline or an earlier one.
const MAX_HOLD_PTOS: u32 = 3;
/// How many times in a row the same loss may be held.
const MAX_HOLDS: u32 = 16;

/// Reports random losses to the policies of `factory`: of unprotected and protected data, with and
/// without deadlines, of bytes and of bare FINs, on paths with realistic and with extreme
/// round-trip times.
///
/// ```
/// use sutura_proto::{conformance, policy::HoldForRepair};
///
/// conformance::loss_reaction(&HoldForRepair);
/// ```
///
/// # Panics
/// A policy breaks a rule, which the message names:
///
/// * Data is held for at most three probe timeouts, or until its deadline if that is later.
/// * Nothing is held forever. If the same loss is reported again and again, each time when its
///   waiting time is over, the policy resends or drops the data within 16 rounds. Waiting times
///   should be measured from when the data or a repair symbol was sent; a policy that measures them
///   from the present has to count the rounds.
/// * The code with which data is dropped can be encoded: it is below 2^62.
/// * Policies are independent of each other, and give the same verdicts for the same losses.
/// * The name never changes.
/// * No call panics, whatever the lost data, even if a century passes between two calls.
pub fn loss_reaction(factory: &dyn LossReactionFactory) {
    let name = factory.name().to_owned();
    assert!(!name.is_empty(), "a policy has a name");
    // The result does not depend on the start time.
    let start = Instant::now();
    for seed in 0..HISTORIES {
        let losses = history(start, seed);
        let mut alone = factory.build();
        let verdicts: Vec<_> = losses.iter().map(|loss| report(&name, &mut *alone, loss)).collect();
        compare(factory, &losses, &verdicts);
        losses.iter().for_each(|loss| insist(&name, &mut *alone, loss));
    }
    assert_eq!(factory.name(), name, "{name}: the name of the factory changed");
}

fn history(start: Instant, seed: u64) -> Vec<Loss> {
    let mut random = Rng::new(seed);
    let mut now = start;
    let mut next = || {
        let loss = Loss::any(&mut random, now);
        now = loss.now;
        loss
    };
    (0..LOSSES).map(|_| next()).collect()
}

/// Reports a loss, and checks the verdict.
fn report(name: &str, policy: &mut dyn LossReaction, loss: &Loss) -> Verdict {
    let Loss { now, data } = loss;
    let verdict = policy.on_lost(*now, data);
    match verdict {
        Verdict::Resend => {}
        Verdict::Hold { until } => {
            let longest =
                data.pto.checked_mul(MAX_HOLD_PTOS).and_then(|time| now.checked_add(time));
            let latest = longest.max(data.deadline);
            assert!(
                latest.is_none_or(|latest| until <= latest),
                "{name}: data is held for {:?}, which is more than {MAX_HOLD_PTOS} probe timeouts \
                 and beyond its deadline: {data:?}",
                until.saturating_duration_since(*now)
            );
        }
        Verdict::Drop { code } => assert!(
            code <= VARINT_MAX,
            "{name}: data is dropped with the code {code:#x}, which cannot be encoded (RFC 9000 \
             section 16)"
        ),
    }
    verdict
}

/// Plays the history again, alongside another policy of the factory that plays another history.
fn compare(factory: &dyn LossReactionFactory, losses: &[Loss], verdicts: &[Verdict]) {
    let name = factory.name();
    let [mut policy, mut other] = [factory.build(), factory.build()];
    for ((loss, foreign), expected) in losses.iter().zip(losses.iter().rev()).zip(verdicts) {
        report(name, &mut *other, foreign);
        assert_eq!(
            report(name, &mut *policy, loss),
            *expected,
            "{name}: two policies that heard the same differ after {loss:?}, when one of them is \
             not the only one"
        );
    }
}

/// Reports a loss until it is no longer held.
fn insist(name: &str, policy: &mut dyn LossReaction, loss: &Loss) {
    let mut loss = loss.clone();
    let mut holds = 0;
    while let Verdict::Hold { until } = report(name, policy, &loss) {
        holds += 1;
        assert!(
            holds <= MAX_HOLDS,
            "{name}: data was held {MAX_HOLDS} times and is held again: {:?}",
            loss.data
        );
        loss.now = loss.now.max(until);
    }
}
