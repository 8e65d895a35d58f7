//! What the tests of several kits share.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a kit says: the message with which it panics.
pub(super) fn verdict(kit: impl Fn()) -> String {
    match catch_unwind(AssertUnwindSafe(kit)) {
        Ok(()) => "accepted".to_owned(),
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_else(|| {
            panic.downcast_ref::<&str>().map_or_else(String::new, |text| (*text).to_owned())
        }),
    }
}
