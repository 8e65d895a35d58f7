//! Helpers for the tests of several kits.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The message with which a kit panics.
pub(super) fn verdict(kit: impl Fn()) -> String {
    match catch_unwind(AssertUnwindSafe(kit)) {
        Ok(()) => "accepted".to_owned(),
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_else(|| {
            panic.downcast_ref::<&str>().map_or_else(String::new, |text| (*text).to_owned())
        }),
    }
}
