//! Whether a policy keeps the contract of [`LossReaction`].
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

/// Histories that are played, and losses in each.
const HISTORIES: u64 = 48;
const LOSSES: usize = 100;
/// The longest that data is held which has no deadline, or one that is sooner: probe timeouts.
const MAX_HOLD_PTOS: u32 = 3;
/// How often the same loss may be held, one time after the other.
const MAX_HOLDS: u32 = 16;

/// Reports random losses to the policies of `factory`: of bare and of protected data, with and
/// without deadlines, of bytes and of bare ends of streams, on paths with sane and with extreme
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
/// * Data is held for three probe timeouts at most, or until its deadline if that is later.
/// * Nothing is held for ever: a policy to which the same loss is reported again and again, each
///   time when the wait for it is over, resends or drops it within 16 rounds. A wait is measured
///   from when the data or a repair symbol was sent; if it is measured from the present, it has to
///   be counted.
/// * The code with which data is dropped can be encoded: it is below 2^62.
/// * Policies are independent of each other, and those that hear the same say the same.
/// * The name stays as it is.
/// * No call panics, whatever was lost, nor when a century passes between two.
pub fn loss_reaction(factory: &dyn LossReactionFactory) {
    let name = factory.name().to_owned();
    assert!(!name.is_empty(), "a policy has a name");
    // Nothing depends on which instant that is.
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

/// Plays the history again, beside another policy of the factory that hears something else.
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

/// Reports a loss until it is held no longer.
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
