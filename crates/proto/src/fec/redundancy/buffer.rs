//! Transfers to a receiver with a small buffer: repair symbols among the data, so that a loss does not
//! fill the buffer and stop the sender.

use super::flec::{Flec, Rules, burst, factor, factor_of, gap};
use super::{Redundancy, RedundancyFactory, View};
use std::sync::Arc;
use std::time::Instant;
use sutura_schedule::registry::Entry;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "buffer",
    "repair symbols for receivers with small buffers (Michel 2022, Algorithm 2)",
    "c=1",
    |parameters| Ok(Arc::new(Buffer { c: factor_of(parameters)? })),
);

/// At most so many times as many repair symbols are in flight as losses are expected.
const MOST_IN_FLIGHT: f64 = 2.0;

/// Protects data before the receiver's buffer is full (Algorithm 2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Buffer {
    c: f64,
}

impl Buffer {
    /// With a threshold of `c` times the loss rate; `None` if `c` is not from 0 to 100.
    #[must_use]
    pub fn new(c: f64) -> Option<Self> {
        factor(c).map(|c| Self { c })
    }
}

impl RedundancyFactory for Buffer {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        format!("c={}", self.c)
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Flec(BufferRules { c: self.c, ..BufferRules::default() }))
    }
}

#[derive(Debug, Default)]
struct BufferRules {
    c: f64,
    /// Whether the application has nothing more to send for now, so that no flow control holds it
    /// back.
    flushed: bool,
    /// Symbols below this are protected.
    protected: u64,
    /// How many repair symbols protect the newest of them, and how many are to.
    triggered: u32,
    most: u32,
}

impl BufferRules {
    fn is_blocked(&self, view: &View) -> bool {
        !view.has_source && !self.flushed
    }

    fn unprotected(&self, view: &View) -> u64 {
        view.next - self.protected.clamp(view.first, view.next)
    }
}

impl Rules for BufferRules {
    fn threshold(&self, loss: f64) -> f64 {
        self.c * loss
    }

    fn pattern(&self, _now: Instant, view: &View) -> bool {
        let expected = (f64::from(view.unacked) * view.path.loss).ceil();
        if f64::from(view.added) >= MOST_IN_FLIGHT * expected {
            return false;
        }
        let unprotected = self.unprotected(view);
        if unprotected == 0 {
            return self.is_blocked(view) || self.triggered < self.most;
        }
        let enough = gap(view).min(f64::from(view.unacked));
        self.is_blocked(view) || unprotected as f64 >= enough
    }

    fn on_source_sent(&mut self, _now: Instant, _view: &View) {
        self.flushed = false;
    }

    fn on_flushed(&mut self, _now: Instant, _ended: bool, _view: &View) {
        self.flushed = true;
    }

    fn on_repair_sent(&mut self, _now: Instant, view: &View) {
        let unprotected = self.unprotected(view);
        if unprotected == 0 {
            self.triggered = self.triggered.saturating_add(1);
            return;
        }
        self.triggered = 1;
        self.protected = view.next;
        self.most = (view.path.loss * unprotected as f64).max(burst(view)).ceil() as u32;
    }
}
