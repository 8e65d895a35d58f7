//! Redundancy at the end of the data.

use super::{
    Arrival, Decision, MAX_BURST, MAX_DELAY, Redundancy, RedundancyFactory, RepairPlan, View,
    parameters,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_schedule::registry::Entry;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "tail",
    "repair symbols at the end of what was sent (Holzinger 2025, II-D4)",
    "burst=3,delay=0ms",
    |parameters| {
        let burst = parameters.number("burst", 3)?;
        let delay = parameters.millis("delay", Duration::ZERO)?;
        Ok(Arc::new(Tail::new(burst, delay)))
    },
);

/// How long to wait for the application to write more before the stream counts as flushed: a writer
/// in another task needs a moment to refill its buffer.
pub const FLUSH_LINGER: Duration = Duration::from_millis(1);

/// Sends repair symbols when the application has no more data for now. They recover losses in the
/// last flight, which a retransmission would repair a round trip later (Holzinger 2025, II-D4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    burst: u32,
    delay: Duration,
}

impl Tail {
    /// Sends `burst` repair symbols, at most [`MAX_BURST`], `delay`, at most [`MAX_DELAY`], after each flush.
    #[must_use]
    pub fn new(burst: u32, delay: Duration) -> Self {
        Self { burst: burst.min(MAX_BURST), delay: delay.min(MAX_DELAY) }
    }
}

impl RedundancyFactory for Tail {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        parameters(self.burst, self.delay)
    }

    fn stays_awake(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(TailPolicy { tail: *self, due_at: None, due: 0, covered: 0 })
    }
}

#[derive(Debug)]
struct TailPolicy {
    tail: Tail,
    /// When the next burst of repair symbols falls due.
    due_at: Option<Instant>,
    /// Number of repair symbols left to send of a burst that has begun.
    due: u32,
    /// Symbols below this were covered by an earlier burst.
    covered: u64,
}

impl TailPolicy {
    /// Number of repair symbols to send at `now`.
    fn due(&self, now: Instant) -> u32 {
        if self.due_at.is_some_and(|at| at <= now) { self.tail.burst } else { self.due }
    }

    fn forget(&mut self) {
        (self.due_at, self.due) = (None, 0);
    }
}

impl Redundancy for TailPolicy {
    fn on_source_sent(&mut self, _now: Instant, _id: u64, _view: &View) {
        // More data follows the apparent end.
        self.forget();
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        if view.next > self.covered && self.due_at.is_none() {
            let delay = self.tail.delay;
            let wait = if ended { delay } else { delay.max(FLUSH_LINGER) };
            self.due_at = Some(now + wait);
        }
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        let due = self.due(now);
        if self.due_at.take_if(|at| *at <= now).is_some() {
            self.covered = view.next;
        }
        self.due = due.saturating_sub(1);
    }

    fn on_arrived(&mut self, _now: Instant, _id: u64, _how: Arrival, view: &View) {
        if view.unacked == 0 {
            self.forget();
        }
    }

    fn rests(&self, now: Instant, _missing: bool) -> bool {
        self.due(now) == 0
    }

    fn protects_all(&self) -> bool {
        true
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        let wanted = self.due(now) > 0 && view.unacked > 0 && !view.has_source;
        if !wanted || view.retransmission_is_enough(self.tail.delay) {
            return Decision::Source;
        }
        Decision::Repair(RepairPlan::over(view.span()))
    }

    fn timeout(&self) -> Option<Instant> {
        self.due_at
    }
}
