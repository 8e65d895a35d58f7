//! How much redundancy the path has shown to have room for.
//!
//! Nobody knows what a path carries beyond what is sent. If a queue builds up after repair symbols were sent, and
//! none of the packets of a round trip finds it empty, these were too many: until it is empty none is sent, and then
//! a quarter as many. They become twice as many after a time without such a queue, which is twice as long after each. So
//! what redundancy can do to a path without room is a queue of a round trip's repair symbols, ever more seldom.

use super::queue::Nanos;
use super::rests::Rests;
use super::stretch::{Passed, Stretch, is_long};
use crate::arithmetic::nanos;
use std::time::Instant;

/// Over how many round trips a stretch is sent, at least.
const TRIPS: u32 = 1;
/// Over how many packets the share of repair symbols is averaged.
const MEMORY: f64 = 64.0;
/// A queue is not due to redundancy if it is so many times as long as the repair symbols can have made it.
const EXPLAINED: Nanos = 2;
/// What is left of the share when it was too much.
const CUT: f64 = 0.25;
/// There is room for so many repair symbols per packet anywhere.
const LEAST: f64 = 1.0 / 128.0;

/// Watches for queues that redundancy makes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// How many packets with repair symbols may be sent for each of the others.
    share: f64,
    /// How many were sent for each packet, lately.
    sent: f64,
    /// How many were sent since the queue was last empty.
    repairs: u32,
    /// Whether the queue that stands is more than redundancy can have made.
    foreign: bool,
    /// Whether the queue was never empty in the latest stretch.
    filled: bool,
    stretch: Stretch,
    /// Until when it is not tried out whether there is more room.
    patience: Rests,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            share: f64::INFINITY,
            sent: 0.0,
            repairs: 0,
            foreign: false,
            filled: false,
            stretch: Stretch::default(),
            patience: Rests::default(),
        }
    }
}

impl Room {
    /// A packet with repair symbols was sent, whose fate is known now.
    pub(super) fn on_repair(&mut self) {
        self.sent += 1.0 / MEMORY;
        self.repairs = self.repairs.saturating_add(1);
    }

    /// Handles a round-trip time on a path whose minimum is `min`.
    #[inline]
    pub(super) fn on_rtt(&mut self, now: Instant, rtt: Nanos, min: Nanos) {
        self.sent *= 1.0 - 1.0 / MEMORY;
        if let Some(stretch) = self.stretch.add(now, rtt, TRIPS) {
            self.judge(now, &stretch, min);
        }
    }

    /// A stretch is over.
    fn judge(&mut self, now: Instant, stretch: &Passed, min: Nanos) {
        let Passed { least, count, took } = *stretch;
        // Each makes the queue longer by the time from one packet to the next at most, where the path carries as much.
        let each = nanos(took) / u64::from(count);
        let explained = each.saturating_mul(EXPLAINED).saturating_mul(self.repairs.into());
        let filled = is_long(least, min);
        if !filled {
            (self.repairs, self.foreign) = (0, false);
            if self.share.is_finite() && !self.patience.lasts(now) {
                self.share *= 2.0;
                self.patience.repeat(now);
            }
        } else if !self.filled && !self.foreign && explained < least - min {
            self.foreign = true;
        } else if !self.filled && !self.foreign {
            self.cut(now);
        }
        self.filled = filled && !self.foreign;
    }

    /// Redundancy is too much for the path.
    pub(super) fn cut(&mut self, now: Instant) {
        self.share = (self.share.min(self.sent) * CUT).max(LEAST);
        self.patience.restart(now);
    }

