//! Adaptive causal coding (Cohen 2020): repair symbols once per round trip, and somewhat more of them
//! after losses than were lost.

use super::{Flec, FlecRules, LossFactor, literal};
use std::sync::Arc;
use std::time::Instant;
use sutura_proto::policy::{Redundancy, RedundancyFactory, View};
use sutura_proto::registry::Entry;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "ac-rlnc",
    "repair symbols once per round trip (Michel 2022, Table II)",
    "rules=tuned,c=1",
    |parameters| {
        let literal = literal::is_wanted(parameters)?;
        Ok(Arc::new(AcRlnc { c: LossFactor::take(parameters)?, literal }))
    },
);

/// After this many round trips without news, repair symbols are of no use: it takes a probe. Otherwise
/// redundancy would not end when the peer is gone.
const MAX_SILENT: u32 = 4;

/// Adaptive causal coding: as many repair symbols per round trip as losses are expected, at least one. The
/// paper sends one per round trip, which cannot make up for the losses of a window of many symbols:
/// `ac-rlnc:literal`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AcRlnc {
    c: LossFactor,
    literal: bool,
}

impl AcRlnc {
    /// With a threshold of `c` times the loss rate; `None` if `c` is not from 0 to 100.
    #[must_use]
    pub fn new(c: f64) -> Option<Self> {
        LossFactor::new(c).map(|c| Self { c, literal: false })
    }
}

impl RedundancyFactory for AcRlnc {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        let rules = if self.literal { "rules=literal, " } else { "" };
        format!("{rules}c={}", self.c.get())
    }

    fn stays_awake(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Redundancy> {
        let Self { c, literal } = *self;
        Box::new(Flec::new(AcRlncRules { c, literal, next: None, due: 0, silent: 0 }))
    }
}

#[derive(Debug)]
struct AcRlncRules {
    c: LossFactor,
    /// Whether exactly one repair symbol is sent per round trip, no matter how many losses are expected.
    literal: bool,
    /// When the next repair symbols fall due; `None` as long as nothing was sent.
    next: Option<Instant>,
    /// Repair symbols of this round trip that are left to send.
    due: u32,
    /// Round trips since the peer was last known to have received a packet, or new data was sent.
    silent: u32,
}

impl AcRlncRules {
    fn due(&self, now: Instant, view: &View) -> u32 {
        if self.next.is_some_and(|at| at <= now) {
            let lost = (f64::from(view.unacked) * view.path.loss).ceil() as u32;
            return if self.literal { 1 } else { lost.max(1) };
        }
        self.due
    }
}

impl FlecRules for AcRlncRules {
    fn ds(&self, loss: f64) -> f64 {
        self.c.get() * loss
    }

    fn fec_pattern(&self, now: Instant, view: &View) -> bool {
        self.due(now, view) > 0
    }

    fn on_source_sent(&mut self, now: Instant, view: &View) {
        self.silent = 0;
        self.next.get_or_insert(now + view.path.rtt);
    }

    fn on_arrived(&mut self, now: Instant, view: &View) {
        self.silent = 0;
        if view.unacked == 0 {
            (self.next, self.due) = (None, 0);
        } else {
            self.next.get_or_insert(now + view.path.rtt);
        }
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        self.due = self.due(now, view).saturating_sub(1);
        if self.next.is_some_and(|at| at <= now) {
            self.silent += 1;
            self.next = (self.silent < MAX_SILENT).then_some(now + view.path.rtt);
        }
    }

    fn timeout(&self) -> Option<Instant> {
        self.next
    }
}
