//! Tests for policies that somebody else wrote.
//!
//! Each function drives an implementation of one of the traits of [`policy`](crate::policy) and
//! panics, with the broken rule in the message, if it does not keep the trait's contract. Call it
//! from a test of the crate that has the policy. A run needs no clock, socket or seed from outside
//! and is the same every time.

mod congestion;
mod delivery;

pub use congestion::congestion;
pub use delivery::delivery;
pub use sutura_schedule::conformance::scheduler;
