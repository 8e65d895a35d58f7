//! Whether packets meet a queue on the path, and whether it ever empties.
//!
//! Bursts of an application, the jitter of a radio link and other flows make round trips long now and then. Where
//! more is sent than the path carries, all of them are long: so is the shortest of many in a row. Many packets may be
//! a single flight, whose end waits for its beginning, and congestion control fills a queue for some round trips when it
//! starts: those in a row are sent over several of them.

use super::queue::Nanos;
use super::rests::Rests;
use super::stretch::{Stretch, is_long};
use std::time::Instant;

/// Over how many round trips a stretch is sent, at least.
const TRIPS: u32 = 2;
/// After how many long stretches in a row the queue stands.
const PROOF: u32 = 3;
/// Over how many round-trip times the share of long ones is averaged.
const MEMORY: f64 = 64.0;

/// Watches for a queue that stands, and whether redundancy goes into it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Backlog {
    stretch: Stretch,
    /// How many stretches in a row were long.
    long: u32,
    /// Whether packets with repair symbols were sent since the last stretch that was not long.
    redundant: bool,
    rests: Rests,
    /// The share of packets that met a queue, lately.
    queued: f64,
}

impl Backlog {
    /// A packet with repair symbols was sent, whose fate is known now.
    pub(super) fn on_repair(&mut self) {
        self.redundant = true;
    }

    /// Handles a round-trip time on a path whose minimum is `min`. `first` is the shortest of those of packets that
    /// were sent at nearly the same time, which has no wait for the others in it.
    #[inline]
    pub(super) fn on_rtt(&mut self, now: Instant, rtt: Nanos, first: Nanos, min: Nanos) {
        let met = if is_long(first, min) { 1.0 } else { 0.0 };
        self.queued += (met - self.queued) / MEMORY;
        if let Some(stretch) = self.stretch.add(now, rtt, TRIPS) {
            self.judge(now, stretch.least, min);
        }
    }

    /// A stretch is over, whose shortest round-trip time is `least`.
    fn judge(&mut self, now: Instant, least: Nanos, min: Nanos) {
        if is_long(least, min) {
            self.long = self.long.saturating_add(1);
        } else {
            (self.long, self.redundant) = (0, false);
        }
        if self.stands() && self.redundant {
            self.rests.begin(now);
        }
    }

    /// Whether the queue stands.
    fn stands(&self) -> bool {
        self.long >= PROOF
    }

    /// Whether redundancy would make the queue longer, or did so lately.
    pub(super) fn is_crowded(&self, now: Instant) -> bool {
        self.stands() || self.rests.lasts(now)
    }

    /// Which share of packets met a queue, lately.
    pub(super) fn queued(&self) -> f64 {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use sutura_random::Rng;

    const MS: Nanos = 1_000_000;
    const MIN: Nanos = 50 * MS;

    /// Adds round-trip times with this many milliseconds beyond the minimum, 20 ms apart; returns at which of them
    /// there was no room for redundancy.
    fn play(backlog: &mut Backlog, start: Instant, beyond: impl Iterator<Item = u32>) -> Vec<u32> {
        let crowded = (0..).zip(beyond).filter(|(i, beyond)| {
            let now = start + Duration::from_millis(20) * *i;
            let rtt = MIN + MS * Nanos::from(*beyond);
            backlog.on_rtt(now, rtt, rtt, MIN);
            backlog.is_crowded(now)
        });
        crowded.map(|(i, _)| i).collect()
    }

    #[test]
    fn a_queue_that_never_empties_has_no_room() {
        let (start, mut backlog) = (Instant::now(), Backlog::default());
        let crowded = play(&mut backlog, start, [30; 100].into_iter().chain([0; 100]));
        // From the end of the third stretch, to the end of the first one in which it was empty.
        assert_eq!(crowded, (47..111).collect::<Vec<_>>());
    }

    #[test]
    fn redundancy_that_was_sent_into_it_rests_for_longer() {
        let (start, mut backlog) = (Instant::now(), Backlog::default());
        backlog.on_repair();
        let crowded = play(&mut backlog, start, [30; 48].into_iter().chain([0; 1_000]));
        assert_eq!(crowded, (47..547).collect::<Vec<_>>(), "10 s");
    }

    #[test]
    fn a_flight_that_waits_for_its_own_beginning_is_no_queue() {
        let (start, mut backlog) = (Instant::now(), Backlog::default());
        // A round-trip time of 80 ms, and 200 packets in each of them, which is 12 stretches by their number alone.
        let crowded = (0..2_000).find(|i| {
            let now = start + Duration::from_micros(400) * *i;
            backlog.on_rtt(now, MIN + 30 * MS, MIN, MIN);
            backlog.is_crowded(now)
        });
        // Three stretches of two round trips each.
        assert_eq!(crowded, Some(1202));
    }

    #[test]
    fn bursts_and_jitter_are_no_queue() {
        let (start, mut random) = (Instant::now(), Rng::new(1));
        let (mut bursts, mut jitter) = (Backlog::default(), Backlog::default());
        let sawtooth = (0..2_000).map(|i| 10 * (i % 8));
        assert_eq!(play(&mut bursts, start, sawtooth), []);
        let uniform = (0..2_000).map(|_| (40.0 * random.unit()) as u32);
        assert_eq!(play(&mut jitter, start, uniform), []);
    }

    #[test]
    fn the_share_of_packets_that_meet_a_queue_is_known() {
        let (start, mut backlog) = (Instant::now(), Backlog::default());
        play(&mut backlog, start, (0..1_000).map(|i| if i % 4 == 0 { 30 } else { 2 }));
        assert!((0.2..0.3).contains(&backlog.queued()), "{}", backlog.queued());
        // What waits for its own beginning alone meets none.
        (0..1_000).for_each(|_| backlog.on_rtt(start, MIN + 30 * MS, MIN, MIN));
        assert!(backlog.queued() < 0.01, "{}", backlog.queued());
    }
}
