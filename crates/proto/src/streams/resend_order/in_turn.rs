//! Lost data is treated like the other data of its stream.

use super::{ByScheduler, Precedence, ResendOrder, ResendOrderFactory};
use std::sync::Arc;
use sutura_schedule::Scheduler;
use sutura_schedule::registry::Entry;

pub(super) const ENTRY: Entry<dyn ResendOrderFactory> = Entry::new(
    "in-turn",
    "lost data goes when the scheduler selects its stream (Marx 2020, approach 1)",
    |_| Ok(Arc::new(InTurn)),
);

/// Lost data is treated like the other data of its stream, and sent when the scheduler selects the
/// stream: approach 1 of Marx 2020, `ABCDABCD`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InTurn;

impl ResendOrderFactory for InTurn {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn build(&self, scheduler: &dyn Fn() -> Box<dyn Scheduler>) -> Box<dyn ResendOrder> {
        Box::new(ByScheduler::new(Precedence::InTurn, scheduler()))
    }
}
