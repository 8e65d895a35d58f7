//! When all data is sent, and a loss would be found out only after a silence.

use super::foresight::lacks_repairs;
use std::time::{Duration, Instant};
use sutura_proto::policy::View;

/// How long to wait for the application to write more, in shares of a round trip, unless it said that
/// there is no more.
const SILENCE_DIVISOR: u32 = 8;

/// The end of the data that an application has written: for good, or for now. It is the moment at which
/// `allStreamSent()` of Michel 2022, section VI-A, becomes true, but an eighth of a round trip later unless
/// the data has ended for good.
#[derive(Debug, Default)]
pub struct LastFlight {
    /// From when on all data counts as sent; `None` if there is more.
    over: Option<Instant>,
    /// Whether a repair symbol was sent since `over`, so that there is nothing to wait for.
    begun: bool,
}

impl LastFlight {
    /// Whether a repair symbol is due: all data is sent, and too few are in flight.
    #[must_use]
    pub fn is_unprotected(&self, now: Instant, view: &View) -> bool {
        !self.rests(now) && view.left == 0 && lacks_repairs(view)
    }

    /// Whether no repair symbol is due at `now`, whatever the view is: there is more data, as far as is known.
    #[must_use]
    pub fn rests(&self, now: Instant) -> bool {
        self.over.is_none_or(|at| at > now)
    }

    /// A source symbol was sent. A symbol that is sent again at the end does not make the end any later.
    pub fn on_source_sent(&mut self, view: &View) {
        if view.left > 0 {
            *self = Self::default();
        }
    }

    /// All data that the application has written was sent; `ended` if there will be no more.
    pub fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        let wait = if ended { Duration::ZERO } else { view.path.rtt / SILENCE_DIVISOR };
        *self = Self { over: Some(now + wait), begun: false };
    }

    /// A repair symbol was sent.
    pub fn on_repair_sent(&mut self, now: Instant) {
        self.begun = self.over.is_some_and(|at| at <= now);
    }

    /// When all data counts as sent; `None` if a repair symbol was sent since, or if there is more data.
    #[must_use]
    pub fn timeout(&self) -> Option<Instant> {
        self.over.filter(|_| !self.begun)
    }
}
