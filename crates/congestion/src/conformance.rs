//! The test kit for controllers: checks whether one keeps the contract of [`CongestionController`].

mod history;
mod rounds;
#[cfg(test)]
mod tests;
mod watched;

use crate::bottleneck::{BottleneckPath, MTU, Simulation};
use crate::{CongestionController, CongestionFactory, PathParameters};
use rounds::RoundCounter;
use std::time::Duration;
use watched::{Effort, WatchedController};

/// Longer than any connection lasts, but within the range of every clock.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
/// Limits the bytes in flight of a controller that yields to nothing.
const MAX_WINDOW: u64 = 4 << 20;
/// Number of round trips in which the application sends one packet each.
const LIMITED_ROUNDS: u32 = 100;
/// Number of round trips after which a controller that is used must have grown.
const GROWTH_ROUNDS: u32 = 6;
/// Number of round trips in which all packets are marked.
const MARKED_ROUNDS: u32 = 20;
/// Heavy loss: number of lost packets per million.
const HEAVY_LOSS_PPM: u64 = 300_000;

/// Tests the controllers of `factory` over a bottleneck, in round trips with a known outcome, and
/// with random calls.
///
/// ```
/// use sutura_congestion::{Algorithm, conformance};
///
/// conformance::congestion(&Algorithm::NEW_RENO);
/// ```
///
/// # Panics
/// A controller breaks a rule, which the message names:
///
/// * The window is never below two datagrams (RFC 9002 section 7.2) nor above the maximum, whatever
///   the order of calls, and also after the datagram size changed.
/// * The window, or the controller's own rate if it has one, grows while packets are acknowledged
///   and the window limits the sender. It does not grow while the application limits the sender
///   (RFC 9002 section 7.8). If the controller has a rate, the window is not the first limit, and
///   may reach twice the initial window.
/// * The window or the rate falls on persistent congestion, when many packets are lost, and when
///   many are marked. When the path delivers packets again, the controller uses it again.
/// * When losses turn out to be spurious, the window never shrinks.
/// * Queries and calls with empty slices change nothing. Controllers with the same seed and the
///   same calls give the same answers.
/// * No call panics, whatever the size of packets and datagrams, even if a century passes between
///   two calls.
/// * A controller has the name of its factory.
pub fn congestion(factory: &dyn CongestionFactory) {
    grows_while_it_is_used(factory);
    rests_while_the_application_does(factory);
    yields_to_persistent_congestion(factory);
    yields_to_heavy_loss(factory);
    yields_to_marks(factory);
    returns_after_an_outage(factory);
    forgives_refuted_losses(factory);
    history::tell(factory);
}

fn path() -> PathParameters {
    PathParameters { max_window: MAX_WINDOW, ..PathParameters::new(MTU as u16, 1) }
}

/// A bottleneck of 20 Mbit/s with a round-trip time of 40 ms and a queue of the same length.
fn bottleneck(factory: &dyn CongestionFactory) -> Simulation<WatchedController> {
    Simulation::new(WatchedController::new(factory, &path()), BottleneckPath::new(20, 40, 100))
}

/// Runs until `seconds` after the start, and returns the mean effort of the controller.
fn mean_effort(simulation: &mut Simulation<WatchedController>, seconds: f64) -> Effort {
    let (mut count, mut window, mut rate) = (1u128, 0u128, None);
    let mut add = |effort: Effort| {
        window += u128::from(effort.window);
        rate = effort.rate.map(|bytes| rate.unwrap_or(0) + u128::from(bytes));
    };
    add(simulation.controller.effort());
    simulation.run_with(seconds, |controller, _| {
        count += 1;
        add(controller.effort());
    });
    let mean = |sum: u128| u64::try_from(sum / count).unwrap_or(u64::MAX);
    Effort { window: mean(window), rate: rate.map(mean) }
}

