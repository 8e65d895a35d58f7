//! Never waits.

use super::{LossReaction, LossReactionFactory, LostData, Verdict};
use std::sync::Arc;
use std::time::Instant;
use sutura_schedule::registry::Entry;

pub(super) const ENTRY: Entry<dyn LossReactionFactory> =
    Entry::new("resend-at-once", "lost data is sent again at once", |_| Ok(Arc::new(ResendAtOnce)));

/// Sends all lost data again at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResendAtOnce;

impl LossReaction for ResendAtOnce {
    fn on_lost(&mut self, _now: Instant, _lost: &LostData) -> Verdict {
        Verdict::Resend
    }
}

impl LossReactionFactory for ResendAtOnce {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn build(&self) -> Box<dyn LossReaction> {
        Box::new(*self)
    }
}
