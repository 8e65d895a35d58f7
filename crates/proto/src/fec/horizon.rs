//! When data that is sent now is at the receiver.

use std::time::{Duration, Instant};

/// The least and the expected time at which data that is sent now is at the receiver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Horizon {
    /// No data is there before.
    pub(crate) least: Instant,
    /// Data is there about then.
    pub(crate) expected: Instant,
}

impl Horizon {
    /// Data takes `least` at least and `expected` as a rule. `None` beyond the end of time.
    pub(crate) fn new(now: Instant, least: Duration, expected: Duration) -> Option<Self> {
        let (least, expected) = (now.checked_add(least)?, now.checked_add(expected)?);
        Some(Self { least, expected })
    }
}
