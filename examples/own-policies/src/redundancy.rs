//! When repair symbols are sent: the more often, the more packets the path loses.

use crate::tally::Tally;
use std::time::Instant;
use sutura::policy::{Decision, Redundancy, RedundancyFactory, RepairPlan, View};

/// Repair symbols for each packet that is likely to be lost.
const REPAIRS_PER_LOSS: f64 = 2.0;
/// The fewest source symbols between two repair symbols.
const SHORTEST: u32 = 4;

/// A repair symbol after every N source symbols, and one at the end of the application's data. N follows from
/// the share of packets that were lost recently.
#[derive(Debug, Clone)]
pub struct EveryFew {
    /// The most source symbols between two repair symbols, on a path without losses.
    pub longest: u32,
    /// Repair symbols that were sent.
    pub sent: Tally,
}

impl Default for EveryFew {
    fn default() -> Self {
        Self { longest: 50, sent: Tally::default() }
    }
}

impl RedundancyFactory for EveryFew {
    fn name(&self) -> &str {
        "every-few"
    }

    fn parameters(&self) -> String {
        format!("longest={}", self.longest)
    }

    fn build(&self) -> Box<dyn Redundancy> {
        let Self { longest, sent } = self.clone();
        Box::new(Session { longest: longest.max(SHORTEST), uncovered: 0, flushed: false, sent })
    }
}

/// The policy of one coding session.
#[derive(Debug)]
struct Session {
    longest: u32,
    /// Source symbols since the newest repair symbol.
    uncovered: u32,
    /// Whether the application has no more data for now.
    flushed: bool,
    sent: Tally,
}

impl Session {
    /// N.
    fn interval(&self, view: &View) -> u32 {
        let symbols_per_loss = 1.0 / view.path.loss;
        // Infinity and NaN become one of the bounds.
        ((symbols_per_loss / REPAIRS_PER_LOSS) as u32).clamp(SHORTEST, self.longest)
    }
}

impl Redundancy for Session {
    fn on_source_sent(&mut self, _now: Instant, _id: u64, _view: &View) {
        self.uncovered = self.uncovered.saturating_add(1);
        self.flushed = false;
    }

    fn on_flushed(&mut self, _now: Instant, _ended: bool, _view: &View) {
        self.flushed = true;
    }

    fn on_repair_sent(&mut self, _now: Instant, _view: &View) {
        self.uncovered = 0;
        self.sent.add(1);
    }

    // A pure query: only `on_repair_sent` counts a repair symbol.
    fn decide(&self, _now: Instant, view: &View) -> Decision {
        let due = self.uncovered >= self.interval(view) || (self.flushed && self.uncovered > 0);
        if due && view.unacked > 0 {
            Decision::Repair(RepairPlan::over(view.span()))
        } else {
            Decision::Source
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_contract() {
        sutura::conformance::redundancy(&EveryFew::default());
    }

    /// Repair symbols among a hundred source symbols when `loss` of the packets are lost.
    fn repairs(loss: f64) -> u32 {
        let now = Instant::now();
        let mut view = View::default();
        view.path.loss = loss;
        let mut session = EveryFew::default().build();
        let mut repairs = 0;
        for id in 0..100 {
            (view.next, view.unacked) = (id + 1, view.unacked + 1);
            session.on_source_sent(now, id, &view);
            if let Decision::Repair(_) = session.decide(now, &view) {
                session.on_repair_sent(now, &view);
                repairs += 1;
            }
        }
        repairs
    }

    #[test]
    fn the_more_is_lost_the_more_repair_symbols_are_sent() {
        assert_eq!([0.0, 0.05, 1.0].map(repairs), [2, 10, 25]);
    }
}
