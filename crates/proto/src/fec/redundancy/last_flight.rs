//! When all data is sent, and a loss would be found out only after a silence.

use super::View;
use super::foresight::lacks_repairs;
use std::time::{Duration, Instant};

/// How long to wait for the application to write more, in shares of a round trip, unless it said that
/// there is no more.
const SILENCE_DIVISOR: u32 = 8;
/// The data of so many congestion windows is protected. What precedes it is known to have arrived or
/// to be lost before the end is sent, even if the window doubles meanwhile.
const WINDOWS: u64 = 2;

/// Whether what is sent now may still be in flight when the sender has to pause: because the
/// application has no more, or because flow control stops it.
pub(super) fn pause_comes_near(view: &View) -> bool {
    LastFlight::comes_near(view) || view.buffer <= near(view)
}

fn near(view: &View) -> u64 {
    WINDOWS.saturating_mul(view.path.window)
}

/// The end of the data that an application has written: for good, or for now.
#[derive(Debug, Default)]
pub(super) struct LastFlight {
    /// From when on all data counts as sent; `None` if there is more.
    over: Option<Instant>,
    /// Whether a repair symbol was sent since then, so that there is nothing to wait for.
    begun: bool,
}

impl LastFlight {
    /// Whether data that is sent now may belong to the last flight.
    pub(super) fn comes_near(view: &View) -> bool {
        view.left <= near(view)
    }

    /// Whether a repair symbol is due.
    pub(super) fn is_unprotected(&self, now: Instant, view: &View) -> bool {
        let over = self.over.is_some_and(|at| at <= now) && view.left == 0;
        over && lacks_repairs(view)
    }

    /// A source symbol was sent. What is sent again at the end leaves it the end.
    pub(super) fn on_source_sent(&mut self, view: &View) {
        if view.left > 0 {
            *self = Self::default();
        }
    }

    /// All data that the application has written was sent; `ended` if there will be no more.
    pub(super) fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        let wait = if ended { Duration::ZERO } else { view.path.rtt / SILENCE_DIVISOR };
        *self = Self { over: Some(now + wait), begun: false };
    }

    /// A repair symbol was sent.
    pub(super) fn on_repair_sent(&mut self, now: Instant) {
        self.begun = self.over.is_some_and(|at| at <= now);
    }

    /// When all data counts as sent.
    pub(super) fn timeout(&self) -> Option<Instant> {
        self.over.filter(|_| !self.begun)
    }
}
