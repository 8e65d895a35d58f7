//! Selective repeat: repair symbols only in place of lost data.

use super::{Flec, FlecRules};
use std::sync::Arc;
use std::time::Instant;
use sutura_proto::policy::{Redundancy, RedundancyFactory, View};
use sutura_proto::registry::Entry;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::new(
    "sr-arq",
    "repair symbols in place of what was lost (Michel 2022, Table II)",
    |_| Ok(Arc::new(SrArq)),
);

/// Sends lost data again as repair symbols, and no other redundancy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SrArq;

impl RedundancyFactory for SrArq {
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
        Box::new(Flec::new(*self))
    }
}

impl FlecRules for SrArq {
    fn ds(&self, loss: f64) -> f64 {
        -loss
    }

    fn fec_pattern(&self, _now: Instant, _view: &View) -> bool {
        false
    }

    fn rests(&self, _now: Instant) -> bool {
        true
    }
}
