//! A policy for tests and fuzzers, which mends losses and heeds deadlines as policies of other crates do.

use super::{Arrival, Decision, Redundancy, RedundancyFactory, RepairPlan, Turn, View};
use std::time::{Duration, Instant};

/// Sends repair symbols in place of lost symbols. A message with a deadline gets a repair symbol as soon as
/// it would be too late if the repair symbol waited for the next message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mender;

impl RedundancyFactory for Mender {
    fn name(&self) -> &str {
        "mender"
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Mending { due: None })
    }
}

#[derive(Debug)]
struct Mending {
    /// When unprotected symbols can wait no longer; `None` if none wait.
    due: Option<Instant>,
}

/// How long before a deadline a repair symbol is sent to be in time.
fn way(view: &View) -> Duration {
    view.path.one_way() + view.path.margin()
}

impl Mending {
    fn plan(&mut self, now: Instant, view: &View) {
        let due = view.deadline.and_then(|deadline| deadline.checked_sub(way(view)));
        self.due = due.filter(|at| *at > now);
    }
}

impl Redundancy for Mending {
    fn on_source_sent(&mut self, now: Instant, _id: u64, view: &View) {
        self.plan(now, view);
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        self.plan(now, view);
    }

    fn on_arrived(&mut self, now: Instant, _id: u64, _how: Arrival, view: &View) {
        self.plan(now, view);
    }

    fn mends(&self) -> bool {
        true
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        if let Some(newest) = view.newest_missing.filter(|_| view.missing > view.added) {
            let repair = RepairPlan::over(view.span().start..newest.saturating_add(1));
            return Decision::Repair(RepairPlan { turn: Turn::First, ..repair });
        }
        let next = view.next_message.and_then(|next| now.max(next).checked_add(way(view)));
        let is_urgent =
            view.deadline.is_some_and(|deadline| next.is_none_or(|next| next >= deadline));
        if is_urgent && view.idle && view.unacked > 0 {
            return Decision::Repair(RepairPlan::over(view.span()));
        }
        Decision::Source
    }

    fn timeout(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::Mender;

    #[test]
    fn it_keeps_the_contract() {
        crate::conformance::redundancy(&Mender);
    }
}
