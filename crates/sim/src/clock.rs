//! Virtual time.

use std::time::{Duration, Instant};

/// Translates between the time since a simulation began and the `Instant`s that the transport
/// wants.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock that stands at `epoch` at time zero. Nothing depends on which instant that is.
    #[must_use]
    pub const fn starting_at(epoch: Instant) -> Self {
        Self { epoch }
    }

    /// The instant at which so much time has passed.
    #[must_use]
    pub fn at(&self, elapsed: Duration) -> Instant {
        self.epoch + elapsed
    }

    /// The time from the beginning to `instant`; zero for anything before.
    #[must_use]
    pub fn since_start(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.epoch)
    }
}

impl Default for Clock {
    /// There is no other way to come by an `Instant` than to ask for the present one. It is not
    /// asked for again, and only differences to it are used.
    fn default() -> Self {
        Self::starting_at(Instant::now())
    }
}
