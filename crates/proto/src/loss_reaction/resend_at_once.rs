//! No waiting.

use super::{LossReaction, LossReactionFactory, LostData, Verdict};
use std::time::Instant;

/// Every loss is sent again at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResendAtOnce;

impl LossReaction for ResendAtOnce {
    fn on_lost(&mut self, _now: Instant, _lost: &LostData) -> Verdict {
        Verdict::Resend
    }
}

impl LossReactionFactory for ResendAtOnce {
    fn name(&self) -> &str {
        "resend-at-once"
    }

    fn build(&self) -> Box<dyn LossReaction> {
        Box::new(*self)
    }
}
