//! Checks that a connection does not contradict itself, and leaves nothing behind: an oracle for
//! fuzzers, simulators and tests.

use super::Connection;
use super::timer::Timer;
use crate::invariant::ensure;

impl Connection {
    /// Checks what must hold between any two calls of streams, coding sessions, messages and lost
    /// data: copies of the same state agree, and nothing waits for an event that never comes. Visits
    /// everything, so do not call it for every packet. A closed connection has nothing to check.
    ///
    /// # Errors
    /// A description of the first contradiction. It is a bug.
    pub fn check(&self) -> Result<(), String> {
        if self.is_closed() { Ok(()) } else { self.egress.check(&self.streams) }
    }

    /// Checks that nothing outlives its owner: once all streams are over and all messages settled,
    /// and a few probe timeouts have passed, no stream, no symbol, no buffer, no frame and no timer
    /// is left of them.
    ///
    /// # Errors
    /// A description of state that is left.
    pub fn check_nothing_left(&self) -> Result<(), String> {
        if self.is_closed() {
            return Ok(());
        }
        self.egress.check_nothing_left(&self.streams)?;
        let decoders = self.ingress.decoders.timeout(self.pto());
        ensure(decoders.is_none(), || "memory of decoders".to_owned())?;
        let idle = self.egress.idle_timeout();
        ensure(idle.is_none(), || "memory of encoders".to_owned())?;
        let timers = [Timer::Redundancy, Timer::Pacing, Timer::AckDelay];
        let left = timers.into_iter().find(|timer| self.timers.is_set(*timer));
        ensure(left.is_none(), || format!("a timer: {left:?}"))
    }
}
