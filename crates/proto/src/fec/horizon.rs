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
    /// Data takes `delay` as a rule. At least it takes half of what the shortest round trip gives, because the way
    /// there may be shorter than the way back. `None` beyond the end of time.
    pub(crate) fn new(now: Instant, min_rtt: Duration, delay: Duration) -> Option<Self> {
        let (least, expected) = (now.checked_add(min_rtt / 4)?, now.checked_add(delay)?);
        Some(Self { least, expected })
    }
}
