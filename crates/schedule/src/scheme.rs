//! A way of scheduling, by name.

use std::fmt;

use crate::{Scheduler, SchedulerFactory};

/// A way of scheduling without parameters: a name, and the constructor of the schedulers. It is the simplest
/// [`SchedulerFactory`].
#[derive(Clone, Copy)]
pub struct Scheme {
    name: &'static str,
    build: fn() -> Box<dyn Scheduler>,
}

impl Scheme {
    /// A scheme whose schedulers `build` creates, without streams.
    #[must_use]
    pub const fn new(name: &'static str, build: fn() -> Box<dyn Scheduler>) -> Self {
        Self { name, build }
    }

    /// The name by which it is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Creates a scheduler of this scheme, without streams.
    #[must_use]
    pub fn build(self) -> Box<dyn Scheduler> {
        (self.build)()
    }
}

impl SchedulerFactory for Scheme {
    fn name(&self) -> &str {
        self.name
    }

    fn build(&self) -> Box<dyn Scheduler> {
        (self.build)()
    }
}

/// Schemes of one name are equal.
impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Scheme {}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scheme({})", self.name)
    }
}
