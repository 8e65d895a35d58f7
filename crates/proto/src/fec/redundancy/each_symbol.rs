//! Redundancy after each source symbol, even if more data follows: `incremental:literal`.

use super::{Arrival, Decision, Redundancy, RepairPlan, View};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The schedule of [`Incremental`](super::Incremental) word by word (Holzinger 2025, II-D5): "When an
/// incremental stream sends an SS, a timer is started waiting for the RDT. After the timer has
/// expired and no SYMBOL_ACK for that SS has arrived, RSs are sent", as many as the burst loss
/// tolerance says (II-D3), also before new data.
#[derive(Debug)]
pub(super) struct EachSymbol {
    burst: u32,
    delay: Duration,
    /// Symbols that are not known to have arrived, and when their timers expire, oldest first. The coding
    /// window bounds their number.
    armed: VecDeque<(u64, Instant)>,
    /// Number of repair symbols that were sent for the first symbol in `armed`.
    sent: u32,
}

impl EachSymbol {
    pub fn new(burst: u32, delay: Duration) -> Self {
        Self { burst, delay, armed: VecDeque::new(), sent: 0 }
    }

    /// Forgets the first symbol, which has its repair symbols or needs none.
    fn pop(&mut self) {
        self.armed.pop_front();
        self.sent = 0;
    }
}

impl Redundancy for EachSymbol {
    fn on_source_sent(&mut self, now: Instant, id: u64, view: &View) {
        while self.armed.front().is_some_and(|(armed, _)| *armed < view.first) {
            self.pop();
        }
        self.armed.push_back((id, now + self.delay));
    }

    fn on_repair_sent(&mut self, _now: Instant, _view: &View) {
        self.sent = self.sent.saturating_add(1);
        if self.sent >= self.burst {
            self.pop();
        }
    }

    fn on_arrived(&mut self, _now: Instant, id: u64, _how: Arrival, _view: &View) {
        match self.armed.binary_search_by_key(&id, |(armed, _)| *armed) {
            Ok(0) => self.pop(),
            Ok(index) => drop(self.armed.remove(index)),
            Err(_) => {}
        }
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        let expired = self.armed.front().is_some_and(|(_, at)| *at <= now);
        let wanted = expired && self.burst > 0 && view.unacked > 0;
        if !wanted || view.retransmission_is_enough(self.delay) {
            return Decision::Source;
        }
        Decision::Repair(RepairPlan::over(view.span()))
    }

    fn timeout(&self) -> Option<Instant> {
        self.armed.front().map(|(_, at)| *at)
    }
}
