//! Redundancy policies of tests.

use crate::Protection;
use crate::policy::{Redundancy, RedundancyFactory};
use std::sync::Arc;

/// A protection of this name, for which `make` makes the policy.
pub(super) fn made(name: &'static str, make: fn() -> Box<dyn Redundancy>) -> Protection {
    Protection::new(Arc::new(Made(name, make)))
}

#[derive(Debug)]
struct Made(&'static str, fn() -> Box<dyn Redundancy>);

impl RedundancyFactory for Made {
    fn name(&self) -> &str {
        self.0
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn build(&self) -> Box<dyn Redundancy> {
        self.1()
    }
}
