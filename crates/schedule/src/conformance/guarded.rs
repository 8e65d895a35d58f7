//! A scheduler whose panics name the call and the rule.

use std::fmt::Arguments;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use crate::{Grant, Priority, Scheduler, SchedulerFactory, StreamKey};

/// The rule that a panic breaks.
const RULE: &str = "no call panics, in whatever order calls come, and with whatever numbers: \
                    `charge`, `next` and `on_congestion_window` take any, up to the largest";

/// Wraps a scheduler of the factory `name`.
#[derive(Debug)]
pub(super) struct Guarded {
    name: String,
    inner: Box<dyn Scheduler>,
}

impl Guarded {
    /// Builds a scheduler.
    pub(super) fn build(factory: &dyn SchedulerFactory) -> Self {
        Self { name: factory.name().to_owned(), inner: factory.build() }
    }

    /// Makes a change to the scheduler. `call` is shown if it panics.
    #[track_caller]
    fn change<T>(&mut self, call: Arguments<'_>, make: impl FnOnce(&mut dyn Scheduler) -> T) -> T {
        let inner = &mut *self.inner;
        let result = catch_unwind(AssertUnwindSafe(|| make(inner)));
        answer(&self.name, call, result)
    }

    /// Asks the scheduler. `call` is shown if it panics.
    #[track_caller]
    fn ask<T>(&self, call: Arguments<'_>, question: impl FnOnce(&dyn Scheduler) -> T) -> T {
        answer(&self.name, call, catch_unwind(AssertUnwindSafe(|| question(&*self.inner))))
    }
}

/// The result of a call that did not panic.
#[track_caller]
fn answer<T>(name: &str, call: Arguments<'_>, result: thread::Result<T>) -> T {
    let said = result.as_ref().err().map(|payload| {
        let literal = payload.downcast_ref::<&str>().copied();
        literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("?")
    });
    let text = said.unwrap_or_default();
    assert!(said.is_none(), "the scheduler `{name}` breaks a rule: {RULE} (at {call}: {text})");
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

impl Scheduler for Guarded {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        self.change(format_args!("insert({stream}, ..)"), |inner| inner.insert(stream, priority));
    }

    fn remove(&mut self, stream: StreamKey) {
        self.change(format_args!("remove({stream})"), |inner| inner.remove(stream));
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        self.change(format_args!("reprioritize({stream}, ..)"), |inner| {
            inner.reprioritize(stream, priority);
        });
    }

    fn activate(&mut self, stream: StreamKey) {
        self.change(format_args!("activate({stream})"), |inner| inner.activate(stream));
    }

    fn deactivate(&mut self, stream: StreamKey) {
        self.change(format_args!("deactivate({stream})"), |inner| inner.deactivate(stream));
    }

    fn next(&self, room: usize) -> Option<Grant> {
        self.ask(format_args!("next({room})"), |inner| inner.next(room))
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        self.change(format_args!("charge({stream}, {bytes})"), |inner| inner.charge(stream, bytes));
    }

    fn on_congestion_window(&mut self, bytes: u64) {
        self.change(format_args!("on_congestion_window({bytes})"), |inner| {
            inner.on_congestion_window(bytes);
        });
    }

    fn rest(&mut self) {
        self.change(format_args!("rest()"), |inner| inner.rest());
    }

    fn goes_by_classes(&self) -> bool {
        self.ask(format_args!("goes_by_classes()"), |inner| inner.goes_by_classes())
    }

    fn goes_by_frames(&self) -> bool {
        self.ask(format_args!("goes_by_frames()"), |inner| inner.goes_by_frames())
    }

    fn is_empty(&self) -> bool {
        self.ask(format_args!("is_empty()"), |inner| inner.is_empty())
    }
}
