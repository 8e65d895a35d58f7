//! Lost data before new data, in the order of a scheduler.

use super::{ByScheduler, Precedence, ResendOrder, ResendOrderFactory};
use std::sync::Arc;
use sutura_schedule::Scheduler;
use sutura_schedule::registry::Entry;

pub(super) const ENTRY: Entry<dyn ResendOrderFactory> = Entry::new(
    "first",
    "lost data goes first, ordered by the connection's scheduler (approach 2)",
    |_| Ok(Arc::new(First)),
);

/// Lost data is sent first, and a scheduler of the connection's scheme decides among the streams that lost
/// data: approach 2 of Marx 2020, `ABABCDCD`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct First;

impl ResendOrderFactory for First {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn build(&self, scheduler: &dyn Fn() -> Box<dyn Scheduler>) -> Box<dyn ResendOrder> {
        Box::new(ByScheduler::new(Precedence::First, scheduler()))
    }
}
