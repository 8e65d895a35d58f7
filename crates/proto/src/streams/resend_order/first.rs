//! Lost data before new data, in the order of a scheduler.

use super::{ByScheduler, Precedence, ResendOrder, ResendOrderFactory};
use std::sync::Arc;
use sutura_schedule::registry::Entry;
use sutura_schedule::{Scheduler, SchedulerFactory};

pub(super) const ENTRY: Entry<dyn ResendOrderFactory> = Entry::new(
    "first",
    "lost data goes first, ordered by the connection's scheduler (approach 2)",
    |_| Ok(Arc::new(First)),
);

/// Lost data is sent first, and a scheduler of the connection's scheme decides among the streams
/// that lost some: approach 2 of Marx 2020, `ABABCDCD`.
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

/// Lost data is sent first, and a scheduler of another scheme decides among the streams that lost
/// some: approach 3 of Marx 2020, `AABBCDCD` with a sequential scheme. It cannot be chosen by name,
/// because a name does not include the scheme.
#[derive(Debug, Clone)]
pub struct FirstBy(pub Arc<dyn SchedulerFactory>);

impl ResendOrderFactory for FirstBy {
    fn name(&self) -> &str {
        "first-by"
    }

    fn build(&self, _scheduler: &dyn Fn() -> Box<dyn Scheduler>) -> Box<dyn ResendOrder> {
        Box::new(ByScheduler::new(Precedence::First, self.0.build()))
    }
}
