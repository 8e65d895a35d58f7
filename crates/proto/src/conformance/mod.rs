//! Test kits for policies, built in or from other crates.
//!
//! Each function drives an implementation of one of the traits of [`policy`](crate::policy) and
//! panics, with the broken rule in the message, if it does not keep the trait's contract. Call it
//! from a test of the crate that has the policy. A run needs no clock, socket or seed from outside
//! and is the same every time.

mod congestion;
mod delivery;
mod loss_reaction;
mod redundancy;
mod resend_order;
#[cfg(test)]
mod testing;

pub use congestion::congestion;
pub use delivery::delivery;
pub use loss_reaction::loss_reaction;
pub use redundancy::redundancy;
pub use resend_order::resend_order;
pub use sutura_schedule::conformance::{extended_scheduler, registry, scheduler};

use std::time::Duration;

/// Longer than any connection lasts, and within the range of every clock.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
