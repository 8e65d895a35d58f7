//! Virtual time.

use std::time::{Duration, Instant};

/// Converts between the time since the start of a simulation and the `Instant`s that the transport
/// expects.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock whose time zero is `epoch`. Results do not depend on the choice of `epoch`.
    #[must_use]
    pub const fn starting_at(epoch: Instant) -> Self {
        Self { epoch }
    }

    /// The instant at which `elapsed` has passed since the start.
    #[must_use]
    pub fn at(&self, elapsed: Duration) -> Instant {
        self.epoch + elapsed
    }

    /// The time from the start to `instant`; zero if `instant` is earlier than the start.
    #[must_use]
    pub fn since_start(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.epoch)
    }
}

impl Default for Clock {
    /// Uses the current time as the epoch: there is no other way to create an `Instant`. The real
    /// clock is read only once, and only differences to the epoch are used.
    fn default() -> Self {
        Self::starting_at(Instant::now())
    }
}
