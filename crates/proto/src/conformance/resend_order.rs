//! Whether an order keeps the contract of [`ResendOrder`].
//!
//! [`ResendOrder`]: crate::policy::ResendOrder

mod history;
#[cfg(test)]
mod tests;
mod watched;

use crate::streams::resend_order::ResendOrderFactory;
use history::Step;
use sutura_random::Rng;
use sutura_schedule::{SCHEDULERS, SchedulerFactory, StreamKey};
use watched::Watched;

/// Histories that are played with each scheduler, and steps in each.
const HISTORIES: u64 = 4;
const STEPS: usize = 200;

/// Drives the orders of `factory` through random histories of a connection that opens and ends
/// streams and loses and resends what they send, beside a list of what waits. The connection's new
/// data is scheduled by each of the built-in schedulers in turn.
///
/// ```
/// use sutura_proto::{conformance, policy::ByLoss};
///
/// conformance::resend_order(&ByLoss);
/// ```
///
/// # Panics
/// An order breaks a rule, which the message names:
///
/// * `next` names a stream whenever something waits, and only one of which something does. That
///   holds whatever the precedence is: without connection credit nothing else says what goes.
/// * Questions change nothing.
/// * A call that names a stream that was not inserted, or was removed, changes nothing.
/// * The precedence is the same at all times.
/// * Orders are independent of each other, and those that hear the same answer the same.
/// * The name stays as it is.
pub fn resend_order(factory: &dyn ResendOrderFactory) {
    let name = factory.name().to_owned();
    assert!(!name.is_empty(), "an order has a name");
    for scheduler in SCHEDULERS.iter().filter_map(|entry| entry.make("").ok()) {
        (0..HISTORIES).for_each(|seed| play(factory, &*scheduler, seed));
    }
    assert_eq!(factory.name(), name, "{name}: the name of the factory changed");
}

/// Plays a random history to an order alone, to one beside another, and to one that is asked and
/// told of unknown streams all the time.
fn play(factory: &dyn ResendOrderFactory, scheduler: &dyn SchedulerFactory, seed: u64) {
    let mut random = Rng::new(seed);
    let steps: Vec<Step> = (0..STEPS).map(|_| Step::any(&mut random)).collect();
    let order = |seed| Watched::new(factory, scheduler, seed);
    let mut alone = order(seed);
    let answers: Vec<_> = steps.iter().map(|step| alone.play(step)).collect();
    let name = factory.name();

    let [mut beside, mut other] = [order(seed), order(!seed)];
    for ((step, foreign), expected) in steps.iter().zip(steps.iter().rev()).zip(&answers) {
        other.play(foreign);
        assert_eq!(
            beside.play(step),
            *expected,
            "{name}: two orders that heard the same differ after {step:?}, when one of them is \
             not the only one"
        );
    }

    let mut pestered = order(seed);
    for (step, expected) in steps.iter().zip(&answers) {
        pestered.ask_again();
        assert_eq!(
            pestered.play(step),
            *expected,
            "{name}: questions changed something; noticed after {step:?}"
        );
    }

    let mut pestered = order(seed);
    for (step, expected) in steps.iter().zip(&answers) {
        pestered.name_unknown(&mut random);
        assert_eq!(
            pestered.play(step),
            *expected,
            "{name}: a call that names an unknown stream changed something; noticed after {step:?}"
        );
    }
}

/// What an order answers: the stream that sends next of what it lost.
type Answer = Option<StreamKey>;
