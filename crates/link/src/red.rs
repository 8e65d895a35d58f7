//! Random early detection (RED, Floyd and Jacobson 1993): the longer the queue is on average, the more of the
//! arriving packets are dropped.

use sutura_random::Rng;

use crate::power::power;

/// How much of the average each arriving packet is.
const WEIGHT: f64 = 0.002;
/// The shares of the room from which on packets are dropped, and at which [`MOST`] of them are.
const LEAST: f64 = 1.0 / 6.0;
const LARGE: f64 = 1.0 / 2.0;
/// The share of packets that is dropped at the larger threshold. Up to twice that, the share rises to 1.
const MOST: f64 = 0.1;
/// The number of the random stream; others of the link have other numbers.
const STREAM: u64 = 0x40;

/// The state of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    /// The average number of waiting bytes.
    average: f64,
    /// Packets since the last one that was dropped.
    since: f64,
    rng: Rng,
}

impl Red {
    pub(crate) fn new(seed: u64) -> Self {
        Self { average: 0.0, since: 0.0, rng: Rng::stream(seed, STREAM) }
    }

    /// Whether a packet is dropped that finds `waiting` bytes in a queue with this much `room`. `idle` is the
    /// number of packets that the link could have sent since it last had one.
    pub(crate) fn drops(&mut self, waiting: u64, room: u64, idle: u64) -> bool {
        self.average *= power(1.0 - WEIGHT, idle);
        self.average += WEIGHT * (waiting as f64 - self.average);
        // Each packet takes one draw, so that equal seeds stay in step.
        let luck = self.rng.unit();
        let share = share(self.average / room.max(1) as f64);
        if share <= 0.0 {
            self.since = 0.0;
            return false;
        }
        self.since += 1.0;
        let spread = share / (1.0 - self.since * share).max(share);
        let drops = luck < spread;
        if drops {
            self.since = 0.0;
        }
        drops
    }
}

/// The share of packets to drop, by the share of the room that is taken on average.
fn share(taken: f64) -> f64 {
    if taken < LEAST {
        0.0
    } else if taken < LARGE {
        MOST * (taken - LEAST) / (LARGE - LEAST)
    } else {
        (MOST + (1.0 - MOST) * (taken - LARGE) / LARGE).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of packets that are dropped once the average has settled at this many bytes of 60,000.
    fn dropped(waiting: u64) -> f64 {
        let mut red = Red::new(1);
        let drops: Vec<bool> = (0..40_000).map(|_| red.drops(waiting, 60_000, 0)).collect();
        drops[20_000..].iter().filter(|drop| **drop).count() as f64 / 20_000.0
    }

    #[test]
    fn the_longer_the_queue_the_more_is_dropped() {
        assert_eq!(dropped(9_900), 0.0);
        let shares = [15_000, 20_000, 29_000, 45_000].map(dropped);
        assert!(shares.is_sorted() && shares[0] > 0.01 && shares[3] > 0.4, "{shares:?}");
        // Drops are spread evenly, which makes them up to twice as frequent as the share.
        assert!((0.05..0.11).contains(&shares[1]), "{shares:?}");
        assert!(dropped(60_000) > 0.99);
    }

    #[test]
    fn a_short_peak_passes_and_silence_is_forgotten() {
        let mut red = Red::new(1);
        assert!((0..50).all(|_| !red.drops(60_000, 60_000, 0)));
        (0..5000).for_each(|_| _ = red.drops(60_000, 60_000, 0));
        assert!(red.drops(60_000, 60_000, 0));
        assert!(!red.drops(0, 60_000, 5000));
    }
}
