//! Bulk transfers: only the end is protected, where nothing else is left to send while a loss is
//! repaired.

use super::flec::{Flec, Rules, burst};
use super::{Redundancy, RedundancyFactory, View};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_schedule::registry::Entry;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> =
    Entry::new("bulk", "repair symbols once all data is sent (Michel 2022, section V)", |_| {
        Ok(Arc::new(Bulk))
    });

/// How long to wait for the application to write more, in shares of a round trip, unless it said that
/// there is no more.
const SILENCE_DIVISOR: u32 = 8;

/// Protects the last window of a transfer by as many repair symbols as it is expected to lose.
///
/// The paper's text is followed. Its implementation sends from three quarters to twice the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bulk;

impl RedundancyFactory for Bulk {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Flec(BulkRules::default()))
    }
}

#[derive(Debug, Default)]
struct BulkRules {
    /// From when on all data counts as sent; `None` if there is more.
    over: Option<Instant>,
    /// Whether repair symbols were sent since then, so that there is nothing to wait for.
    begun: bool,
}

impl Rules for BulkRules {
    fn threshold(&self, loss: f64) -> f64 {
        -loss
    }

    fn pattern(&self, now: Instant, view: &View) -> bool {
        let over = self.over.is_some_and(|at| at <= now) && !view.has_source;
        let expected = f64::from(view.unacked) * view.path.loss;
        over && f64::from(view.added) < expected.max(burst(view))
    }

    fn on_source_sent(&mut self, _now: Instant, _view: &View) {
        (self.over, self.begun) = (None, false);
    }

    fn on_repair_sent(&mut self, _now: Instant, _view: &View) {
        self.begun = self.over.is_some();
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        let wait = if ended { Duration::ZERO } else { view.path.rtt / SILENCE_DIVISOR };
        self.over.get_or_insert(now + wait);
    }

    fn timeout(&self) -> Option<Instant> {
        self.over.filter(|_| !self.begun)
    }
}
