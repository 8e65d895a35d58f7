//! A congestion control algorithm by name.

use super::{CongestionController, CongestionFactory, PathParameters};
use std::fmt;

/// A congestion control algorithm without parameters: a name, and what makes the controllers. It is
/// the simplest [`CongestionFactory`].
#[derive(Clone, Copy)]
pub struct Algorithm {
    name: &'static str,
    build: fn(&PathParameters) -> Box<dyn CongestionController>,
}

impl Algorithm {
    /// The controllers that `build` makes for new paths, with their initial windows. Their name is
    /// to be `name`, too.
    #[must_use]
    pub const fn new(
        name: &'static str,
        build: fn(&PathParameters) -> Box<dyn CongestionController>,
    ) -> Self {
        Self { name, build }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl CongestionFactory for Algorithm {
    fn name(&self) -> &str {
        self.name
    }

    fn build(&self, path: &PathParameters) -> Box<dyn CongestionController> {
        (self.build)(path)
    }
}

/// Algorithms of one name are equal.
impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Algorithm {}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Algorithm({})", self.name)
    }
}
