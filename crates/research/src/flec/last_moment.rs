//! When messages can wait no longer for their repair symbols.

use std::time::{Duration, Instant};
use sutura_proto::policy::{PathView, View};

/// Whether repair symbols of messages go now: lines 1, 2 and 15 of Michel 2022, Algorithm 4.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LastMoment {
    /// The congestion window must hold this many times the bytes in flight.
    theta: f64,
    /// When unprotected symbols can wait no longer; `None` if none of them has a deadline.
    at: Option<Instant>,
}

/// How long before a deadline the last moment is.
fn way(path: &PathView) -> Duration {
    path.one_way() + path.margin()
}

impl LastMoment {
    /// Requires that the congestion window holds `theta` times the bytes in flight, so that there is room for
    /// the next messages.
    pub(super) fn new(theta: f64) -> Self {
        Self { theta, at: None }
    }

    /// Lines 1 and 2: whether the message with the closest deadline would be too late if it waited for
    /// the next one. Also true if no message has a deadline, or if it is unknown when the next message comes.
    pub(super) fn is_near(now: Instant, view: &View) -> bool {
        let (Some(deadline), Some(next)) = (view.deadline, view.next_message) else { return true };
        now.max(next).checked_add(way(&view.path)).is_none_or(|arrival| arrival >= deadline)
    }

    /// Line 15: whether a repair symbol takes no room from messages.
    pub(super) fn has_room(self, view: &View) -> bool {
        view.idle && view.path.window as f64 > self.theta * view.path.in_flight as f64
    }

    /// Handles a change of the unprotected symbols or of the path.
    pub(super) fn plan(&mut self, view: &View) {
        self.at = view.deadline.and_then(|deadline| deadline.checked_sub(way(&view.path)));
    }

    /// When the answers may change without any other event.
    pub(super) fn timeout(self) -> Option<Instant> {
        self.at
    }
}
