//! Checks whether an order keeps the contract of [`ResendOrder`].
//!
//! [`ResendOrder`]: crate::policy::ResendOrder

mod history;
#[cfg(test)]
mod tests;
mod watched;

use crate::streams::resend_order::ResendOrderFactory;
use history::QueueStep;
use sutura_random::Rng;
use sutura_schedule::{SCHEDULERS, SchedulerFactory, StreamKey};
use watched::WatchedOrder;

/// Number of histories per scheduler, and of steps in each.
const HISTORIES: u64 = 4;
const STEPS: usize = 200;

/// Tests the orders of `factory` with random histories of a connection, and compares them with a list of the
/// waiting frames. The connection opens and closes streams, and loses and resends their data. Its new data is
/// scheduled by each of the built-in schedulers in turn.
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
/// * `next` returns a stream whenever frames wait, and only a stream with waiting frames. This holds for
///   every precedence: without connection credit, the order alone decides which data is sent.
/// * Queries change nothing.
/// * A call for a stream that was not inserted, or that was removed, changes nothing.
/// * The precedence never changes.
/// * Orders are independent of each other, and give the same answers after the same calls.
/// * The name never changes.
pub fn resend_order(factory: &dyn ResendOrderFactory) {
    let name = factory.name().to_owned();
    assert!(!name.is_empty(), "an order has a name");
    for scheduler in SCHEDULERS.iter().filter_map(|entry| entry.make("").ok()) {
        (0..HISTORIES).for_each(|seed| play(factory, &*scheduler, seed));
    }
    assert_eq!(factory.name(), name, "{name}: the name of the factory changed");
}

/// Plays a random history to an order alone, to an order alongside another, to an order that is queried all
/// the time, and to an order that is told of unknown streams all the time.
fn play(factory: &dyn ResendOrderFactory, scheduler: &dyn SchedulerFactory, seed: u64) {
    let mut random = Rng::new(seed);
    let steps: Vec<QueueStep> = (0..STEPS).map(|_| QueueStep::any(&mut random)).collect();
    let order = |seed| WatchedOrder::new(factory, scheduler, seed);
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

/// The answer of an order: the stream that resends lost data next.
type Answer = Option<StreamKey>;
