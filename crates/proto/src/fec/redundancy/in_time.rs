//! How early data must be sent to be in time, although round trips differ.

use super::{LOSS_DETECTION_EIGHTHS, PathView, View};
use std::time::Duration;

/// How many mean deviations of the round-trip time data is sent early: half the number of the probe timeout
/// (RFC 9002, section 6.2.1), because data goes only one way.
const MARGIN_DEVIATIONS: u32 = 2;
/// The least margin: the granularity of timers (RFC 9002, section 6.1.2).
const MIN_MARGIN: Duration = crate::rtt::GRANULARITY;
/// The most retransmissions of the same data that are counted: more are hardly ever needed.
const MOST_RETRANSMISSIONS: u32 = 8;

impl PathView {
    /// How much earlier than half a round trip before a deadline data must be sent to be in time: twice the
    /// mean deviation of the round-trip time, at least a millisecond. This is `epsilon` of Michel 2022,
    /// Algorithm 4.
    #[must_use]
    pub fn margin(&self) -> Duration {
        (self.rtt_variation * MARGIN_DEVIATIONS).max(MIN_MARGIN)
    }

    /// How much sooner than necessary a retransmission must arrive to be relied on: the margin, but at
    /// least a sixteenth of a round trip, because a loss is known only when later packets arrive. At
    /// most an eighth, because the first estimates of the deviation are far too high.
    fn reserve(&self) -> Duration {
        self.margin().max(self.rtt / 16).min(self.rtt / 8)
    }

    /// Whether lost data that may take this long arrives in time if it is sent again, with some reserve.
    #[must_use]
    pub fn retransmission_is_in_time(&self, tolerance: Duration) -> bool {
        let tolerance = tolerance.checked_sub(self.reserve());
        tolerance.is_some_and(|tolerance| self.retransmission_is_enough(tolerance))
    }

    /// How many times, one after the other, data that may take this long can be lost and sent again and still
    /// arrive in time.
    #[must_use]
    pub fn retransmissions_in_time(&self, tolerance: Duration) -> u32 {
        let each = self.rtt * LOSS_DETECTION_EIGHTHS / 8 + self.reserve();
        let counts = (0..MOST_RETRANSMISSIONS).take_while(|before| {
            let left = tolerance.checked_sub(each * *before);
            left.is_some_and(|left| self.retransmission_is_in_time(left))
        });
        counts.count() as u32
    }
}

impl View {
    /// See [`PathView::retransmission_is_in_time`]; false for data that is not sent again.
    #[must_use]
    pub fn retransmission_is_in_time(&self, tolerance: Duration) -> bool {
        self.resends && self.path.retransmission_is_in_time(tolerance)
    }
}
