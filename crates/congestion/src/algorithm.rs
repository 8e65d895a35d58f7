//! Named congestion control algorithms.

use super::{CongestionController, CongestionFactory, PathParameters};
use std::fmt;

/// A congestion control algorithm without parameters: a name and a function that builds
/// controllers. This is the simplest [`CongestionFactory`].
#[derive(Clone, Copy)]
pub struct Algorithm {
    name: &'static str,
    build: fn(&PathParameters) -> Box<dyn CongestionController>,
}

impl Algorithm {
    /// Creates an algorithm. `build` makes a controller for a new path, with its initial window.
    /// The controller must have the same `name`.
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

/// Algorithms with the same name are equal.
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
