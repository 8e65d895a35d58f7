//! Helpers for the tests of several kits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// The message with which a kit panics.
pub(super) fn verdict(kit: impl Fn()) -> String {
    match catch_unwind(AssertUnwindSafe(kit)) {
        Ok(()) => "accepted".to_owned(),
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_else(|| {
            panic.downcast_ref::<&str>().map_or_else(String::new, |text| (*text).to_owned())
        }),
    }
}

/// The name of a factory that has built `built` policies. A faulty factory has no name, or is renamed once it
/// has built a policy.
pub(super) fn name_of_factory(nameless: bool, renamed: bool, built: &AtomicU64) -> &'static str {
    let used = built.load(Ordering::Relaxed) > 0;
    match (nameless, renamed && used) {
        (true, _) => "",
        (false, true) => "used",
        (false, false) => "faulty",
    }
}
