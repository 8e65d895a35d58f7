//! The connection's timers: only a handful, so a flat table will do.

use std::time::Instant;

/// The purposes of timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// Nothing was received for the idle timeout.
    Idle,
    /// Loss detection or a probe timeout.
    LossDetection,
    /// A delayed acknowledgement is due.
    AckDelay,
    /// The pacer allows the next packet.
    Pacing,
    /// The closing or draining period ends.
    Close,
    /// A redundancy policy wants to be asked again, or held data is released.
    Redundancy,
    /// A packet must be sent to keep the connection alive.
    KeepAlive,
    /// The previous keys are no longer needed.
    OldKeys,
    /// The key of 0-RTT packets is no longer needed.
    ZeroRttKeys,
    /// A path is not validated yet: it is challenged again, or given up.
    PathValidation,
    /// This end's identifiers are to be replaced.
    Identifiers,
    /// The server's preferred address is not validated yet: it is challenged again, or given up.
    PreferredAddress,
}

impl Timer {
    /// All timers, in the order in which simultaneous ones fire.
    pub const ALL: [Self; 12] = [
        Self::Close,
        Self::Idle,
        Self::LossDetection,
        Self::AckDelay,
        Self::Redundancy,
        Self::Pacing,
        Self::KeepAlive,
        Self::OldKeys,
        Self::ZeroRttKeys,
        Self::PathValidation,
        Self::Identifiers,
        Self::PreferredAddress,
    ];
}

/// When each timer fires.
#[derive(Debug, Default)]
pub struct TimerTable {
    at: [Option<Instant>; Timer::ALL.len()],
}

impl TimerTable {
    /// Sets or clears `timer`.
    pub fn set(&mut self, timer: Timer, at: Option<Instant>) {
        self.at[timer as usize] = at;
    }

    /// Whether `timer` is running.
    pub fn is_set(&self, timer: Timer) -> bool {
        self.at[timer as usize].is_some()
    }

    /// Clears everything.
    pub fn clear(&mut self) {
        self.at = Default::default();
    }

    /// When the next timer fires.
    pub fn next(&self) -> Option<Instant> {
        self.at.iter().flatten().min().copied()
    }

    /// Clears `timer` and returns true if it is due at `now`.
    pub fn take_expired(&mut self, timer: Timer, now: Instant) -> bool {
        let slot = &mut self.at[timer as usize];
        let due = slot.is_some_and(|at| at <= now);
        if due {
            *slot = None;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn earliest_first_and_each_once() {
        let now = Instant::now();
        let mut timers = TimerTable::default();
        timers.set(Timer::Idle, Some(now + Duration::from_secs(2)));
        timers.set(Timer::AckDelay, Some(now + Duration::from_secs(1)));
        assert_eq!(timers.next(), Some(now + Duration::from_secs(1)));
        assert!(!timers.take_expired(Timer::AckDelay, now));
        assert!(timers.take_expired(Timer::AckDelay, now + Duration::from_secs(1)));
        assert!(!timers.take_expired(Timer::AckDelay, now + Duration::from_secs(1)));
        timers.clear();
        assert_eq!(timers.next(), None);
    }
}