fn grows_while_it_is_used(factory: &dyn CongestionFactory) {
    let mut rounds = RoundCounter::new(factory, &path());
    let initial = rounds.controller.effort();
    for _ in 0..GROWTH_ROUNDS {
        let flight = rounds.fly();
        rounds.acknowledge(&flight, false);
    }
    let grown = rounds.controller.effort();
    assert!(
        initial.is_below(&grown),
        "{}: {GROWTH_ROUNDS} full windows were acknowledged, and it does not send more than at \
         first: {initial:?}, then {grown:?}",
        rounds.controller.algorithm()
    );
}

fn rests_while_the_application_does(factory: &dyn CongestionFactory) {
    let mut rounds = RoundCounter::new(factory, &path());
    let initial = rounds.controller.window();
    for _ in 0..LIMITED_ROUNDS {
        let flight = rounds.fly_packets(1, true);
        rounds.acknowledge(&flight, true);
    }
    let effort = rounds.controller.effort();
    let most = if effort.rate.is_some() { initial.saturating_mul(2) } else { initial };
    assert!(
        effort.window <= most,
        "{}: the application limited the sender, and the window was raised from {initial} to {} \
         bytes (RFC 9002 section 7.8)",
        rounds.controller.algorithm(),
        effort.window
    );
}

fn yields_to_persistent_congestion(factory: &dyn CongestionFactory) {
    let mut simulation = bottleneck(factory);
    simulation.run(2.0);
    let before = simulation.controller.effort();
    simulation.lose_all(true);
    let after = simulation.controller.effort();
    assert!(
        after.is_below(&before),
        "{}: persistent congestion, and neither window nor rate fell: {before:?}, then {after:?} \
         (RFC 9002 section 7.6)",
        simulation.controller.algorithm()
    );
}

fn yields_to_heavy_loss(factory: &dyn CongestionFactory) {
    let mut simulation = bottleneck(factory);
    simulation.run(2.0);
    let before = mean_effort(&mut simulation, 4.0);
    simulation.path.loss_ppm = HEAVY_LOSS_PPM;
    simulation.run(6.0);
    let after = mean_effort(&mut simulation, 8.0);
    assert!(
        after.is_below(&before),
        "{}: three packets of ten are lost, and neither window nor rate fell: {before:?}, then \
         {after:?} (RFC 9002 section 7.3.2)",
        simulation.controller.algorithm()
    );
}

fn yields_to_marks(factory: &dyn CongestionFactory) {
    let mut rounds = RoundCounter::new(factory, &path());
    for _ in 0..GROWTH_ROUNDS {
        let flight = rounds.fly();
        rounds.acknowledge(&flight, false);
    }
    let before = rounds.controller.effort();
    for _ in 0..MARKED_ROUNDS {
        let flight = rounds.fly();
        rounds.acknowledge_marked(&flight);
    }
    let after = rounds.controller.effort();
    assert!(
        after.is_below(&before),
        "{}: all packets of {MARKED_ROUNDS} round trips were marked, and neither window nor rate \
         fell: {before:?}, then {after:?} (RFC 9002 section 7.1)",
        rounds.controller.algorithm()
    );
}

fn returns_after_an_outage(factory: &dyn CongestionFactory) {
    let mut simulation = bottleneck(factory);
    simulation.run(2.0);
    simulation.path.loss_ppm = 1_000_000;
    simulation.run(4.0);
    simulation.path.loss_ppm = 0;
    simulation.run(30.0);
    let percent = simulation.goodput(20.0, 30.0) * 100 / simulation.path.rate;
    assert!(
        percent >= 10,
        "{}: the path has carried packets again for 16 s, and the sender uses {percent} % of it",
        simulation.controller.algorithm()
    );
}

fn forgives_refuted_losses(factory: &dyn CongestionFactory) {
    let mut rounds = RoundCounter::new(factory, &path());
    for _ in 0..GROWTH_ROUNDS {
        let flight = rounds.fly();
        let (lost, arrived) = flight.split_at(flight.len().min(1));
        rounds.lose(lost);
        rounds.acknowledge(arrived, false);
        rounds.refute(lost);
    }
}
