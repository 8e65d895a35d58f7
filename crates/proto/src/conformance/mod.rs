//! Conformance tests for policies, whether built in or from other crates.
//!
//! Each function tests an implementation of one of the traits of [`policy`](crate::policy). If the
//! implementation violates the trait's contract, it panics with a message that names the rule. Call
//! it from a test in the crate of the policy. A run needs no clock, socket or external seed, and is
//! the same every time.

mod delivery;
mod loss_reaction;
mod redundancy;
mod resend_order;
#[cfg(test)]
mod testing;

pub use delivery::delivery;
pub use loss_reaction::loss_reaction;
pub use redundancy::redundancy;
pub use resend_order::resend_order;
pub use sutura_congestion::conformance::congestion;
pub use sutura_schedule::conformance::{extended_scheduler, registry, scheduler};

use std::time::Duration;

/// Longer than any connection lasts, but within the range of every clock.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
