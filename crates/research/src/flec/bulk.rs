//! Bulk transfers: only the end is protected, where no other data is left to send while a loss is repaired.

use super::{Flec, FlecRules, LastFlight, literal};
use std::sync::Arc;
use std::time::Instant;
use sutura_proto::policy::{Redundancy, RedundancyFactory, View};
use sutura_proto::registry::Entry;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "bulk",
    "repair symbols once all data is sent (Michel 2022, section VI)",
    "rules=tuned",
    |parameters| match literal::is_wanted(parameters)? {
        true => Ok(literal::bulk("bulk")),
        false => Ok(Arc::new(Bulk)),
    },
);

/// Protects the last flight of a transfer, and sends all earlier data as without protection. The policy
/// `bulk:literal` follows the paper; this one differs:
///
/// - The paper sends as many repair symbols as losses are expected, its implementation from three
///   quarters to twice the window. Here the number suffices forty-nine times in fifty: the expected losses
///   and a margin. Both the count and the margin follow the measurements of the path; a transfer that ends
///   before there are any goes by experience.
/// - Repair symbols that are lost themselves are allowed for, also repair symbols in place of lost data: in
///   the last flight nothing else uses the window, and one more round trip would double the wait.
/// - Only the data of the last flight becomes source symbols. The paper marks all data, which takes
///   20 bytes of each packet and now and then one packet more: transfers of 40 and 100 kB then take
///   longer than without protection.
/// - Data that is lost before the last flight is sent again as it was. A repair symbol would take the same
///   number of bytes, and recover the data later if other losses of its span are not known yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bulk;

impl RedundancyFactory for Bulk {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn stays_awake(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Flec::new(BulkRules::default()))
    }
}

#[derive(Debug, Default)]
struct BulkRules {
    end: LastFlight,
}

impl FlecRules for BulkRules {
    fn ds(&self, loss: f64) -> f64 {
        -loss
    }

    fn protects(&self, view: &View) -> bool {
        view.end_comes_near()
    }

    fn fec_pattern(&self, now: Instant, view: &View) -> bool {
        self.end.is_unprotected(now, view)
    }

    fn rests(&self, now: Instant) -> bool {
        self.end.rests(now)
    }

    fn on_source_sent(&mut self, _now: Instant, view: &View) {
        self.end.on_source_sent(view);
    }

    fn on_repair_sent(&mut self, now: Instant, _view: &View) {
        self.end.on_repair_sent(now);
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        self.end.on_flushed(now, ended, view);
    }

    fn timeout(&self) -> Option<Instant> {
        self.end.timeout()
    }
}
