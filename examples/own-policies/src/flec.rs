//! Redundancy as a pair of functions (Michel 2022, FlEC): one decides when a repair symbol is sent although
//! no loss is known, the other how many are sent for known losses.

use crate::tally::Tally;
use std::time::Instant;
use sutura::policy::{Redundancy, RedundancyFactory, View};
use sutura_research::flec::{Flec, FlecRules};

/// The first source symbols of a session: the head of a picture, without which nothing can be shown.
const HEAD: u64 = 32;
/// Source symbols of the head for each repair symbol.
const EVERY: u32 = 4;

/// Repair symbols within the head. After the head, a repair symbol replaces each lost symbol.
#[derive(Debug, Clone, Default)]
pub struct HeadFirst {
    /// Repair symbols that were sent.
    pub sent: Tally,
}

impl RedundancyFactory for HeadFirst {
    fn name(&self) -> &str {
        "head-first"
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Flec::new(self.rules()))
    }
}

impl HeadFirst {
    fn rules(&self) -> Rules {
        Rules { uncovered: 0, sent: self.sent.clone() }
    }
}

/// The pair of functions for one coding session.
#[derive(Debug)]
struct Rules {
    /// Source symbols of the head since the newest repair symbol.
    uncovered: u32,
    sent: Tally,
}

impl FlecRules for Rules {
    // This threshold asks for a repair symbol in flight for each symbol that the peer misses.
    fn ds(&self, loss: f64) -> f64 {
        -loss
    }

    fn fec_pattern(&self, _now: Instant, _view: &View) -> bool {
        self.uncovered >= EVERY
    }

    fn on_source_sent(&mut self, _now: Instant, view: &View) {
        if view.next <= HEAD {
            self.uncovered += 1;
        }
    }

    fn on_repair_sent(&mut self, _now: Instant, _view: &View) {
        self.uncovered = 0;
        self.sent.add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura::policy::Decision;

    #[test]
    fn keeps_the_contract() {
        sutura_research::flec::conformance(|| HeadFirst::default().rules());
        sutura::conformance::redundancy(&HeadFirst::default());
    }

    #[test]
    fn the_head_is_protected_and_what_follows_is_mended() {
        let (now, mut view) = (Instant::now(), View::default());
        let mut session = HeadFirst::default().build();
        let mut repairs = 0;
        for id in 0..100 {
            (view.next, view.unacked) = (id + 1, view.unacked + 1);
            session.on_source_sent(now, id, &view);
            if session.decide(now, &view) != Decision::Source {
                session.on_repair_sent(now, &view);
                repairs += 1;
            }
        }
        assert_eq!(repairs, 8);
        (view.missing, view.newest_missing) = (1, Some(60));
        assert!(
            matches!(session.decide(now, &view), Decision::Repair(plan) if plan.span == (0..61))
        );
        view.added = 1;
        assert_eq!(session.decide(now, &view), Decision::Source);
    }
}
