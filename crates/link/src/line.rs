//! How fast a link sends.

use crate::opportunities::Turns;
use crate::step::Course;
use crate::{Opportunities, Rate};

/// The work of sending a byte. The unit is the work of a rate of one bit per second in one nanosecond.
const WORK_PER_BYTE: u128 = 8 * 1_000_000_000;

/// The work of sending `size` bytes.
pub(crate) fn work(size: u64) -> u128 {
    u128::from(size) * WORK_PER_BYTE
}

/// Sends packets one after another, at a rate or at the times of a trace. Times are in nanoseconds and never decrease.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    Rated(Rated),
    Recorded(Turns),
}

impl Line {
    /// A line that sends when `trace` says, or else at `rate`.
    pub(crate) fn new(trace: Option<Opportunities>, rate: Course<Option<Rate>>) -> Self {
        match trace {
            Some(trace) => Self::Recorded(Turns::new(trace)),
            None => Self::Rated(Rated { rate, free_at: 0, remainder: 0 }),
        }
    }

    /// How long `size` bytes take at `now` on average; `None` if no time.
    pub(crate) fn time_of(&self, now: u64, size: u64) -> Option<u64> {
        match self {
            Self::Rated(rated) => rated.time_of(now, size),
            Self::Recorded(turns) => Some(turns.mean_time(size)),
        }
    }

    /// The first whole nanosecond at which everything is sent.
    pub(crate) fn sent_at(&self) -> u64 {
        match self {
            Self::Rated(rated) => rated.sent_at(),
            Self::Recorded(turns) => turns.sent_at(),
        }
    }

    /// When a packet that arrives at `now` begins to be sent.
    pub(crate) fn begins(&self, now: u64) -> u64 {
        match self {
            Self::Rated(rated) => rated.sent_at().max(now),
            Self::Recorded(turns) => turns.begins(now),
        }
    }

    /// Sends `size` bytes that arrive at `now`, once all earlier bytes are sent.
    pub(crate) fn send(&mut self, now: u64, size: u64) {
        match self {
            Self::Rated(rated) => rated.send(now, size),
            Self::Recorded(turns) => turns.send(now, size),
        }
    }

    /// The work that is left at `now` of all packets that were sent.
    pub(crate) fn work_left(&self, now: u64) -> u128 {
        match self {
            Self::Rated(rated) => rated.work_left(now),
            Self::Recorded(turns) => work(turns.bytes_left(now)),
        }
    }
}

/// Sends at a rate, which may change.
#[derive(Clone, Debug)]
pub(crate) struct Rated {
    rate: Course<Option<Rate>>,
    /// When the last packet will have been sent: at `free_at`, `remainder` units of work are left, less than a
    /// nanosecond's. Without the remainder, rounding would change the rate.
    free_at: u64,
    remainder: u128,
}

impl Rated {
    fn time_of(&self, now: u64, size: u64) -> Option<u64> {
        let rate = self.rate.at(now)?.bits_per_second();
        Some(u64::try_from(work(size) / u128::from(rate)).unwrap_or(u64::MAX))
    }

    fn sent_at(&self) -> u64 {
        self.free_at.saturating_add(u64::from(self.remainder > 0))
    }

    /// Everything is sent at the rates of its time.
    fn send(&mut self, now: u64, size: u64) {
        if self.sent_at() <= now {
            (self.free_at, self.remainder) = (now, 0);
        }
        let mut work = work(size) + self.remainder;
        loop {
            let Some(rate) = self.rate.at(self.free_at) else {
                self.remainder = 0;
                return;
            };
            let rate = u128::from(rate.bits_per_second());
            match self.rate.next_change(self.free_at) {
                Some(change) if u128::from(change - self.free_at) * rate <= work => {
                    work -= u128::from(change - self.free_at) * rate;
                    self.free_at = change;
                }
                _ => {
                    let time = u64::try_from(work / rate).unwrap_or(u64::MAX);
                    self.free_at = self.free_at.saturating_add(time);
                    self.remainder = work % rate;
                    return;
                }
            }
        }
    }

    fn work_left(&self, now: u64) -> u128 {
        let (mut from, mut left) = (now, self.remainder);
        if self.sent_at() <= now {
            left = 0;
        }
        while from < self.free_at {
            let to = self.rate.next_change(from).map_or(self.free_at, |at| at.min(self.free_at));
            let rate = self.rate.at(from).map_or(0, Rate::bits_per_second);
            left = left.saturating_add(u128::from(to - from) * u128::from(rate));
            from = to;
        }
        left
    }
}
