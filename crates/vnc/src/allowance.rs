//! How much a peer may have painted.
//!
//! A few bytes can have a whole screen painted: a copy of 18 bytes, a rectangle of one colour, a new size. An
//! end that paints for a peer counts the pixels, and waits when they become more than any desktop needs, so
//! that the peer takes a share of a processor at most, and other peers get their turn.

use crate::framebuffer::MAX_PIXELS;
use std::time::{Duration, Instant};

/// Pixels that a peer may have painted in a second, in the long run: a screen of 3840x2160 scrolled 60 times.
/// A processor of 2020 copies four times as many.
pub const MAX_PIXELS_PER_SECOND: u64 = 500_000_000;
/// Pixels that it may have painted at once after a pause: four of the largest screens.
pub const MAX_BURST: u64 = 4 * MAX_PIXELS as u64;

/// The pixels that one peer may still have painted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowance {
    /// When all that was painted will have been earned.
    earned: Option<Instant>,
}

impl Allowance {
    /// Notes that `pixels` pixels were painted.
    pub fn spend(&mut self, pixels: u64, now: Instant) {
        let from = self.earned.map_or(now, |earned| earned.max(now));
        self.earned = Some(from + time_for(pixels));
    }

    /// When more may be painted; `None` if that is now.
    #[must_use]
    pub fn wait_until(&self, now: Instant) -> Option<Instant> {
        let at = self.earned?.checked_sub(time_for(MAX_BURST))?;
        (at > now).then_some(at)
    }
}

/// The time in which `pixels` pixels are earned.
fn time_for(pixels: u64) -> Duration {
    Duration::from_nanos(pixels.saturating_mul(1_000_000_000 / MAX_PIXELS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_copies_is_painted_no_faster_than_allowed() {
        let (start, mut allowance) = (Instant::now(), Allowance::default());
        let (mut now, mut painted) = (start, 0);
        while now < start + Duration::from_secs(10) {
            match allowance.wait_until(now) {
                Some(at) => now = at,
                None => {
                    allowance.spend(16_000_000, now);
                    painted += 16_000_000;
                }
            }
        }
        let most = 10 * MAX_PIXELS_PER_SECOND + MAX_BURST + 16_000_000;
        assert!((most / 10 * 9..=most).contains(&painted), "{painted}");
    }

    #[test]
    fn a_large_screen_that_scrolls_all_the_time_never_waits() {
        let (mut now, mut allowance) = (Instant::now(), Allowance::default());
        for _ in 0..600 {
            allowance.spend(3840 * 2160, now);
            assert_eq!(allowance.wait_until(now), None);
            now += Duration::from_micros(16_667);
        }
    }
}
