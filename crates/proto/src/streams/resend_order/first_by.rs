//! Lost data before new data, in the order of another scheduler.

use super::{ByScheduler, Precedence, ResendOrder, ResendOrderFactory};
use std::sync::Arc;
use sutura_schedule::registry::{Entry, Registry};
use sutura_schedule::{SCHEDULERS, Scheduler, SchedulerFactory};

pub(super) const ENTRY: Entry<dyn ResendOrderFactory> = Entry::with_parameters(
    "first-by",
    "lost data goes first, ordered by a scheduler of its own (approach 3)",
    "scheduler=eps",
    |parameters| {
        parameters.first_is("scheduler");
        let name = parameters.take("scheduler").unwrap_or("eps");
        Ok(Arc::new(FirstBy(Registry::new("scheduler", SCHEDULERS).find(name)?)))
    },
);

/// Lost data is sent first, and a scheduler of another scheme decides among the streams that lost data:
/// approach 3 of Marx 2020, `AABBCDCD` with a sequential scheme.
#[derive(Debug, Clone)]
pub struct FirstBy(pub Arc<dyn SchedulerFactory>);

impl ResendOrderFactory for FirstBy {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn build(&self, _scheduler: &dyn Fn() -> Box<dyn Scheduler>) -> Box<dyn ResendOrder> {
        Box::new(ByScheduler::new(Precedence::First, self.0.build()))
    }
}