    /// How many packets with repair symbols may be sent for each of the others; infinity as long as no queue has
    /// been made by some.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Whether a queue stands that redundancy has made.
    pub(super) fn is_filled(&self) -> bool {
        self.filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use sutura_random::Rng;

    const MS: Nanos = 1_000_000;
    const MIN: Nanos = 60 * MS;
    const SECOND: Duration = Duration::from_secs(1);

    /// A path with a packet every 4 ms, and a repair symbol after each fourth while `room` allows it.
    struct Bed {
        room: Room,
        now: Instant,
        sent: u32,
        repairs: u32,
    }

    impl Bed {
        fn new() -> Self {
            Self { room: Room::default(), now: Instant::now(), sent: 0, repairs: 0 }
        }

        /// Handles so many packets that took this much longer than the minimum.
        fn play(&mut self, packets: u32, beyond: impl Fn(u32) -> u64) {
            for n in 0..packets {
                self.now += Duration::from_millis(4);
                self.room.on_rtt(self.now, MIN + MS * beyond(n), MIN);
                self.sent += 1;
                if self.sent.is_multiple_of(4) && !self.room.is_filled() {
                    self.room.on_repair();
                    self.repairs += 1;
                }
            }
        }
    }

    #[test]
    fn a_queue_after_redundancy_stops_it_and_leaves_a_quarter() {
        let mut bed = Bed::new();
        bed.play(400, |_| 1);
        assert_eq!((bed.room.share(), bed.room.is_filled()), (f64::INFINITY, false));
        bed.play(32, |_| 10);
        assert!(bed.room.is_filled());
        let share = bed.room.share();
        assert!((0.04..0.08).contains(&share), "a quarter of a quarter: {share}");
        let before = bed.repairs;
        bed.play(100, |_| 10);
        assert_eq!((bed.repairs, bed.room.share()), (before, share));
        bed.play(32, |_| 1);
        assert!(!bed.room.is_filled(), "it is empty again");
        assert_eq!(bed.room.share(), share);
    }

    #[test]
    fn it_is_tried_out_again_ever_more_seldom() {
        let mut bed = Bed::new();
        let mut since = bed.now;
        let mut gaps = Vec::new();
        for _ in 0..3 {
            bed.play(64, |_| 1);
            bed.play(32, |_| 10);
            assert!(bed.room.is_filled());
            let low = bed.room.share();
            while bed.room.share() <= low {
                bed.play(16, |_| 1);
            }
            gaps.push((bed.now - since).as_secs());
            since = bed.now;
        }
        assert!(gaps[0] >= 10 && gaps[1] >= 20 && gaps[2] >= 40, "{gaps:?}");
    }

    #[test]
    fn there_is_always_room_for_a_few() {
        let mut bed = Bed::new();
        for _ in 0..20 {
            bed.room.cut(bed.now);
        }
        assert_eq!(bed.room.share(), LEAST);
        bed.now += 600 * SECOND;
        bed.play(32, |_| 1);
        assert_eq!(bed.room.share(), 2.0 * LEAST);
    }

    #[test]
    fn a_queue_that_redundancy_cannot_have_made_is_not_its_own() {
        let mut bed = Bed::new();
        bed.play(400, |_| 1);
        // As after an outage, or beside a download.
        bed.play(200, |_| 300);
        assert_eq!((bed.room.share(), bed.room.is_filled()), (f64::INFINITY, false));
        // Nor is one on a path without redundancy.
        let mut room = Room::default();
        let now = bed.now;
        (0..200).for_each(|n| room.on_rtt(now + Duration::from_millis(4) * n, MIN + 10 * MS, MIN));
        assert_eq!((room.share(), room.is_filled()), (f64::INFINITY, false));
    }

    #[test]
    fn bursts_and_jitter_are_no_queue() {
        let (mut bursts, mut jitter) = (Bed::new(), Bed::new());
        bursts.play(4_000, |n| u64::from(10 * (n % 8)));
        let mut random = Rng::new(1);
        let delays: Vec<u64> = (0..4_000).map(|_| random.below(40)).collect();
        jitter.play(4_000, |n| delays[n as usize]);
        for bed in [bursts, jitter] {
            assert_eq!((bed.room.share(), bed.repairs), (f64::INFINITY, 1_000));
        }
    }
}
