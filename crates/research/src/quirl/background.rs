//! Redundancy in the background: while there is nothing else to send, some repair symbols are in
//! flight.

use super::{LossesPerTrip, in_flight, repairs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_proto::policy::{
    Arrival, Decision, MAX_DELAY, Redundancy, RedundancyFactory, RepairPlan, View,
};
use sutura_proto::registry::Entry;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "background",
    "repair symbols while nothing else is sent (QUIRL 2024)",
    "delay=2ms",
    |parameters| Ok(Arc::new(Background::new(parameters.millis("delay", DEFAULT_DELAY)?))),
);

/// How long the connection must have had nothing to send before the first repair symbol.
const DEFAULT_DELAY: Duration = Duration::from_millis(2);
/// At most one repair symbol for this many source symbols in flight: while no losses are known, and later.
const SOURCES_PER_REPAIR_AT_FIRST: u32 = 4;
const SOURCES_PER_REPAIR: u32 = 3;
/// At most this many repair symbols are in flight while no losses are known.
const REPAIRS_AT_FIRST: u32 = 5;

/// Keeps repair symbols in flight while the connection has nothing else to send: QUIRL's scheduler for
/// everyday traffic. Up to 15 kB are protected by three repair symbols for five source symbols. Larger
/// flights are protected by as many repair symbols as losses are to be expected in a round trip, at most by a
/// third.
///
/// QUIRL's delay begins when there is nothing to send; here it begins with the last source symbol of the
/// session. The two differ only if other data of the connection is sent after that symbol, and then the
/// repair symbols have already waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Background {
    delay: Duration,
}

impl Background {
    /// Sends repair symbols `delay`, at most [`MAX_DELAY`], after the last source symbol.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        Self { delay: delay.min(MAX_DELAY) }
    }
}

impl Default for Background {
    /// After 2 ms, as in QUIRL.
    fn default() -> Self {
        Self::new(DEFAULT_DELAY)
    }
}

impl RedundancyFactory for Background {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        format!("delay={:?}", self.delay)
    }

    fn stays_awake(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Redundancy> {
        let losses = LossesPerTrip::default();
        Box::new(BackgroundPolicy { delay: self.delay, losses, due_at: None, begun: false })
    }
}

#[derive(Debug)]
struct BackgroundPolicy {
    delay: Duration,
    losses: LossesPerTrip,
    /// From when on repair symbols are sent; `None` if nothing is in flight.
    due_at: Option<Instant>,
    /// Whether a repair symbol was sent since then, so that there is nothing to wait for.
    begun: bool,
}

impl BackgroundPolicy {
    /// How many repair symbols are to be in flight.
    fn wanted(&self, now: Instant, view: &View) -> u32 {
        match self.losses.most(now) {
            None => repairs(in_flight(view), SOURCES_PER_REPAIR_AT_FIRST, Some(REPAIRS_AT_FIRST)),
            most => repairs(in_flight(view), SOURCES_PER_REPAIR, most),
        }
    }
}

impl Redundancy for BackgroundPolicy {
    fn on_source_sent(&mut self, now: Instant, _id: u64, _view: &View) {
        (self.due_at, self.begun) = (Some(now + self.delay), false);
    }

    fn on_repair_sent(&mut self, _now: Instant, _view: &View) {
        self.begun = true;
    }

    fn on_lost(&mut self, now: Instant, id: u64, view: &View) {
        self.losses.on_lost(now, id, view);
    }

    fn on_arrived(&mut self, now: Instant, id: u64, how: Arrival, view: &View) {
        self.losses.on_arrived(now, id, how, view);
        if view.unacked == 0 {
            self.due_at = None;
        }
    }

    fn protects_all(&self) -> bool {
        true
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        let due = self.due_at.is_some_and(|at| at <= now) && view.idle && !view.has_source;
        if due && view.added < self.wanted(now, view) {
            return Decision::Repair(RepairPlan::over(view.span()));
        }
        Decision::Source
    }

    fn timeout(&self) -> Option<Instant> {
        self.due_at.filter(|_| !self.begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with;

    const MS: Duration = Duration::from_millis(1);

    fn view(unacked: u32) -> View {
        with(View::default(), |view| {
            (view.next, view.unacked) = (unacked.into(), unacked);
            view.path.rtt = 100 * MS;
        })
    }

    /// How many repair symbols are sent at `now`.
    fn sent(policy: &mut dyn Redundancy, now: Instant, mut view: View) -> u32 {
        let before = view.added;
        while let Decision::Repair(plan) = policy.decide(now, &view) {
            assert_eq!(plan, RepairPlan::over(view.span()));
            view.added += 1;
            policy.on_repair_sent(now, &view);
        }
        view.added - before
    }

    /// A policy that has just sent `unacked` source symbols.
    fn after(now: Instant, unacked: u32) -> Box<dyn Redundancy> {
        let mut policy = Background::default().build();
        policy.on_source_sent(now, u64::from(unacked) - 1, &view(unacked));
        policy
    }

    #[test]
    fn a_silence_of_two_milliseconds_is_used() {
        let now = Instant::now();
        let mut policy = after(now, 5);
        assert_eq!(sent(&mut *policy, now, view(5)), 0);
        assert_eq!(policy.timeout(), Some(now + 2 * MS));
        policy.on_source_sent(now + MS, 5, &view(6));
        assert_eq!(sent(&mut *policy, now + 2 * MS, view(6)), 0, "new data begins a new silence");
        assert_eq!(sent(&mut *policy, now + 3 * MS, view(6)), 4);
        assert_eq!(policy.timeout(), None);
    }

    #[test]
    fn nothing_waits_for_it() {
        let now = Instant::now();
        let mut policy = after(now, 20);
        let busy = with(view(20), |view| view.idle = false);
        assert_eq!(sent(&mut *policy, now + 2 * MS, busy), 0, "other streams have data");
        let busy = with(busy, |view| view.has_source = true);
        assert_eq!(sent(&mut *policy, now + 2 * MS, busy), 0);
    }

    #[test]
    fn as_many_are_in_flight_as_losses_are_expected() {
        let now = Instant::now();
        // Five at most, or a quarter, while nothing is known.
        assert_eq!(sent(&mut *after(now, 100), now + 2 * MS, view(100)), 5);
        assert_eq!(sent(&mut *after(now, 14), now + 2 * MS, view(14)), 4);
        let mut policy = after(now, 100);
        (0..8).for_each(|id| policy.on_lost(now, id, &view(100)));
        let now = now + 100 * MS;
        // Eight and twice the deviation, or a third.
        assert_eq!(sent(&mut *policy, now, with(view(100), |view| view.added = 3)), 10 - 3);
        assert_eq!(sent(&mut *policy, now, view(21)), 7);
        // Symbols that are known to be lost are sent again, and no longer in flight.
        let lost = |missing| with(view(21), |view| view.missing = missing);
        assert_eq!(sent(&mut *policy, now, lost(6)), 5);
        assert_eq!(sent(&mut *policy, now, lost(21)), 0);
    }

    #[test]
    fn what_arrived_is_not_protected() {
        let now = Instant::now();
        let mut policy = after(now, 5);
        policy.on_arrived(now + MS, 4, Arrival::Acked, &view(0));
        assert_eq!(policy.timeout(), None);
        assert_eq!(sent(&mut *policy, now + 2 * MS, view(0)), 0);
    }
}
